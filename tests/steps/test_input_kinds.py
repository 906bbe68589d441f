"""Inputs beyond plain numbers under plain names: dots and slashes, bfloat16, strings, masks."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.benchmark.runners import bind_io
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter, read_reference
from onnxbuild.onnxkit.export.torch_module import module_tensors
from onnxbuild.onnxkit.loaders import onnx_bundle
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.steps import export, reference, validate
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value
from tests.steps.programs import BATCH, MODULES, judged, make, outputs_of

PAST = DummyInput("past.0/key", "float32", ("batch", 4))
HALF = DummyInput("x", "bfloat16", ("batch", 4))
TEXT = DummyInput("text", "string", ("batch",), fill=("to be", "or", "not"))
FORMS = [
    ("torchscript", {"method": "trace"}),
    ("torch-export", {}),
    ("torch-export", {"strict": True}),
]


def built(folder, entrypoint, inputs, *, axes=(BATCH,), outputs=(), exporter="torchscript"):
    """An export and its reference, judged by `validate`."""
    options = export.ExportOptions(exporter=exporter)
    params = export.ExportParams(entrypoint, inputs, outputs, axes, 18, None, options)
    _, made = run_step(export.KIND, params, folder / "export")
    points = reference.ReferenceOptions()
    params = reference.ReferenceParams(entrypoint, inputs, outputs, axes, None, points)
    _, truth = run_step(reference.KIND, params, folder / "reference")
    return made.output("model"), truth.output("reference")


def validated(folder, made, truth, **tolerances):
    given = VariantTolerances(**(tolerances or {"atol": 1e-5, "rtol": 1e-4, "equal_min": 1.0}))
    params = validate.ValidateParams("fp32", "fp32", given, CPU_TARGET, TargetGates())
    outcome, _ = run_step(validate.KIND, params, folder, {"model": made, "reference": truth})
    return outcome


def loads(name):
    return Entrypoint(f"{MODULES}:load", {"name": name})


@pytest.mark.slow
def test_names_with_dots_and_slashes_go_all_the_way(tmp_path):
    made, truth = built(tmp_path, loads("TakesAny"), (PAST,), exporter="dynamo")
    found = summarize(load_model(made))
    assert [each["name"] for each in found["inputs"]] == ["past.0/key"]
    assert [each["name"] for each in found["outputs"]] == ["present.0/key"]
    for point in read_reference(truth):
        assert list(point.feeds) == ["past.0/key"]
        assert list(point.outputs) == ["present.0/key"]
    assert validated(tmp_path, made, truth).findings == ()


@pytest.mark.parametrize(("kind", "options"), FORMS, ids=str)
def test_programs_take_names_with_dots_and_slashes(tmp_path, kind, options):
    _, context = make(tmp_path, "TakesAny", kind, inputs=(PAST,), **options)
    assert list(outputs_of(context, inputs=(PAST,))) == ["present.0/key"]
    outcome, _ = judged(tmp_path, "TakesAny", context, inputs=(PAST,))
    assert outcome.findings == ()


def test_bfloat16_goes_in_and_its_reference_is_plain_float32(tmp_path):
    made, truth = built(tmp_path, loads("TakesBfloat16"), (HALF,))
    assert summarize(load_model(made))["inputs"][0]["dtype"] == "bfloat16"
    assert {point.feeds["x"].dtype for point in read_reference(truth)} == {np.dtype("float32")}
    outcome = validated(tmp_path, made, truth)
    assert outcome.findings == ()
    tensors = module_tensors(make_feeds((HALF,), {"batch": 2}, 0), (HALF,), "here")
    assert tensors["x"].dtype is torch.bfloat16
    session = open_session(made)
    feeds = make_feeds((HALF,), {"batch": 2}, 0)
    (plain,) = run_session(session, feeds).values()
    bound = bind_io(session, feeds)().get_outputs()[0].numpy()
    np.testing.assert_array_equal(bound, plain)
    (found,) = session.run(None, {"x": onnx_bundle.ones("bfloat16", [2, 4])})
    (ones,) = run_session(session, {"x": np.ones((2, 4), np.float32)}).values()
    np.testing.assert_array_equal(found, ones)


def tokenizer():
    """Ids of three words, and the words as they came."""
    words = {"to be": 20_000, "or": 20_001, "not": 20_002}
    encode = helper.make_node(
        "LabelEncoder", ["text"], ["ids"], domain="ai.onnx.ml",
        keys_strings=list(words), values_int64s=list(words.values()),
    )  # fmt: skip
    same = helper.make_node("Identity", ["text"], ["words"])
    return model(
        [encode, same],
        [value("text", ["batch"], TensorProto.STRING)],
        [
            value("ids", ["batch"], TensorProto.INT64),
            value("words", ["batch"], TensorProto.STRING),
        ],
        imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 2)],
    )


def strings(folder, ids):
    """A reference of strings, as what no PyTorch made would leave one."""
    folder.mkdir(parents=True)
    writer = ReferenceWriter(folder)
    feeds = make_feeds((TEXT,), {"batch": 3}, 0)
    words = feeds["text"].astype(object)
    outputs = {"ids": np.array(ids), "words": words}
    writer.add(ReferencePoint("example", {"batch": 3}, {"text": words}, outputs))
    writer.finish()
    return folder


def test_strings_are_kept_read_run_and_judged(tmp_path):
    save_model(tokenizer(), tmp_path / "model")
    right = strings(tmp_path / "right", [20_000, 20_001, 20_002])
    (point,) = read_reference(right)
    assert point.feeds["text"].tolist() == ["to be", "or", "not"]
    outcome = validated(tmp_path / "a", tmp_path / "model", right)
    assert outcome.findings == ()
    assert outcome.metrics["equal_min"] == 1.0
    wrong = strings(tmp_path / "wrong", [20_000, 20_001, 20_009])
    (finding,) = validated(tmp_path / "b", tmp_path / "model", wrong).findings
    assert "worst element [2]: 20002, reference 20009" in finding.what


def test_a_module_can_not_take_strings_and_is_reported_what_to_take(tmp_path):
    options = export.ExportOptions()
    params = export.ExportParams(loads("TakesAny"), (TEXT,), (), (BATCH,), 18, None, options)
    with pytest.raises(StepError) as caught:
        run_step(export.KIND, params, tmp_path)
    assert caught.value.what == "input 'text' is of strings, and PyTorch has no string tensors"
    assert "`text: {dtype: int64, shape: [...]}`" in caught.value.fix


def test_a_bert_is_judged_on_rows_that_are_padded(tmp_path):
    pytest.importorskip("transformers")
    shape = ("batch", "sequence")
    inputs = (
        DummyInput("input_ids", "int64", shape, low=0, high=99),
        DummyInput("attention_mask", "int64", shape, mask="right"),
    )
    axes = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 16, 7))
    made, truth = built(tmp_path, Entrypoint(f"{MODULES}:bert"), inputs, axes=axes)
    masks = [point.feeds["attention_mask"] for point in read_reference(truth)]
    assert all(mask[0].all() for mask in masks)
    assert any(0 < mask.sum() < mask.size for mask in masks)
    assert validated(tmp_path, made, truth).findings == ()
