import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.onnxkit.quantize.gptq import feedback_factor, read_factors
from onnxbuild.steps import quantize_weights
from onnxbuild.steps.hessians import KIND
from onnxbuild.steps.quantize_weights import WeightOptions, WeightParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear
from tests.steps.graphs import WORDS, run_model, save, sentences, tiny_bert
from tests.steps.test_quantize_dynamic import cosine

SAMPLES = """\
import numpy as np

def sentences(count=40):
    generator = np.random.default_rng(7)
    for n in range(count):
        ids = generator.integers(1, {words}, (2, 5 + n % 4))
        yield {{"input_ids": ids, "attention_mask": np.ones_like(ids)}}

def rows():
    generator = np.random.default_rng(7)
    for n in range(3):
        yield {{"x": generator.standard_normal((2 + n, 4), dtype=np.float32)}}

def infinite():
    yield {{"x": np.full((2, 4), -np.inf, np.float32)}}

def none():
    return []
"""
TEXT = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), high=WORDS),
    DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1),
)
ROWS = (DummyInput("x", "float32", ("batch", 4)),)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.py"
    path.write_text(SAMPLES.format(words=WORDS))
    return lambda name: Entrypoint(f"{path}:{name}")


def collected(source, folder, data, inputs, samples=100):
    params = DataParams(data, inputs, (), samples, 0)
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("hessians")


def test_the_factor_is_that_of_the_inputs_over_all_samples(tmp_path, data):
    source = save(linear(), tmp_path / "source")
    outcome, folder = collected(source, tmp_path / "step", data("rows"), ROWS)
    assert outcome.metrics == {"samples": 3, "values": 1}
    assert outcome.notes == ("3 samples are few for GPTQ; 32 and more are usual",)
    generator = np.random.default_rng(7)
    rows = np.concatenate([generator.standard_normal((2 + n, 4), np.float32) for n in range(3)])
    expected = feedback_factor(rows.T.astype(np.float64) @ rows)
    np.testing.assert_allclose(np.load(read_factors(folder)["x"]), expected, rtol=1e-4)


@pytest.mark.slow
def test_a_bert_loses_less_by_gptq_than_by_rounding_to_the_nearest(tmp_path, data):
    source = tiny_bert(tmp_path / "source")
    outcome, folder = collected(source, tmp_path / "hessians", data("sentences"), TEXT)
    assert outcome.metrics == {"samples": 40, "values": 8}  # query, key and value read one
    assert outcome.notes == ()
    inputs = {"model": source, "hessians": folder}
    expected = run_model(source, sentences())["hidden"]
    lost = {}
    for method in ("rtn", "gptq"):
        params = WeightParams(WeightOptions(method=method, accuracy_level=0))
        _, context = run_step(quantize_weights.KIND, params, tmp_path / method, inputs)
        lost[method] = 1 - cosine(
            run_model(context.output("model"), sentences())["hidden"], expected
        )
    assert lost["gptq"] < 0.8 * lost["rtn"]


@pytest.mark.parametrize(
    ("name", "what"),
    [("none", "yields no sample; expected 100"), ("infinite", "value 'x' is not finite on")],
)
def test_data_that_says_nothing_is_an_error(tmp_path, data, name, what):
    with pytest.raises(StepError, match=what):
        collected(save(linear(), tmp_path / "source"), tmp_path / "step", data(name), ROWS)
