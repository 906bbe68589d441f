"""Names of files in an artifact: relative, plain, each its own; whatever a store or a sender says of them."""

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

PARTS_MAX, CHARACTERS_MAX = 32, 1024
"""Limits of a path. Deeper and longer ones cost memory and recursion, and no system opens paths over 4,096 bytes."""
FILES_MAX = 10_000
"""Most files that a release, a package or an artifact of a registry holds."""
_PART_MAX_BYTES = 255
_SHOWN_CHARACTERS = 100

_PYTHON = frozenset({
    "load.py", "serve.py", "run.py", "pipeline_code.py", "pipeline_parts.py", "pipeline_sounds.py",
})  # fmt: skip
"""Python files that onnxbuild writes. Any other may have the name of a module that a Python started there imports."""
_PLATFORM = re.compile(r"(linux|macos|windows)-\w+")
_LIBRARIES_FOLDER = "operators"
"""Folder of a bundle's libraries of custom operators, which has one for each platform."""
_LIBRARY = re.compile(r".+\.(so|dll|dylib)(\.[0-9.]+)?")
_RUN = re.compile(
    r"head"  # a folder with HEAD, objects/ and refs/ is a git repository, and git reads its config
    r"|(agents|claude|gemini)\.md"  # instructions that coding agents follow
    r"|.+\.(pyc|pyo|pyd|pyw|pth|egg-link)"  # imported by Python, without or instead of a source
    r"|.+\.(exe|com|bat|cmd|vbs|vbe|jse|wsf|wsh|msc|lnk|scr)"  # what Windows finds before the PATH
)
"""Files that programs read or run because of where they are: on a start, a prompt, an opened folder."""
_ODD_FORM = re.compile(r"/\.|[<>:\"|?*`]|/ |[. ]/|~\d")
_HIDDEN = "is hidden, and tools read hidden files by themselves"
_SHORT = "may be the short name that Windows has for another file"
_DROPPED = "has a space around a part, or a dot after it, which Windows drops"
_NOT_EVERYWHERE = 'has one of the characters <>:"|?*`, which not every system can write'
_LOADED_FOLDERS = frozenset({"node_modules", "__pycache__"})


def check_part(name: str) -> str:
    """Return `name` if it can be one entry of a folder.

    Raises:
        ValueError: It leads elsewhere, or names nothing.
    """
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise ValueError(f"{_shown(name)} is not the name of a file")
    return name


def check_file_name(path: str) -> str:
    """Return `path` if it is a relative POSIX path that stays below the folder it starts in.

    Refused: absolute paths, empty parts, `.` and `..`, NUL, backslashes and drives (`C:`), which
    lead elsewhere on other systems; more than PARTS_MAX parts or CHARACTERS_MAX characters.

    Raises:
        ValueError: It is anything else.
    """
    parts = path.count("/") + 1
    if parts > PARTS_MAX or len(path) > CHARACTERS_MAX:
        raise ValueError(
            f"{_shown(path)} has {parts:,} parts and {len(path):,} characters; a path has at most "
            f"{PARTS_MAX} and {CHARACTERS_MAX:,}"
        )
    for number, part in enumerate(path.split("/")):
        check_part(part)
        if number == 0 and len(part) > 1 and part[1] == ":" and part[0].isalpha():
            raise ValueError(f"{_shown(path)} starts with a drive")
    return path


def check_file_names(paths: Iterable[str]) -> None:
    """Check the names of all files of one folder.

    Raises:
        ValueError: One leads elsewhere, is there twice, or is a folder of another.
    """
    names = [check_file_name(path) for path in paths]
    for file, other in _clashes({}, names):
        if file == other:
            raise ValueError(f"{_shown(file)} is there twice")
        raise ValueError(f"{_shown(file)} is a file and a folder")


