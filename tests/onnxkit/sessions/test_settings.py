import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
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
from onnxbuild.onnxkit.sessions.settings import (
    FILE_KEYS,
    KNOWN_KEYS,
    OWN_KEYS,
    TUNED,
    SessionOptions,
    SessionSettings,
    TuneOptions,
    is_free,
    settings_from,
)
from tests.native import fancy_library, fancy_model
from tests.steps.graphs import digits

_ELSEWHERE = {"mlas.enable_gemm_fastmath_arm64_bfloat16"}
"""Keys that a library for other CPUs reads."""


def options_of(tmp_path, **settings):
    session = open_session(digits(tmp_path), settings=SessionSettings(**settings))
    return session.get_session_options()


def test_what_is_left_out_is_as_onnxruntime_has_it(tmp_path):
    found, own = options_of(tmp_path), onnxruntime.SessionOptions()
    for name in (
        "graph_optimization_level", "execution_mode", "intra_op_num_threads",
        "inter_op_num_threads", "enable_mem_pattern", "enable_cpu_mem_arena",
        "use_deterministic_compute",
    ):  # fmt: skip
        assert getattr(found, name) == getattr(own, name), name


def test_each_setting_reaches_the_session(tmp_path):
    found = options_of(
        tmp_path,
        graph_optimization="basic",
        execution_mode="parallel",
        intra_op_threads=2,
        inter_op_threads=2,
        spinning="never",
        memory_pattern=False,
        cpu_arena=False,
        deterministic_compute=True,
        config={"session.disable_prepacking": 1},
    )
    assert found.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert found.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert (found.intra_op_num_threads, found.inter_op_num_threads) == (2, 2)
    assert not found.enable_mem_pattern
    assert not found.enable_cpu_mem_arena
    assert found.use_deterministic_compute
    assert found.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert found.get_session_config_entry("session.disable_prepacking") == "1"


def test_a_session_with_a_fixed_axis_takes_that_size_alone(tmp_path):
    import numpy as np
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    model = digits(tmp_path)
    session = open_session(model, settings=SessionSettings(free_dimensions={"batch": 2}))
    (image,) = session.get_inputs()
    assert image.shape[0] == 2
    session.run(None, {image.name: np.zeros((2, 1, 8, 8), np.float32)})
    with pytest.raises(InvalidArgument):
        session.run(None, {image.name: np.zeros((3, 1, 8, 8), np.float32)})


def test_gates_keep_what_can_change_numbers_and_nothing_that_changes_time():
    settings = SessionSettings(
        graph_optimization="basic",
        execution_mode="parallel",
        intra_op_threads=8,
        spinning="never",
        cpu_arena=False,
        free_dimensions={"batch": 1},
        config={"session.set_denormal_as_zero": "1"},
    )
    judged = settings.judged()
    assert (judged.intra_op_threads, judged.deterministic_compute) == (1, True)
    assert (judged.graph_optimization, judged.execution_mode) == ("basic", "parallel")
    assert (judged.free_dimensions, judged.config) == (settings.free_dimensions, settings.config)
    assert judged == judged.judged()
    assert judged.judged_anywhere().free_dimensions == {}
    faster = {name: getattr(SessionSettings(intra_op_threads=3), name) for name in TUNED}
    mode = faster.pop("execution_mode")
    assert settings_from({**to_json(settings), **faster}).judged() == judged, mode


def test_found_settings_survive_a_lock():
    found = SessionSettings(intra_op_threads=3, spinning="stop", cpu_arena=False)
    recipes = SessionSettings(graph_optimization="basic", free_dimensions={"batch": 1})
    again = recipes.with_tuned(found.tuned_text())
    assert all(getattr(again, name) == getattr(found, name) for name in TUNED)
    assert (again.graph_optimization, again.free_dimensions) == ("basic", {"batch": 1})


@pytest.mark.parametrize("text", ["[]", json.dumps(dict.fromkeys(TUNED, 1))])
def test_what_is_no_choice_of_settings_is_refused(text):
    with pytest.raises(ValueError):
        SessionSettings().with_tuned(text)


def test_threads_spin_on_unless_they_are_reported_or_there_is_one():
    assert SessionSettings().spins
    assert not SessionSettings(spinning="stop").spins
    assert not SessionSettings(intra_op_threads=1).spins
    assert SessionSettings(intra_op_threads=1, execution_mode="parallel").spins


def test_a_search_is_asked_for_by_true_or_by_its_options():
    assert SessionOptions().tuning() is None
    assert SessionOptions(tune=True).tuning() == TuneOptions()
    assert SessionOptions(tune=TuneOptions(max_time_s=5)).tuning() == TuneOptions(max_time_s=5)


def test_every_config_entry_that_is_known_is_one_that_the_library_reads():
    library = b"".join(
        path.read_bytes()
        for path in Path(onnxruntime.__file__).parent.glob("capi/onnxruntime_pybind11_state*.so")
    )
    for key in {*KNOWN_KEYS, *OWN_KEYS, *FILE_KEYS} - _ELSEWHERE:
        assert key.encode() in library, key
    assert not KNOWN_KEYS & {*OWN_KEYS, *FILE_KEYS}


def test_keys_of_providers_and_custom_operators_are_their_own():
    assert is_free("ep.cuda.anything")
    assert is_free("custom_op.mine.key")
    assert not is_free("ep.cuda")
    assert not is_free("ep.cuda.")
    assert not is_free("session.x.y")


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
