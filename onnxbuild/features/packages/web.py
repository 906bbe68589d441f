"""`web`: a static folder that runs the model in a browser, with a typed module and an example page."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from onnxbuild.core.digest import Digest
from onnxbuild.core.environment import NODE, NPM, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Entrypoint, Recipe
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import dotted
from onnxbuild.expansion.artifacts import add_ort_model
from onnxbuild.expansion.feature import AheadOfTimeModel
from onnxbuild.expansion.package_format import (
    OwnModel,
    Packaged,
    PackageFormat,
    PackageRequest,
    RunPackage,
    described_at_top,
    package_kind,
    run_kind,
)
from onnxbuild.expansion.requested import PACKAGES
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest, graph_files
from onnxbuild.onnxkit.bundles.write import described
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.packages.contents import (
    LEAVE_OUT,
    hand_model_on,
    packed,
    read_bundle,
    refuse_type,
)
from onnxbuild.onnxkit.packages.golden import GOLDEN, read_plain_tolerances, write_plain_points
from onnxbuild.onnxkit.packages.package_run import (
    NOT_HERE,
    RunParams,
    checked_package,
    judged,
    run_own_test,
    skipped,
)
from onnxbuild.onnxkit.packages.signature import ModelSignature, signature_of, with_labels
from onnxbuild.onnxkit.packages.typescript import NO_ARRAY, refused_port
from onnxbuild.onnxkit.processing.labels import read_labels
from onnxbuild.onnxkit.web.content import (
    ML_DOMAIN,
    MOST_BYTES,
    MOST_POINTS,
    NPM_LIST,
    PACKAGE,
    VERSION,
    WEBGPU,
    Page,
    copy_runtime,
    opened_files,
    session_of,
    settings_left_out,
    write_module,
    write_page,
)
from onnxbuild.onnxkit.web.lacking import AS_LINKED, is_of_operators, lacking_operators

NAME, ORT = "web", "ort"
_RUNTIME = Environment(npm=NPM_LIST, needs=(NODE,))


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
        "", help="a file that names classes, one a line; left out: those of `processing`"
    )
    tolerances: VariantTolerances | None = option(
        None,
        help="how far outputs may be from the reference's in WebAssembly; over the variant's own",
    )


@dataclass(frozen=True, slots=True)
class PackageWebParams:
    """Parameters of a package.

    Attributes:
        title: Of the page.
        description: The recipe's.
        providers: Where it runs in browsers: `wasm`, `webgpu`.
        threads: The most that model.js starts by itself.
        page: Whether there is an example page.
        labels: A file that names classes, one a line, over the labels that the bundle has.
        values: Least and greatest value of the recipe's dummy image.
        tolerances: Of the golden points.
        environment: Where npm's onnxruntime-web is.
    """

    title: str
    description: str
    providers: tuple[str, ...]
    threads: int
    page: bool
    labels: Entrypoint | None
    values: tuple[float, float] | None
    tolerances: VariantTolerances
    environment: Environment


def package(context: StepContext) -> Outcome:
    """Write the folder and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: A browser can't hold the model, JavaScript has no array for an input or output, or the
            labels are as many as no output's classes.
    """
    params: PackageWebParams = context.params
    folder = context.output("bundle")
    bundle, manifest = read_bundle(context)
    _check(manifest, context)
    model_files = hand_model_on(bundle, manifest, folder)
    providers, notes = _providers(manifest, params.providers)
    node_modules = Path(params.environment.folder) / "node_modules"
    runtime = copy_runtime(node_modules, folder, providers)
    fetched = {name: described(folder / name) for name in (*model_files, *runtime)}
    points = write_plain_points(
        folder / GOLDEN,
        context.input("reference"),
        params.tolerances,
        dtypes={each.name: each.dtype or "" for each in manifest.inputs},
        most=MOST_POINTS,
    )
    signature = _labelled(context, signature_of(manifest, [each["name"] for each in points]))
    page = Page(params.title, params.description, params.values, params.page)
    write_module(
        folder, manifest, signature, page,
        files=fetched, model_files=model_files, providers=providers, threads=params.threads,
    )  # fmt: skip
    write_page(folder, manifest, signature, page, providers=providers, points=len(points))
    metrics = {
        "package_bytes": file_bytes(folder),
        "download_bytes": _downloaded(fetched, providers, runtime),
        "golden_points": len(points),
    }
    if left_out := settings_left_out(session_of(manifest)):
        notes += (f"a browser has no place for session settings: {', '.join(left_out)}",)
    return packed(context, manifest, metrics, notes)


def _providers(
    manifest: Manifest, asked: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The providers whose build can open the model, and a note where one can't."""
    if WEBGPU not in asked or ML_DOMAIN not in (manifest.opsets or {}):
        return asked, ()
    note = (
        f"WebGPU is left out: {PACKAGE}'s build for it has no operators of {ML_DOMAIN}, such as tokenizers "
        "and labels have; the package runs on WebAssembly"
    )
    return tuple(each for each in asked if each != WEBGPU), (note,)


