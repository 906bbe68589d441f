"""The master law with a shared store and a cluster in the loop, by real commands: two clones of a project, edited at random.

`ONNXBUILD_EDITS=30 ONNXBUILD_SEED=7 pytest tests/cluster/test_master_law.py` makes 30 edits of that seed.
"""

import os
import random
import shutil
from pathlib import Path

import onnx
import pytest

from tests.attack.command import seen
from tests.attack.test_remote_store import SETTINGS, key, on_ci
from tests.cluster.clusters import begin
from tests.cluster.test_cluster import READY, delivered
from tests.onnxkit.models import linear

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

EDITS = int(os.environ.get("ONNXBUILD_EDITS", "5"))
SEED = int(os.environ.get("ONNXBUILD_SEED") or random.randrange(10**6))
EXECUTORS = ("local", "dask:local?workers=2")


def edit(dice: random.Random, clones: list[Path]) -> str:
    """Edit the project in all clones, or lose a file of a store; return what was done."""
    what = dice.choice(["model", "recipe", "comment", "lose", "flip", "nothing"])
    if what == "model":
        rows = dice.choice([3, 4, 5])
        for each in clones:
            onnx.save(linear(rows), each / "m.onnx")
        return f"a model of {rows} rows"
    if what in ("recipe", "comment"):
        more = {
            "recipe": f"\noutputs: [{dice.choice(['y', 'answer'])}]\n",
            "comment": f"\n# {dice.random()}\n",
        }
        for each in clones:
            (each / "ready.yaml").write_text(READY + more[what])
        return what
    stores = [clones[0].parent / "shared", *(each / "artifacts/cas" for each in clones)]
    found = sorted(path for path in dice.choice(stores).rglob("*") if path.is_file())
    if what == "nothing" or not found:
        return "nothing"
    path = dice.choice(found)
    if what == "lose":
        path.unlink()
    else:
        content = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    return f"{what} {path}"


def test_builds_of_a_team_on_a_cluster_equal_clean_ones_and_the_next_do_nothing(
    tmp_path, monkeypatch
):
    private = key(tmp_path, 1)
    for name, value in on_ci(private).items():
        monkeypatch.setenv(name, value)
    clones = [tmp_path / "one", tmp_path / "two"]
    for each in clones:
        each.mkdir()
        (each / "pyproject.toml").write_text(SETTINGS.format(url=(tmp_path / "shared").as_uri()))
        shutil.copy(private.with_suffix(".pub"), each / "ci.pub")
        (each / "ready.yaml").write_text(READY)
        onnx.save(linear(), each / "m.onnx")
    dice = random.Random(SEED)
    course = [f"seed {SEED}"]
    for number in range(EDITS):
        course.append(edit(dice, clones))
        where, executor = dice.choice(clones), dice.choice(EXECUTORS)
        course.append(f"  {where.name} by {executor}")
        options = ["--wait-uploads", "--executor", executor]
        made = seen(begin(where, "ready.yaml", *options))
        assert made.code == 0, "\n".join([*course, made.texts])
        clean = tmp_path / f"clean{number}"
        with monkeypatch.context() as alone:
            alone.setenv("ONNXBUILD_REMOTE", "off")
            built = seen(begin(where, "ready.yaml", "--store", str(clean)))
        assert built.code == 0, "\n".join([*course, built.texts])
        assert delivered(where / "artifacts", "ready") == delivered(clean, "ready"), course
        again = seen(begin(where, "ready.yaml", *options))
        assert (again.code, again.ran) == (0, frozenset()), "\n".join([*course, again.texts])
