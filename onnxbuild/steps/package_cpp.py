"""Put a bundle into a CMake project with a typed header, and golden inputs that it tests itself by."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.cpp.content import refused_port, usable_providers, write_package
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.providers import short_name

_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`, or `cpp` out of `packages`"


@dataclass(frozen=True, slots=True)
class PackageCppParams:
    """Parameters of a package.

    Attributes:
        tolerances: The variant's.
    """

    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write the project and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: C++ has no type for an input or output, or none of the execution providers can be appended
            in C++.
    """
    params: PackageCppParams = context.params
    bundle, folder = context.input("bundle"), context.output("bundle")
    manifest = read_manifest(json.loads((bundle / MANIFEST_FILE).read_text("utf-8")))
    refused = refused_port(signature_of(manifest))
    if refused is not None:
        raise StepError(
            f"'{refused.name}' is of the type {refused.dtype or 'of no tensor'}, which C++ packages don't carry",
            where=context.where,
            fix=_LEAVE_OUT,
        )
    asked = [each.name for each in manifest.providers or ()]
    usable = usable_providers(manifest)
    if not usable:
        raise StepError(
            f"ONNX Runtime's C++ API can't append {' or '.join(asked)}, and the variant has no other execution provider",
            where=context.where,
            fix=f"add `cpu` to `providers`, or {_LEAVE_OUT}",
        )
    points = write_package(folder, bundle, manifest, context.input("reference"), params.tolerances)
    left = [short_name(name) for name in asked if name not in usable]
    notes = [f"ONNX Runtime's C++ API can't append {' or '.join(left)}: left out"] if left else []
    metrics = {
        "model_bytes": manifest.size_bytes,
        "golden_points": points,
        "files": write_sums(folder),
    }
    return Outcome(metrics, notes=tuple(notes))


KIND = StepKind(
    name="package-cpp",
    version=4,
    params=PackageCppParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "jinja2"),
    run=run,
)
