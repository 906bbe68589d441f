"""Measure both sides of a comparison now, in turns in one process, on the inputs of a recipe."""

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxbuild.bench.measure import bench
from onnxbuild.building.api import Request, load
from onnxbuild.comparison.compare import ComparedSides
from onnxbuild.comparison.figures import LatencyChange
from onnxbuild.comparison.open_side import recipe_of
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.ports import EventSink
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.model.model_files import external_files

_BEFORE, _AFTER = "before", "after"


def benched(
    found: ComparedSides, recipe: str | None, store: str | None, events: Sequence[EventSink] = ()
) -> ComparedSides:
    """Return a comparison with latencies that are measured now in place of those that were recorded.

    Args:
        found: The comparison; its files must still be there.
        recipe: As typed; None where a side names it.
        store: `--store`.
        events: Sinks for all events.

    Raises:
        UsageError: No recipe is known, or no pair of ONNX models is here.
        BuildError: They can't be measured.
    """
    named = recipe_of(recipe, store) if recipe else found.after.named or found.before.named
    if named is None:
        raise UsageError(
            "--bench measures on the inputs of a recipe, and neither side names one",
            fix=f"onnxbuild diff {shlex.join((found.before.given, found.after.given))} recipes/NAME.yaml --bench",
        )
    pairs = [
        (name, old.model, new.model)
        for name, old, new in found.pairs
        if old.model is not None and new.model is not None
    ]
    if not pairs:
        raise UsageError("--bench measures ONNX models, and no two of them are here")
    request = Request((named.file,), store=store)
    own = load(request).recipes[0].variants[0].name
    with tempfile.TemporaryDirectory(prefix="onnxbuild-diff-") as folder:
        against = []
        for number, (_, *models) in enumerate(pairs):
            for word, model in zip((_BEFORE, _AFTER), models, strict=True):
                against.append(_copied(model, Path(folder, str(number), word)))
        done = bench(replace(request, only=(own,)), against, events=events)
        if done.result.exit_code:
            failures = done.result.report.failures
            raise failures[0].error if failures else BuildError("the models can't be measured")
    names = [name for name, *_ in pairs]
    measured = [
        each
        for providers in done.reports.values()
        for provider, report in providers.items()
        for each in _measured(names, provider, report)
    ]
    return replace(found, latencies=tuple(measured))


def _copied(model: Path, folder: Path) -> Path:
    """A copy of a model and its weights in a folder; the store's own files are not handed to a measurement."""
    folder.mkdir(parents=True)
    shutil.copy(model, folder / MODEL_FILE)
    for name in external_files(model):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(model.parent / name, target)
    return folder


def _measured(
    names: Sequence[str], provider: str, report: Mapping[str, Any]
) -> Iterator[LatencyChange]:
    for point in report["points"]:
        for number, name in enumerate(names):
            old, new = (point["results"].get(f"{number}/{word}") for word in (_BEFORE, _AFTER))
            if old is None or new is None:
                continue  # one of them does not run there
            ratio, low, high = new["against"][f"{number}/{_BEFORE}"]
            yield LatencyChange(
                name, provider, point["point"], _median(old), _median(new), (ratio, low, high)
            )


def _median(result: Mapping[str, Any]) -> tuple[float, float, float]:
    return result["p50_ms"], result["p50_low_ms"], result["p50_high_ms"]
