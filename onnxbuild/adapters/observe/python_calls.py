"""Record which line listed a folder or was refused a file: the kernel sees the files, and only Python the line.

An audit hook would know, too; Python calls it so often that a cold export takes 7 % longer.
"""

import os
from collections.abc import Callable
from typing import Any

from onnxbuild.adapters.observe.stand_ins import stand_in


def watch_calls(listed: Callable[[Any], None], refused: Callable[[Any], None]) -> None:
    """Watch the calls of this process. There is no way back: the process is for one step.

    Args:
        listed: Called with each folder whose names are asked for, as it is named.
        refused: Called with each path that may not be opened, as it is named.
    """
    for name in ("listdir", "scandir"):
        stand_in(os, name, _listing(getattr(os, name), listed))
    plain = os.open

    def opens(path: Any, *arguments: Any, **named: Any) -> int:
        try:
            return plain(path, *arguments, **named)
        except PermissionError:
            refused(path)
            raise

    stand_in(os, "open", opens)


def _listing(plain: Callable[..., Any], listed: Callable[[Any], None]) -> Callable[..., Any]:
    def lists(path: Any = None) -> Any:
        listed(path)
        return plain(path)

    return lists
