"""Two checkouts in two folders, other hash seeds, other core counts: the same artifacts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_SCRIPT = """
import json, os, sys
from pathlib import Path
from onnxbuild.building.api import Request, build
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
recipes = (Path("recipes/digits.yaml"), Path("recipes/text_classifier.yaml"))
packages = ("fp32/package", "int8/package")
result = build(Request(recipes, packages))
assert result.exit_code == 0, result.report.failures
print(json.dumps({
    name: {output: artifact.sha256 for output, artifact in each.outputs.items()}
    for name, each in sorted(result.report.results.items())
}))
"""


def _digests(folder: Path, *, cores: int, seed: str) -> dict[str, dict[str, str]]:
    shutil.copytree(
        ROOT / "recipes", folder / "recipes", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "pyproject.toml").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(cores)],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{cores}", "LANG": "C"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    digests: dict[str, dict[str, str]] = json.loads(done.stdout)
    return digests


@pytest.mark.always
@pytest.mark.slow
def test_two_checkouts_give_the_same_artifacts(tmp_path):
    one = _digests(tmp_path / "one", cores=1, seed="1")
    other = _digests(tmp_path / "another folder, ünd" / "deeper", cores=2, seed="2")
    assert len(one) >= 18
    assert one == other
