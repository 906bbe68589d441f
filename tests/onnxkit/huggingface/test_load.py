"""Load models of folders: what comes out, and what is refused rather than random."""

import json
import sys
from functools import partial

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.onnxkit.export.torch_module import load_module, load_module_noted
from onnxbuild.recipe.load import load_recipes
from tests import tiny_transformers as tiny
from tests.fakes.step_context import FolderContext


@pytest.fixture(autouse=True, scope="module")
def _transformers():
    pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    make = partial(tiny.bert, "BertForSequenceClassification")
    return tiny.saved(tmp_path_factory.mktemp("classifier"), make)


def recipe_of(folder, project, **options):
    """The recipe of three lines, and options of its model."""
    (project / "pyproject.toml").write_text("")
    model = json.dumps({"transformers": str(folder), **options})
    (project / "demo.yaml").write_text(f"version: 1\nname: demo\nmodel: {model}\n")
    (recipe,) = load_recipes(project / "demo.yaml", project=project).recipes
    return recipe


def entrypoint(folder, project, **options):
    """Its model as a step takes it, files absolute."""
    model = recipe_of(folder, project, **options).model
    files = (project / each.replace("<model 1>", str(folder)) for each in model.files)
    return Entrypoint(FILE_DATA, model.args, tuple(map(str, files)))


def loaded(folder, project, **options):
    return load_module(FolderContext(None, project), entrypoint(folder, project, **options))


def refused(folder, project, **options):
    with pytest.raises(StepError) as caught:
        loaded(folder, project, **options)
    return caught.value


def feeds():
    import torch

    ids = torch.tensor([[5, 6, 7, 8], [9, 8, 7, 0]])
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}


def test_a_module_gives_the_tasks_outputs_as_transformers_computes_them(classifier, tmp_path):
    import torch
    import transformers

    module = loaded(classifier, tmp_path)
    original = transformers.BertForSequenceClassification.from_pretrained(classifier).eval()
    with torch.no_grad():
        found, expected = module(**feeds()), original(**feeds())
    assert list(found) == ["logits"]
    assert torch.allclose(found["logits"], expected.logits, atol=1e-6)
    _, notes = load_module_noted(FolderContext(None, tmp_path), entrypoint(classifier, tmp_path))
    assert notes == (), "it was in eval mode"
    assert not any(each.requires_grad for each in module.parameters())
    assert {each.dtype for each in module.parameters()} == {torch.float32}


def test_half_precision_is_loaded_in_float32(tmp_path):
    import torch

    make = partial(tiny.bert, "BertModel")
    folder = tiny.saved(tmp_path / "w", lambda: make().half())
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    module = loaded(folder, tmp_path)
    assert {each.dtype for each in module.parameters()} == {torch.float32}


def test_a_pooler_is_an_output_only_if_its_weights_are_there(classifier, tmp_path):
    import torch

    with_pooler = loaded(classifier, tmp_path, task="feature-extraction")
    folder = tiny.saved(tmp_path / "w", partial(tiny.bert, "BertForMaskedLM"))
    without = loaded(folder, tmp_path, task="feature-extraction")
    with torch.no_grad():
        assert list(with_pooler(**feeds())) == ["last_hidden_state", "pooler_output"]
        assert list(without(**feeds())) == ["last_hidden_state"]


def test_a_head_without_weights_is_refused(tmp_path):
    folder = tiny.saved(tmp_path / "w", partial(tiny.bert, "BertModel"))
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (folder / "config.json").write_text(json.dumps(config))
    error = refused(folder, tmp_path)
    assert error.what == (
        "the folder has no weights for classifier.bias and 1 more of BertForSequenceClassification: they "
        "would be random"
    )
    assert error.fix.startswith("write the `task`")


def test_a_weight_of_another_size_is_named_with_both_sizes(tmp_path):
    changes = {"hidden_size": 32}
    folder = tiny.saved(tmp_path / "w", partial(tiny.bert, "BertForSequenceClassification"))
    _config(folder, **changes)
    error = refused(folder, tmp_path)
    assert " in the folder, and " in error.what
    assert "save the folder again" in error.fix


def test_weights_in_shards_are_loaded(tmp_path):
    import torch

    make = partial(tiny.bert, "BertModel")
    whole = tiny.saved(tmp_path / "whole", make)
    shards = tiny.saved(tmp_path / "shards", make, max_shard_size="4KB")
    assert len(list(shards.glob("model-*.safetensors"))) > 1
    one, other = (loaded(each, tmp_path) for each in (whole, shards))
    with torch.no_grad():
        assert torch.equal(*(each(**feeds())["last_hidden_state"] for each in (one, other)))


def test_a_pickle_is_loaded_where_it_is_allowed(tmp_path):
    import torch

    model = tiny.bert("BertModel")
    folder = tiny.saved(tmp_path / "w", lambda: model)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    module = loaded(folder, tmp_path, allow_pickle=True)
    with torch.no_grad():
        found, expected = module(**feeds())["last_hidden_state"], model.eval()(**feeds())
    assert torch.allclose(found, expected.last_hidden_state, atol=1e-6)


@pytest.mark.parametrize(
    ("damage", "what", "fix"),
    [
        (lambda w: (w / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1"),
         "SafetensorError", "git-lfs pointers"),
        (lambda w: _config(w, hidden_act="no such"), "", "load it once by itself"),
    ],
)  # fmt: skip
def test_what_can_not_be_loaded_is_said_in_one_line(tmp_path, damage, what, fix):
    folder = tiny.saved(tmp_path / "w", partial(tiny.bert, "BertForMaskedLM"))
    damage(folder)
    error = refused(folder, tmp_path, task="fill-mask")
    assert error.what.startswith("w can't be loaded: ")
    assert what in error.what
    assert "\n" not in error.what
    assert str(tmp_path) not in error.what
    assert fix in error.fix


@pytest.mark.parametrize(
    ("kind", "task", "what", "fix"),
    [
        ("bart-like-bert", "fill-mask", "model_type is 'bart-like-bert', and transformers ", "install a version"),
        ("vit", "fill-mask", "transformers has no vit model for fill-mask", "write another `task`"),
    ],
)  # fmt: skip
def test_a_model_that_transformers_does_not_know_is_said_with_its_line(
    tmp_path, *, kind, task, what, fix
):
    folder = tiny.saved(tmp_path / "w", partial(tiny.bert, "BertForMaskedLM"))
    _config(folder, model_type=kind, architectures=None)
    error = refused(folder, tmp_path, task=task)
    assert error.what.startswith(what)
    assert error.fix.startswith(fix)
    file, _, line = error.where.rpartition(":")
    assert (
        f'"model_type": "{kind}"'
        in (folder / "config.json").read_text().splitlines()[int(line) - 1]
    )
    assert file == str(folder / "config.json")


def _config(folder, **changes):
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def test_without_transformers_the_command_that_installs_it_is_named(
    classifier, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "transformers", None)
    error = refused(classifier, tmp_path)
    assert "which can't be imported" in error.what
    assert error.fix == "pip install 'onnxbuild[transformers]'"
