"""PyTorch's zip archives (TorchScript, torch.export, AOTInductor), the same bytes wherever made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_WRITTEN_BY_TORCH = frozenset({"version", ".data/version", "byteorder", ".data/serialization_id"})
_CONSTANT = re.compile(rb"  \w+ : Final\[.*\] = .*\n$")
_SOURCE_POSITIONS = ".debug_pkl"


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
