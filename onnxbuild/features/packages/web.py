"""`web`: a static folder that runs the model in a browser, with a typed module and an example page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from onnxbuild.core.environment import NODE, Environment
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import add_ort_model
from onnxbuild.expansion.delivery import Bundle, artifact_bundle
from onnxbuild.expansion.feature import Laid, Subject
from onnxbuild.expansion.package_format import (
    PackageFormat,
    add_package,
    add_run,
    bundle_name,
    described_at_top,
    package_reference,
    package_tolerances,
)
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, bundles_of
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.bundles.manifest import (
    MANIFEST_FILE,
    VALIDATION_FILE,
    Manifest,
    graph_files,
)
from onnxbuild.onnxkit.packages.golden import GOLDEN, read_plain_tolerances
from onnxbuild.onnxkit.web.content import opened_files
from onnxbuild.onnxkit.web.runtime import NPM_LIST
from onnxbuild.steps import package_web, run_web

NAME, ORT = "web", "ort"
_RUNTIME = Environment(npm=NPM_LIST, needs=(NODE,))
_OPERATORS = "operators"


@dataclass(frozen=True, slots=True)
class WebOptions:
    """Form of the model for browsers, and contents of the example page."""

    format: Literal["onnx", "ort"] = option(
        "onnx",
        help="`ort`: the model in ORT format, optimized once, with a gate of its own; of variants alone",
    )
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
        help="a file that names classes, one a line; left out: those of `processing`",
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
        labels=recipe.entrypoints[dotted((PACKAGES, NAME, "labels"))] if options.labels else None,
        values=_values(recipe),
        tolerances=_tolerances(scope, subject, options),
        environment=Environment(npm=NPM_LIST),
    )
    if options.format == ORT:
        bundle = _in_ort_format(scope, subject).files
    return add_package(
        scope,
        subject,
        NAME,
        package_web.KIND,
        params=params,
        inputs={"bundle": bundle, "reference": package_reference(scope, subject)},
    )


def _in_ort_format(scope: Scope, subject: Subject) -> Bundle:
    """The model in ORT format, its gate and its bundle; the same steps each time."""
    made = add_ort_model(
        scope, subject.variant, subject.model, f"{NAME}-{ORT}", OrtFormatOptions()
    )
    return artifact_bundle(scope, subject, made)


def _runs(
    scope: Scope, subject: Subject, package: OutputRef, options: WebOptions
) -> Sequence[Laid]:
    gates: tuple[Laid, ...] = ()
    if options.format == ORT:
        (gate,) = _in_ort_format(scope, subject).judged_by
        gates = (Laid(OutputRef(gate, "report"), VALIDATION_FILE),)
    ran = add_run(
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
    return (*gates, *ran)


def _has_model(folder: Path) -> bool:
    """Return whether a package's model is the bundle's; one in ORT format is not."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return True
    return not isinstance(manifest, dict) or manifest.get("kind") != ORT


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


def _values(recipe: Recipe) -> tuple[float, float] | None:
    """Least and greatest value of the only input, where the recipe says both."""
    if len(recipe.inputs) != 1:
        return None
    low, high = recipe.inputs[0].low, recipe.inputs[0].high
    return None if low is None or high is None else (low, high)


def _pipeline_faults(parts: Parts) -> Iterator[Fault]:
    """Pipelines that `format: ort` would be of."""
    section = parts.sections.get(PACKAGES)
    options = getattr(section, NAME, None)
    if not isinstance(section, PackagesOptions) or not isinstance(options, WebOptions):
        return
    sections = parts.sections.values()
    bundles = [each for name in parts.variants for each in bundles_of(sections, name)]
    pipelines = [each for each in bundles if each not in parts.variants and section.includes(each)]
    if options.format == ORT and pipelines:
        what = f"packages.web.format is 'ort', which pipelines have no form in, and {pipelines[0]} is one"
        fix = "remove `format: ort`, or name variants alone in `packages: {variants: [...]}`"
        yield Fault(what, parts.at(PACKAGES, NAME, "format"), fix)


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from _pipeline_faults(parts)
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


FEATURE: PackageFormat = PackageFormat(
    name=NAME,
    options=WebOptions,
    below={"labels": "file"},
    title="a static folder that runs the model in a browser",
    kinds=(package_web.KIND, run_web.KIND),
    no_dtypes=frozenset({"bfloat16"}),
    package=_package,
    runs=_runs,
    has_model=_has_model,
    own_manifest=MANIFEST_FILE,
    held=_held,
    replays=_replays,
    faults=_faults,
)
