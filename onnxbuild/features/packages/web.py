"""`web`: a static folder that runs the model in a browser, with a typed module and an example page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from onnxbuild.core.environment import NODE, Environment
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Entrypoint, Recipe
from onnxbuild.core.step import StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.asked import PACKAGES
from onnxbuild.expansion.feature import Laid, PackageFormat, Subject
from onnxbuild.expansion.held_files import described_at_top
from onnxbuild.expansion.packaged import (
    add_package,
    add_run,
    bundle_name,
    package_reference,
    package_tolerances,
)
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import Manifest, graph_files
from onnxbuild.onnxkit.packages.golden import GOLDEN, read_plain_tolerances
from onnxbuild.onnxkit.web.content import opened_files
from onnxbuild.onnxkit.web.runtime import NPM_LIST
from onnxbuild.steps import package_web, run_web

NAME = "web"
_RUNTIME = Environment(npm=NPM_LIST, needs=(NODE,))
_OPERATORS = "operators"
_LABELS_OF_PIPELINES = ("processing.postprocess", ".labels.file")


@dataclass(frozen=True, slots=True)
class WebOptions:
    """How the model runs in browsers, and what the example page shows."""

    title: str = option("", help="of the example page; left out: the recipe's name")
    webgpu: bool = option(
        False,
        help="also on WebGPU where the browser has it: another 27 MB in the folder, loaded only there",
    )
    threads: int = option(
        4, help="most threads of WebAssembly that model.js starts by itself", minimum=1
    )
    page: bool = option(True, help="write the example page, index.html")
    labels: str = option(
        "",
        help="a file that names classes, one a line, for the page; left out: that of `processing`",
    )
    tolerances: VariantTolerances | None = option(
        None,
        help="how far outputs may be from the reference's in WebAssembly; over the variant's own",
    )


def _package(scope: Scope, subject: Subject, bundle: OutputRef, options: WebOptions) -> OutputRef:
    recipe = scope.recipe
    params = package_web.PackageWebParams(
        title=options.title or recipe.name,
        description=recipe.description,
        providers=("webgpu", "wasm") if options.webgpu else ("wasm",),
        threads=options.threads,
        page=options.page,
        labels=_labels(recipe, options),
        labels_fit=bool(options.labels),
        values=_values(recipe),
        tolerances=_tolerances(scope, subject, options),
        environment=Environment(npm=NPM_LIST),
    )
    return add_package(
        scope,
        subject,
        NAME,
        package_web.KIND,
        params=params,
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: WebOptions
) -> Sequence[Laid]:
    return add_run(
        scope,
        subject,
        NAME,
        run_web.KIND,
        params=run_web.RunWebParams(
            subject=f"the web package of variant '{bundle_name(subject)}'",
            tolerances=_tolerances(scope, subject, options),
            environment=_RUNTIME,
        ),
        package=package,
    )


def _replays(
    folder: Path, subject: str, tolerances: VariantTolerances
) -> tuple[StepKind, run_web.RunWebParams]:
    """Judge by the package's own bounds, which may be wider than the variant's."""
    del tolerances
    own = read_plain_tolerances(folder / GOLDEN)
    return run_web.KIND, run_web.RunWebParams(subject, own, _RUNTIME)


def _tolerances(scope: Scope, subject: Subject, options: WebOptions) -> VariantTolerances:
    """The bundle's, with the package's own over them."""
    base, own = package_tolerances(scope, subject), options.tolerances
    if own is None:
        return base
    if own.cosine_min is not None:
        base = replace(base, sqnr_db_min=None)
    given = {each.name: getattr(own, each.name) for each in fields(Tolerance)}
    given = {name: value for name, value in given.items() if value is not None}
    return replace(base, outputs={**base.outputs, **own.outputs}, **given)


def _labels(recipe: Recipe, options: WebOptions) -> Entrypoint | None:
    """The file that the recipe names for the page; else the first of its processing."""
    if options.labels:
        return recipe.entrypoints[dotted((PACKAGES, NAME, "labels"))]
    first, last = _LABELS_OF_PIPELINES
    found = (key for key in recipe.entrypoints if key.startswith(first) and key.endswith(last))
    return next((recipe.entrypoints[key] for key in found), None)


def _values(recipe: Recipe) -> tuple[float, float] | None:
    """Least and greatest value of the only input, where the recipe says both."""
    if len(recipe.inputs) != 1:
        return None
    low, high = recipe.inputs[0].low, recipe.inputs[0].high
    return None if low is None or high is None else (low, high)


def _faults(parts: Parts) -> Iterator[Fault]:
    if parts.node(PACKAGES, NAME) is not None and parts.node(_OPERATORS) is not None:
        what = "no browser can load a library of custom operators, and the recipe has some"
        yield Fault(what, parts.key_at(PACKAGES, NAME), f"remove `{NAME}`")


def _held(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The files that model.js fetches, in the order in which it takes them.

    Raises:
        ValueError: They are more or fewer than the model has.
    """
    names = sorted(graph_files(manifest), key=lambda name: (name != manifest.file, name))
    return {
        **described_at_top(folder, manifest),
        **dict(zip(names, opened_files(folder), strict=True)),
    }


FEATURE = PackageFormat(
    name=NAME,
    options=WebOptions,
    below={"labels": "file"},
    title="a static folder that runs the model in a browser",
    kinds=(package_web.KIND, run_web.KIND),
    package=_package,
    runs=_runs,
    held=_held,
    replays=_replays,
    faults=_faults,
)
