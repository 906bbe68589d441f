"""Manifests of model artifacts that somebody else wrote, read with distrust."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.core.file_names import FILES_MAX, check_names_everywhere
from onnxbuild.onnxkit.oci.manifests import (
    FILE_PATH,
    INDEX,
    MANIFEST,
    MODEL,
    MODEL_CONFIG,
    RAW,
    REF_NAME,
    SCHEMA_VERSION,
    SHA256,
    TITLE,
    Descriptor,
)
from onnxbuild.release_format.forms import printable, read_json

MANIFEST_MAX_BYTES = 4 << 20  # the distribution specification has every registry take this much
LAYERS_MAX = FILES_MAX


@dataclass(frozen=True, slots=True)
class ArtifactManifest:
    """An image manifest.

    Attributes:
        artifact_type: What it is of; the config's media type where it says nothing else.
        config: Its config.
        layers: In order.
        subject: sha256 of the manifest that it is attached to; empty if it is on its own.
        annotations: As they are.
    """

    artifact_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    subject: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


def read_index(content: bytes, where: str) -> tuple[Descriptor, ...]:
    """Return the manifests that an index names.

    Raises:
        NotReproducibleError: It is no index.
    """
    try:
        return _descriptors(_mapping(read_json(content)).get("manifests"), "manifests")
    except ValueError as error:
        raise _refused(f"is no OCI index: {error}", where) from error


def add_to_index(content: bytes | None, entry: Descriptor, where: str) -> bytes:
    """Return an index with one more manifest; all else that others wrote there stays, known or not.

    Args:
        content: The index until now; None for none.
        entry: The manifest; if it has a name, it takes the place of the one of that name.
        where: The reference, for messages.

    Raises:
        NotReproducibleError: The content is no index.
    """
    new = entry.to_json()
    if content is None:
        return canonical_json(
            {"schemaVersion": SCHEMA_VERSION, "mediaType": INDEX, "manifests": [new]}
        )
    read_index(content, where)
    index = read_json(content)
    tag = entry.annotations.get(REF_NAME)
    others = [each for each in index["manifests"] if tag is None or _ref_name(each) != tag]
    ordered = sorted([*others, new], key=lambda e: (_ref_name(e) or "\uffff", e["digest"]))
    try:
        return canonical_json({**index, "manifests": ordered})
    except ValueError as error:
        raise _refused(f"is no OCI index: {error}", where) from error


def _ref_name(entry: Mapping[str, Any]) -> str | None:
    found: str | None = (entry.get("annotations") or {}).get(REF_NAME)
    return found


def read_manifest(content: bytes, where: str) -> ArtifactManifest:
    """Return a manifest that somebody else may have written.

    Args:
        content: Its bytes; what they hash to is the caller's to check.
        where: The reference, for messages.

    Raises:
        NotReproducibleError: It is none.
    """
    try:
        return _manifest(_mapping(read_json(content)))
    except ValueError as error:
        fix = "push it again from where it was made"
        if not content.lstrip().startswith(b"{"):
            fix = "check the address: another server, or a proxy, may have answered"
        raise _refused(f"is no OCI image manifest: {error}", where, fix) from error


def _manifest(value: Mapping[str, Any]) -> ArtifactManifest:
    if "manifests" in value:
        raise ValueError("it is an index of several manifests; name one of them by its digest")
    if (
        value.get("schemaVersion") != SCHEMA_VERSION
        or value.get("mediaType", MANIFEST) != MANIFEST
    ):
        raise ValueError(f"its media type is '{value.get('mediaType', '')}'")
    config = _descriptor(value.get("config"), "config")
    subject = value.get("subject")
    return ArtifactManifest(
        _text(value, "artifactType") or config.media_type,
        config,
        _descriptors(value.get("layers"), "layers"),
        "" if subject is None else _descriptor(subject, "subject").digest.sha256,
        _annotations(value),
    )


def model_files(manifest: ArtifactManifest, where: str) -> dict[str, Digest]:
    """Return path -> digest of the files of a model artifact; every path is below its folder.

    Raises:
        UsageError: It is another kind of artifact, or a layer is packed.
        NotReproducibleError: A path leads elsewhere, or is there twice.
    """
    if manifest.artifact_type not in {MODEL, MODEL_CONFIG}:
        raise UsageError(
            f"it is no model: its type is '{printable(manifest.artifact_type)}', not '{MODEL}'",
            where=where,
        )
    files: dict[str, Digest] = {}
    paths = []
    for layer in manifest.layers:
        path = layer.annotations.get(FILE_PATH) or layer.annotations.get(TITLE, "")
        if layer.media_type not in RAW:
            raise UsageError(
                f"it has a layer of type '{printable(layer.media_type)}'; onnxbuild pulls raw layers, one a file",
                where=where,
            )
        paths.append(path)
        files[path] = layer.digest
    try:
        check_names_everywhere(paths)
    except ValueError as error:
        raise _refused(f"has a layer whose path is refused: {error}", where) from error
    if not files:
        raise _refused("has no layers", where)
    return files


def _descriptors(value: object, name: str) -> tuple[Descriptor, ...]:
    if not isinstance(value, list) or len(value) > LAYERS_MAX:
        raise ValueError(f"its {name} are no list of at most {LAYERS_MAX}")
    return tuple(_descriptor(each, name) for each in value)


def _descriptor(value: object, name: str) -> Descriptor:
    found = _mapping(value, name)
    digest, size = found.get("digest"), found.get("size")
    if not isinstance(digest, str) or not digest.startswith(SHA256) or type(size) is not int:
        raise ValueError(f"its {name} have no sha256 digest and size")
    return Descriptor(
        _text(found, "mediaType"),
        Digest(digest.removeprefix(SHA256), size),
        _text(found, "artifactType"),
        _annotations(found),
    )


def _annotations(value: Mapping[str, Any]) -> dict[str, str]:
    found = _mapping(value.get("annotations") or {}, "annotations")
    if not all(isinstance(each, str) for each in found.values()):
        raise ValueError("an annotation is no text")
    return dict(found)


def _mapping(value: object, name: str = "content") -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"its {name} is no mapping")  # noqa: TRY004 - a fault of the file, not of a caller
    return value


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key, "")
    if not isinstance(found, str):
        raise ValueError(f"its {key} is no text")  # noqa: TRY004 - likewise
    return found


def _refused(why: str, where: str, fix: str = "") -> NotReproducibleError:
    return NotReproducibleError(f"it {printable(why)}", where=where, fix=fix)
