"""The places of all files of a release: dist/NAME-VERSION/ and dist/NAME-VERSION.tar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.step import MANIFEST_FILE

SCHEMA_VERSION = 8  # increment when release.json, or what is derived from it and compared, changes
WITHOUT_PACKAGES, WITHOUT_VARIANTS, VERSION_IN_FORMAT, SHORT_TIMES = 4, 5, 6, 7
"""Versions of older releases: without packages; with packages whose records name no variant; the last whose
version is in the key `format`; the last whose README has times of a second and more as `1.23e+03 ms`."""
READ_VERSIONS = (*range(WITHOUT_PACKAGES, SCHEMA_VERSION + 1),)

SCHEMA_VERSION_KEY, OLD_VERSION_KEY = "schema_version", "format"
"""Keys of release.json that hold its version: since 7, and before. A package's `format` is its format's name."""

DIST_FOLDER = "dist"
"""Folder where releases are written, below the project's root."""

README_FILE = "README.md"
RELEASE_FILE = "release.json"
SUMS_FILE = "SHA256SUMS"
SIGNATURE_FILE = "SHA256SUMS.sig"
"""Ed25519 over the bytes of SHA256SUMS: 64 bytes, raw."""
PROVENANCE_FILE = "provenance.intoto.json"
ENVELOPE_FILE = "provenance.dsse.json"
"""The provenance again, signed, in a DSSE envelope; written when SIGNATURE_FILE is."""
BOM_FILE = "bom.cdx.json"

RECIPE_FOLDER = "recipe"
RESOLVED_FILE = "recipe/resolved.yaml"
MANIFEST = MANIFEST_FILE
"""File of each bundle."""
REPORTS_FOLDER = "reports"
GOLDEN_FOLDER = "golden"

SIGNATURES = (SIGNATURE_FILE, ENVELOPE_FILE)
"""Files that only a signed release has."""
NOT_SUMMED = frozenset({SUMS_FILE, *SIGNATURES})
"""Files that SHA256SUMS does not list."""
NOT_ATTESTED = frozenset({PROVENANCE_FILE, *NOT_SUMMED})
"""Files that are no subject of the provenance."""

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def version_key(version: object) -> str:
    """Return the key of release.json that holds its version, if that is the version."""
    is_old = isinstance(version, int) and version <= VERSION_IN_FORMAT
    return OLD_VERSION_KEY if is_old else SCHEMA_VERSION_KEY


def version_of(about: Mapping[str, Any]) -> Any:
    """Return the version that a release.json says, of releases that older versions made, too; None without one."""
    return about.get(SCHEMA_VERSION_KEY, about.get(OLD_VERSION_KEY))


def release_name(name: str, version: str) -> str:
    """The release's folder, its archive without `.tar`, and the archive's one top folder."""
    return f"{name}-{version}"
