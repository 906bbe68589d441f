"""Netron, where it is installed: a viewer of its own, which contacts servers outside."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from onnxbuild.core.errors import UsageError

WARNING = (
    "warning: Netron's page calls out to analytics services as it opens (analytics.google.com, ipinfo.io); "
    "the model stays on this machine. Without --netron, view contacts nobody."
)


def check_installed() -> None:
    """Check that Netron is installed.

    Raises:
        UsageError: It is not.
    """
    if importlib.util.find_spec("netron") is None:
        raise UsageError(
            "netron is not installed", fix="python -m pip install netron, or leave --netron out"
        )


def serve(path: Path) -> None:
    """Show a model in Netron, in the browser, until the user ends it by Ctrl-C."""
    netron = importlib.import_module("netron")
    try:
        netron.start(str(path))
        netron.wait()
    except KeyboardInterrupt:  # before `wait`, which takes the later ones itself
        netron.stop()
