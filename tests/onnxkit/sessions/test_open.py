import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import Link, Target
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import (
    first_line,
    missing_kernel_fix,
    open_session,
    session_errors,
)
from tests.onnxkit.models import linear, model, value, weight


def target(provider, **options):
    return Target(provider, (Link(provider, options),))


def provider_or_error(folder, provider):
    try:
        return open_session(folder, target=target(provider)).get_providers()[0]
    except StepError as error:
        return error.what


def test_a_session_runs_where_it_was_asked_to(tmp_path):
    save_model(linear(), tmp_path)
    session = open_session(tmp_path, target=target("cpu", use_arena="0"), threads=1)
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.run(None, {"x": np.ones((2, 4), np.float32)})[0].shape == (2, 3)


def test_a_provider_that_is_not_installed_is_an_error(tmp_path):
    save_model(linear(), tmp_path)
    with pytest.raises(StepError) as caught:
        open_session(tmp_path, target=target("qnn"), where="bert:validate")
    assert "'qnn' (QNNExecutionProvider) is not in the installed ONNX Runtime" in str(caught.value)
    assert "bert:validate" in str(caught.value)
    assert "write `providers: [cpu]`" in caught.value.fix


def test_a_provider_that_does_not_load_is_an_error_and_never_a_silent_fallback(tmp_path):
    import onnxruntime

    save_model(linear(), tmp_path)
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has no CUDA provider at all")
    said = provider_or_error(tmp_path, "cuda")
    assert said == "CUDAExecutionProvider" or (
        "did not load; ONNX Runtime fell back to CPUExecutionProvider" in said
    )


@pytest.mark.parametrize(("provider", "loaded"), [("cuda", True), ("cpu", False)])
def test_libraries_from_wheels_are_loaded_for_the_providers_that_need_them(
    tmp_path, provider, loaded
):
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("this ONNX Runtime has no CUDA provider at all")
    save_model(linear(), tmp_path)
    library = tmp_path / "site/tensorrt_libs/libnvsmall.so.10"
    library.parent.mkdir(parents=True)
    (library.parent / "__init__.py").touch()
    real = Path(onnxruntime.__file__).parent / "capi/libonnxruntime_providers_shared.so"
    shutil.copyfile(real, library)

    def maps() -> str:
        sys.path.insert(0, str(tmp_path / "site"))
        provider_or_error(tmp_path, provider)
        return Path("/proc/self/maps").read_text()

    assert (str(library) in call_forked(maps, "a session", "")) is loaded


def test_a_model_that_the_runtime_refuses_is_an_error(tmp_path):
    import onnx

    node = onnx.helper.make_node("Nonsense", ["x"], ["y"])
    save_model(model([node], [value("x", [1])], [value("y", [1])]), tmp_path)
    with pytest.raises(StepError, match=r"has a node 'ai\.onnx::Nonsense', which"):
        open_session(tmp_path)
    node = onnx.helper.make_node("Relu", ["x"], ["y"], alpha=1.0)
    save_model(model([node], [value("x", [1])], [value("y", [1])]), tmp_path / "other")
    with pytest.raises(StepError, match="ONNX Runtime refuses the model"):
        open_session(tmp_path / "other")


def test_messages_come_without_the_runtimes_own_source_lines(tmp_path):
    save_model(linear(), tmp_path)
    with pytest.raises(session_errors()) as caught:
        open_session(tmp_path).run(None, {"x": np.ones((2, 5), np.float32)})
    line = first_line(caught.value)
    assert line.startswith("Got invalid dimensions for input: x")
    assert "onnxruntime_src" not in line


SAID = "Could not find an implementation for Erf(13) node with name 'e'"


def erf(dtype):
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], name="c", to=dtype),
        helper.make_node("Erf", ["c"], ["d"], name="e"),
        helper.make_node("Cast", ["d"], ["y"], name="f", to=TensorProto.FLOAT),
    ]
    return model(nodes, [value("x", [2])], [value("y", [2])])


