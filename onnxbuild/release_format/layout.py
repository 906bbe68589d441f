"""The places of all files of a release: dist/NAME-VERSION/ and dist/NAME-VERSION.tar."""

from onnxbuild.core.step import MANIFEST_FILE

SCHEMA_VERSION = 8  # increment when release.json, or what is derived from it and compared, changes
SCHEMA_VERSION_KEY = "schema_version"

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


def release_name(name: str, version: str) -> str:
    """The release's folder, its archive without `.tar`, and the archive's one top folder."""
    return f"{name}-{version}"
