"""Feeds from .npy and .npz files, a sample at a time."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.axis import is_sum
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput

if TYPE_CHECKING:
    import numpy as np

NamedFile = tuple[str, Path]

_UNREADABLE = (OSError, ValueError, EOFError, MemoryError, RuntimeError)
"""Errors of numpy and zipfile for files that are cut, encrypted, compressed in another way, or claim a terabyte."""


def file_feeds(
    files: Sequence[NamedFile],
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    where: str,
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """(which sample of which file, feeds), unchecked, in the order of the files' names.

    An .npz holds an array an input. An .npy named as an input holds that input's, those of one
    folder belong together; where the model has one input, any .npy is its.

    Arrays with an axis more than the input is declared with hold a sample each along the first.
    Else, where all inputs begin with one symbol (`[batch, ...]`), they are cut along it into
    samples of the axis's least size; where they don't, a file is a sample.

    Raises:
        StepError: A file can't be read, or is none of these, or arrays differ in length.
    """
    for label, arrays in _groups(files, inputs, where):
        cut = _cut(arrays, inputs, axes, f"{where} ({label})")
        for number, feeds in enumerate(cut):
            yield f"{label}, sample {number}", feeds


def sample_rows(leading: DummyInput, axes: Sequence[Axis]) -> int:
    """Number of rows that make a sample where arrays are cut along the first axis of an input: its least size, but 0."""
    symbol = leading.shape[0] if leading.shape else 0
    return next((axis.nearest(max(axis.min, 1)) for axis in axes if axis.name == symbol), 1)


def _groups(
    files: Sequence[NamedFile], inputs: Sequence[DummyInput], where: str
) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    """(label, input name -> array): an .npz each, the .npy of a folder together."""
    names = [each.name for each in inputs]
    together: dict[str, dict[str, NamedFile]] = {}
    order: list[tuple[str, dict[str, NamedFile] | NamedFile]] = []
    for label, path in files:
        folder = label.rpartition("/")[0]
        if path.suffix == ".npz":
            order.append((label, (label, path)))
        elif path.suffix != ".npy":
            raise StepError(
                f"'{label}' is neither an .npy nor an .npz file",
                where=where,
                fix="name the files themselves in `calibration.data`: `data/*.npz`",
            )
        elif path.stem in names:
            if folder not in together:
                together[folder] = {}
                order.append((label if len(names) == 1 else folder or ".", together[folder]))
            together[folder][path.stem] = (label, path)
        elif len(names) == 1:
            order.append((label, {names[0]: (label, path)}))
        else:
            raise StepError(
                f"'{label}' is named after none of the inputs {', '.join(names)}",
                where=where,
                fix="write an .npz with an array for each input"
                if any("/" in name for name in names)
                else f"name it INPUT.npy, such as {names[0]}.npy, or write an .npz",
            )
    for label, members in order:
        if isinstance(members, dict):
            yield label, {n: _array(path, shown, where) for n, (shown, path) in members.items()}
        else:
            yield label, _archive(members[1], label, where)


def _array(path: Path, label: str, where: str) -> np.ndarray:
    import numpy as np

    try:
        found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        raise _unreadable(label, error, where) from error
    return found


def _archive(path: Path, label: str, where: str) -> dict[str, np.ndarray]:
    import numpy as np

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except (*_UNREADABLE, zlib.error, zipfile.BadZipFile, AttributeError) as error:
        raise _unreadable(label, error, where) from error
    for name, array in found.items():
        if not isinstance(array, np.ndarray):
            raise _unreadable(label, ValueError(f"'{name}' in it is no array"), where)
    return found


def _unreadable(label: str, error: BaseException, where: str) -> StepError:
    said = str(error).partition("\n")[0].partition(". ")[0]  # the rest advises to load pickles
    return StepError(
        f"'{label}' can't be read: {said}",
        where=where,
        fix="write it with numpy.save or numpy.savez; arrays of objects are refused",
    )


def _cut(
    arrays: Mapping[str, np.ndarray],
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    where: str,
) -> Iterator[dict[str, np.ndarray]]:
    """The samples in arrays; all of them as one where they can't be cut."""
    declared = {each.name: each for each in inputs}
    known = {name: array for name, array in arrays.items() if name in declared}
    if set(arrays) != set(declared):
        yield dict(arrays)  # the check of feeds says which name is wrong
        return
    stacked = all(array.ndim == len(declared[n].shape) + 1 for n, array in known.items())
    first = {each.shape[0] if each.shape else 0 for each in inputs}
    symbol = next(iter(first))
    whole = not stacked and (
        len(first) > 1
        or not isinstance(symbol, str)
        or is_sum(symbol)
        or any(array.ndim != len(declared[n].shape) for n, array in known.items())
    )
    if whole:
        yield dict(arrays)
        return
    lengths = {name: len(array) for name, array in known.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"'{name}' {length}" for name, length in lengths.items())
        raise StepError(
            f"the arrays hold different numbers of samples: {shown}",
            where=where,
            fix="give each array the same length along its first axis",
        )
    size = sample_rows(inputs[0], axes)
    count = next(iter(lengths.values()), 0)
    for start in range(0, count if stacked else count - size + 1, 1 if stacked else size):
        part = start if stacked else slice(start, start + size)
        yield {name: array[part] for name, array in known.items()}
