"""Measure a recipe's variants now, beside models from elsewhere: files, bundles, releases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.adapters.clock import run_id
from onnxbuild.api import BuildResult, Request, build, load
from onnxbuild.core.errors import UsageError
from onnxbuild.core.places import place_name
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.core.rival import Comparison, Rival
from onnxbuild.core.step import MODEL_FILE, REPORT_FILE
from onnxbuild.release_format.layout import RELEASE_FILE
from onnxbuild.release_format.opened import opened
from onnxbuild.wiring import RunOptions


@dataclass(frozen=True, slots=True)
class Bench:
    """What was measured.

    Attributes:
        result: The build's.
        reports: Recipe -> provider -> the report; only those that were made.
    """

    result: BuildResult
    reports: dict[str, dict[str, Any]]


def bench(
    request: Request,
    against: Sequence[Path],
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
) -> Bench:
    """Build the variants, and measure them with the rivals, interleaved in one process.

    Args:
        request: The recipes.
        against: ONNX files, bundles (`out/RECIPE/VARIANT`), releases (folders or archives).
        options: How to use the machine.
        events: Told of all that happens.

    Raises:
        UsageError: Something in `against` is none of these.
        RecipeErrors: The recipes are faulty.
    """
    with ExitStack() as stack:
        recipes = load(request).recipes
        taken = {each.name for recipe in recipes for each in recipe.variants}
        taken |= {each.name for recipe in recipes for each in recipe.formats}
        rivals: list[Rival] = []
        for path in against:
            for name, model in stack.enter_context(_models(path)):
                unique = _unique(name, taken)
                taken.add(unique)
                rivals.append(_rival(unique, f"{path}", model))
        comparison = Comparison(tuple(rivals), run_id())
        result = build(replace(request, comparison=comparison), options, events)
        return Bench(result, _reports(result))


@contextmanager
def _models(path: Path) -> Iterator[list[tuple[str, Path]]]:
    """(name, model file) of what a path holds.

    Raises:
        UsageError: Nothing of that kind.
    """
    if path.suffix == ".onnx" and path.is_file():
        yield [(path.stem, path)]
    elif (path / MODEL_FILE).is_file():
        yield [("/".join(path.absolute().parts[-2:]), path / MODEL_FILE)]
    elif (path / RELEASE_FILE).is_file() or path.suffix == ".tar":
        with opened(path) as folder:
            yield _released(path, folder)
    else:
        there = "there is nothing at" if not path.exists() else "there is no model in"
        raise UsageError(
            f"{there} {path}",
            fix="name an .onnx file, a folder that holds model.onnx (artifacts/out/RECIPE/VARIANT), "
            "or a release (its folder or .tar)",
        )


def _released(path: Path, folder: Path) -> list[tuple[str, Path]]:
    try:
        about = json.loads((folder / RELEASE_FILE).read_bytes())
        version, variants = str(about["version"]), dict(about["variants"])
        found = [
            (f"{version}/{name}", folder / each["bundle"] / MODEL_FILE)
            for name, each in variants.items()
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} holds no {RELEASE_FILE} that can be read: {error}",
            fix=f"onnxbuild verify {path}",
        ) from error
    return found


def _unique(name: str, taken: set[str]) -> str:
    candidates = (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
    return next(each for each in candidates if each not in taken)


def _rival(name: str, shown: str, path: Path) -> Rival:
    """Declares the model's own file, and those beside it that hold its weights."""
    from onnxbuild.onnxkit.model_files import external_files

    place = place_name(f"against {name.replace('/', ' ')}")
    files = (path.name, *external_files(path))
    names = tuple(f"{place}/{file}" for file in files)
    outside = {place: path.absolute().parent.as_posix()}
    return Rival(name, shown, Entrypoint(FILE_DATA, files=names, outside=outside))


def _reports(result: BuildResult) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, step in result.graph.steps.items():
        if step.kind != "benchmark" or name not in result.report.results:
            continue
        (artifact,) = result.report.results[name].outputs.values()
        digest = dict(artifact.files)[REPORT_FILE].sha256
        report = json.loads((result.store / "cas/sha256" / digest[:2] / digest).read_bytes())
        if "skipped" not in report:
            found.setdefault(name.partition(":")[0], {})[report["provider"]] = report
    return found
