"""Pages as files, opened in a real Chromium: wide and narrow, light and dark."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers import missing

_LOOK, _READ = (Path(__file__).parent / "npm" / name for name in ("look.mjs", "read.mjs"))
_MODULES = Path(__file__).parents[1] / ".servers/npm"
_LOOK_S = 120
"""That a view may take where many tests share two cores; a second on a quiet machine."""

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")


def look_at(
    pages: Sequence[Path], folder: Path, *, pictures: bool = True
) -> dict[str, dict[str, Any]]:
    """Return what Chromium saw of each page: `NAME WIDTH SCHEME` -> console, outside, axe, wide, picture.

    `outside` are requests for anything but the page, `axe` findings with all details open, `wide` whether it scrolls sideways.
    Skips the test where Chromium, Node or the packages of tests/install_servers.sh are missing, or fails it; see tests/servers.py.

    Args:
        pages: HTML or SVG files.
        folder: Where the pictures go, `picture`, a PNG of the whole page.
        pictures: Whether to take them: that of a long page takes seconds.
    """
    browser = chromium()
    views = {
        f"{page.stem} {width} {scheme}": {
            "url": page.absolute().as_uri(),
            "width": width,
            "scheme": scheme,
            "open": True,
            "picture": str(folder / f"{page.stem}-{width}-{scheme}.png") if pictures else "",
        }
        for page in pages
        for width in WIDTHS
        for scheme in SCHEMES
    }
    seen = _run(_LOOK, folder, browser, [*views.values()])
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


def chromium() -> str:
    """Return Chromium's program; without it, or what drives it, the test is skipped or fails."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        missing("Chromium")
    if shutil.which("node") is None:
        missing("Node")
    if not (_MODULES / "node_modules/playwright-core").is_dir():
        missing("playwright-core")
    return browser


def read_through(pages: Sequence[Path], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a reader with a keyboard reaches of each page, and what is on paper: `NAME SCHEME` -> what was found.

    `usable` things, of which `reached` by Tab, `unmarked` those that do not show the focus; whether Enter `opened` the first
    table; of the `closed` tables, `inside` counts those on paper, `unprinted` names the others; `colours` of paper; `pdf`.

    Args:
        pages: HTML files.
        folder: Where the PDFs go.
    """
    browser = chromium()
    asked = [
        {
            "url": page.absolute().as_uri(),
            "scheme": scheme,
            "pdf": str(folder / f"{page.stem}-{scheme}.pdf"),
        }
        for page in pages
        for scheme in SCHEMES
    ]
    seen = _run(_READ, folder, browser, asked)
    names = [f"{page.stem} {scheme}" for page in pages for scheme in SCHEMES]
    return {
        name: {**each, "pdf": view["pdf"]}
        for name, each, view in zip(names, seen, asked, strict=True)
    }


def assert_readable(found: dict[str, dict[str, Any]]) -> None:
    """Everything is reached by keyboard and shows it; on paper is everything, dark on white."""
    for name, each in found.items():
        assert each["reached"] == each["usable"] > 5, (name, each)
        assert each["unmarked"] == [], name
        assert each["opened"], name
        assert each["closed"] > 0, name
        assert each["inside"] > 0, name
        assert each["unprinted"] == [], (name, each["unprinted"])
        assert each["colours"] == ["rgb(26, 29, 36)", "rgb(255, 255, 255)"], name
        assert Path(each["pdf"]).read_bytes().startswith(b"%PDF-"), name


def _run(
    script: Path, folder: Path, browser: str, views: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    question, answer = folder / "asked.json", folder / "answer.json"
    question.write_text(json.dumps({"browser": browser, "views": views}))
    done = subprocess.run(
        ["node", script, _MODULES, question, answer],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LOOK_S * len(views),
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(answer.read_text())
    return found
