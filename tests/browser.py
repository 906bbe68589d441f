"""Pages as files, opened in a real Chromium: wide and narrow, light and dark."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).parent / "npm/look.mjs"
_MODULES = Path(__file__).parents[1] / ".servers/npm"
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")


def look_at(pages: Sequence[Path], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what Chromium saw of each page: `NAME WIDTH SCHEME` -> console, outside, axe, wide, picture.

    `outside` are requests for anything but the page, `axe` findings with all details open, `wide` whether it scrolls sideways.
    Skips the test where Chromium, Node or the packages of tests/install_servers.sh are missing.

    Args:
        pages: HTML or SVG files.
        folder: Where the pictures go, `picture`, a PNG of the whole page.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None or shutil.which("node") is None:
        pytest.skip("needs chromium and node, see tests/install_servers.sh")
    if not (_MODULES / "node_modules/playwright-core").is_dir():
        pytest.skip("needs playwright-core, see tests/install_servers.sh")
    views = {
        f"{page.stem} {width} {scheme}": {
            "url": page.absolute().as_uri(),
            "width": width,
            "scheme": scheme,
            "open": True,
            "picture": str(folder / f"{page.stem}-{width}-{scheme}.png"),
        }
        for page in pages
        for width in WIDTHS
        for scheme in SCHEMES
    }
    asked, answer = folder / "asked.json", folder / "answer.json"
    asked.write_text(json.dumps({"browser": browser, "views": [*views.values()]}))
    done = subprocess.run(
        ["node", _SCRIPT, _MODULES, asked, answer],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(answer.read_text())
    return {
        name: {**each, "picture": view["picture"]}
        for (name, view), each in zip(views.items(), seen, strict=True)
    }


def assert_good(seen: dict[str, dict[str, Any]]) -> None:
    """No outside request, nothing on the console, no finding of axe, nothing that scrolls sideways."""
    for name, each in seen.items():
        for fault in ("outside", "console", "axe"):
            assert each[fault] == [], (name, fault)
        assert each["wide"] is False, name
