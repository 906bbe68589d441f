"""Put a bundle into an npm package for Node, with golden inputs that it tests itself by."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.node.content import NodeNames, write_node_package
from onnxbuild.onnxkit.node.sessions import node_sessions
from onnxbuild.onnxkit.packages.golden import golden_points
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.packages.typescript import refused_port
from onnxbuild.providers import all_providers

_LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`"


@dataclass(frozen=True, slots=True)
class PackageNodeParams:
    """Parameters of a package.

    Attributes:
        names: The package's.
        tolerances: The bundle's.
    """

    names: NodeNames
    tolerances: VariantTolerances


def run(context: StepContext) -> Outcome:
    """Write the package and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: JavaScript has no array for an input or output, or onnxruntime-node none of the providers.
    """
    params: PackageNodeParams = context.params
    bundle, reference = context.input("bundle"), context.input("reference")
    manifest = read_manifest(json.loads((bundle / MANIFEST_FILE).read_text("utf-8")))
    signature, sessions = signature_of(manifest), node_sessions(manifest)
    if refused := refused_port(signature):
        raise StepError(
            f"'{refused.name}' is {refused.dtype}, which JavaScript has no array for",
            where=context.where,
            fix=_LEAVE_OUT,
        )
    if not sessions.chain:
        asked = ", ".join(each.name for each in manifest.providers or ())
        able = ", ".join(each.name for each in all_providers() if each.node_name)
        raise StepError(
            f"onnxruntime-node has none of the variant's providers ({asked or 'none'})",
            where=context.where,
            fix=f"add a target with one of {able}, or {_LEAVE_OUT}",
        )
    files = write_node_package(
        context.output("bundle"),
        bundle,
        reference,
        params.names,
        params.tolerances,
        about=(manifest, signature, sessions),
    )
    metrics = {
        "model_bytes": manifest.size_bytes,
        "golden_points": len(golden_points(reference)),
        "providers": [each["provider"]["name"] for each in sessions.chain],
        "files": files,
    }
    return Outcome(metrics, notes=sessions.notes)


KIND = StepKind(
    name="package-node",
    version=3,
    params=PackageNodeParams,
    inputs=("bundle", "reference"),
    outputs={"bundle": "bundle"},
    toolchain=("numpy", "jinja2"),
    run=run,
)
