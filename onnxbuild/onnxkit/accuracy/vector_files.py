"""Files of samples' vectors and of their errors, an array for each column."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.sample_outputs import SampleErrors

if TYPE_CHECKING:
    import numpy as np

VECTORS_FILE = "vectors.npz"
ERRORS_FILE = "errors.npz"


def write_vectors(folder: Path, vectors: Iterable[np.ndarray]) -> int:
    """Write VECTORS_FILE: all vectors in a row, and where each begins; returns how many."""
    import numpy as np

    found = [np.asarray(each, np.float32) for each in vectors]
    starts = np.cumsum(np.asarray([0, *(len(each) for each in found)], np.int64))
    flat = np.concatenate(found) if found else np.zeros(0, np.float32)
    np.savez(folder / VECTORS_FILE, flat=flat, starts=starts)
    return len(found)


def read_vectors(folder: Path) -> Iterator[np.ndarray]:
    """Read what `write_vectors` wrote, one flat float64 vector at a time."""
    import numpy as np

    with np.load(folder / VECTORS_FILE, allow_pickle=False) as arrays:
        flat, starts = arrays["flat"], arrays["starts"]
    for first, last in itertools.pairwise(starts):
        yield flat[first:last].astype(np.float64)


def write_errors(folder: Path, errors: SampleErrors) -> None:
    """Write ERRORS_FILE: cosine, signal, noise and elements of each sample."""
    import numpy as np

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
    import numpy as np

    with np.load(folder / ERRORS_FILE, allow_pickle=False) as arrays:
        columns = (arrays[name].tolist() for name in ("cosines", "signal", "noise", "sizes"))
        return SampleErrors(*map(tuple, columns))
