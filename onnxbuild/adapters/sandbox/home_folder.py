"""A step's home folder: its own, with nothing in it but the files below `~` that its recipe declares.

So whatever libraries look for at their usual place, such as a Hugging Face cache, is found there if
it is declared; what is not is not there, and the real home's path can't get into an output.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from onnxbuild.adapters.sandbox.error_paths import texts_of

OWN_HOME = "home"  # below a job's folder
_HUB_MODEL = re.compile(r"/models--[^/]+$")


def lay_home(own: Path, real: str, declared: Iterable[str]) -> None:
    """Make a home folder in which declared files have the places that they have below the real one.

    Args:
        own: The folder to make.
        real: The user's home folder, absolute.
        declared: Files that are outside the project, absolute.
    """
    own.mkdir()
    for path in declared:
        if path.startswith(f"{real.rstrip('/')}/"):
            link = own / os.path.relpath(path, real)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(link):
                link.symlink_to(path)


def meant_below_home(error: BaseException, own: str, real: str) -> str | None:
    """The file below the real home that the code looked for in its own one; None if there is none.

    Args:
        error: With its traceback, whose variables name it.
        own: The step's home folder.
    """
    for text in texts_of(error):
        path = os.path.normpath(text)
        if not path.startswith(f"{own}/") or os.path.lexists(path):
            continue
        meant = f"{real.rstrip('/')}{path[len(own) :]}"
        if os.path.isfile(meant):
            return meant
        if _HUB_MODEL.search(meant) and os.path.isdir(meant):
            return f"{meant}/refs/main"
    return None
