import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.processing.options import PostprocessOperation, PreprocessOperation
from onnxbuild.onnxkit.processing.pipeline import Pipeline, raw_inputs
from onnxbuild.onnxkit.processing.plan import plan_inputs, type_of
from onnxbuild.onnxkit.sessions.settings import STEADY
from onnxbuild.steps import merge_processing, processing_reference, validate
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight

NAMES = [f"name {n}" for n in range(10)]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = Axis("batch", 1, 4, 2)
X = DummyInput("x", "float32", ("batch", 3, 8, 8))
IMAGE = {"name": "picture", "max_size": 64, "example_size": 20}
BEFORE = [
    {"image": IMAGE},
    {"resize": {"size": [8, 8]}},
    {"rescale": {}},
    {"normalize": {"mean": MEAN, "std": STD}},
    {"to_nchw": {}},
]
BEHIND = [{"softmax": {}}, {"argmax": {}}, {"labels": {"file": "labels.txt"}}]
OWN = """
import numpy as np
from PIL import Image

WEIGHTS = np.load({weights!r})


def expected():
    generator = np.random.default_rng(0)
    for n in range(60):
        picture = generator.integers(0, 256, (1, 5 + n, 30, 3), np.uint8)
        picture[..., 0] //= 2  # red is not blue
        small = np.asarray(Image.fromarray(picture[0]).resize((8, 8), Image.Resampling.BILINEAR))
        image = (small.astype(np.float32) / 255 - {mean}) / {std}
        logits = image.transpose(2, 0, 1).reshape(1, -1) @ WEIGHTS
        scores = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        label = np.array({names!r})[logits.argmax(-1)]
        yield {{"picture": picture{swapped}}}, {{"label": label, "probabilities": scores}}
"""


def classifier(dtype=TensorProto.FLOAT, **options):
    """logits = flat image @ w, (batch, 10)."""
    generator = np.random.default_rng(1)
    w = (generator.standard_normal((192, 10)) / 4).astype(helper.tensor_dtype_to_np_dtype(dtype))
    nodes = [
        helper.make_node("Flatten", ["x"], ["label"]),  # a value inside has a result's name
        helper.make_node("MatMul", ["label", "w"], ["logits"]),
    ]
    inputs, outputs = (
        [value("x", ["batch", 3, 8, 8], dtype)],
        [value("logits", ["batch", 10], dtype)],
    )
    return model(nodes, inputs, outputs, [weight("w", w)], **options)


def encoder():
    """hidden = table[ids], (batch, sequence, 16); `mask` is an input that it adds nothing of."""
    table = np.random.default_rng(2).standard_normal((50, 16)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Cast", ["mask"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMin", ["ones"], ["least"], keepdims=0),
        helper.make_node("Mul", ["least", "zero"], ["nothing"]),
        helper.make_node("Add", ["rows", "nothing"], ["hidden"]),
    ]
    shape = ["batch", "sequence"]
    return model(
        nodes,
        [value("ids", shape, TensorProto.INT64), value("mask", shape, TensorProto.INT64)],
        [value("hidden", [*shape, 16])],
        [weight("table", table), weight("zero", np.float32(0))],
    )


def pipeline(before=(), behind=(), outputs=(), **declared):
    return Pipeline(
        from_json(tuple[PreprocessOperation, ...], list(before)),
        from_json(tuple[PostprocessOperation, ...], list(behind)),
        tuple(outputs),
        {each.replace("_", "/"): entrypoint for each, entrypoint in declared.items()},
    )


def labels(tmp_path, names=NAMES):
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(names) + "\n")
    return Entrypoint("files", files=(str(path),))


def merged(tmp_path, asked, made=None, inputs=None, axes=(BATCH,)):
    """(the merged model's folder, the pipeline's inputs, its axes)."""
    declared = inputs or (X,)
    chains = plan_inputs(asked.preprocess, {each.name: type_of(each) for each in declared})
    raw, axes = raw_inputs(chains, declared, axes)
    save_model(made or classifier(), tmp_path / "plain")
    params = merge_processing.MergeProcessingParams(asked, raw, axes)
    _, context = run_step(merge_processing.KIND, params, tmp_path, {"model": tmp_path / "plain"})
    return context.output("model"), raw, axes


def reference(tmp_path, asked, raw, axes, expected=None):
    params = processing_reference.ProcessingReferenceParams(
        asked if expected is None else None, raw, axes, expected, 200, 0, STEADY
    )
    inputs = {"model": tmp_path / "plain"} if expected is None else {}
    outcome, context = run_step(processing_reference.KIND, params, tmp_path, inputs)
    return outcome, context.output("reference")


