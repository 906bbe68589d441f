"""The code that makes a step kind's output, as digests that only change when it computes something else.

The code is `run` and all definitions of this package that it refers to, directly or not. A definition's
digest is that of its syntax tree without what cannot change output: doc strings, comments, layout,
annotations of functions, `help=` of options, what an exception says (a step that raises leaves no
result), names of local variables, and where it is defined and how it is called; a reference to
another definition stands for its digest. How far a step says that it is (onnxkit/host/progress.py,
`context.progress`) is for the display alone and does not count, either. Notes, findings and what NotApplicableError says are kept with
a result and shown again: they count.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPUTING = ("onnxbuild.onnxkit.", "onnxbuild.steps.", "onnxbuild.core.points")
"""Modules whose definitions count; of others in this package the names alone."""

_ROUNDS = 12
"""How far away two definitions must be for an exchange of them to go unseen; nothing is half as deep."""

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = (*_FUNCTIONS, ast.ClassDef)
_NAMES: Mapping[type, tuple[str, ...]] = {
    ast.ExceptHandler: ("name",),
    ast.Global: ("names",),
    ast.Nonlocal: ("names",),
    **dict.fromkeys(_NAMED, ("name",)),
}
"""Fields that hold names: those of local variables are replaced."""

_SPEAKING = "NotApplicableError"

_PROGRESS = "onnxbuild.onnxkit.host.progress"
_REPORTS, _PASSES_ON = ("report", "phase", "stage"), "counted"
"""Of it: what is called for the display alone, and what passes its first argument on as it is."""

_BLANK, _CODE = "<text>", {".py", ".pyc"}


@dataclass(frozen=True, order=True)
class Definition:
    """Something at the top level of a module: a function, a class, a value; "" for all the rest."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name or '(top level)'}"


@dataclass
class _Module:
    """A module's top level.

    Attributes:
        definitions: Name -> the statements that define it.
        imported: Name -> what it stands for: (module, attribute), or (module, "") for a module.
    """

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def path_of(module: str) -> Path:
    """The module's file; of a package its `__init__.py`."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def codes_of(starts: Iterable[Definition]) -> dict[Definition, tuple[str, dict[Definition, str]]]:
    """Function -> (digest of all code that it runs, definition -> digest of its own text alone)."""
    reached = {start: _closure(start) for start in starts}
    texts = {each: _normal(each)[0] for found in reached.values() for each in found}
    alone = {each: _sha256(text, lambda ref: "") for each, text in texts.items()}
    digests: Mapping[Definition, str] = dict.fromkeys(texts, "")
    for _ in range(_ROUNDS):
        digests = {each: _sha256(text, digests.__getitem__) for each, text in texts.items()}
    codes = {}
    for start, found in reached.items():
        whole = "\n".join([digests[start], *sorted(digests[each] for each in found)])
        own = {each: alone[each] for each in found}
        codes[start] = (hashlib.sha256(whole.encode()).hexdigest(), own)
    return codes


def _closure(start: Definition) -> set[Definition]:
    found: set[Definition] = set()
    stack = [start]
    while stack:
        each = stack.pop()
        if each not in found:
            found.add(each)
            stack += [*_normal(each)[1], Definition(each.module, "")]  # and what is done at import
    return found


@functools.cache
def _module(name: str) -> _Module:
    module = _Module()
    for node in ast.parse(path_of(name).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module.imported |= _imports(node)
            continue
        for defined in _defined_by(node) or [""]:
            module.definitions.setdefault(defined, []).append(node)
    module.definitions.setdefault("", [])
    return module


def _defined_by(node: ast.stmt) -> list[str]:
    if isinstance(node, _NAMED):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    return [
        each.id
        for target in targets
        for each in ast.walk(target)
        if isinstance(each, ast.Name) and each.id != "__all__"
    ]


def _imports(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    if isinstance(node, ast.ImportFrom):
        return {a.asname or a.name: (str(node.module), a.name) for a in node.names}
    return {
        a.asname or a.name.partition(".")[0]: (
            a.name if a.asname else a.name.partition(".")[0],
            "",
        )
        for a in node.names
    }


@functools.cache
def _normal(definition: Definition) -> tuple[str, frozenset[Definition]]:
    """The definition's syntax tree as text, and what it refers to, which stands there as {module:name}."""
    module = _module(definition.module)
    form = _Form(definition, module)
    text = "".join(form.text(each) for each in module.definitions[definition.name])
    return text, frozenset(form.used)


def _sha256(text: str, digest_of: Callable[[Definition], str]) -> str:
    pieces = text.split("\0")
    for n in range(1, len(pieces), 2):  # every second is a reference
        pieces[n] = digest_of(Definition(*pieces[n].split(":", 1)))
    return hashlib.sha256("\0".join(pieces).encode("utf-8", "surrogatepass")).hexdigest()


