"""Select the observations of a step that a lock holds."""

from __future__ import annotations

from collections.abc import Mapping

from onnxbuild.adapters.toolchain.fingerprints import SITE_FOLDERS
from onnxbuild.catalog import CATALOG
from onnxbuild.core.action import Observed


def locked_data(kind: str, observed: Observed) -> Mapping[str, str]:
    """Return the files and listings that a lock holds: path -> digest.

    Listings of all folders of packages are left out: no two machines have the same, and the packages that
    were used are in the lock. Listings by a step that measures are left out, too: its output is never
    compared, and the compilers that it starts list every folder that they could import from.

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
