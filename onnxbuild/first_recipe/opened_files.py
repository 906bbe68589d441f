"""Files that a callable opens while `init` runs it: by Python, or by safetensors' own native code."""

from __future__ import annotations

import os
import sys
from typing import Any


def note_opened(opened: dict[str, None]) -> None:
    """Note every file that this process opens from now on.

    Args:
        opened: Gets each path, in the form in which it was opened.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            opened[os.fsdecode(arguments[0])] = None

    sys.addaudithook(hook)
    _note_safetensors(opened)


def _note_safetensors(opened: dict[str, None]) -> None:
    """Note what `safe_open` opens: native code raises no audit event.

    transformers, safetensors.torch and the user's code are imported later, so that they take this function.
    """
    try:
        import safetensors
    except ImportError:
        return
    native = safetensors.safe_open

    def safe_open(filename: Any, *arguments: Any, **named: Any) -> Any:
        opened[os.fsdecode(filename)] = None
        return native(filename, *arguments, **named)

    safetensors.safe_open = safe_open  # type: ignore[misc, assignment] # a class, of which all use calls alone