def _check(manifest: Manifest, context: StepContext) -> None:
    if refused := refused_port(signature_of(manifest)):
        refuse_type(context, refused, f"is {refused.dtype}, {NO_ARRAY}")
    if manifest.size_bytes > MOST_BYTES:
        what = (
            f"the model has {manifest.size_bytes / 1e9:.2f} GB; a browser opens up to "
            f"{MOST_BYTES / 1e9:.1f} GB"
        )
        fix = f"package a smaller variant (int8, `mode: weight_only`), and {LEAVE_OUT}"
        raise StepError(what, where=context.where, fix=fix)
    if manifest.operators:
        what = "the model has custom operators, whose libraries no browser can load"
        raise StepError(what, where=context.where, fix=LEAVE_OUT)


def _labelled(context: StepContext, signature: ModelSignature) -> ModelSignature:
    """The signature with the labels of the recipe's `packages: {web: {labels: FILE}}`."""
    params: PackageWebParams = context.params
    if params.labels is None:
        return signature
    name, path = context.files(params.labels)[0]
    labels = read_labels(name, path, context.where)
    found = with_labels(signature, labels)
    if labels not in found.labels.values():
        outputs = ", ".join(f"'{each.name}' {each.shape_text}" for each in signature.outputs)
        what = f"{name} has {len(labels)} labels, and no output has a row of as many floats: {outputs}"
        raise StepError(what, where=context.where, fix="correct the file, or remove `labels`")
    return found


def _downloaded(fetched: dict[str, Digest], providers: tuple[str, ...], runtime: list[str]) -> int:
    """Bytes of the model, and of the runtime of the first provider alone: a browser takes one."""
    own = len(runtime) // len(providers)
    others = set(runtime[own:])
    return sum(each.size_bytes for name, each in fetched.items() if name not in others)


@dataclass(frozen=True, slots=True)
class RunWebParams(RunParams):
    """Parameters of a package's run; Node is in `environment`."""

    environment: Environment


def run(context: StepContext) -> Outcome:
    """Run the package's own test in Node, on the WebAssembly that browsers run. Without Node it is skipped.

    Raises:
        StepError: A file of the package is not the one that was packaged, the runtime lacks operators of the
            model, or the test dies.
    """
    params: RunWebParams = context.params
    folder, node = checked_package(context), params.environment.interpreter
    if not node:
        reason = "there is no Node here; install it (`apt-get install nodejs npm`) and run again"
        return skipped(context, reason)
    outputs = context.scratch / "outputs"
    outputs.mkdir()
    command: list[Path | str] = [node, *AS_LINKED, folder / "test.mjs", "--outputs", outputs]
    test = run_own_test(command, context.scratch, outputs)
    if test.code == NOT_HERE:
        raise _not_loaded(context, test.said)
    return judged(
        test,
        context,
        command="node test.mjs",
        fix="set `packages: {web: {tolerances: ...}}`, or run `node test.mjs` in the package's folder",
        most=MOST_POINTS,
    )


