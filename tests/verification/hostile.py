"""Releases that attack whoever checks them, made of a sound one.

    python -m tests.verification.hostile RELEASE overwrites-a-file VICTIM
    python -m tests.verification.hostile RELEASE brings-its-own-recipe WITNESS

Each is unsigned, and consistent in all else: lock, checksums, provenance, bill, README.
"""

import json
import sys
from pathlib import Path

import yaml

from onnxbuild.project_folder import find_project
from tests.verification.conftest import edit_json
from tests.verification.forger import Forged

FILE_KEY = "session.collect_node_memory_stats_to_file"
OWN_CODE = """\
import pathlib

pathlib.Path({witness!r}).write_text("run by verify")
"""


def overwrites_a_file(release: Path, victim: Path) -> None:
    """ONNX Runtime writes its statistics to a file that the manifest names, with names of nodes in it."""
    import onnx

    bundle = release / "variants/fp32"
    model = onnx.load(bundle / "model.onnx")
    for number, node in enumerate(model.graph.node):
        node.name = f"ssh-ed25519 AAAA{number} attacker@example.org"
    onnx.save(model, bundle / "model.onnx")

    def add_key(manifest: dict) -> None:
        for settings in (manifest["session"], manifest["targets"]["cpu"]["session"]):
            settings["config"][FILE_KEY] = str(victim)

    edit_json(bundle / "manifest.json", add_key)
    Forged(release).again("variants/fp32")


def brings_its_own_recipe(release: Path, witness: Path) -> None:
    """The lock calls a recipe of the release its own, and the release holds Python that it loads.

    Args:
        release: Below the project that `--rebuild` is asked for in.
        witness: A file that the code writes.
    """
    about = json.loads((release / "release.json").read_text())
    project = find_project(release)
    forged = Forged(release)
    lock = yaml.safe_load((release / about["lock"]).read_text())
    for name in lock["sources"]:
        source = project / name
        copy = release / "recipe" / source.relative_to((project / lock["recipe"]).parent)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(OWN_CODE.format(witness=str(witness)) + source.read_text())
    recipe = (release / about["recipe"]).relative_to(project).as_posix()
    forged.edit_lock(lambda lock: lock.update(recipe=recipe))
    forged.sum()


ATTACKS = {"overwrites-a-file": overwrites_a_file, "brings-its-own-recipe": brings_its_own_recipe}

if __name__ == "__main__":
    ATTACKS[sys.argv[2]](Path(sys.argv[1]), Path(sys.argv[3]))
