"""Check that a file is one of PyTorch's archives, without PyTorch and without running it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from onnxbuild.onnxkit.zip_members import stored_members

_CODE = ".so"


def torchscript_fault(path: Path) -> str:
    """Return what is wrong with a TorchScript archive; empty if nothing is."""
    return _archive_fault(path, lambda name: "/code/" in name, "code of TorchScript")


def torch_export_fault(path: Path) -> str:
    """Return what is wrong with a torch.export archive; empty if nothing is."""
    return _archive_fault(path, lambda name: name.endswith("models/model.json"), "exported graph")


def aotinductor_fault(path: Path) -> str:
    """Return what is wrong with an AOTInductor package; empty if nothing is."""
    return _archive_fault(path, lambda name: name.endswith(_CODE), "machine code", native=True)


def _archive_fault(
    path: Path, wanted: Callable[[str], bool], what: str, *, native: bool = False
) -> str:
    """Return the fault of one of PyTorch's archives; empty if it has none.

    Args:
        path: The file.
        wanted: Whether a record's name is one that this form must have.
        what: What that record is.
        native: Whether machine code may be in it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [each.filename for each in stored_members(archive)]
            if damaged := archive.testzip():
                return f"{damaged} in it is damaged"
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        return f"it is no archive of PyTorch: {error}"
    if not native and (code := [name for name in names if name.endswith(_CODE)]):
        return f"it holds machine code, {code[0]}"
    return "" if any(map(wanted, names)) else f"it holds no {what}"
