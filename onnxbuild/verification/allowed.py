"""Settings of a release's manifest that may steer a session here: no file, no library, no key that nobody knows.

The keys are those that a recipe may write (`features/settings/session/faults.py`), without those that only a provider or
a library of custom operators reads.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.ahead_of_time.prepared import FOLDER_OPTIONS
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.sessions.settings import FILE_KEYS, KNOWN_KEYS, LOAD_KEYS, is_free
from onnxbuild.providers import file_options, named

_COMPILED_NODE = b"EPContext"
"""Operator type of a node that a provider has compiled; in a model's file as these very bytes."""

_CHUNK_BYTES = 1 << 24


def config_faults(manifest: Manifest) -> Iterator[str]:
    """Return what a manifest's session settings have that no release has, each a sentence without a subject."""
    for place, config in _configs(manifest):
        for key in config:
            if key in FILE_KEYS:
                yield f"has '{key}' in {place}, which makes a session write files"
            elif key not in KNOWN_KEYS | LOAD_KEYS and not is_free(key):
                yield f"has '{key}' in {place}, which no recipe may write"
    for option in manifest.folder_options or ():
        if option not in FOLDER_OPTIONS:
            yield f"has '{option}' in folder_options, which names no folder of caches"


def refused_settings(config: Mapping[str, Any]) -> str:
    """Return why settings are not applied here; empty if they may be."""
    free = next((key for key in config if key not in KNOWN_KEYS | LOAD_KEYS), None)
    if free is None:
        return ""
    return (
        f"its session settings have '{free}', which only a provider or a library of custom operators "
        "reads: a release's are not applied"
    )


def refused_options(provider: str, options: Mapping[str, Any]) -> str:
    """Return why a provider's options are not applied here; empty if they may be.

    Args:
        provider: As the manifest has it, by its short or its full name.
    """
    known = named(provider)
    files = file_options()
    for option in options:
        if option in files:
            return (
                f"its options of {known.name} have '{option}', which names a file or a library: a release's "
                "are not applied"
            )
        if option not in (known.options or {}):
            return (
                f"its options of {known.name} have '{option}', which this onnxbuild does not know: a "
                "release's are not applied"
            )
    return ""


def holds_compiled_nodes(model: Path) -> bool:
    """Return whether a model's file holds nodes that a provider has compiled, by the bytes of their name.

    A model that merely calls something so counts, too: it is run if programs are trusted.
    """
    tail = b""
    with model.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            if _COMPILED_NODE in tail + chunk:
                return True
            tail = chunk[1 - len(_COMPILED_NODE) :]
    return False


def _configs(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (key, entries) of every session that a manifest describes."""
    if manifest.session is not None:
        yield "session.config", manifest.session.config
    for name, target in (manifest.targets or {}).items():
        yield f"targets.{name}.session.config", target.session.config
