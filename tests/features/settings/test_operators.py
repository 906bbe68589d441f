"""`operators` in a recipe: what is wrong with it, and which steps get the libraries."""

import pytest

from onnxbuild.core.graph import OutputRef
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.written_recipes import faults, loader

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
ahead_of_time: {ort: {}, optimized: {}}
"""
NODES = 'operators: {libraries: [ops/*.so], nodes: {"mylib::fancy": "mylib.example::Fancy"}}\n'


@pytest.fixture
def load(tmp_path):
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/libfancy.so").write_bytes(b"")
    (tmp_path / "ops/libother.so").write_bytes(b"")
    return loader(tmp_path, before=RECIPE)


def test_each_step_that_opens_sessions_or_ships_models_gets_them(load):
    graph = resolve(load(NODES).recipes, HOST)
    libraries = OutputRef("demo:operators", "libraries")
    given = {
        name for name, step in graph.steps.items() if step.inputs.get("operators") == libraries
    }
    assert {
        "demo:export", "demo:optimize", "demo:int8/quantize", "demo:fp32/validate", "demo:int8/validate",
        "demo:benchmark", "demo:fp32/package", "demo:fp32-ort/make", "demo:fp32-ort/validate",
        "demo:fp32-ort/package", "demo:int8-optimized/make",
    } <= given  # fmt: skip
    assert set(graph.steps) - given == {
        "demo:operators", "demo:reference", "demo:check", "demo:fp32/check", "demo:int8/check",
    }  # fmt: skip
    assert graph.steps["demo:operators"].params.libraries.files == (
        "ops/libfancy.so",
        "ops/libother.so",
    )
    nodes = {name for name, step in graph.steps.items() if "operators/nodes" in step.inputs}
    assert nodes == {"demo:export"}


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (
            "operators: {}\n",
            "operators names no library",
            "write `operators: {libraries: [PATH]}`",
        ),
        (
            "operators: {libraries: ops/libfancy.so}\n",
            "operators.libraries is 'ops/libfancy.so' (a string); expected a list",
            "write `[ops/libfancy.so]`",
        ),
        (
            NODES.replace("mylib.example::Fancy", "com.microsoft::Gelu"),
            "operators.nodes.mylib::fancy is 'com.microsoft::Gelu'; expected DOMAIN::NAME in a domain of",
            "write `mylib.example::Fancy`, or `mylib.example::Fancy@2` for version 2",
        ),
        ("formats: [torchscript]\noperators: {libraries: [ops/libfancy.so]}\n", "operators", ""),
    ],
)
def test_what_is_wrong_is_said_with_its_line(load, text, what, fix):
    found = faults(load, text)
    assert any(what in each[0] and fix in each[2] for each in found), found
    assert all(each[1].startswith("demo.yaml:") for each in found)


def test_nodes_need_a_model_of_pytorch(tmp_path, load):
    import onnx

    from tests.onnxkit.models import linear

    onnx.save(linear(), tmp_path / "m.onnx")
    own = loader(tmp_path)
    text = "version: 1\nname: demo\nmodel: {onnx: m.onnx}\n" + NODES
    ((what, where, _),) = faults(own, text)
    assert what == "operators.nodes needs the frontend 'pytorch'; the recipe has 'onnx'"
    assert where.startswith("demo.yaml:4")