def judged(tmp_path, folder, found, **bounds):
    tolerances = VariantTolerances(**{"atol": 1e-5, "equal_min": 1.0, **bounds})
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    inputs = {"model": folder, "reference": found}
    outcome, context = run_step(validate.KIND, params, tmp_path, inputs)
    return outcome, json.loads((context.output("report") / "report.json").read_text())


IMAGES = {
    "shortest": [{"resize": {"shortest": 9}}, {"center_crop": {"size": [8, 8]}}],
    "crop alone": [{"center_crop": {"size": [8, 8]}}],
    "letterbox": [{"letterbox": {"size": [8, 8]}}],
    "bicubic": [{"resize": {"size": [8, 8], "method": "bicubic"}}],
    "width first": [
        {"resize": {"size": [8, 40], "method": "bicubic", "first": "width"}},
        {"center_crop": {"size": [8, 8]}},
    ],
    "height first": [
        {"resize": {"size": [8, 40], "method": "bicubic"}},
        {"center_crop": {"size": [8, 8]}},
    ],
    "plain bilinear": [{"resize": {"size": [8, 8], "antialias": False}}],
    "plain bicubic": [{"resize": {"size": [8, 8], "method": "bicubic", "antialias": False}}],
    "plain letterbox": [{"letterbox": {"size": [8, 8], "antialias": False}}],
}


@pytest.mark.parametrize("operations", IMAGES.values(), ids=IMAGES)
def test_operations_on_images_do_what_their_references_do(tmp_path, operations):
    asked = pipeline([BEFORE[0], *operations, *BEFORE[2:]], [{"sigmoid": {}}])
    folder, raw, axes = merged(tmp_path, asked)
    outcome, found = reference(tmp_path, asked, raw, axes)
    assert outcome.metrics["held_against"].startswith("each operation's")
    levels = 0.02 if "crop alone" not in operations[0] else 1e-5
    verdict, report = judged(tmp_path, folder, found, atol=levels)
    assert verdict.findings == ()
    assert report["metrics"]["points"] >= 5


def test_without_antialias_pixels_are_those_of_interpolate(tmp_path):
    made = model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [value("x", ["batch", 3, 40, 20])],
        [value("y", ["batch", 3, 40, 20])],
    )
    resize = {"resize": {"size": [40, 20], "antialias": False}}
    asked = pipeline([BEFORE[0], resize, {"cast": {"dtype": "float32"}}, {"to_nchw": {}}])
    inputs = (DummyInput("x", "float32", ("batch", 3, 40, 20)),)
    folder, _, _ = merged(tmp_path, asked, made, inputs)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 30, 33, 3), np.uint8)
    (found,) = session.run(None, {"picture": pixels})
    image = torch.from_numpy(pixels).permute(0, 3, 1, 2).float()
    exact = torch.nn.functional.interpolate(image, (40, 20), mode="bilinear", align_corners=False)
    expected = exact.round().clamp(0, 255).numpy()
    assert np.abs(found - expected).max() <= 1  # a half may be rounded either way
    assert (found != expected).mean() < 0.01


def test_operations_on_outputs_do_what_their_references_do(tmp_path):
    behind = [{"softmax": {}}, {"top_k": {"k": 3}}, {"labels": {"file": "labels.txt"}}]
    behind.append({"threshold": {"of": "probabilities", "min": 0.1}})
    behind.append({"labels": {"of": "is_above", "file": "two.txt", "to": "verdict"}})
    (tmp_path / "two.txt").write_text("below\nabove")
    two = Entrypoint("files", files=(str(tmp_path / "two.txt"),))
    asked = pipeline(
        [BEFORE[0], {"center_crop": {"size": [8, 8]}}, *BEFORE[2:]],
        behind,
        postprocess_2=labels(tmp_path),
        postprocess_4=two,
    )
    folder, raw, axes = merged(tmp_path, asked)
    _, found = reference(tmp_path, asked, raw, axes)
    verdict, _ = judged(tmp_path, folder, found)
    assert verdict.findings == ()
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    assert [each.name for each in session.get_outputs()] == ["scores", "label", "verdict"]
    assert session.get_outputs()[1].shape == ["batch", 3]
    assert session.get_inputs()[0].shape == ["batch", "picture_height", "picture_width", 3]


