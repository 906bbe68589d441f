"""Programs that PyTorch runs without the module: opened, fed, called."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.export.torch_wrapping import quiet
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.tensor_types import tensor_of
from onnxbuild.onnxkit.modules.module_outputs import named_outputs
from onnxbuild.onnxkit.programs.artifact_file import (
    ProgramDescription,
    ProgramFormat,
    read_description,
)
from onnxbuild.onnxkit.sessions.open import first_line

PROGRAM_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions of a running program: torch.jit.Error is a RuntimeError, guards are assertions."""


class Program:
    """A loaded program.

    Args:
        description: How it is called.
        call: Takes tensors as the description says.
    """

    def __init__(self, description: ProgramDescription, call: Callable[..., Any]) -> None:
        self.description = description
        self._call = call

    def bind(self, feeds: Feeds) -> Callable[[], Any]:
        """A call without arguments that runs once on tensors made now, for timing; no copies.

        What it returns is the program's own structure of tensors (see `named_outputs`).
        """
        import torch

        tensors = {
            each.name: tensor_of(each.name, each.dtype, feeds[each.name])
            for each in self.description.inputs
        }
        call = self._call
        if self.description.by_keyword:

            def by_keyword() -> Any:
                with torch.inference_mode():
                    return call(**tensors)

            return by_keyword
        arguments = tuple(tensors.values())

        def by_position() -> Any:
            with torch.inference_mode():
                return call(*arguments)

        return by_position

    def run(self, feeds: Feeds) -> dict[str, np.ndarray]:
        """Output name -> array, contiguous.

        Raises:
            StepError: It returns other outputs than it is described to.
        """
        described = self.description
        names = [each.name for each in described.inputs]
        found = named_outputs(self.bind(feeds)(), described.outputs, inputs=names)
        return {
            name: np.array(tensor.detach().numpy(), order="C") for name, tensor in found.items()
        }


def open_program(folder: Path, *, threads: int, where: str = "") -> Program:
    """Load a program artifact.

    Args:
        folder: Holds the program and program.json.
        threads: Of PyTorch, in the whole process, from now on.
        where: `recipe:step`, for messages.

    Raises:
        StepError: PyTorch can't load it here.
    """
    import torch

    torch.set_num_threads(threads)
    description = read_description(folder)
    call = load_program(
        folder / description.file,
        description.format,
        where,
        fix="operators that the model registers in Python must be registered before it is "
        "loaded; formats can't take them along: leave this one out of `formats`",
    )
    return Program(description, call)


def load_program(
    path: Path, found: ProgramFormat, where: str = "", *, fix: str = ""
) -> Callable[..., Any]:
    """Load a program's file.

    Args:
        fix: What to do where it can't be loaded; empty for a file from elsewhere.

    Raises:
        StepError: PyTorch can't load it here.
    """
    try:
        with quiet():
            return _LOADERS[found](str(path))
    except (*PROGRAM_ERRORS, OSError, zipfile.BadZipFile) as error:
        raise StepError(
            f"PyTorch can't load the {found} program: {first_line(error)}",
            where=where,
            fix=fix or "make it with the PyTorch that is installed here, of operators that it has",
        ) from error


def import_runtime(program_format: ProgramFormat) -> None:
    """Import what loads a format, so that a load that is timed does not pay for that."""
    for module in _RUNTIMES[program_format]:
        importlib.import_module(module)


def _load_torchscript(path: str) -> Callable[..., Any]:
    import torch

    call: Callable[..., Any] = torch.jit.load(path, map_location="cpu").eval()
    return call


def _load_exported(path: str) -> Callable[..., Any]:
    import torch

    call: Callable[..., Any] = torch.export.load(path).module()
    return call


def _load_aotinductor(path: str) -> Callable[..., Any]:
    """Load without `aoti_load_package`, which compiles ten programs first to name this CPU, and only warns.

    Steps run on the machine that the package was made for: `bundles` and keys hold its instructions.
    """
    from torch._C import _aoti
    from torch.export.pt2_archive._package import AOTICompiledModel

    loader = _aoti.AOTIModelPackageLoader(path, "model", *_AS_TORCH_LOADS)
    call: Callable[..., Any] = AOTICompiledModel(loader)
    return call


_AS_TORCH_LOADS = (False, 1, -1)
"""`aoti_load_package`'s defaults: run_single_threaded, num_runners, device_index."""

_LOADERS: Mapping[str, Callable[[str], Callable[..., Any]]] = {
    "torchscript": _load_torchscript,
    "torch-export": _load_exported,
    "aotinductor": _load_aotinductor,
}

_RUNTIMES: Mapping[ProgramFormat, tuple[str, ...]] = {
    "torchscript": ("torch.jit",),
    "torch-export": ("torch.export.pt2_archive", "torch._export.serde.serialize"),
    "aotinductor": ("torch.export.pt2_archive._package",),
}
"""Modules that torch imports at its first load: up to 2 s, against some ms for the load itself."""
