"""Histograms of a model's values over many feeds, as whole numbers: no order of sums can matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.model.model_files import save_graph
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_sample

if TYPE_CHECKING:
    import numpy as np
    import onnx

BINS = 8192
"""Even, so that a range around zero has an edge there. Heavy tails need many: with the greatest
value at 1,000 standard deviations, a bin is an eighth of one."""

_FLOAT = 1
_CHUNK = 1 << 20
"""Elements binned at once: what is needed besides the values themselves stays at some MB."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values in BINS bins of equal width.

    Attributes:
        low: The first bin's lower edge.
        high: The last bin's upper edge, above `low`.
        counts: Shape (BINS,), int64, values that are exactly zero left out.
        zeros: Number of values that are exactly zero: every grid holds them without an error.
    """

    low: float
    high: float
    counts: np.ndarray
    zeros: int

    @property
    def width(self) -> float:
        """Width of one bin."""
        return (self.high - self.low) / len(self.counts)

    def add(self, values: np.ndarray) -> Histogram:
        """The histogram with more values, all from `low` to `high`, counted in float64."""
        import numpy as np

        flat = values.reshape(-1)
        counts, zeros = self.counts.copy(), self.zeros
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            part = part[part != 0]
            zeros += min(_CHUNK, flat.size - start) - part.size
            place = (part.astype(np.float64) - self.low) * (len(counts) / (self.high - self.low))
            bins = np.clip(place.astype(np.int64), 0, len(counts) - 1)
            counts += np.bincount(bins, minlength=len(counts))
        return Histogram(self.low, self.high, counts, zeros)


def empty_histogram(low: float, high: float) -> Histogram:
    """A histogram of nothing yet, over [low, high]."""
    import numpy as np

    return Histogram(low, high, np.zeros(BINS, np.int64), 0)


def measure_histograms(
    model: onnx.ModelProto,
    feeds: Iterable[Feeds],
    bounds: Mapping[str, tuple[float, float]],
    *,
    scratch: Path,
    where: str,
) -> dict[str, Histogram]:
    """Run a model on each feed and count the values of each tensor.

    Memory holds one sample's activations and BINS numbers a tensor, however many samples come.
    One thread, no graph optimization, as in `measure_ranges`; counts are whole numbers, so that
    they are the same however the samples are grouped.

    Args:
        model: Every value typed, weights loaded or mapped; gets outputs added and is used up.
        feeds: The same feeds that `bounds` were measured on.
        bounds: Value name -> [least, greatest] over all feeds, least below greatest.
        scratch: A folder for the augmented model.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails on a sample.
    """
    names = list(bounds)
    _add_outputs(model, names)
    save_graph(model, scratch / "observed")
    del model
    session = open_session(scratch / "observed", optimize=False, lean=True, where=where)
    found = {name: empty_histogram(*bounds[name]) for name in names}
    fed = {each.name for each in session.get_inputs()}
    wanted = [name for name in names if name not in fed]
    for number, sample in enumerate(counted(feeds, "samples")):
        values = run_sample(session, sample, number, wanted, where)
        given = [(name, sample[name]) for name in names if name in fed]
        for name, value in (*given, *zip(wanted, values, strict=True)):
            found[name] = found[name].add(value)
        del values, given
    return found


def _add_outputs(model: onnx.ModelProto, names: Sequence[str]) -> None:
    import onnx

    known = {each.name for each in (*model.graph.input, *model.graph.output)}
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, _FLOAT, None)
        for name in names
        if name not in known
    )
