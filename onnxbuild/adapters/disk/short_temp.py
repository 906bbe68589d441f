"""A short name for a deep folder, so that sockets can be made below it.

A Unix socket's path has room for 107 characters, and multiprocessing and PyTorch put sockets into the
folder of temporary files: below a deep project their workers would hang, or fail.
"""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

_LONGEST = 48  # leaves room for `/12/temp/pymp-xxxxxxxx/listener-xxxxxxxx` and the like


class ShortName:
    """A link to a folder in the system's folder of temporary files, if its own name is long.

    The link's name follows from the folder's, so that whoever removes the folder of a killed run finds it.

    Args:
        folder: Absolute; need not be there yet.

    Attributes:
        path: The folder, or the link.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        if len(os.fsencode(folder)) <= _LONGEST:
            return
        link = _link_to(folder)
        with contextlib.suppress(
            OSError
        ):  # the system's folder can't be written, or the name is taken
            link.symlink_to(folder)
            self.path = link

    def remove(self) -> None:
        """Remove the link, if there is one."""
        if self.path.is_symlink():
            self.path.unlink(missing_ok=True)


def remove_short_name(folder: Path) -> None:
    """Remove the link that a killed process left to a folder.

    Args:
        folder: As it was given to ShortName.
    """
    link = _link_to(folder)
    with contextlib.suppress(OSError):  # there is none, or it is another user's
        if link.readlink() == folder:
            link.unlink()


def _link_to(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"onnxbuild-{name}"
