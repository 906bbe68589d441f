import pytest

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps.baseline import KIND, BaselineParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear

USER = """
import numpy as np

def data():
    yield {"x": np.ones((5, 4), np.float32)}

def first(outputs, feeds):
    return outputs["y"][:, :1]
"""


@pytest.mark.parametrize(("project", "noted"), [("", False), ("first", True)])
def test_single_numbers_have_no_cosine_and_the_baseline_says_so(tmp_path, project, noted):
    (tmp_path / "user.py").write_text(USER)
    save_model(linear(), tmp_path / "model")
    params = BaselineParams(
        Entrypoint(f"{tmp_path}/user.py:data"),
        Entrypoint(f"{tmp_path}/user.py:{project}") if project else None,
        (DummyInput("x", "float32", ("batch", 4)),),
        0,
    )
    outcome, _ = run_step(KIND, params, tmp_path / "step", {"model": tmp_path / "model"})
    assert outcome.metrics == {"samples": 5}
    assert any("one number a sample" in note for note in outcome.notes) == noted
