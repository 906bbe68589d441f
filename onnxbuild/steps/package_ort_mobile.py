"""Put a model in ORT format into a package for phones: sizes, coverage, sources, golden inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.ort_mobile.content import write_package
from onnxbuild.onnxkit.ort_mobile.coverage import coverage_of
from onnxbuild.onnxkit.ort_mobile.sizes import sizes_of
from onnxbuild.onnxkit.packages.golden import refused_dtype


@dataclass(frozen=True, slots=True)
class PackageOrtMobileParams:
    """Parameters of a package.

    Attributes:
        tolerances: The variant's.
    """

    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write the package and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: An input or output is of a type that no golden file holds.
    """
    params: PackageOrtMobileParams = context.params
    bundle, folder = context.input("bundle"), context.output("bundle")
    content = json.loads((bundle / MANIFEST_FILE).read_text("utf-8"))
    if refused := refused_dtype(content):
        raise StepError(
            f"'{refused}' is of a type that golden files don't hold",
            where=context.where,
            fix="take the variant out of `packages: {variants: [...]}`",
        )
    manifest = read_manifest(content)
    sizes = sizes_of(bundle / manifest.file)
    coverage = coverage_of(context.input("model"), context.scratch, context.where)
    lacking = write_package(
        folder,
        bundle,
        manifest,
        context.input("reference"),
        params.tolerances,
        sizes=sizes,
        coverage=coverage,
    )
    metrics = {
        "model_bytes": manifest.size_bytes,
        "weights_bytes": sizes["weights_bytes"],
        "files": write_sums(folder),
    }
    return Outcome(metrics, notes=tuple(f"no source for {each}" for each in lacking))


KIND = StepKind(
    name="package-ort-mobile",
    version=2,
    params=PackageOrtMobileParams,
    inputs=("bundle", "model", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "jinja2", "onnx", "onnxruntime", "flatbuffers"),
    run=run,
)
