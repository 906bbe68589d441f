"""A state in calibration data is what the model itself left."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.axis import Axis
from onnxbuild.core.entrypoint import DUMMY_DATA, FILE_DATA
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.calibration_data import FeedSource
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.calibration_feeds import calibration_feeds
from tests.fakes.step_context import FolderContext

X = DummyInput("x", "float32", ("batch", "sequence"))
MASK = DummyInput("mask", "float32", ("batch", "past + sequence"), mask="left")
PAST = DummyInput(
    "past", "float32", ("batch", "past"), fed_by="present", growth=Growth("past", "sequence")
)
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 8, 3), Axis("past", 0, 16, 5))


@pytest.fixture
def context(tmp_path):
    """A model whose state is twice all that it saw."""
    two = helper.make_node("Add", ["x", "x"], ["twice"])
    joined = helper.make_node("Concat", ["past", "twice"], ["present"], axis=1)
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [two, joined],
        "state",
        [
            helper.make_tensor_value_info("x", kind, ["batch", "sequence"]),
            helper.make_tensor_value_info("mask", kind, ["batch", "all"]),
            helper.make_tensor_value_info("past", kind, ["batch", "past"]),
        ],
        [helper.make_tensor_value_info("present", kind, ["batch", "all"])],
    )
    opset = [helper.make_opsetid("", 18)]
    save_model(helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "model")
    return FolderContext(None, tmp_path, {"model": tmp_path / "model"})


def test_a_whole_prompt_is_three_samples_with_the_state_between_them(context, tmp_path):
    np.savez(tmp_path / "prompt.npz", x=[[1, 2, 3, 4, 5]], mask=np.ones((1, 5)))
    whole = {
        name: array.astype(np.float32) for name, array in np.load(tmp_path / "prompt.npz").items()
    }
    np.savez(tmp_path / "prompt.npz", **whole)
    data = Entrypoint(FILE_DATA, files=(str(tmp_path / "prompt.npz"),))
    found = list(calibration_feeds(context, FeedSource(data, (X, MASK, PAST), AXES), 9))
    assert [each["x"].tolist() for each in found] == [[[1, 2]], [[3]], [[4, 5]]]
    assert [each["past"].tolist() for each in found] == [[[]], [[2, 4]], [[2, 4, 6]]]
    assert [each["mask"].shape[1] for each in found] == [2, 3, 5]


def test_random_inputs_come_with_the_state_of_random_prompts_and_without_padding(context):
    source = FeedSource(Entrypoint(DUMMY_DATA), (X, MASK, PAST), AXES)
    prompt, after, *more = calibration_feeds(context, source, 4)
    assert len(more) == 2
    assert (prompt["x"].shape, prompt["past"].shape) == ((2, 5), (2, 0))
    assert np.array_equal(after["past"], 2 * prompt["x"])
    assert after["x"].shape == (2, 3)
    assert after["mask"].min() == 1


def test_a_source_without_state_is_taken_as_it_is(context):
    source = FeedSource(Entrypoint(DUMMY_DATA), (X,), AXES)
    plain = list(source.feeds(context, 2))
    assert all(
        np.array_equal(one["x"], other["x"])
        for one, other in zip(calibration_feeds(context, source, 2), plain, strict=True)
    )
