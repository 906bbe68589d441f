"""The order of the files: single tests that take long first, so that no worker waits for them."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole projects, which lie here beside this file; then all else, as it was.

    `--no-loadscope-reorder` keeps to it; else files of one test would come last.
    """
    items.sort(key=lambda item: item.path.parent != HERE)
