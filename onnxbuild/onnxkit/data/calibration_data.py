"""Read the data that a model is calibrated on: feeds of a callable, of files, or random ones."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from onnxbuild.core.axis import example_sizes, is_sum
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import (
    DUMMY_DATA,
    FILE_DATA,
    PIPELINE_DATA,
    Axis,
    DummyInput,
    Entrypoint,
)
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds, make_feeds
from onnxbuild.onnxkit.data.recorded_calls import recorded_feeds
from onnxbuild.onnxkit.data.user_code import iterate_user
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted

NamedFile = tuple[str, Path]

_UNREADABLE = (OSError, ValueError, EOFError, MemoryError, RuntimeError)
"""Errors of numpy and zipfile for files that are cut, encrypted, compressed in another way, or claim a terabyte."""


def file_feeds(
    files: Sequence[NamedFile], inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
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
            yield (
                label,
                {n: array_of_file(path, shown, where) for n, (shown, path) in members.items()},
            )
        else:
            yield label, _archive(members[1], label, where)


def array_of_file(path: Path, label: str, where: str) -> np.ndarray:
    """Return the array of an .npy file.

    Raises:
        StepError: It can't be read.
    """
    try:
        found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        raise _unreadable(label, error, where) from error
    return found


def _archive(path: Path, label: str, where: str) -> dict[str, np.ndarray]:
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


@dataclass(frozen=True, slots=True)
class DataParams:
    """Parameters of a step that goes over the calibration data.

    Attributes:
        data: A callable that yields feeds, files that hold them, or the dummy inputs.
        inputs: What the recipe declares.
        axes: The dynamic axes.
        samples: How many items of the data are used, at most.
        seed: Of the random inputs of `data: dummy`.
    """

    data: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...] = ()
    samples: int = 100
    seed: int = 0

    @property
    def source(self) -> FeedSource:
        """The data, as a source of feeds."""
        return FeedSource(self.data, self.inputs, self.axes, self.seed)


@dataclass(frozen=True, slots=True)
class FeedSource:
    """Source of feeds.

    Attributes:
        data: A callable that yields them, or FILE_DATA with its files, or DUMMY_DATA, or PIPELINE_DATA.
        inputs: Inputs, as the recipe declares them.
        axes: The dynamic axes.
        seed: Seed of random feeds.
    """

    data: Entrypoint
    inputs: Sequence[DummyInput]
    axes: Sequence[Axis]
    seed: int = 0

    @property
    def label(self) -> str:
        """Its name in messages."""
        if self.data.target in (DUMMY_DATA, PIPELINE_DATA):
            return f"`data: {self.data.target}`"
        if self.data.target == FILE_DATA:
            files = self.data.files
            return files[0] if len(files) == 1 else f"{len(files)} files from {files[0]} on"
        return self.data.target

    @property
    def is_random(self) -> bool:
        """Whether the feeds are random: `data: dummy`."""
        return self.data.target == DUMMY_DATA

    def feeds(self, context: StepContext, count: int) -> Iterator[Feeds]:
        """The first `count` samples, checked one by one.

        Raises:
            StepError: The data can't be had, or a sample is not what the recipe declares.
        """
        return counted(islice(self._all(context, count), count), "samples", count)

    def nothing(self, count: int, where: str) -> StepError:
        """Return the error for data without a single sample.

        Args:
            count: Number of samples that were asked for.
            where: `recipe:step`, for messages.
        """
        fix = "yield at least one mapping of input name -> array"
        if self.data.target == FILE_DATA:
            rows = sample_rows(self.inputs[0], self.axes)
            fix = "write arrays of at least one row"
            if rows > 1:
                fix = (
                    f"write arrays of at least {rows} rows, which make one sample, or lower "
                    f"`dynamic_axes: {{{self.inputs[0].shape[0]}: {{min: {rows}}}}}`"
                )
        return StepError(f"{self.label} yields no sample; expected {count}", where=where, fix=fix)

    def _all(self, context: StepContext, count: int) -> Iterator[Feeds]:
        where = context.where
        if self.data.target == PIPELINE_DATA:
            yield from recorded_feeds(context, self.data, count)
            return
        if self.data.target == DUMMY_DATA:
            number = 0
            while True:
                sizes = example_sizes(self.axes)
                yield make_feeds(self.inputs, sizes, f"{self.seed}:calibration:{number}")
                number += 1
        elif self.data.target == FILE_DATA:
            files = context.files(self.data)
            for label, found in file_feeds(files, self.inputs, self.axes, where):
                yield check_feeds(found, self.inputs, f"{where} ({label})")
        else:
            for n, sample in enumerate(iterate_user(context, self.data)):
                yield check_feeds(sample, self.inputs, f"{where} ({self.data.target}, sample {n})")


def read_text(name: str, path: Path, where: str) -> str:
    """Return a file's text, in UTF-8; arguments and errors as those of `read_texts`."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StepError(
            f"{name} is no text in UTF-8: {error}", where=where, fix="save it as UTF-8"
        ) from error


def read_texts(name: str, path: Path, where: str) -> tuple[str, ...]:
    """The lines of a file, without line breaks and empty ones.

    Args:
        name: Path in the recipe's project, for messages.
        path: Path of the file.
        where: `recipe:step`.

    Raises:
        StepError: It is no text in UTF-8, or has none.
    """
    text = read_text(name, path, where)
    texts = tuple(each for each in text.replace("\0", "").split("\n") if each.strip())
    if not texts:
        raise StepError(
            f"{name} has no text",
            where=where,
            fix="write some of your own texts there, one a line",
        )
    return texts


def text_array(texts: Sequence[str], count: int, start: int = 0) -> np.ndarray:
    """Return `count` texts as an array, shape (count,): from `start` on, and again from the first after the last."""
    made: np.ndarray = np.array([texts[(start + n) % len(texts)] for n in range(count)], object)
    return made
