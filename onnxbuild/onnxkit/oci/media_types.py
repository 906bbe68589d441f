"""Media types and annotations of model artifacts.

Sources: CNCF ModelPack, https://github.com/modelpack/model-spec/blob/main/docs/spec.md;
OCI image specification 1.1, https://github.com/opencontainers/image-spec.
"""

from __future__ import annotations

from pathlib import PurePosixPath

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
