"""Generators of random numbers start at the same place, whether their module was loaded before the step or by it."""

import subprocess
import sys

import pytest

DRAW = """
import random, sys
{first}
{second}
import numpy, torch
print(random.random(), numpy.random.rand(), torch.rand(1).item())
"""
SEED = """
from onnxbuild.processes.child import seed_generators
seed_generators()
"""


def drawn(first: str, second: str) -> str:
    code = DRAW.format(first=first, second=second)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_modules_that_are_loaded_later_draw_what_loaded_ones_draw():
    late = drawn("assert not {'numpy', 'torch'} & set(sys.modules)", SEED)
    assert late == drawn("import numpy, torch", SEED)


def test_a_module_that_is_not_there_is_reported_as_ever():
    hidden = "sys.modules.pop('numpy', None); sys.path[:] = []\ntry:\n    import numpy\nexcept ModuleNotFoundError as error:\n    print(error)\n    sys.exit()"
    assert drawn(SEED, hidden) == drawn("", hidden) == "No module named 'numpy'\n"