def _not_loaded(context: StepContext, said: str) -> StepError:
    """The error of a model that the runtime refuses; with all operators that it lacks."""
    params: RunWebParams = context.params
    lacking: tuple[str, ...] = ()
    if is_of_operators(said):
        node = params.environment.interpreter
        lacking = lacking_operators(context.input("package"), node, context.scratch)
    if not lacking:
        what = f"{params.subject} can't be loaded: {said}"
        return StepError(what, where=context.where, fix=LEAVE_OUT)
    what = f"{PACKAGE} {VERSION} lacks operators of {params.subject}: {', '.join(lacking)}"
    return StepError(what, where=context.where, fix=f"package another variant, and {LEAVE_OUT}")


def _params(packaged: Packaged) -> PackageWebParams:
    options: WebOptions = packaged.options
    recipe = packaged.recipe
    return PackageWebParams(
        title=options.title or recipe.name,
        description=recipe.description,
        providers=("webgpu", "wasm") if options.webgpu else ("wasm",),
        threads=options.threads,
        page=options.page,
        labels=recipe.entrypoints[dotted((PACKAGES, NAME, "labels"))] if options.labels else None,
        values=_values(recipe),
        tolerances=_tolerances(packaged),
        environment=Environment(npm=NPM_LIST),
    )


def _values(recipe: Recipe) -> tuple[float, float] | None:
    """Least and greatest value of the only input, where the recipe says both."""
    if len(recipe.inputs) != 1:
        return None
    low, high = recipe.inputs[0].low, recipe.inputs[0].high
    return None if low is None or high is None else (low, high)


def _tolerances(packaged: Packaged) -> VariantTolerances:
    """The bundle's, with the package's own over them."""
    base, own = packaged.tolerances, packaged.options.tolerances
    if own is None:
        return base
    if own.cosine_min is not None:
        base = replace(base, sqnr_db_min=None)
    given = {each.name: getattr(own, each.name) for each in fields(Tolerance)}
    given = {name: value for name, value in given.items() if value is not None}
    return replace(base, outputs={**base.outputs, **own.outputs}, **given)


def _converts(packaged: Packaged) -> AheadOfTimeModel | None:
    """The model in ORT format, where that is asked for."""
    if packaged.options.format != ORT:
        return None
    subject, name = packaged.subject, f"{NAME}-{ORT}"
    return add_ort_model(packaged.scope, subject.variant, subject.model, name, OrtFormatOptions())


def _run_params(asked: RunPackage) -> RunWebParams:
    """A release is judged by the package's own bounds, which may be wider than the variant's."""
    folder = asked.folder
    own = asked.tolerances if folder is None else read_plain_tolerances(folder / GOLDEN)
    return RunWebParams(asked.subject, own, _RUNTIME)


def _is_converted(folder: Path) -> bool:
    """Return whether a package's model is in ORT format."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == ORT


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """The files that model.js fetches, in the order in which it takes them.

    Raises:
        ValueError: They are more or fewer than the model has.
    """
    names = sorted(graph_files(manifest), key=lambda name: (name != manifest.file, name))
    return {
        **described_at_top(folder, manifest),
        **dict(zip(names, opened_files(folder), strict=True)),
    }


def _faults(request: PackageRequest) -> Iterator[Fault]:
    """Pipelines that `format: ort` would be of."""
    pipelines = [each for each in request.bundles if each not in request.parts.variants]
    if request.options.format == ORT and pipelines:
        what = f"packages.web.format is 'ort', which pipelines have no form in, and {pipelines[0]} is one"
        fix = "remove `format: ort`, or name variants alone in `packages: {variants: [...]}`"
        yield request.fault(what, fix, "format")


FEATURE: PackageFormat = PackageFormat(
    name=NAME,
    options=WebOptions,
    below={"labels": "file"},
    title="a static folder that runs the model in a browser",
    called="the web package of variant",
    request_faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    no_operators="no browser can load a library of custom operators",
    kind=package_kind(
        "web",
        6,
        PackageWebParams,
        package,
        toolchain=("numpy", NPM),
        entrypoints=lambda params: () if params.labels is None else (params.labels,),
    ),
    params=_params,
    converts=_converts,
    tolerances=_tolerances,
    run=run_kind("web", 4, RunWebParams, run, toolchain=("numpy", "onnx", NPM), host_bound=False),
    run_params=_run_params,
    contents=_contents,
    own_model=OwnModel(is_in=_is_converted),
)
