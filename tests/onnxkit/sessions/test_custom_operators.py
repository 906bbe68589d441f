"""Libraries of custom operators in sessions: adopted, registered, explained."""

import sys

import numpy as np
import onnx
import pytest

from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU, Link, Target
from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.optimize.offline_optimization import optimize_offline
from onnxbuild.onnxkit.sessions.custom_operators import (
    OperatorLibrary,
    adopted_libraries,
    operators_of,
    paths_for_this_platform,
    unknown_operator,
    write_libraries,
)
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import open_session
from tests.native import fancy_library, fancy_model

X = {"x": np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)}


def expected(model):
    w, v = (onnx.numpy_helper.to_array(each) for each in model.graph.initializer)
    h = X["x"] @ w
    return h / (1 + np.exp(-1.702 * h)) @ v


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder as the step `operators` writes it."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "own").mkdir()
    (folder / "own/libfancy.so").symlink_to(fancy_library())
    others = OperatorLibrary("arm/libfancy.so", ("linux-other",))
    write_libraries(folder, [others, OperatorLibrary("own/libfancy.so", (this_platform(),))])
    return folder


@pytest.fixture
def model(tmp_path):
    made = fancy_model()
    save_model(made, tmp_path / "model")
    return tmp_path / "model"


def test_every_session_registers_what_the_process_has_adopted_and_none_after_that(
    libraries, model
):
    with operators_of(libraries):
        (path,) = adopted_libraries()
        assert path == str(libraries / "own/libfancy.so")
        for _ in range(2):
            (found,) = open_session(model).run(None, X)
            np.testing.assert_allclose(found, expected(fancy_model()), rtol=1e-5, atol=1e-6)
    assert adopted_libraries() == ()
    with pytest.raises(StepError) as caught:
        open_session(model, where="demo:import")
    assert caught.value.what.startswith("the model has a node 'mylib.example::Fancy', which ONNX")
    assert caught.value.fix.startswith("compile the operator into a library and write `operators:")


def test_a_session_under_another_interpreter_registers_them_too(libraries, model):
    environment = Environment(python=sys.executable, interpreter=sys.executable)
    target = Target("other", (Link(CPU),), environment=environment)
    with operators_of(libraries):
        (found,) = open_session(model, target=target).run(None, X)
    np.testing.assert_allclose(found, expected(fancy_model()), rtol=1e-5, atol=1e-6)


def test_types_behind_the_node_are_known_and_offline_optimization_keeps_it(
    libraries, model, tmp_path
):
    with operators_of(libraries):
        typed = load_typed(model)
        kept = onnx.load(
            optimize_offline(model, tmp_path / "made", level="extended") / "model.onnx"
        )
    kinds = {each.name: each.type.tensor_type.elem_type for each in typed.graph.value_info}
    assert kinds["a"] == onnx.TensorProto.FLOAT
    assert [(n.domain, n.op_type) for n in kept.graph.node if n.domain] == [
        ("mylib.example", "Fancy")
    ]
    assert {each.domain for each in kept.opset_import} >= {"mylib.example"}


def test_an_operator_that_the_library_lacks_is_named_with_the_library(libraries, tmp_path):
    save_model(fancy_model("Fency"), tmp_path / "model")
    with operators_of(libraries), pytest.raises(StepError) as caught:
        open_session(tmp_path / "model")
    assert "'mylib.example::Fency', which neither ONNX Runtime " in caught.value.what
    assert caught.value.what.endswith(" nor libfancy.so has")


def test_only_the_libraries_for_this_platform_that_register_are_taken(tmp_path):
    listed = [
        OperatorLibrary("a.so", (this_platform(), "linux-other")),
        OperatorLibrary("b.so", ("linux-other",)),
        OperatorLibrary("c.so", (this_platform(),), registers=False),
    ]
    assert paths_for_this_platform(tmp_path, listed) == (str(tmp_path / "a.so"),)


@pytest.mark.parametrize(
    ("said", "operator"),
    [
        ("Fatal error: my.lib:Fancy(-1) is not a registered function/op", "my.lib::Fancy"),
        (
            'In Node, ("", Gelu, "", -1) : ("x": tensor(float),) -> , Error No Op registered for Gelu',
            "",  # ONNX has it from opset 20 on
        ),
        ("Type Error: Type 'tensor(float16)' of input parameter (x) is invalid", ""),
    ],
)
def test_an_unknown_operator_is_read_from_what_onnx_runtime_says(said, operator):
    assert unknown_operator(said) == operator
