"""A clone on "another machine", with a filled remote store, compared with the build that filled it.

Each machine is a copy of the repository in a folder of its own, with its own HOME, cache and store. CI builds
recipes/bert.yaml and uploads it to nginx (docs/remote/nginx.conf, without TLS); the clone runs the same command. The
frameworks that the clone's processes import are counted by Python itself (`-X importtime`).

    python benchmarks/cold_clone.py [--recipe recipes/bert.yaml] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import machine

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # the servers are those of the tests

from tests.adapters.remote.servers import nginx  # noqa: E402

TARGET = 0.10
FRAMEWORKS = ("torch", "onnx", "onnxruntime", "numpy", "transformers")
KEYS = (
    "openssl genpkey -algorithm ed25519 -out {0}/cache.pem && "
    "openssl pkey -in {0}/cache.pem -pubout -out {0}/cache.pub"
)


def clone(folder: Path) -> Path:
    """A copy of the repository's project files, with a HOME next to it."""
    project = folder / "project"
    project.mkdir(parents=True)
    (folder / "home").mkdir()
    shutil.copytree(ROOT / "recipes", project / "recipes")
    (project / "pyproject.toml").write_text("")
    return project


def run(project: Path, recipe: str, *options: str, **variables: str) -> tuple[float, str]:
    """Seconds that a run took, and what it printed, import times included."""
    home = project.parent / "home"
    surroundings = {**os.environ, "HOME": str(home), "ONNXBUILD_CACHE": str(home / "cache")}
    command = [sys.executable, "-X", "importtime", "-m", "onnxbuild", "run", recipe, *options]
    began_s = time.perf_counter()
    done = subprocess.run(
        command, check=False, cwd=project, env={**surroundings, **variables}, capture_output=True,
        text=True,
    )  # fmt: skip
    took_s = time.perf_counter() - began_s
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr[-4000:]}")
    return took_s, done.stdout + done.stderr


def imported(output: str) -> list[str]:
    """Frameworks among what was imported."""
    names = set(re.findall(r"^import time:.*\| +(\w+)$", output, re.MULTILINE))
    return [each for each in FRAMEWORKS if each in names]


def size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="recipes/bert.yaml")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        subprocess.run(KEYS.format(folder), shell=True, check=True, capture_output=True)
        with nginx(folder / "server") as (url, _):
            remote = {
                "ONNXBUILD_REMOTE": url,
                "ONNXBUILD_REMOTE_TRUSTED_KEYS": str(folder / "cache.pub"),
            }
            signing = {
                "ONNXBUILD_REMOTE_PUSH": "always",
                "ONNXBUILD_REMOTE_SIGN_KEY": str(folder / "cache.pem"),
            }
            ci = clone(folder / "ci")
            built_s, _ = run(ci, arguments.recipe)
            push = [sys.executable, "-m", "onnxbuild", "cache", "push", arguments.recipe]
            subprocess.run(push, cwd=ci, env={**os.environ, **remote, **signing}, check=True)
            print(
                f"build       {built_s:6.1f} s, {size_mb(ci / 'artifacts/cas'):.0f} MB of results"
            )
            for number in range(arguments.rounds):
                project = clone(folder / f"clone-{number}")
                took_s, output = run(project, arguments.recipe, **remote)
                (end,) = re.findall(r"^ok: .*$", output, re.MULTILINE)
                print(
                    f"cold clone  {took_s:6.1f} s, {took_s / built_s:.3f} x the build (target {TARGET}); "
                    f"{size_mb(project / 'artifacts/cas'):.0f} MB fetched; {end}; "
                    f"frameworks imported: {', '.join(imported(output)) or 'none'}"
                )


if __name__ == "__main__":
    main()
