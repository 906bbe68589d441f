"""HTML reports of builds and variants, as `onnxbuild report` writes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from onnxbuild.request import Request


def write_report(
    request: Request, path: str | os.PathLike[str], only: tuple[str, ...] = ()
) -> Path:
    """Write the page of what is built of a request; return its path, absolute.

    Args:
        request: What was built.
        path: The file.
        only: What of it to show; empty for all.

    Raises:
        UsageError: Nothing of it is built as the recipes are now.
        StoreError: The file can't be written.
    """
    from onnxbuild.adapters.disk.atomic_files import write_atomically
    from onnxbuild.reporting import report

    target = Path(path).absolute()
    asked = replace(request, only=only) if only else request
    write_atomically(target, report(asked).page.encode(), target.parent)
    return target