def test_a_spectrogram_is_that_of_a_fourier_transform(tmp_path):
    made = model(
        [helper.make_node("Identity", ["m"], ["out"])],
        [value("m", ["batch", 80, "frames"])],
        [value("out", ["batch", 80, "frames"])],
    )
    inputs = (DummyInput("m", "float32", ("batch", 80, "frames")),)
    asked = pipeline(
        [{"audio": {"name": "sound", "max_size": 4000, "example_size": 2000}}, {"log_mel": {}}]
    )
    folder, raw, axes = merged(tmp_path, asked, made, inputs, (BATCH, Axis("frames", 1, 99, 9)))
    assert {each.name for each in axes} == {"batch", "sound_samples"}
    _, found = reference(tmp_path, asked, raw, axes)
    verdict, _ = judged(tmp_path, folder, found, atol=1e-3)
    assert verdict.findings == ()


IDS = (
    DummyInput("ids", "int64", ("batch", "sequence"), low=0, high=50),
    DummyInput("mask", "int64", ("batch", "sequence"), mask="right"),
)
SEQUENCE = Axis("sequence", 1, 32, 5)


@pytest.mark.parametrize("pool", [{"mask": "mask"}, {"mode": "cls"}])
def test_embeddings_are_pooled_and_of_length_one(tmp_path, pool):
    asked = pipeline((), [{"pool": pool}, {"l2_normalize": {}}])
    folder, raw, axes = merged(tmp_path, asked, encoder(), IDS, (BATCH, SEQUENCE))
    _, found = reference(tmp_path, asked, raw, axes)
    verdict, _ = judged(tmp_path, folder, found)
    assert verdict.findings == ()
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    assert session.get_outputs()[0].shape == ["batch", 16]
    mask = np.array([[1, 1, 0]])
    (found,) = session.run(None, {"ids": np.array([[4, 5, 6]]), "mask": mask})
    assert np.linalg.norm(found) == pytest.approx(1)


def own(tmp_path, **changes):
    """The user's own pipeline, as Python with Pillow."""
    np.save(tmp_path / "w.npy", onnx.numpy_helper.to_array(classifier().graph.initializer[0]))
    filled = {"mean": MEAN, "std": STD, "names": NAMES, "swapped": ""} | changes
    source = OWN.format(weights=str(tmp_path / "w.npy"), **filled)
    (tmp_path / "own.py").write_text(source)
    return Entrypoint(f"{tmp_path / 'own.py'}:expected")


FAULTS = {
    "nothing": ({}, BEFORE, NAMES, ()),
    "channels swapped": ({"swapped": "[..., ::-1]"}, BEFORE, NAMES, ("label", "probabilities")),
    "mean and std swapped": (
        {},
        [*BEFORE[:3], {"normalize": {"mean": STD, "std": MEAN}}, BEFORE[4]],
        NAMES,
        ("label", "probabilities"),
    ),
    "labels shifted": ({}, BEFORE, [*NAMES[1:], NAMES[0]], ("label",)),
    "antialias off": (
        {},
        [BEFORE[0], {"resize": {"size": [8, 8], "antialias": False}}, *BEFORE[2:]],
        NAMES,
        ("label", "probabilities"),
    ),
}


