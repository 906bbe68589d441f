"""Find the folders of installed software; files in them count by the distributions that own them."""

import os
import sys
import sysconfig
from collections.abc import Iterable

from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.own_folder import OWN_FOLDER

_SHARED_PREFIXES = ("/usr", "/usr/local", "/")  # hold other things than Python, too


def software_folders(project: str, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the folders of packages, of Python, of its environment and of this program.

    An environment that holds the project is none of them: what is in it may be the project's own.

    Args:
        project: The project's root, links resolved.
        others: More folders of software, absolute.

    Returns: Each as it is named and with links resolved; absolute.
    """
    paths = sysconfig.get_paths()
    prefixes = [each for each in (sys.prefix, sys.base_prefix) if each not in _SHARED_PREFIXES]
    found = (
        *site_folders(),
        *(paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")),
        *(p for p in sys.path if p.endswith(("site-packages", "dist-packages", ".zip"))),
        *prefixes,
        OWN_FOLDER,
        *others,
    )
    named = (each for path in found for each in (os.path.abspath(path), os.path.realpath(path)))
    return tuple(dict.fromkeys(each for each in named if not f"{project}/".startswith(f"{each}/")))
