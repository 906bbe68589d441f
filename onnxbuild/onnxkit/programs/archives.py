"""PyTorch's zip archives (TorchScript, torch.export, AOTInductor): the same bytes wherever made, and checked without PyTorch."""

import re
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

_WRITTEN_BY_TORCH = frozenset({"version", ".data/version", "byteorder", ".data/serialization_id"})

_CONSTANT = re.compile(rb"  \w+ : Final\[.*\] = .*\n$")

_SOURCE_POSITIONS = ".debug_pkl"

_CODE = ".so"


def sort_constants(code: bytes) -> bytes:
    """TorchScript's code of a class with its constants sorted by name.

    torch.jit.script collects `__constants__` in a set (torch/jit/_recursive.py,
    `infer_concrete_type_builder`), so that their order is that of PYTHONHASHSEED.
    """
    sorted_lines: list[bytes] = []
    run: list[bytes] = []
    for line in code.splitlines(keepends=True):
        if _CONSTANT.match(line):
            run.append(line)
            continue
        sorted_lines += [*sorted(run), line]
        run = []
    return b"".join([*sorted_lines, *sorted(run)])


def rewrite_archive(
    source: Path, target: Path, keep: Callable[[str], bool] = lambda _: True
) -> None:
    """Write an archive anew: records and constants sorted by name, without places in the source.

    TorchScript keeps a `.debug_pkl` next to each piece of code, with absolute paths of the Python
    files that it came from; loading does not need it (torch/csrc/jit/serialization/import.cpp).
    The serialization id, which torch makes from names and checksums, is made again by its own
    writer, which also aligns tensors to 64 bytes, so that they can be mapped.

    Args:
        source: As torch wrote it.
        target: The file to write; its name does not enter the bytes.
        keep: Whether a record, named without the archive's own folder, is kept.
    """
    import torch

    reader = torch._C.PyTorchFileReader(str(source))  # noqa: SLF001 - as torch.load does
    with target.open("wb") as file:
        writer = torch._C.PyTorchFileWriter(file, compute_crc32=True)  # noqa: SLF001
        for name in sorted(reader.get_all_records()):
            left_out = name in _WRITTEN_BY_TORCH or name.endswith(_SOURCE_POSITIONS)
            if not left_out and keep(name):
                content = reader.get_record(name)
                if name.endswith(".py"):
                    content = sort_constants(content)
                writer.write_record(name, content, len(content))
        writer.write_end_of_file()


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


def stored_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members of an archive without compression, to be read in the time that its bytes take.

    Ten megabytes of compressed members, or of members that share their bytes, stand for petabytes.

    Args:
        archive: Opened by its path.

    Raises:
        ValueError: A member is there twice or is compressed, or they have more bytes than the file.
    """
    members = archive.infolist()
    names = Counter(each.filename for each in members)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"it holds {twice[0]} twice")
    if packed := [e.filename for e in members if e.compress_type != zipfile.ZIP_STORED]:
        raise ValueError(f"{packed[0]} in it is compressed")
    there_bytes = Path(str(archive.filename)).stat().st_size
    if sum(each.file_size for each in members) > there_bytes:
        raise ValueError(f"its members claim more bytes than the {there_bytes:,} of the file")
    return members
