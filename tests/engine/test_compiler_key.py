"""The C++ compiler is a part of the key of steps that run it."""

import pytest

from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import Step
from onnxbuild.core.recipe import Location
from onnxbuild.core.step import HEADERS
from onnxbuild.engine.decide import make_action
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.steps import run_cpp
from onnxbuild.steps.aotinductor import KIND, AotInductorOptions, AotInductorParams
from tests.fakes.world import FakeFiles, FakeHost

STEP = Step(
    "net:aotinductor/convert",
    KIND.name,
    {},
    AotInductorParams(AotInductorOptions()),
    Location("net.yaml", 1, 1),
)


def action(**packages):
    world = FakeFiles(packages={"torch": "torch 2 x", "numpy": "numpy 2 x", **packages})
    return make_action(STEP, KIND, {}, world, FakeHost())


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


def test_no_other_kind_needs_one():
    assert [kind.name for kind in CATALOG.values() if "c++" in kind.toolchain] == ["aotinductor"]


RUN = Step(
    "net:fp32-cpp/run",
    run_cpp.KIND.name,
    {},
    run_cpp.RunCppParams("the package", "net", "fp32", VariantTolerances()),
    Location("net.yaml", 1, 1),
)
TOOLS = ("c++", "<program cmake>", HEADERS)


def run_action(**packages):
    there = {"numpy": "numpy 2 x", "onnxruntime": "onnxruntime 1 x", **packages}
    return make_action(RUN, run_cpp.KIND, {}, FakeFiles(packages=there), FakeHost())


def test_what_a_step_can_do_without_enters_its_key_there_or_not():
    without = run_action()
    assert [without.toolchain[name] for name in TOOLS] == ["not installed"] * 3
    assert without.outside == {}
    keys = {run_action(**{name: f"{name} 1 a"}).key for name in TOOLS}
    assert len({without.key, *keys}) == 4


def test_a_step_is_told_where_the_headers_are_and_its_key_does_not_say_it():
    found = run_action(**{HEADERS: "onnxruntime-headers 1.21 a"})
    assert found.outside == {HEADERS: f"/usr/include/{HEADERS}"}
    assert "/usr/include" not in str(found.to_json())
