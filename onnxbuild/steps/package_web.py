"""Put a bundle into a static folder that browsers run: ONNX Runtime Web, a typed module, an example page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.digest import Digest
from onnxbuild.core.environment import NPM, Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest, read_manifest
from onnxbuild.onnxkit.bundles.write import described, write_sums
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, file_bytes, hand_on
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.signature import ModelSignature, signature_of, with_labels
from onnxbuild.onnxkit.packages.typescript import refused_port
from onnxbuild.onnxkit.processing.labels import read_labels
from onnxbuild.onnxkit.web.content import MOST_POINTS, Page, write_module, write_page
from onnxbuild.onnxkit.web.runtime import (
    ML_DOMAIN,
    MOST_BYTES,
    PACKAGE,
    WEBGPU,
    copy_runtime,
    session_of,
    settings_left_out,
)

_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`"


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


def run(context: StepContext) -> Outcome:
    """Write the folder and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: A browser can't hold the model, JavaScript has no array for an input or output, or the
            labels are as many as no output's classes.
    """
    params: PackageWebParams = context.params
    source, folder = context.input("bundle"), context.output("bundle")
    manifest = read_manifest(json.loads((source / MANIFEST_FILE).read_text("utf-8")))
    _check(manifest, context.where)
    model_files = [name for name in (manifest.file, WEIGHTS_FILE) if (source / name).exists()]
    for name in (*model_files, MANIFEST_FILE):
        hand_on(source / name, folder / name)
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
        "model_bytes": manifest.size_bytes,
        "package_bytes": file_bytes(folder),
        "download_bytes": _downloaded(fetched, providers, runtime),
        "golden_points": len(points),
        "files": write_sums(folder),
    }
    if left_out := settings_left_out(session_of(manifest)):
        notes += (f"a browser has no place for session settings: {', '.join(left_out)}",)
    return Outcome(metrics, notes=notes)


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


def _check(manifest: Manifest, where: str) -> None:
    if refused := refused_port(signature_of(manifest)):
        what = f"'{refused.name}' is {refused.dtype}, which JavaScript has no array for"
        raise StepError(what, where=where, fix=_LEAVE_OUT)
    if manifest.size_bytes > MOST_BYTES:
        what = (
            f"the model has {manifest.size_bytes / 1e9:.2f} GB; a browser opens up to "
            f"{MOST_BYTES / 1e9:.1f} GB"
        )
        fix = f"package a smaller variant (int8, `mode: weight_only`), and {_LEAVE_OUT}"
        raise StepError(what, where=where, fix=fix)
    if manifest.operators:
        what = "the model has custom operators, whose libraries no browser can load"
        raise StepError(what, where=where, fix=_LEAVE_OUT)


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


KIND = StepKind(
    name="package-web",
    version=6,
    params=PackageWebParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", NPM),
    run=run,
    entrypoints=lambda params: () if params.labels is None else (params.labels,),
)
