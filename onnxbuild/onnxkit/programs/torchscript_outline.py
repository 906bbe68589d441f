"""Outline of a TorchScript archive's forward, read without PyTorch: names, no shapes."""

import ast
import pickletools
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.sources.parts import nearest

_ROOT = "__torch__"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of forward.

    Attributes:
        name: Its name.
        type: As the code spells it: `Tensor`, `Optional[Tensor]`, `int`.
        has_default: It may be left out.
    """

    name: str
    type: str
    has_default: bool

    @property
    def is_tensor(self) -> bool:
        """Whether a recipe can feed it."""
        return self.type in ("Tensor", "Optional[Tensor]")


class TorchScriptOutline:
    """The code of a TorchScript archive.

    Raises:
        SourceError: It is none.
        OSError: It can't be read.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._code: dict[str, str] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                self._check(names)
                for each in names:
                    _, found, file = each.partition("/code/")
                    if found and file.endswith(".py"):
                        self._code[file] = archive.read(each).decode()
                pickled = next(n for n in names if n.endswith("/data.pkl") and n.count("/") == 1)
                self._root = _first_class(archive.read(pickled))
        except SourceError:
            raise
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            ValueError,
            EOFError,
            StopIteration,
        ) as error:
            with path.open("rb") as opened:
                is_cut = opened.read(2) == b"PK"
            what = "it was cut short, or is damaged" if is_cut else "it is no archive of PyTorch"
            raise SourceError(
                f"{path.name} can't be read: {what}",
                "copy it again; git-lfs pointers are a frequent cause",
            ) from error

    def _check(self, names: Sequence[str]) -> None:
        if any("/code/" in name for name in names):
            return
        if any(name.endswith("models/model.json") for name in names):
            raise SourceError(
                f"{self._name} holds no TorchScript: it is a program of torch.export",
                "write `exported:` in place of `torchscript:`",
            )
        if any(name.endswith("data.pkl") for name in names):
            raise SourceError(
                f"{self._name} holds weights alone, or a pickled module (torch.save), and no program",
                "write a callable that builds the module and loads them (`module.load_state_dict(torch.load(path, "
                "weights_only=True))`), and name it: `model: {entrypoint: FILE.py:CALLABLE, files: [...]}`",
            )
        raise SourceError(
            f"{self._name} holds no TorchScript: it is another kind of archive",
            "name the file that `torch.jit.save` wrote",
        )

    def arguments(self, submodule: str) -> tuple[Argument, ...]:
        """The arguments of forward, without self; empty where the code can't be followed.

        Args:
            submodule: A dotted path; empty for the whole.

        Raises:
            SourceError: There is no such submodule.
        """
        name = self._root
        for n, part in enumerate(submodule.split(".") if submodule else ()):
            found = self._class(name)
            if found is None:
                return ()
            parts = _submodules(found)
            if part not in parts:
                at = ".".join(submodule.split(".")[:n])
                raise SourceError(
                    f"{self._name} has no submodule '{submodule}'",
                    did_you_mean(part, list(parts))
                    or f"{at or 'it'} has {', '.join(list(parts)[:8]) or 'none'}",
                    "model",
                    "submodule",
                )
            name = parts[part]
        found = self._class(name)
        forward = None if found is None else _forward(found)
        return () if forward is None else _arguments(forward)

    def _class(self, name: str) -> ast.ClassDef | None:
        """The definition of a class, by its name with dots."""
        module, _, short = name.rpartition(".")
        source = self._code.get(module.replace(".", "/") + ".py")
        try:
            tree = ast.parse(source or "")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        found = (
            each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == short
        )
        return next(found, None)


def _first_class(pickled: bytes) -> str:
    """The class of the object that a pickle holds, without loading it."""
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL" and str(argument).startswith(_ROOT):
            return str(argument).replace(" ", ".")
    raise ValueError("no class of TorchScript")


def _submodules(found: ast.ClassDef) -> dict[str, str]:
    """Attribute -> its class, of those that are modules.

    A name that is none in Python, such as the numbers of a Sequential, is written as
    `__annotations__["0"] = CLASS`.
    """
    types: dict[str, ast.expr] = {}
    for each in found.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                types[name] = kind
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value=str(name)))], value=kind
            ):
                types[name] = kind
    spelled = {name: ast.unparse(kind) for name, kind in types.items()}
    return {name: kind for name, kind in spelled.items() if kind.startswith(_ROOT)}


def _forward(found: ast.ClassDef) -> ast.FunctionDef | None:
    functions = (each for each in found.body if isinstance(each, ast.FunctionDef))
    return next((each for each in functions if each.name == "forward"), None)


def _arguments(forward: ast.FunctionDef) -> tuple[Argument, ...]:
    given = forward.args.args[1:]
    first_default = len(given) - len(forward.args.defaults)
    return tuple(
        Argument(
            each.arg,
            "" if each.annotation is None else ast.unparse(each.annotation),
            n >= first_default,
        )
        for n, each in enumerate(given)
    )


def check_arguments(name: str, arguments: Sequence[Argument], inputs: Mapping[str, Any]) -> None:
    """See that a recipe declares the tensors that forward takes: TorchScript says names of inputs, no types and shapes.

    Args:
        name: The file's, for messages.
        arguments: Forward's; none where its code can't be followed.
        inputs: `dummy_inputs` as they are written; values may be anything.

    Raises:
        SourceError: It does not.
    """
    tensors = [each for each in arguments if each.is_tensor]
    fixed = [each for each in arguments if not each.is_tensor and not each.has_default]
    if fixed:
        raise SourceError(
            f"forward of {name} takes `{fixed[0].name}: {fixed[0].type}`; a recipe feeds tensors",
            "name a part that takes tensors alone (`submodule: NAME` next to `torchscript`), or write a callable "
            f"that returns a module which loads it and passes `{fixed[0].name}` on",
        )
    known = [each.name for each in tensors]
    missing = [each.name for each in tensors if each.name not in inputs and not each.has_default]
    if missing:
        given = ", ".join(f"`{each}`" for each in missing)
        lines = ", ".join(f"{each}: {{dtype: float32, shape: [batch, ...]}}" for each in missing)
        raise SourceError(
            f"forward of {name} takes {given}, and TorchScript says no types and shapes",
            f"write `dummy_inputs: {{{lines}}}`",
            *(("dummy_inputs",) if inputs else ()),
        )
    for each in inputs if known else ():
        if each not in known:
            what = f"forward of {name} takes no tensor '{each}'"
            raise SourceError(what, nearest(str(each), known), "dummy_inputs", str(each))
