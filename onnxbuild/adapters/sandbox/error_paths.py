"""Find the file that an error is about, where the library that raised it does not say."""

import dis
import os
import re
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType

_MOST_ITEMS = 64
_DEPTH = 3
PATH_IN_TEXT = re.compile(r"/[^\s'\"`,;]+")


def named_file(
    error: BaseException, project: str, store: str, is_wanted: Callable[[str], bool]
) -> str | None:
    """The first file that `is_wanted`, of those that the error's surroundings name.

    Looked at, in this order: the error's own words; what the variables and constants of the code
    that it passed through hold, innermost code first; the files of the project whose path ends in a
    constant of that code, those of the failing line first (`Tokenizer.from_file(HERE / "a.json")`
    holds the whole path in no variable).

    Args:
        store: The store's folder, which is not searched.
        is_wanted: Says of an absolute path whether it may be the one.
    """
    for path in map(os.path.normpath, texts_of(error)):
        if os.path.isabs(path) and os.path.isfile(path) and is_wanted(path):
            return path
    files = [path for path in _files_below(project, store) if is_wanted(path)]
    for ending in _endings(error.__traceback__):
        for path in files:
            if path.endswith(f"/{ending}"):
                return path
    return None


def texts_of(error: BaseException) -> Iterator[str]:
    """Paths in the error's words; texts that the code held that it passed through."""
    for found in PATH_IN_TEXT.findall(str(error)):
        yield from (found, found.rstrip(".:)]}>"))
    for frame, _ in _innermost_first(error.__traceback__):
        for value in (*frame.f_locals.values(), *frame.f_code.co_consts):
            yield from _texts(value, _DEPTH)


def _innermost_first(trace: TracebackType | None) -> list[tuple[FrameType, int]]:
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames[::-1]


def _texts(value: object, depth: int) -> Iterator[str]:
    """The strings and paths that a variable holds, also inside lists and tuples."""
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, str) and 0 < len(text) < os.pathconf("/", "PC_PATH_MAX"):
            yield from (text,) if "\0" not in text else ()
    elif isinstance(value, (list, tuple)) and depth > 0:
        for each in value[:_MOST_ITEMS]:
            yield from _texts(each, depth - 1)


def _endings(trace: TracebackType | None) -> Iterator[str]:
    for frame, line in _innermost_first(trace):
        for text in (*_constants(frame.f_code, line), *frame.f_code.co_consts):
            if isinstance(text, str) and text.strip("./"):
                yield text.removeprefix("./").lstrip("/")


def _constants(code: CodeType, line: int) -> Iterator[object]:
    """The constants that a line of code uses."""
    spans = [(start, end) for start, end, number in code.co_lines() if number == line]
    for each in dis.get_instructions(code):
        if any(start <= each.offset < end for start, end in spans):
            yield each.argval


def _files_below(project: str, store: str) -> Iterator[str]:
    for base, folders, names in os.walk(project):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and os.path.join(base, name) != store
            and not os.path.exists(os.path.join(base, name, "pyvenv.cfg"))
        )
        yield from (os.path.join(base, name) for name in sorted(names))