@pytest.mark.parametrize(
    ("dtype", "name"), [(TensorProto.BFLOAT16, "bfloat16"), (TensorProto.DOUBLE, "float64")]
)
def test_a_session_that_is_refused_says_which_type_to_leave_out(tmp_path, dtype, name):
    file = tmp_path / "model.onnx"
    onnx.save(erf(dtype), file)
    with pytest.raises(StepError, match=r"Could not find an implementation for Erf") as caught:
        open_session(file)
    assert caught.value.fix == (
        f"compute in float32, as `return model.float()` does: ONNX Runtime has no Erf of {name} there"
    )


def test_another_reason_has_no_such_fix():
    assert missing_kernel_fix(SAID, erf(TensorProto.FLOAT).SerializeToString()) == ""
    assert missing_kernel_fix(SAID, erf(TensorProto.FLOAT16).SerializeToString()) != ""
    assert missing_kernel_fix("Type Error", erf(TensorProto.DOUBLE).SerializeToString()) == ""
    assert missing_kernel_fix(SAID, "/nowhere/model.onnx") == ""


def types(made):
    return {each.name: each.type.tensor_type.elem_type for each in made.graph.value_info}


def behind_a_contrib_operator():
    nodes = [
        onnx.helper.make_node("Gelu", ["x"], ["a"], domain="com.microsoft"),
        onnx.helper.make_node("Shape", ["a"], ["b"]),
        onnx.helper.make_node("Add", ["a", "w"], ["c"]),
        onnx.helper.make_node("Identity", ["c"], ["y"]),
    ]
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    w = weight("w", np.ones(512, np.float32))
    return model(
        nodes, [value("x", ["batch", 512])], [value("y", ["batch", 512])], [w], imports=imports
    )


def test_values_behind_another_domains_operator_get_their_types(tmp_path):
    save_model(behind_a_contrib_operator(), tmp_path)
    found = types(load_typed(tmp_path))
    assert found == {"a": 1, "b": 7, "c": 1}


def test_weights_next_to_the_model_are_loaded(tmp_path):
    save_model(behind_a_contrib_operator(), tmp_path, external="always")
    (w,) = load_typed(tmp_path).graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(w), np.ones(512, np.float32))


def test_a_value_of_unknown_shape_is_not_called_a_scalar(tmp_path):
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["go"], ["go_on"]),
         onnx.helper.make_node("Neg", ["s"], ["s_next"])],
        "body",
        [value("i", [], 7), value("go", [], 9), value("s", None)],
        [value("go_on", [], 9), value("s_next", None)],
    )  # fmt: skip
    nodes = [
        onnx.helper.make_node("Loop", ["trips", "", "x"], ["z"], body=body),
        onnx.helper.make_node("MatMul", ["z", "w"], ["y"]),
    ]
    weights = [weight("w", np.eye(4, dtype=np.float32)), weight("trips", np.array(2))]
    made = model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], weights)
    save_model(made, tmp_path)
    typed = load_typed(tmp_path)
    assert types(typed) == {"z": 1}
    assert not typed.graph.value_info[0].type.tensor_type.HasField("shape")
    onnx.checker.check_model(typed, full_check=True)


def test_values_of_branches_that_share_a_name_get_their_own(tmp_path):
    arms = [
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["h"])], name, [], [value("h", [2])],
            [weight("w", np.float32([n, n]))],
        )
        for n, name in enumerate(("then", "else"))
    ]  # fmt: skip
    node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=arms[0], else_branch=arms[1])
    inputs = [value("c", [], 9), value("x", [2])]
    save_model(model([node], inputs, [value("y", [2])]), tmp_path)
    found = [each.g.initializer[0].name for each in load_typed(tmp_path).graph.node[0].attribute]
    assert sorted(found) == ["w", "w_0"]


def test_outputs_and_inputs_stay_as_they_are(tmp_path):
    save_model(linear(), tmp_path)
    made = load_typed(tmp_path)
    assert [each.name for each in made.graph.output] == ["y"]
    assert [each.name for each in made.graph.input] == ["x"]
    assert types(made) == {"xw": 1, "sum": 1}
