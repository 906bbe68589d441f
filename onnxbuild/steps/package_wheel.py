"""Put a bundle into a Python wheel, with golden inputs that it tests itself by."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.packages.golden import golden_points, refused_dtype
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.wheels.archive import write_wheel
from onnxbuild.onnxkit.wheels.content import WheelNames, requirements_of, wheel_files
from onnxbuild.onnxkit.wheels.names import info_folder, wheel_file


@dataclass(frozen=True, slots=True)
class PackageWheelParams:
    """Parameters of a package.

    Attributes:
        names: The wheel's.
        runtime: The distribution of ONNX Runtime that it requires; `auto` or `none`, too.
        tolerances: The variant's.
    """

    names: WheelNames
    runtime: str
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write the wheel and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: An input or output is of a type that no golden file holds.
    """
    params: PackageWheelParams = context.params
    bundle, reference = context.input("bundle"), context.input("reference")
    manifest = json.loads((bundle / MANIFEST_FILE).read_text("utf-8"))
    if refused := refused_dtype(manifest):
        raise StepError(
            f"'{refused}' is of a type that NumPy lacks, so a wheel can't hold golden inputs",
            where=context.where,
            fix="take the variant out of `packages: {variants: [...]}`",
        )
    requirements = requirements_of(manifest, params.runtime)
    points = golden_points(reference)
    signature = signature_of(read_manifest(manifest), [each.name for each in points])
    files = wheel_files(
        params.names,
        bundle,
        reference,
        params.tolerances,
        signature=signature,
        requirements=requirements,
    )
    folder, names = context.output("bundle"), params.names
    path = folder / wheel_file(names.distribution, names.version)
    write_wheel(path, info_folder(names.distribution, names.version), files)
    metrics = {
        "model_bytes": manifest["size_bytes"],
        "wheel_bytes": path.stat().st_size,
        "golden_points": len(points),
        "requires": list(requirements),
        "files": write_sums(folder),
    }
    return Outcome(metrics)


KIND = StepKind(
    name="package-wheel",
    version=4,
    params=PackageWheelParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "jinja2"),
    run=run,
)
