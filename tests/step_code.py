"""The code that makes a step kind's output, as digests that only change when it computes something else.

The code is `run` and all definitions of this package that it refers to, directly or not. A definition's
digest is that of its syntax tree without what cannot change output: doc strings, comments, layout,
annotations of functions, `help` of options, what an exception says (a step that raises leaves no
result), names of local variables, and where it is defined and how it is called; a reference to
another definition stands for its digest. Doc strings are all strings that stand alone: those of a module, and those
below a constant or a field, too. Of the errors of onnxbuild.core.errors nothing counts but that they are raised: neither
the arguments, nor a constant that only they use, nor what a function does that returns such an error. `if TYPE_CHECKING:`,
`__all__`, the message of an assertion and the type that `cast` is given are for readers and type checkers. How far a step says that it is (onnxkit/host/progress.py,
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

from onnxbuild.onnxkit import frameworks
from tests.idle_code import SPEAKING, Silent, is_idle, speaks, without_help

ROOT = Path(__file__).parents[1]
COMPUTING = (
    "onnxbuild.onnxkit.",
    "onnxbuild.steps.",
    "onnxbuild.features.",
    "onnxbuild.core.axis",
)
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

_ERRORS = "onnxbuild.core.errors"
"""Its classes are sentences for people."""

_FRAMEWORKS = "onnxbuild.onnxkit.frameworks"
"""Its names are those of other packages' modules."""

_PROGRESS = "onnxbuild.onnxkit.host.progress"
_REPORTS, _PASSES_ON = ("report", "phase", "stage"), "counted"
"""Of it: what is called for the display alone, and what passes its first argument on as it is."""

_CODE = {".py", ".pyc"}


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
        if is_idle(node):
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
        each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
    ]


def _imports(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    if isinstance(node, ast.ImportFrom):
        if node.module == _FRAMEWORKS:
            return {a.name: (getattr(frameworks, a.name).__name__, "") for a in node.names}
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
        special = self._special(node)
        if special is not None:
            return special
        if isinstance(node, ast.Raise) and not speaks(node):
            node = Silent().visit(ast.parse(ast.unparse(node)).body[0])
        if isinstance(node, ast.Dict):
            node = without_help(node)
        parts = [
            f"{key}={self._value(value, is_name=key in _NAMES.get(type(node), ()))}"
            for key, value in _fields(node)
            if not (key == "annotation" and self._is_function)
        ]
        return f"{type(node).__name__}({','.join(parts)})"

    def _special(self, node: ast.AST) -> str | None:
        """The text of a node that is not written as it stands; None for all others."""
        if is_idle(node) or self._is_for_people(node):
            return ""
        if isinstance(node, ast.Assert):
            return f"Assert({self._node(node.test)})"
        if isinstance(node, ast.FunctionDef) and self._makes_an_error(node):
            return "an error"
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            if self._is_error(node.exc.func):
                return f"Raise({self._node(node.exc.func)})"
        elif isinstance(node, ast.Call):
            return self._call(node)
        elif isinstance(node, ast.Name):
            return self._name(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._of_module(node.value.id, node.attr) or None
        return None

    def _is_for_people(self, node: ast.AST) -> bool:
        """Whether it says how far the step is, or what an option is for."""
        if isinstance(node, ast.Expr):
            return self._is_report(node.value)
        if isinstance(node, ast.FunctionDef):
            return node.name == "progress"  # a context's method
        return isinstance(node, ast.keyword) and node.arg == "help"

    def _call(self, node: ast.Call) -> str | None:
        if self._progress_of(node) == _PASSES_ON:
            return self._node(node.args[0])
        if isinstance(node.func, ast.Name):
            if node.func.id == "cast":
                return self._node(node.args[1])
            if self._gives_an_error(node.func.id):
                return "an error"
        return None

    def _gives_an_error(self, name: str) -> bool:
        """Whether a name is that of a function of this package's that makes an error for people."""
        module, defined = self._own.module, name
        if name in self._imported and name not in self._module.definitions:
            module, defined = self._imported[name]
        if name in self._locals or not (_is_module(module) and module.startswith(COMPUTING)):
            return False
        statements = _module(module).definitions.get(defined, [])
        form = _Form(Definition(module, defined), _module(module))
        return any(isinstance(n, ast.FunctionDef) and form._makes_an_error(n) for n in statements)

    def _is_error(self, node: ast.expr | None) -> bool:
        """Whether a name is that of an error for people."""
        return (
            isinstance(node, ast.Name)
            and node.id != SPEAKING
            and self._imported.get(node.id, ("", ""))[0] == _ERRORS
        )

    def _makes_an_error(self, node: ast.FunctionDef) -> bool:
        """Whether a function always returns such an error, and does nothing else that can be a result."""
        return self._is_error(node.returns) and not speaks(node)

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


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What counts of a node, the same in all versions of Python."""
    for name, value in ast.iter_fields(node):
        if value is None or value == [] or name in {"type_comment", "type_params", "kind", "ctx"}:
            continue
        if name in {"annotation", "returns"} and not isinstance(node, ast.AnnAssign):
            continue
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
