"""Model artifacts: media types, manifests and configs, written so that equal contents give equal bytes.

Sources: CNCF ModelPack, https://github.com/modelpack/model-spec/blob/main/docs/spec.md;
OCI image specification 1.1, https://github.com/opencontainers/image-spec.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.onnxkit.bundles.manifest import Manifest

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"

MODEL = "application/vnd.cncf.model.manifest.v1+json"
MODEL_CONFIG = "application/vnd.cncf.model.config.v1+json"
_WEIGHT = "application/vnd.cncf.model.weight.v1.raw"
_WEIGHT_CONFIG = "application/vnd.cncf.model.weight.config.v1.raw"
_DOC = "application/vnd.cncf.model.doc.v1.raw"
_CODE = "application/vnd.cncf.model.code.v1.raw"
_DATASET = "application/vnd.cncf.model.dataset.v1.raw"
RAW = frozenset({_WEIGHT, _WEIGHT_CONFIG, _DOC, _CODE, _DATASET})
"""Layers that are files as they are."""

SIGNATURE = "application/vnd.onnxbuild.signature.v1"
"""Artifact type, and media type of the one layer: 64 bytes, Ed25519 over SHA256SUMS."""
PROVENANCE = "application/vnd.in-toto+json"
"""Artifact type of a provenance; the media type of its layer, if it is not signed."""
ENVELOPE = "application/vnd.dsse.envelope.v1+json"
"""Media type of the layer of a signed provenance."""

FILE_PATH = "org.cncf.model.filepath"
TITLE = "org.opencontainers.image.title"
VERSION = "org.opencontainers.image.version"
REVISION = "org.opencontainers.image.revision"
REF_NAME = "org.opencontainers.image.ref.name"

_BY_SUFFIX = {
    **dict.fromkeys((".md", ".html", ".svg"), _DOC),
    **dict.fromkeys((".py", ".cpp", ".h", ".c", ".js", ".ts", ".whl"), _CODE),
    **dict.fromkeys((".json", ".yaml", ".yml", ".lock", ".toml", ".pbtxt", ".config", ".cfg"), _WEIGHT_CONFIG),
    **dict.fromkeys((".npz", ".npy", ".csv", ".jsonl"), _DATASET),
}  # fmt: skip
_BY_NAME = {
    **dict.fromkeys(("LICENSE", "NOTICE", "SHA256SUMS", "SHA256SUMS.sig"), _DOC),
    "CMakeLists.txt": _CODE,
}


def media_type_of(path: str) -> str:
    """Return the media type of a file's layer: by its name, weights where that says nothing else."""
    name = PurePosixPath(path)
    return _BY_NAME.get(name.name) or _BY_SUFFIX.get(name.suffix, _WEIGHT)


SHA256 = "sha256:"
SCHEMA_VERSION = 2
EMPTY_CONFIG = b"{}"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Descriptor of a blob in a manifest, or of a manifest in an index.

    Attributes:
        media_type: Of its content.
        digest: Its sha256 and size.
        artifact_type: Of a manifest; empty elsewhere.
        annotations: As they are.
    """

    media_type: str
    digest: Digest
    artifact_type: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as the specification has it."""
        found: dict[str, Any] = {
            "mediaType": self.media_type,
            "digest": f"{SHA256}{self.digest.sha256}",
            "size": self.digest.size_bytes,
        }
        if self.artifact_type:
            found["artifactType"] = self.artifact_type
        if self.annotations:
            found["annotations"] = dict(self.annotations)
        return found


def model_config(
    about: Mapping[str, Any], technical: Mapping[str, Any], files: Mapping[str, Digest]
) -> bytes:
    """Return the config of a model artifact.

    Args:
        about: `descriptor`: name, title, version, revision.
        technical: `config`: format, precision, paramSize.
    """
    layers = [f"{SHA256}{files[path].sha256}" for path in sorted(files)]
    return canonical_json(
        {
            "descriptor": dict(about),
            "config": dict(technical),
            "modelfs": {"type": "layers", "diffIds": layers},
        }
    )


def model_manifest(
    config: bytes, files: Mapping[str, Digest], annotations: Mapping[str, str]
) -> bytes:
    """Return the manifest of a model artifact: one raw layer a file, by path.

    Args:
        config: See `model_config`.
    """
    return canonical_json(
        {
            "schemaVersion": SCHEMA_VERSION,
            "mediaType": MANIFEST,
            "artifactType": MODEL,
            "config": Descriptor(MODEL_CONFIG, Digest.of(config)).to_json(),
            "layers": [
                Descriptor(
                    media_type_of(path), files[path], annotations={FILE_PATH: path, TITLE: path}
                ).to_json()
                for path in sorted(files)
            ],
            "annotations": dict(annotations),
        }
    )


def referrer_manifest(
    artifact_type: str, layer_type: str, path: str, content: bytes, subject: Digest
) -> bytes:
    """Return the manifest of one file that is attached to another manifest.

    Args:
        layer_type: Media type of the file.
        subject: The manifest that it is attached to.
    """
    return canonical_json(
        {
            "schemaVersion": SCHEMA_VERSION,
            "mediaType": MANIFEST,
            "artifactType": artifact_type,
            "config": Descriptor(EMPTY, Digest.of(EMPTY_CONFIG)).to_json(),
            "layers": [
                Descriptor(layer_type, Digest.of(content), annotations={TITLE: path}).to_json()
            ],
            "subject": Descriptor(MANIFEST, subject).to_json(),
        }
    )


_PRECISION = re.compile(r"(fp|bf|int|uint)([0-9]+)")
_NUMBERS = {"fp": "float", "bf": "bfloat", "int": "int", "uint": "uint"}
"""Ours -> ModelPack's, which goes on with the bits."""
_PREFIXES = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


def technical_facts(manifest: Manifest) -> dict[str, str]:
    """Return the config's technical part, as far as the bundle says."""
    found = _PRECISION.fullmatch(manifest.precision)
    known = {
        "format": manifest.kind,
        "precision": f"{_NUMBERS[found[1]]}{found[2]}" if found else "",
        "paramSize": _param_size(manifest),
    }
    return {key: value for key, value in known.items() if value}


def described(recipe: str, title: str) -> dict[str, str]:
    """Return the config's `descriptor` of a bundle; `title` is what a person calls it: `digits:int8`."""
    return {"name": recipe, "title": title}


def _param_size(manifest: Manifest) -> str:
    """`22.7M`; empty below a thousand, for which ModelPack has no form."""
    for size, prefix in _PREFIXES:
        if (manifest.parameters or 0) >= size:
            return f"{(manifest.parameters or 0) / size:.1f}{prefix}"
    return ""
