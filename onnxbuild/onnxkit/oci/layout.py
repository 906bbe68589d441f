"""An OCI layout with one model artifact, written as a package, and unpacked again.

Source: https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.core.file_names import check_names_everywhere
from onnxbuild.onnxkit.model.model_files import hand_on
from onnxbuild.onnxkit.oci.manifests import (
    FILE_PATH,
    INDEX,
    MANIFEST,
    MODEL,
    REF_NAME,
    SCHEMA_VERSION,
    SHA256,
    TITLE,
    Descriptor,
    model_config,
    model_manifest,
)
from onnxbuild.regular_files import read_regular

MARK_FILE, INDEX_FILE = "oci-layout", "index.json"
MARK = canonical_json({"imageLayoutVersion": "1.0.0"})
BLOBS = "blobs/sha256"
_TEXT_MAX_BYTES = 4 << 20  # of a manifest, as the distribution specification has it


@dataclass(frozen=True, slots=True)
class ArtifactText:
    """Texts that describe an artifact in its config and index.

    Attributes:
        title: What a person calls it: `digits:int8`.
        about: The config's `descriptor`.
        technical: The config's `config`.
        tag: What the layout's index calls it.
    """

    title: str
    about: Mapping[str, str]
    technical: Mapping[str, str]
    tag: str


class LayoutError(ValueError):
    """A layout that is not what its digests say."""


def write_layout(folder: Path, files: Mapping[str, Path], text: ArtifactText) -> str:
    """Write a layout with one artifact; return its manifest's sha256.

    Each file is a blob of its own, once where two are equal; in a store none is copied.

    Args:
        files: Path in the artifact -> file.
        text: What it says of itself.
    """
    blobs = folder / BLOBS
    blobs.mkdir(parents=True)
    digests = {path: _digest(file) for path, file in files.items()}
    for path in sorted(files):
        if not (target := blobs / digests[path].sha256).exists():
            hand_on(files[path], target)
    config = model_config(text.about, text.technical, digests)
    manifest = model_manifest(config, digests, {TITLE: text.title})
    for content in (config, manifest):
        (blobs / Digest.of(content).sha256).write_bytes(content)
    entry = Descriptor(MANIFEST, Digest.of(manifest), MODEL, {REF_NAME: text.tag})
    index = {"schemaVersion": SCHEMA_VERSION, "mediaType": INDEX, "manifests": [entry.to_json()]}
    (folder / INDEX_FILE).write_bytes(canonical_json(index))
    (folder / MARK_FILE).write_bytes(MARK)
    return Digest.of(manifest).sha256


def unpack_layout(folder: Path, target: Path) -> None:
    """Copy the files of a layout's one artifact, each blob held to its digest.

    Args:
        folder: A layout that `write_layout` wrote, or that says it did.

    Raises:
        LayoutError: A blob is missing, has other bytes, or would be written elsewhere.
    """
    with _reading():
        for path, layer in _layers(folder).items():
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_checked(folder, layer), place)


def blobs_of(folder: Path) -> dict[str, str]:
    """Return file of a layout's one artifact -> its blob, as a path in the layout.

    Raises:
        LayoutError: A blob is missing, has other bytes, or would be written elsewhere.
    """
    with _reading():
        layers = _layers(folder).items()
        return {
            path: _checked(folder, each).relative_to(folder).as_posix() for path, each in layers
        }


@contextmanager
def _reading() -> Iterator[None]:
    """Read a layout that somebody else may have written.

    Raises:
        LayoutError: It is not as this version writes one.
    """
    try:
        yield
    except OSError as error:
        raise LayoutError(f"{error.filename} can't be read: {error.strerror}") from error
    except LayoutError:
        raise
    except (ValueError, LookupError, TypeError) as error:
        raise LayoutError(f"the layout is not as onnxbuild writes one: {error}") from error


def _layers(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Path in the one artifact that the index names -> its layer's descriptor."""
    (entry,) = json.loads(_small(folder / INDEX_FILE))["manifests"]
    manifest = json.loads(_small(_checked(folder, entry)))
    _checked(folder, manifest["config"])
    listed = [(each["annotations"][FILE_PATH], each) for each in manifest["layers"]]
    check_names_everywhere([path for path, _ in listed])
    return dict(listed)


def _small(path: Path) -> bytes:
    return read_regular(path, most_bytes=_TEXT_MAX_BYTES)


def _checked(folder: Path, descriptor: Mapping[str, Any]) -> Path:
    """The blob that a descriptor names.

    Raises:
        LayoutError: It has other bytes.
    """
    sha256 = str(descriptor["digest"]).removeprefix(SHA256)
    path = folder / BLOBS / Digest(sha256, int(descriptor["size"])).sha256
    if _digest(path) != Digest(sha256, int(descriptor["size"])):
        raise LayoutError(f"blob {sha256} has other bytes than its name says")
    return path


def _digest(path: Path) -> Digest:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return Digest(found, path.stat().st_size)