@pytest.mark.parametrize(("changes", "before", "names", "caught"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_differs_from_the_users_own_pipeline(
    tmp_path, changes, before, names, caught
):
    pytest.importorskip("PIL.Image")
    asked = pipeline(
        before, BEHIND, ("label", "probabilities"), postprocess_2=labels(tmp_path, names)
    )
    folder, raw, axes = merged(tmp_path, asked)
    outcome, found = reference(tmp_path, asked, raw, axes, own(tmp_path, **changes))
    assert outcome.metrics["held_against"].endswith("own.py:expected")
    verdict, _ = judged(
        tmp_path,
        folder,
        found,
        outputs={"label": Tolerance(equal_min=0.95), "probabilities": Tolerance(atol=0.05)},
    )
    named = {
        name for name in ("label", "probabilities") for f in verdict.findings if name in f.where
    }
    assert named == set(caught)


def test_the_merged_model_is_the_same_twice_and_its_opset_that_of_the_model(tmp_path):
    first, second = (tmp_path / name for name in ("a", "b"))
    bytes_of = []
    for folder in (first, second):
        folder.mkdir()
        asked = pipeline(BEFORE, BEHIND, postprocess_2=labels(folder))
        found, _, _ = merged(folder, asked)
        bytes_of.append((found / "model.onnx").read_bytes())
    assert bytes_of[0] == bytes_of[1]
    made = onnx.load_from_string(bytes_of[0])
    assert [(each.domain, each.version) for each in made.opset_import] == [("", 18)]
    assert len({node.name for node in made.graph.node}) == len(made.graph.node)
    outputs = [name for node in made.graph.node for name in node.output]
    assert len(set(outputs)) == len(outputs)


CUSTOM = """
from onnx import TensorProto, helper


def inverted(opset=18):
    node = helper.make_node("Sub", ["top", "x"], ["y"], name="invert")
    top = helper.make_tensor("top", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph(
        [node],
        "any",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [top],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def older():
    return inverted(17)


def nothing():
    return None
"""


def custom(tmp_path, name):
    (tmp_path / "custom.py").write_text(CUSTOM)
    return Entrypoint(f"{tmp_path / 'custom.py'}:{name}")


def test_a_graph_of_the_users_own_is_an_operation(tmp_path):
    behind = [{"softmax": {}}, {"model": {"callable": "custom.py:inverted"}}]
    asked = pipeline(BEFORE, behind, postprocess_1=custom(tmp_path, "inverted"))
    folder, raw, axes = merged(tmp_path, asked)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    picture = np.zeros((1, 9, 9, 3), np.uint8)
    (found,) = session.run(None, {"picture": picture})
    assert session.get_outputs()[0].name == "result"
    assert found.sum() == pytest.approx(9, abs=1e-4)
    with pytest.raises(StepError, match="no reference of its own") as caught:
        reference(tmp_path, asked, raw, axes)
    assert "expected: FILE.py:CALLABLE" in caught.value.fix


def older(tmp_path):
    return {"postprocess_0": custom(tmp_path, "older")}


def nothing(tmp_path):
    return {"postprocess_0": custom(tmp_path, "nothing")}


def too_few(tmp_path):
    return {"postprocess_2": labels(tmp_path, NAMES[:9])}


def none(_):
    return {}


CALLED = [{"model": {"callable": "c"}}]


@pytest.mark.parametrize(
    ("behind", "declared", "what", "fix"),
    [
        (BEHIND, too_few, "labels.txt has 9 labels, for 10 classes", "write 10 lines"),
        (CALLED, older, "of opset 17; expected 18", "make_opsetid"),
        ([{"softmax": {"to": "picture"}}], none, "has the name of an input", "`to`"),
    ],
)
def test_what_does_not_fit_the_model_is_one_error_with_its_fix(
    tmp_path, behind, declared, what, fix
):
    with pytest.raises(StepError) as caught:
        merged(tmp_path, pipeline(BEFORE, behind, **declared(tmp_path)))
    assert what in caught.value.what
    assert fix in caught.value.fix


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_detections_are_suppressed_as_onnx_does(tmp_path, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = model(
        [
            helper.make_node("Identity", ["b"], ["boxes"]),
            helper.make_node("Identity", ["s"], ["scores"]),
        ],
        [value("b", ["batch", 3, 4], kind), value("s", ["batch", 1, 3], kind)],
        [value("boxes", ["batch", 3, 4], kind), value("scores", ["batch", 1, 3], kind)],
    )
    behind = [{"nms": {"boxes": "boxes", "scores": "scores"}}]
    inputs = (DummyInput("b", dtype, ("batch", 3, 4)), DummyInput("s", dtype, ("batch", 1, 3)))
    folder, _, _ = merged(tmp_path, pipeline((), behind), made, inputs)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    boxes = np.array([[[0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60]]], dtype)
    scores = np.array([[[0.9, 0.8, 0.7]]], dtype)
    (found,) = session.run(None, {"b": boxes, "s": scores})
    assert found.tolist() == [[0, 0, 0], [0, 0, 2]]


def test_no_nan_is_above_a_threshold(tmp_path):
    dtype = "float32"
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["batch", 4]
    node = helper.make_node("Identity", ["s"], ["scores"])
    made = model([node], [value("s", shape, kind)], [value("scores", shape, kind)])
    inputs = (DummyInput("s", dtype, tuple(shape)),)
    asked = pipeline((), [{"threshold": {"min": 0.5}}])
    folder, _, _ = merged(tmp_path, asked, made, inputs)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    (found,) = session.run(None, {"s": np.array([[np.nan, 0.4, 0.5, np.inf]], dtype)})
    assert found.tolist() == [[False, False, True, True]]
