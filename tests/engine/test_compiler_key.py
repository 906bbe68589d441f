"""The C++ compiler is a part of the key of steps that run it."""

import pytest

from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import Step
from onnxbuild.core.recipe import Location
from onnxbuild.engine.decide import make_action
from onnxbuild.steps.aotinductor import KIND, AotInductorOptions, AotInductorParams
from tests.fakes.world import FakeFiles

STEP = Step(
    "net:aotinductor/convert",
    KIND.name,
    {},
    AotInductorParams(AotInductorOptions()),
    Location("net.yaml", 1, 1),
)


def action(**packages):
    world = FakeFiles(packages={"torch": "torch 2 x", "numpy": "numpy 2 x", **packages})
    return make_action(STEP, KIND, {}, world)


def test_another_compiler_is_another_key():
    first = action(**{"c++": "g++ g++-12 a"})
    assert first.toolchain["c++"] == "g++ g++-12 a"
    assert first.key != action(**{"c++": "g++ g++-13 b"}).key
    assert first.host is not None


def test_without_a_compiler_nothing_is_started():
    with pytest.raises(StepError) as caught:
        action()
    assert caught.value.what == "step kind 'aotinductor' needs a c++"
    assert caught.value.fix == "get a c++"
    assert caught.value.where == "net:aotinductor/convert"


def test_no_other_kind_asks_for_one():
    assert [kind.name for kind in CATALOG.values() if "c++" in kind.toolchain] == ["aotinductor"]
