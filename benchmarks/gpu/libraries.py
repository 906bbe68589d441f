"""The libraries that ONNX Runtime's CUDA and TensorRT providers load: which they need, and where they are.

No CUDA has to be installed in the system: torch's packages (`nvidia-*`) bring it, and so does `torch/lib`.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROVIDERS = {
    "cuda": "libonnxruntime_providers_cuda.so",
    "tensorrt": "libonnxruntime_providers_tensorrt.so",
}
"""Provider -> its library in onnxruntime/capi/."""
LOADED_LATER = {"cuda": ("libcudnn.so.9",), "tensorrt": ()}
"""Libraries that a provider opens by name at its first use, so that no header names them."""
_GLOBS = ("nvidia/*/lib", "torch/lib", "tensorrt_libs", "tensorrt_libs_*")
_SYSTEM = (
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
)
_OF_THE_SYSTEM = (
    "libc.",
    "libm.",
    "libdl.",
    "librt.",
    "libpthread.",
    "libstdc++.",
    "libgcc_s.",
    "ld-linux",
)


@dataclass(frozen=True, slots=True)
class Libraries:
    """Libraries that a provider needs.

    Attributes:
        found: Name, such as `libcublas.so.13` -> its file.
        missing: Names that no folder has.
        searched: The folders, in order.
    """

    found: Mapping[str, Path]
    missing: tuple[str, ...]
    searched: tuple[Path, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that hold what was found: for LD_LIBRARY_PATH."""
        return tuple(dict.fromkeys(path.parent for path in self.found.values()))


def library_folders(
    sites: Iterable[str | Path] | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Path, ...]:
    """Return the folders to search: LD_LIBRARY_PATH, those of Python's packages, the system's.

    Args:
        sites: Folders of packages; None for the import path.
        environment: Variables; None for this process's.
    """
    variables = os.environ if environment is None else environment
    listed = [
        Path(part) for part in variables.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part
    ]
    for site in sys.path if sites is None else sites:
        listed += [path for glob in _GLOBS for path in sorted(Path(site or ".").glob(glob))]
    listed += map(Path, _SYSTEM)
    return tuple(dict.fromkeys(path for path in listed if path.is_dir()))


def find_libraries(
    provider: Path, folders: Iterable[Path], later: Iterable[str] = ()
) -> Libraries:
    """Find what a library needs, and what that needs in turn.

    Args:
        provider: The library.
        folders: Where to look, in order; its own comes first.
        later: Names that it opens by itself.

    Raises:
        ValueError: A file is no library of 64-bit Linux.
    """
    searched = tuple(dict.fromkeys((provider.parent, *folders)))
    found: dict[str, Path] = {}
    missing: dict[str, None] = {}
    wanted = [*needed_by(provider), *later]
    while wanted:
        name = wanted.pop(0)
        if name in found or name in missing or name.startswith(_OF_THE_SYSTEM):
            continue
        path = next((folder / name for folder in searched if (folder / name).is_file()), None)
        if path is None:
            missing[name] = None
        else:
            found[name] = path
            wanted += needed_by(path)
    return Libraries(found, tuple(missing), searched)


def needed_by(library: Path) -> list[str]:
    """Return the names in a library's dynamic section (DT_NEEDED; System V ABI, chapter 5).

    Raises:
        ValueError: It is no library of 64-bit, little-endian ELF.
    """
    with library.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{library} is no library of 64-bit Linux")
        (start,) = struct.unpack_from("<Q", head, 0x20)
        size, count = struct.unpack_from("<HH", head, 0x36)
        file.seek(start)
        table = file.read(size * count)
        # type, flags, offset, virtual address, physical address, size in the file
        segments = [struct.unpack_from("<IIQQQQ", table, size * n) for n in range(count)]
        dynamic = next((each for each in segments if each[0] == 2), None)  # PT_DYNAMIC
        if dynamic is None:
            return []
        file.seek(dynamic[2])
        entries = list(struct.iter_unpack("<qQ", file.read(dynamic[5] // 16 * 16)))
        values = {tag: value for tag, value in entries if tag in (5, 10)}  # DT_STRTAB, DT_STRSZ
        if set(values) != {5, 10}:
            return []
        at = next(
            s[2] + values[5] - s[3]
            for s in segments
            if s[0] == 1 and s[3] <= values[5] < s[3] + s[5]
        )
        file.seek(at)
        names = file.read(values[10])
    return [
        names[value : names.index(b"\0", value)].decode() for tag, value in entries if tag == 1
    ]
