"""Netron, where it is installed: a viewer of its own, which contacts servers outside."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from onnxbuild.core.errors import UsageError

WARNING = (
    "warning: Netron's page calls out to analytics services (Google) and looks for new versions as it opens; "
    "the model itself stays on this machine. `onnxbuild view` without --netron contacts nobody."
)


def serve(path: Path) -> None:
    """Show a model in Netron, in the browser, until the user ends it.

    Raises:
        UsageError: Netron is not installed.
    """
    if importlib.util.find_spec("netron") is None:
        raise UsageError(
            "netron is not installed", fix="python -m pip install netron, or leave --netron out"
        )
    netron = importlib.import_module("netron")
    netron.start(str(path))
    netron.wait()