class _Form:
    """Writes syntax trees of one definition as text, without what cannot change output."""

    def __init__(self, definition: Definition, module: _Module) -> None:
        self.used: set[Definition] = set()
        self._own = definition
        self._module = module
        self._imported = dict(module.imported)
        self._locals: dict[str, str] = {}
        self._is_function = False

    def text(self, node: ast.stmt) -> str:
        """The statement as text."""
        self._is_function = isinstance(node, _FUNCTIONS)
        if self._is_function:
            kept = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
            for name in dict.fromkeys(_bound_in(node)):
                if name not in kept | self._module.definitions.keys() | self._imported.keys():
                    self._locals[name] = f"local {len(self._locals)}"
        for each in ast.walk(node):
            if isinstance(each, ast.Import | ast.ImportFrom):
                self._imported |= _imports(each)
        return self._node(node)

    def _node(self, node: ast.AST) -> str:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return ""  # what is used of it is named where it is used
        if isinstance(node, ast.Expr) and self._is_report(node.value):
            return ""
        if isinstance(node, ast.FunctionDef) and node.name == "progress":  # a context's method
            return ""
        if isinstance(node, ast.Call) and self._progress_of(node) == _PASSES_ON:
            return self._node(node.args[0])
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of_module = self._of_module(node.value.id, node.attr)
            if of_module:
                return of_module
        if isinstance(node, ast.Raise) and not _speaks(node):
            node = _Silent().visit(ast.parse(ast.unparse(node)).body[0])
        if isinstance(node, ast.keyword) and node.arg == "help":
            return ""
        parts = [
            f"{key}={self._value(value, is_name=key in _NAMES.get(type(node), ()))}"
            for key, value in _fields(node)
            if not (key == "annotation" and self._is_function)
        ]
        return f"{type(node).__name__}({','.join(parts)})"

    def _is_report(self, node: ast.expr) -> bool:
        """Whether it reports how far the step is, and does nothing else."""
        if not isinstance(node, ast.Call):
            return False
        by_context = ast.unparse(node.func) == "context.progress"
        return by_context or self._progress_of(node) in _REPORTS

    def _progress_of(self, call: ast.Call) -> str:
        """The name of what is called, if that is of the module of progress."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        module, attribute = self._imported.get(name, ("", ""))
        return attribute if module == _PROGRESS and name not in self._locals else ""

    def _value(self, value: object, *, is_name: bool = False) -> str:
        if isinstance(value, ast.AST):
            return self._node(value)
        if isinstance(value, list):
            texts = [self._value(each, is_name=is_name) for each in value]
            return f"[{','.join(filter(None, texts))}]"
        if is_name and isinstance(value, str):
            return "itself" if value == self._own.name else self._locals.get(value, value)
        return repr(value)

    def _name(self, name: str) -> str:
        if name in self._locals:
            return self._locals[name]
        if name in self._module.definitions:
            return self._refer(self._own.module, name)
        if name in ("__file__", "__package__"):  # what is next to it
            folder = path_of(self._own.module).parent
            files = sorted(each for each in folder.rglob("*") if each.is_file())
            return f"files {[_file(each) for each in files if each.suffix not in _CODE]}"
        if name in self._imported:
            module, attribute = self._imported[name]
            return self._refer(module, attribute) if attribute else f"module {module}"
        return name

    def _of_module(self, name: str, attribute: str) -> str:
        """`name.attribute` where the former is a module of this package."""
        module, inside = self._imported.get(name, ("", ""))
        whole = f"{module}.{inside}" if inside else module
        if not _is_module(whole):
            return ""
        if attribute == "__file__" and whole.startswith(COMPUTING):
            return f"file {_file(path_of(whole))}"
        return self._refer(whole, attribute)

    def _refer(self, module: str, name: str) -> str:
        whole = f"{module}.{name}"
        if _is_module(whole) and whole.startswith(COMPUTING):  # a module as a value: its file
            return f"file {_file(path_of(whole))}"
        if not module.startswith(COMPUTING):
            own = module.startswith("onnxbuild.")
            return f"own {name}" if own else f"other {module}.{name}"
        if name not in _module(module).definitions:
            passed_on = _module(module).imported.get(name)
            return self._refer(*passed_on) if passed_on else f"{name} of {module}"
        self.used.add(Definition(module, name))
        return f"\0{module}:{name}\0"


def _file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class _Silent(ast.NodeTransformer):
    """Takes the words out of what is raised."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(_BLANK) if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        del node
        return ast.Constant(_BLANK)


def _speaks(node: ast.Raise) -> bool:
    """Whether what is raised becomes a result."""
    return node.exc is not None and any(
        isinstance(each, ast.Name) and each.id == _SPEAKING for each in ast.walk(node.exc)
    )


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What counts of a node, the same in all versions of Python."""
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in {"type_comment", "type_params", "kind", "ctx"}:
            continue
        if name in {"annotation", "returns"} and not isinstance(node, ast.AnnAssign):
            continue
        if name == "body" and isinstance(node, _NAMED):
            yield name, node.body[ast.get_docstring(node, clean=False) is not None :]
        else:
            yield name, value


def _bound_in(node: ast.AST) -> Iterator[str]:
    """Names that are bound somewhere in a function, in the order of the text."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
        elif isinstance(each, ast.ExceptHandler | ast.ClassDef | _FUNCTION) and each is not node:
            yield each.name or ""


@functools.cache
def _is_module(name: str) -> bool:
    return name.startswith("onnxbuild.") and path_of(name).is_file()


def forget() -> None:
    """Read all files again."""
    for each in (_module, _normal, _is_module):
        each.cache_clear()
