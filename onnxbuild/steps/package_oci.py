"""Put a bundle into an OCI layout: a model artifact that registries and their tools take as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.bundles.write import names_below, write_sums
from onnxbuild.onnxkit.oci.layout import ArtifactText, write_layout
from onnxbuild.onnxkit.oci.model_facts import described, technical_facts


@dataclass(frozen=True, slots=True)
class PackageOciParams:
    """Parameters of a package.

    Attributes:
        tag: What the layout's index calls the artifact.
    """

    tag: str


def run(context: StepContext) -> Outcome:
    """Write the layout and SHA256SUMS; the artifact's digest is that of `onnxbuild push`."""
    params: PackageOciParams = context.params
    bundle, folder = context.input("bundle"), context.output("bundle")
    manifest = read_manifest(json.loads((bundle / MANIFEST_FILE).read_text("utf-8")))
    title = f"{manifest.name}:{manifest.bundle}"
    about = described(manifest.name, title)
    text = ArtifactText(title, about, technical_facts(manifest), params.tag)
    sha256 = write_layout(folder, {name: bundle / name for name in names_below(bundle)}, text)
    metrics = {
        "model_bytes": manifest.size_bytes,
        "digest": f"sha256:{sha256}",
        "files": write_sums(folder),
    }
    return Outcome(metrics)


KIND = StepKind(
    name="package-oci",
    version=1,
    params=PackageOciParams,
    inputs=("bundle",),
    outputs={"bundle": "bundle"},
    toolchain=(),
    run=run,
)
