"""A merged pipeline, cut where its model begins and ends, computes part by part what it computes whole."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.processing.merge import CutError, split
from tests.steps.test_merge_processing import (
    BATCH,
    BEFORE,
    BEHIND,
    classifier,
    encoder,
    labels,
    merged,
    pipeline,
)


def cut(tmp_path, asked, made, **given):
    folder, _, _ = merged(tmp_path, asked, made, **given)
    return load_model(folder), load_model(tmp_path / "plain")


def run(model, feeds, wanted=None):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    taken = {each.name: feeds[each.name] for each in session.get_inputs()}
    return dict(
        zip([e.name for e in session.get_outputs()], session.run(wanted, taken), strict=True)
    )


def run_parts(whole, model, feeds):
    parts = split(whole, model)
    values = dict(feeds)
    if parts.before is not None:
        values |= run(parts.before, values)
    own = run(model, {name: values[value] for name, value in parts.inputs.items()})
    values |= {parts.outputs[name]: array for name, array in own.items()}
    if parts.behind is not None:
        values |= run(parts.behind, values)
    return values


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_images_in_and_labels_out(tmp_path, dtype):
    asked = pipeline(BEFORE, BEHIND, postprocess_2=labels(tmp_path))
    whole, model = cut(tmp_path, asked, classifier(dtype))
    feeds = {"picture": np.random.default_rng(0).integers(0, 256, (3, 20, 30, 3), np.uint8)}
    expected, found = run(whole, feeds), run_parts(whole, model, feeds)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_what_is_behind_the_model_may_take_its_inputs_and_nothing_may_be_before_it(tmp_path):
    inputs = (
        DummyInput("ids", "int64", ("batch", "sequence"), low=0, high=50),
        DummyInput("mask", "int64", ("batch", "sequence"), fill=1),
    )
    asked = pipeline((), [{"pool": {"mask": "mask"}}, {"l2_normalize": {}}])
    axes = (BATCH, Axis("sequence", 1, 8, 4))
    whole, model = cut(tmp_path, asked, encoder(), inputs=inputs, axes=axes)
    feeds = {"ids": np.arange(8).reshape(2, 4), "mask": np.ones((2, 4), np.int64)}
    assert split(whole, model).before is None
    np.testing.assert_array_equal(
        run_parts(whole, model, feeds)["embedding"], run(whole, feeds)["embedding"]
    )


def test_a_result_of_the_model_itself_keeps_its_name(tmp_path):
    asked = pipeline(BEFORE, [{"softmax": {}}], outputs=["probabilities", "logits"])
    whole, model = cut(tmp_path, asked, classifier())
    assert split(whole, model).outputs == {"logits": "logits"}
    assert split(whole, model).inputs == {"x": "model/x"}


def test_a_model_whose_nodes_are_named_like_operations_is_refused(tmp_path):
    made = classifier()
    for node in made.graph.node[:1]:
        node.name = "preprocess/flatten"
    whole, model = cut(tmp_path, pipeline(BEFORE, [{"softmax": {}}]), made)
    with pytest.raises(CutError, match="is none of its inputs and outputs"):
        split(whole, model)
