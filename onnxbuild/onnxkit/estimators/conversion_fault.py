"""Find out that a converter changed what an estimator computes, so that no other step is blamed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.accuracy.judged_outputs import differing_rows, excused_rows
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.estimators.thresholds import rows_on_threshold
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

_AS_WRITTEN = SessionSettings(graph_optimization="disable").judged()


def conversion_fault(
    model: Path,
    compute: Callable[[Feeds], Mapping[str, np.ndarray]],
    probe: tuple[Feeds, Mapping[str, np.ndarray]],
    where: str,
) -> str:
    """Compare the converted model with its estimator, rows on a threshold left out.

    Args:
        model: The converted model's folder.
        compute: The estimator: feeds -> outputs.
        probe: Feeds, and what the estimator computes of them.
        where: `recipe:step`.

    Returns: The outputs that differ and in how many rows, `'label' in 3 of 4 rows`; empty where none does.
    """
    feeds, expected = probe
    rows = len(next(iter(feeds.values())))
    found = run_session(open_session(model, settings=_AS_WRITTEN, where=where), feeds, where)
    apart = {
        name: differing_rows({name: array}, found)
        for name, array in expected.items()
        if name in found
    }
    if not any(each.any() for each in apart.values()):
        return ""
    judged = ~excused_rows(expected, found, rows_on_threshold(compute, feeds))
    counts = {name: int((each & judged).sum()) for name, each in apart.items()}
    return " and ".join(
        f"'{name}' in {count} of {rows} rows" for name, count in counts.items() if count
    )
