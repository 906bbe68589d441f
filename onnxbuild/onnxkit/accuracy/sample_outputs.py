"""A model's outputs over the user's data, as one vector a sample, and how far two sets are apart; their files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.accuracy.comparison import is_exact
from onnxbuild.onnxkit.accuracy.output_parts import OutputParts
from onnxbuild.onnxkit.data.feed_checks import not_finite
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds
from onnxbuild.onnxkit.data.user_code import an, call_user, iterate_user
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.sessions.run import run_session

Projection = Callable[..., Any]
"""(outputs, feeds) -> array of shape (samples, ...): what of the outputs is looked at."""


_PROJECTION = "projection"
"""Name of what a user's projection gives."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Vector of the outputs for one sample.

    Attributes:
        vector: Flat, float64: all float outputs in a row, or the user's projection.
        shapes: Output -> its shape; their elements are in the vector in this order.
    """

    vector: np.ndarray
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Sample:
        """Copy arrays: a projection may fill its array again."""
        flat = [np.array(each, np.float64).ravel() for each in arrays.values()]
        return cls(np.concatenate(flat), {name: np.shape(each) for name, each in arrays.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """The vector's."""
        return (len(self.vector),)

    def split(self, vector: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Yield (output, its part of another vector, its part of this one), with an axis of size 1 for the batch."""
        start = 0
        for name, shape in self.shapes.items():
            end = start + math.prod(shape)
            other, own = (each[start:end].reshape(1, *shape) for each in (vector, self.vector))
            yield name, other, own
            start = end


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Similarity of a model's vectors to the baseline's, over all samples.

    Attributes:
        samples: Number of samples compared.
        cosine_mean: Mean of the samples' cosine similarities, -1..1.
        cosine_min: The least of them.
        worst: Number of that sample, in the order of the data.
        sqnr_db: 10 log10 of the baseline's energy over the difference's, over all samples; None
            if they are equal.
    """

    samples: int
    cosine_mean: float
    cosine_min: float
    worst: int
    sqnr_db: float | None


def sample_vectors(
    session: onnxruntime.InferenceSession,
    feeds: Iterable[Feeds],
    *,
    project: Projection | None,
    target: str,
    where: str,
) -> Iterator[Sample]:
    """Yield what the model gives for each sample.

    Without a projection a sample is what all float outputs have at one place of the batch axis,
    the first; where outputs have no common first size, all of an item is one sample. Integer, bool
    and string outputs are left out: among ids, a cosine says nothing and drowns what does.

    Args:
        feeds: Checked feeds, an item at a time.
        target: Its name, for messages.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails, no output is of floats, or the projection raises or returns
            no array.
        NotFiniteError: A value is not finite.
    """
    for number, item in enumerate(counted(feeds, "samples")):
        outputs = run_session(session, item, where)
        yield from output_vectors(
            outputs, item, number, project=project, target=target, where=where
        )


def output_vectors(
    outputs: Mapping[str, np.ndarray],
    item: Feeds,
    number: int,
    *,
    project: Projection | None,
    target: str,
    where: str,
) -> Iterator[Sample]:
    """Yield the samples of what a model made of one item; see `sample_vectors`.

    Args:
        outputs: Output name -> array.
        item: Inputs that the outputs were computed from.
        number: Its place in the data, for messages.
        target: Its name, for messages.
        where: `recipe:step`, for messages.

    Raises:
        StepError: No output is of floats, or the projection raises or returns no array.
        NotFiniteError: A value is not finite.
    """
    if project is None:
        rows = _rows(_floats(outputs, where))
    else:
        found = _projected(project, outputs, item, target, where)
        rows = ({_PROJECTION: row} for row in found)
    for row in rows:
        sample = Sample.of(row)
        if not np.isfinite(sample.vector).all():
            raise not_finite(outputs, item, number, where)
        yield sample


@dataclass(frozen=True, slots=True)
class SampleErrors:
    """Similarity of each sample's vector to the baseline's.

    Attributes:
        cosines: Cosine similarity of each, -1..1.
        signal: Sum of the squares of the baseline's vector.
        noise: Sum of the squares of the difference.
        sizes: Number of elements of each; empty where that is not known.
    """

    cosines: tuple[float, ...]
    signal: tuple[float, ...]
    noise: tuple[float, ...]
    sizes: tuple[int, ...] = ()

    @property
    def is_one_number(self) -> bool:
        """Return whether each sample is one number: its cosine is 1 or -1, however large the error."""
        return bool(self.sizes) and max(self.sizes) <= 1

    def fidelity(self, first: int = 0, step: int = 1) -> Fidelity:
        """Return the fidelity over all samples, or each `step`-th from `first` on; at least one must be left."""
        cosines = self.cosines[first::step]
        signal, noise = sum(self.signal[first::step]), sum(self.noise[first::step])
        sqnr_db = None
        if noise > 0:
            sqnr_db = 10.0 * math.log10(signal / noise) if signal > 0 else -999.0
        worst = int(np.argmin(cosines))
        return Fidelity(
            len(cosines), float(np.mean(cosines)), cosines[worst], first + worst * step, sqnr_db
        )


def compare_vectors(
    expected: Iterable[np.ndarray], actual: Iterable[np.ndarray], where: str
) -> Fidelity:
    """Return the fidelity over all samples.

    Raises:
        StepError: See `compare_samples`.
    """
    return _errors(_paired(expected, actual, where), where).fidelity()


def compare_samples(
    expected: Iterable[np.ndarray], actual: Iterable[Sample], where: str, parts: OutputParts
) -> SampleErrors:
    """Compare sample by sample; neither side is held in memory as a whole.

    Args:
        where: `recipe:step`, for messages.
        parts: Gets each output of each sample.

    Raises:
        StepError: There is no sample, or no value in any, or the two sides have other numbers or sizes of them.
    """

    def vectors() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for vector, sample in _paired(expected, actual, where):
            for name, expected_part, part in sample.split(vector):
                parts.add(name, expected_part, part, real=True)
            yield vector, sample.vector

    return _errors(vectors(), where)


def _errors(pairs: Iterable[tuple[np.ndarray, np.ndarray]], where: str) -> SampleErrors:
    rows: list[tuple[float, float, float, int]] = []
    has_values = False
    for one, other in pairs:
        has_values = has_values or one.size > 0
        difference = one - other
        signal, noise = (float(np.einsum("i,i", each, each)) for each in (one, difference))
        rows.append((cosine(one, other), signal, noise, one.size))
    if not rows:
        raise StepError(
            "the data yields nothing to compare on", where=where, fix="yield at least one item"
        )
    if not has_values:
        raise StepError(
            f"the outputs are empty for all {len(rows)} samples, so there is nothing to compare",
            where=where,
            fix="yield data for which the model gives outputs some elements",
        )
    return SampleErrors(*zip(*rows, strict=True))


def noise_of(sqnr_db: float | None) -> float:
    """Return the noise to signal, as energies, of an SQNR in dB; 0 for None, which is no noise."""
    return 0.0 if sqnr_db is None else float(10 ** (-sqnr_db / 10))


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Cosine similarity of two flat float64 vectors; 1 if both are zero, 0 if only one is.

    Summed without BLAS, whose threads change the order of sums.
    """
    lengths = [float(np.sqrt(np.einsum("i,i", each, each))) for each in (one, other)]
    if not all(lengths):
        return 1.0 if not any(lengths) else 0.0
    found = float(np.einsum("i,i", one, other)) / (lengths[0] * lengths[1])
    return max(-1.0, min(1.0, found))  # rounding may give a little more than 1


def _paired(
    expected: Iterable[np.ndarray], actual: Iterable[np.ndarray | Sample], where: str
) -> Iterator[tuple[np.ndarray, Any]]:
    end = object()
    theirs, own = iter(expected), iter(actual)
    number = 0
    while True:
        one: Any = next(theirs, end)
        other: Any = next(own, end)
        if one is end and other is end:
            return
        if one is end or other is end or one.shape != other.shape:
            raise StepError(
                f"sample {number} is not that of the baseline, or its outputs have other sizes: the data must be "
                "the same each time",
                where=where,
                fix="draw it with a fixed seed, and in a fixed order; if sizes of outputs depend on values (boxes "
                "that are found), make vectors of one size with `fidelity: {project: FILE.py:CALLABLE}`",
            )
        yield one, other
        number += 1


def _floats(outputs: Mapping[str, np.ndarray], where: str) -> dict[str, np.ndarray]:
    found = {name: each for name, each in outputs.items() if not is_exact(each)}
    if not found:
        raise StepError(
            f"no output is of floats ({', '.join(outputs)}), and the cosine of ids or classes says "
            "nothing",
            where=where,
            fix="name a `fidelity.project` that makes vectors of them, or judge by "
            "`evaluate: {data: ..., metric: ...}`",
        )
    return found


def _rows(outputs: Mapping[str, np.ndarray]) -> Iterator[Mapping[str, np.ndarray]]:
    sizes = {each.shape[0] if each.ndim else None for each in outputs.values()}
    if len(sizes) == 1 and None not in sizes:
        for n in range(next(iter(outputs.values())).shape[0]):
            yield {name: each[n] for name, each in outputs.items()}
    else:
        yield outputs


def _projected(
    project: Projection, outputs: Mapping[str, Any], feeds: Feeds, target: str, where: str
) -> Any:
    found = call_user(
        lambda: project(outputs, feeds),
        target,
        where,
        owner="the projection's",
        takes="(outputs, feeds)",
    )
    rows = np.asarray(found) if found is not None else np.zeros(())
    if rows.ndim == 0 or not np.issubdtype(rows.dtype, np.number):
        raise StepError(
            f"{target} returned {an(found)}; expected an array of shape (samples, ...)",
            where=where,
            fix="return one row for each sample of the batch",
        )
    return rows


VECTORS_FILE = "vectors.npz"
ERRORS_FILE = "errors.npz"


def write_vectors(folder: Path, vectors: Iterable[np.ndarray]) -> int:
    """Write VECTORS_FILE: all vectors in a row, and where each begins; returns how many."""
    found = [np.asarray(each, np.float32) for each in vectors]
    starts = np.cumsum(np.asarray([0, *(len(each) for each in found)], np.int64))
    flat = np.concatenate(found) if found else np.zeros(0, np.float32)
    np.savez(folder / VECTORS_FILE, flat=flat, starts=starts)
    return len(found)


def read_vectors(folder: Path) -> Iterator[np.ndarray]:
    """Read what `write_vectors` wrote, one flat float64 vector at a time."""
    with np.load(folder / VECTORS_FILE, allow_pickle=False) as arrays:
        flat, starts = arrays["flat"], arrays["starts"]
    for first, last in itertools.pairwise(starts):
        yield flat[first:last].astype(np.float64)


def write_errors(folder: Path, errors: SampleErrors) -> None:
    """Write ERRORS_FILE: cosine, signal, noise and elements of each sample."""
    np.savez(
        folder / ERRORS_FILE,
        allow_pickle=False,
        cosines=np.asarray(errors.cosines, np.float64),
        signal=np.asarray(errors.signal, np.float64),
        noise=np.asarray(errors.noise, np.float64),
        sizes=np.asarray(errors.sizes, np.int64),
    )


def read_errors(folder: Path) -> SampleErrors:
    """Read what `write_errors` wrote."""
    with np.load(folder / ERRORS_FILE, allow_pickle=False) as arrays:
        columns = (arrays[name].tolist() for name in ("cosines", "signal", "noise", "sizes"))
        return SampleErrors(*map(tuple, columns))


def data_of(
    context: StepContext, data: Entrypoint, inputs: Sequence[DummyInput], samples: int
) -> Iterator[Feeds]:
    """Checked feeds, `samples` of them at most; 0 for all.

    Raises:
        StepError: The callable raises, or an item is not what the recipe declares.
    """
    items = iterate_user(context, data)
    for number, item in enumerate(counted(islice(items, samples or None), "samples", samples)):
        place = f"{context.where} ({data.target}, item {number})"
        yield check_feeds(item, inputs, place)


def projection_of(context: StepContext, project: Entrypoint | None) -> Projection | None:
    """The user's projection with its arguments, or None.

    Raises:
        StepError: It is missing, or can't be called.
    """
    if project is None:
        return None
    call, arguments = context.load(project), dict(project.args)
    return lambda outputs, feeds: call(outputs, feeds, **arguments)
