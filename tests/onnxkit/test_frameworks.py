"""Frameworks that are imported when they are first used."""

import subprocess
import sys

CODE = """
import sys
from types import ModuleType
from onnxbuild.onnxkit.frameworks import np, onnx
assert isinstance(np, ModuleType) and "numpy" not in sys.modules and "onnx" not in sys.modules
assert np.float32 is sys.modules["numpy"].float32 is vars(np)["float32"]
assert "onnx" not in sys.modules and not hasattr(np, "no_such_name")
"""


def test_a_framework_is_imported_when_something_of_it_is_asked_for():
    subprocess.run([sys.executable, "-c", CODE], check=True)
