import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.processing.merge import CutError, split
from onnxbuild.onnxkit.processing.options import (
    PostprocessOperation,
    PreprocessOperation,
    ProcessingError,
    ValueType,
)
from onnxbuild.onnxkit.processing.plan import plan_inputs, plan_outputs
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

IMAGE = {"x": ValueType("float32", ("batch", 3, 8, 8))}
LOGITS = {"logits": ValueType("float32", ("batch", 10))}
BFLOAT = {"logits": ValueType("bfloat16", ("batch", 10))}
HIDDEN = {"hidden": ValueType("float32", ("batch", "sequence", 16))}
IDS = {
    "ids": ValueType("int64", ("batch", "sequence")),
    "mask": ValueType("int64", ("batch", "sequence")),
}
GOOD = [{"image": {}}, {"resize": {"size": [8, 8]}}, {"rescale": {}}, {"to_nchw": {}}]


def inputs(*written, model=IMAGE):
    return plan_inputs(from_json(tuple[PreprocessOperation, ...], list(written)), model)


def outputs(*written, model=LOGITS, takes=IMAGE, wanted=()):
    listed = from_json(tuple[PostprocessOperation, ...], list(written))
    return plan_outputs(listed, takes, model, wanted)


def test_a_chain_ends_in_what_the_model_takes():
    (chain,) = inputs(*GOOD)
    assert chain.source.shape == ("batch", "x_height", "x_width", 3)
    (feed,) = chain.feeds
    assert (chain.source.dtype, feed.input, feed.is_converted) == ("uint8", "x", False)
    assert feed.type == ValueType("float32", ("batch", 3, 8, 8), "NCHW", least=8)
    assert [each.name for each in chain.operations] == ["resize", "rescale", "to_nchw"]


@pytest.mark.parametrize(
    ("written", "what", "fix"),
    [
        (GOOD[1:], "does not begin with a raw input", "- image: {}"),
        ([GOOD[0], GOOD[1], GOOD[3]], "ends in uint8 NCHW", "rescale"),
        ([GOOD[0], {"resize": {}}], "resize has no size", "shortest"),
        ([GOOD[0], {"resize": {"size": [9, 8]}}, *GOOD[2:]], "[batch, 3, 9, 8]", "resize or"),
        ([*GOOD, *GOOD], "makes the model's input 'x' twice", "feeds"),
        ([*GOOD[:3], {"normalize": {"mean": [0.5], "std": [0.0]}}], "std of 0", "divided"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_fix(written, what, fix):
    with pytest.raises(ProcessingError) as caught:
        inputs(*written)
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.section == "preprocess"


def test_operations_take_the_result_before_them_and_deliver_what_none_takes():
    plan = outputs({"softmax": {}}, {"top_k": {"k": 3}}, {"labels": {"file": "a.txt"}})
    assert plan.outputs == {"scores": "postprocess/1/scores", "label": "postprocess/2/label"}
    kinds = {k: v for each in plan.operations for k, v in each.gives.items()}
    assert kinds["postprocess/1/class_id"] == ValueType("int64", ("batch", 3), classes=10)
    assert kinds["postprocess/2/label"] == ValueType("string", ("batch", 3))


def test_outputs_that_are_named_are_delivered_in_their_order():
    plan = outputs({"softmax": {}}, {"argmax": {}}, wanted=("class_id", "logits"))
    assert plan.outputs == {"class_id": "postprocess/1/class_id", "logits": "logits"}


def test_pooling_takes_one_of_the_models_inputs_and_a_name_may_be_used_again():
    plan = outputs({"pool": {"mask": "mask"}}, {"l2_normalize": {}}, model=HIDDEN, takes=IDS)
    assert list(plan.operations[0].takes) == ["hidden", "mask"]
    assert plan.outputs == {"embedding": "postprocess/1/embedding"}


@pytest.mark.parametrize(
    ("written", "options", "what", "fix"),
    [
        ([{"labels": {"file": "a"}}], {}, "labels takes places", "argmax"),
        ([{"top_k": {"k": 11}}], {}, "asks for 11 of 10", "k: 10"),
        ([{"pool": {}}], {}, "at least 3 axes", "of"),
        ([{"softmax": {}}], {"model": BFLOAT}, "it gets bfloat16", "float32"),
        (
            [{"top_k": {"k": 1}}, {"top_k": {"k": 2, "of": "logits", "to": "two"}}],
            {},
            "top_k gives 'scores', which is also the name of a result",
            "top_k: {scores: scores_1}",
        ),
    ],
)
def test_an_output_that_does_not_fit_is_refused_with_a_fix(written, options, what, fix):
    with pytest.raises(ProcessingError) as caught:
        outputs(*written, **options)
    assert what in caught.value.what
    assert fix in caught.value.fix


TOKENS = {"file": "tokenizer.json", "corpus": "corpus.txt"}
TEXT = [{"text": {}}, {"tokenize": TOKENS}]
BERT = {
    name: ValueType("int64", ("batch", "sequence"))
    for name in ("input_ids", "attention_mask", "token_type_ids")
}


def test_a_text_feeds_ids_and_the_mask_and_types_that_the_model_takes():
    (chain,) = inputs(*TEXT, model=BERT)
    assert (chain.source.name, chain.source.dtype, chain.source.shape) == (
        "text",
        "string",
        ("batch",),
    )
    assert [each.input for each in chain.feeds] == list(BERT)
    (chain,) = inputs(*TEXT, model={"input_ids": BERT["input_ids"]})
    assert [each.input for each in chain.feeds] == ["input_ids"]
    assert len(chain.operations[0].gives) == 3
    narrow = {"input_ids": ValueType("int32", ("batch", "sequence"))}
    assert inputs(*TEXT, model=narrow)[0].feeds[0].is_converted


@pytest.mark.parametrize(
    ("written", "model", "what", "fix"),
    [
        (TEXT[:1], BERT, "text has no `tokenize`", "tokenize: {file"),
        ([GOOD[0], TEXT[1]], IMAGE, "stands behind `image`", "- text: {}"),
        (TEXT, {"input_ids": ValueType("float32", ("batch", 3))}, "is float32", "another input"),
        ([*TEXT, {"text": {"name": "b"}}, TEXT[1]], BERT, "'attention_mask' twice", "another"),
    ],
)  # fmt: skip
def test_text_that_does_not_fit_is_refused_with_a_fix(written, model, what, fix):
    with pytest.raises(ProcessingError) as caught:
        inputs(*written, model=model)
    assert what in caught.value.what
    assert fix in caught.value.fix


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
