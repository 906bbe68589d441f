"""Editable installations are found in a project's copy, whichever way they were installed."""

import subprocess
import sys

_SCRIPT = """
import importlib.machinery, importlib.util, sys
from onnxbuild.processes.relocated_imports import move_imports

original, copy = sys.argv[1:]

class Hook:  # as build backends install for editable packages
    known = {"hooked": original + "/libs/hooked", "alone": original + "/libs/alone.py"}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.known:
            return None
        place = cls.known[name]
        if place.endswith(".py"):
            return importlib.util.spec_from_file_location(name, place)
        return importlib.util.spec_from_file_location(name, place + "/__init__.py")

    @classmethod
    def extra(cls):
        return "kept"

sys.path.append(original + "/src")
sys.meta_path.append(Hook)
move_imports(original, copy)
import alone, hooked.inner, json, listed
print(alone.HERE, hooked.HERE, hooked.inner.HERE, listed.HERE, sys.meta_path[-1].extra())
"""


def test_every_kind_of_editable_package_is_found_in_the_copy(tmp_path):
    for side in ("original", "copy"):
        for name in ("libs/hooked/__init__", "libs/hooked/inner", "libs/alone", "src/listed"):
            path = tmp_path / side / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"HERE = {side!r}\n")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "original"), str(tmp_path / "copy")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["copy"] * 4 + ["kept"]