def check_names_everywhere(paths: Iterable[str]) -> None:
    """Check the names of files that are passed on: written to any disk, next to anybody's tools.

    Some disks ignore case, or write accents in one way. Some tools run files for their names alone: git
    reads `.git/config`, a shell `.envrc`, Python `sitecustomize.py`. So a name has the form of those that
    onnxbuild writes: not hidden, in characters that every system can write, and Python files and
    libraries only where a bundle or a package has them.

    Raises:
        ValueError: As `check_file_names`; a name has another form; two names are one file on such a
            disk; or there are more than FILES_MAX, or as many folders.
    """
    names = list(paths)
    if len(names) > FILES_MAX:
        raise ValueError(f"there are {len(names):,} files; expected at most {FILES_MAX:,}")
    check_file_names(names)
    _check_folders(names)
    folded = {path: same_on_disk(path) for path in names}
    for path, on_disk in folded.items():
        if why := _refused_form(path) or _run_by_itself(on_disk):
            raise ValueError(f"{_shown(path)} {why}")
    for file, other in _clashes(folded, names):
        if folded[file] == folded[other]:
            what = "differ only in case, or in how an accent is written"
            raise ValueError(
                f"{_shown(file)} and {_shown(other)} {what}: on some disks they are one file"
            )
        folder = "/".join(other.split("/")[: file.count("/") + 1])
        raise ValueError(
            f"{_shown(file)} is a file, and {_shown(folder)} a folder: on some disks they have one name"
        )


def _check_folders(names: list[str]) -> None:
    """Refuse more than FILES_MAX folders: each takes an inode, and a block of the disk.

    Raises:
        ValueError: There are more.
    """
    folders: set[str] = set()
    for path in names:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
        if len(folders) > FILES_MAX:
            raise ValueError(f"there are more than {FILES_MAX:,} folders")


def same_on_disk(name: str) -> str:
    """Return what two names have in common that are one entry on a disk that ignores case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _clashes(folded: dict[str, str], names: list[str]) -> Iterable[tuple[str, str]]:
    """Yield (file, other): the other is the same file, or is in a folder of the file's name.

    Args:
        folded: Path -> what is compared of it; the path itself where it has none.
    """
    # With the separator before every other character, what is in a folder follows the folder's name at once.
    ordered = sorted((folded.get(path, path).replace("/", "\0"), path) for path in names)
    for (first, file), (second, other) in pairwise(ordered):
        if second == first or second.startswith(f"{first}\0"):
            yield file, other


def _refused_form(path: str) -> str:
    """Return why a name is none that onnxbuild writes; empty if it may be one."""
    if not path.isprintable():
        return "has characters that can't be seen, or that are no text"
    if found := _ODD_FORM.search(f"/{path}/"):
        if found[0] == "/.":
            return _HIDDEN
        if found[0].startswith("~"):
            return _SHORT
        return _DROPPED if "/" in found[0] else _NOT_EVERYWHERE
    if max(map(len, path.encode().split(b"/"))) > _PART_MAX_BYTES:
        return f"has a part of more than {_PART_MAX_BYTES} bytes"
    return ""


def _run_by_itself(folded: str) -> str:
    """Return which program would load or run a file for its name and place; empty if none would."""
    *folders, file = folded.split("/")
    if _LOADED_FOLDERS.intersection(folders) or _RUN.fullmatch(file):
        return "has a name for which programs load or run a file by themselves"
    if file.endswith(".py") and file not in _PYTHON:
        return "is Python that onnxbuild does not write: a Python that is started there imports it"
    if _LIBRARY.fullmatch(file) and not _is_for_libraries(folders):
        return f"is a library outside of {_LIBRARIES_FOLDER}/: programs that are started there may load it"
    return ""


def _is_for_libraries(folders: list[str]) -> bool:
    """Return whether a folder is a bundle's of libraries, or below it one of a platform: `operators/linux-x86_64`."""
    above = folders[:-1] if folders and _PLATFORM.fullmatch(folders[-1]) else folders
    return above[-1:] == [_LIBRARIES_FOLDER]


def _shown(text: str) -> str:
    """Return a name for a message, cut where it is long."""
    if len(text) <= _SHOWN_CHARACTERS:
        return repr(text)
    return f"{text[:_SHOWN_CHARACTERS]!r}..."
