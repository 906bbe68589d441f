"""Web packages visited in a real Chromium.

`python -m tests.features.packages.web_visits FOLDER docs/images` takes the pictures of docs/packages.md: FOLDER is the
digits package with labels (`packages: {web: {labels: models/digits_labels.txt}}`).
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers import missing

ROOT = Path(__file__).parents[3]
MODULES = ROOT / ".servers/npm"
SEVEN = [[0.28, 0.2], [0.72, 0.2], [0.52, 0.48], [0.42, 0.8]]
"""A stroke, as shares of the canvas."""


def chromium() -> str:
    """Path of Chromium; the test is skipped where it, Node or playwright-core is missing."""
    found = shutil.which("chromium")
    if found is None or shutil.which("node") is None:
        missing("Chromium or Node")
    if not (MODULES / "node_modules/playwright-core").is_dir():
        missing("playwright-core")
    return found


def serve(*arguments, cwd=None):
    """(process, URL) of a server in Python."""
    process = subprocess.Popen(
        [sys.executable, "-u", *arguments, *(() if "-m" in arguments else ("--port", "0"))],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    said = process.stdout.readline()
    return process, said[said.index("http") :].split("/ ")[0].split(") ")[0].rstrip("/") + "/"


def end(*servers):
    """End what `serve` started."""
    for process, _ in servers:
        process.kill()
        process.wait()
        process.stdout.close()


def visit(folder, chromium, visits, *flags):
    """Name of a visit -> what was seen; see tests/npm/visit.mjs."""
    asked, answer = folder / "asked.json", folder / "answer.json"
    asked.write_text(json.dumps({"browser": chromium, "flags": flags, "visits": visits}))
    done = subprocess.run(
        ["node", ROOT / "tests/npm/visit.mjs", MODULES, asked, answer],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(answer.read_text())


def main(package: str, pictures: str) -> None:
    """Draw a seven, and write web-digits-light.png and web-digits-dark.png."""
    server = serve(Path(package) / "serve.py")
    visits = [
        {
            "name": scheme, "url": server[1], "scheme": scheme, "width": 1060, "height": 890, "draw": SEVEN,
            "shot": str(Path(pictures, f"web-digits-{scheme}.png").absolute()),
        }
        for scheme in ("light", "dark")
    ]  # fmt: skip
    try:
        with tempfile.TemporaryDirectory() as folder:
            visit(Path(folder), chromium(), visits)
    finally:
        end(server)


if __name__ == "__main__":
    main(*sys.argv[1:])
