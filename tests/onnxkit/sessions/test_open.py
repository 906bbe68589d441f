import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import Link, Target
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from tests.onnxkit.models import linear, model, value


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
