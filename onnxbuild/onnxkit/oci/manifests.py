"""Manifests and configs of model artifacts, written so that equal contents give equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.onnxkit.oci.media_types import (
    EMPTY,
    FILE_PATH,
    MANIFEST,
    MODEL,
    MODEL_CONFIG,
    TITLE,
    media_type_of,
)

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
        files: Path -> digest.
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
        files: Path -> digest.
        annotations: Of the manifest.
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
        artifact_type: What it is.
        layer_type: Media type of the file.
        path: The file's name.
        content: The file's.
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
