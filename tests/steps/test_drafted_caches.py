"""Decoders whose config does not say their cache: `init` runs them once, and what it writes gives the tokens of generate."""

import json

import pytest
import yaml

from onnxbuild.features.sources.transformers import TransformersOptions, _facts
from onnxbuild.onnxkit.drafts.decoder_draft import draft_of_decoder
from onnxbuild.onnxkit.huggingface.folder import read_folder
from onnxbuild.onnxkit.huggingface.tasks import purpose_of
from tests import tiny_transformers as tiny
from tests.steps import decoders
from tests.steps.test_state import of_recipe

TOKENS, PROMPTS = 32, 8


def drafted(folder, name):
    """What a recipe of `init` builds of a folder."""
    tiny.saved(folder / "weights", decoders.DRAFTED[name])
    model = read_folder(folder / "weights")
    facts = _facts(model, purpose_of(model.config, ""), TransformersOptions())
    recipe = {
        "version": 1,
        "name": name,
        "model": {},
        **draft_of_decoder(folder / "weights" / "config.json", facts, []).recipe,
    }
    recipe["model"]["transformers"] = "weights"
    return recipe, of_recipe(folder, yaml.safe_dump(recipe, sort_keys=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", decoders.DRAFTED)
def test_the_cache_that_one_call_makes_is_the_one_that_goes_round(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe, made = drafted(tmp_path, name)
    updates = {each.get("update", "grows") for each in recipe["state"].values()}
    assert updates == decoders.UPDATES.get(name, {"grows"})
    _, model = made.export()
    tokens = made.tokens(TOKENS, PROMPTS)
    assert json.loads((tokens / "report.json").read_text())["by"] == "generate"
    found = made.generated(model, tokens, batches=(1, 2))
    assert (found.findings, found.metrics["equal"]) == ((), 1)
    assert found.metrics["compared"] >= PROMPTS * TOKENS
