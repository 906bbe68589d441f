"""What of a step's observations a lock holds."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.adapters.fingerprints import SITE_FOLDERS
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Observed


def locked_data(kind: str, observed: Observed) -> Mapping[str, str]:
    """Files and listings that a lock holds: path -> digest.

    What all folders of packages hold is left out: no two machines have the same, and the packages that
    were used are in the lock. So are listings by a step that measures, whose output nobody compares:
    the compilers that it starts list every folder that they could import from.

    Args:
        kind: The step's.
        observed: What it used.
    """
    measures = CATALOG[kind].measures
    return {
        path: digest
        for path, digest in observed.data.items()
        if path != f"{SITE_FOLDERS}/" and not (measures and path.endswith("/"))
    }
