"""Folders of decoders, from config.json to tokens: built, judged, and continued by the bundle's own run.py."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch
import yaml

import onnxbuild
from tests import tiny_transformers as tiny
from tests.first_recipe.conftest import here  # noqa: F401 - a fixture
from tests.first_recipe.conftest import onnxbuild as command  # noqa: F401 - a fixture
from tests.steps.decoders import load, mamba

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_steps")]

TOKENS = 24
TEMPLATE = "{% for each in messages %}<{{ each.content }}>{% endfor %}"


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.3,
        bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


MODELS = {"gpt2": gpt2} | {name: partial(load, name) for name in ("llama", "qwen3", "mistral")}


def save_tokenizer(folder):
    """Words `w0` to `w63`, one token each."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{n}": n for n in range(62)} | {"<": 62, ">": 63}
    made = Tokenizer(models.WordLevel(words, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    )
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "w2"}}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def built(folder, text=""):
    """The bundle of a recipe of the folder `weights`."""
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        "version: 1\nname: demo\nmodel: {transformers: weights}\nexport: {exporter: torchscript}\n"
        f"benchmark: {{max_time_s: 0.1, min_samples: 3}}\n{text}"
    )
    result = onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",)))
    assert result.exit_code == 0, result.report.failures
    return folder / "artifacts/out/demo/fp32"


def said(bundle, *arguments):
    done = subprocess.run(
        [sys.executable, bundle / "run.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def continued(folder, prompt):
    """Tokens of transformers' generate."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    model.generation_config.eos_token_id = None
    ids = torch.tensor([prompt])
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0
    )  # fmt: skip
    return found[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_is_built_and_its_run_py_gives_the_tokens_of_generate(tmp_path, name):
    weights = tiny.saved(tmp_path / "weights", MODELS[name])
    bundle = built(tmp_path, "generate: {prompts: dummy}\n")
    gate = json.loads((bundle / "gates.json").read_text())["generate/cpu"]
    assert (gate["passed"], gate["equal"], gate["by"]) == (True, 1.0, "generate")
    prompt = [(7 * n) % 61 for n in range(3, 40)]
    axes = json.loads((bundle / "manifest.json").read_text())["dynamic_axes"]
    for ids in (prompt[:1], prompt[:5], prompt):
        assert len(ids) <= axes["sequence"]["max"]
        found = said(bundle, "--ids", " ".join(map(str, ids)), "--tokens", str(TOKENS))
        assert list(map(int, found)) == continued(weights, ids)


IN_PLACE = """\
generate: {prompts: dummy}
state:
  past_key_values:
    each: {layer: 2, part: [key, value]}
    shape: [batch, 2, past, 8]
    update: in_place
"""


def test_a_folder_whose_state_is_in_place_gives_the_same_tokens_on_one_buffer(tmp_path):
    weights = tiny.saved(tmp_path / "weights", MODELS["llama"])
    bundle = built(tmp_path, IN_PLACE)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["decoder"]["in_place"] is True
    gates = json.loads((bundle / "gates.json").read_text())
    assert gates["generate/cpu"]["equal"] == 1.0
    ids = [(7 * n) % 61 for n in range(3, 12)]
    found = said(bundle, "--ids", " ".join(map(str, ids)), "--tokens", str(TOKENS))
    assert list(map(int, found)) == continued(weights, ids)


def test_texts_and_messages_are_continued_by_the_folders_tokenizer(tmp_path):
    weights = tiny.saved(tmp_path / "weights", MODELS["llama"])
    save_tokenizer(weights)
    files = "[weights/tokenizer.json, weights/tokenizer_config.json, weights/chat_template.jinja]"
    texts = "[w5 w9, w7, w40 w41 w42 w3, w12 w13, w60, w8 w8 w9, w20 w5, w33 w1]"
    bundle = built(
        tmp_path,
        f"generate: {{texts: {texts}, tokenizer: {files}}}\n"
        "dynamic_axes: {sequence: {max: 12}, past: {max: 40}}\n",
    )
    ids = [5, 9, 14] * 7  # longer than one call takes
    text = " ".join(f"w{n}" for n in ids)
    expected = continued(weights, ids)
    until = expected.index(2) if 2 in expected else TOKENS
    ask = ("--tokens", str(TOKENS))
    words = [f"w{n}" if n < 62 else "<>"[n - 62] for n in expected[: until + 1]]
    shown = min(len(words), 41 - len(ids) + 1)
    assert said(bundle, "--text", text, *ask) == words[:shown]
    chat = continued(weights, [62, 5, 9, 63])
    found = said(bundle, "w5 w9", *ask)
    assert found[:3] == [f"w{n}" if n < 62 else "<>"[n - 62] for n in chat[:3]]
    long = subprocess.run(
        [sys.executable, bundle / "run.py", "--text", text * 3], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert long.returncode == 1
    assert "tokens; the model takes 1 to 41" in long.stderr


def test_init_runs_a_decoder_and_writes_a_recipe_that_builds(here, command):  # noqa: F811
    weights = tiny.saved(here / "weights/small", MODELS["qwen3"])
    save_tokenizer(weights)
    done = command("init", "weights/small")
    assert done.code == 0, done.err
    assert "  3 inputs: input_ids, attention_mask, position_ids\n" in done.out
    assert "  state: 4 tensors that go out and come in again\n" in done.out
    file = here / "recipes/small.yaml"
    recipe = yaml.safe_load(file.read_text())
    assert recipe["state"]["past_key_values"]["shape"] == ["batch", 2, "past", 8]
    assert recipe["generate"]["tokenizer"] == [
        f"../weights/small/{name}"
        for name in (
            "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
        )
    ]  # fmt: skip
    words = [f"w{n} w{n + 3}" for n in range(4, 12)]
    recipe["generate"]["texts"] = words  # this tokenizer knows no others
    quick = {
        "export": {"exporter": "torchscript"},
        "benchmark": {"max_time_s": 0.1, "min_samples": 3},
        "quantization": {"fp32": "none", "int8": "dynamic"},  # int8 is bounded by what init wrote
    }
    assert recipe["generate"]["max_kl"] == 0.1
    file.write_text(yaml.safe_dump(recipe | quick))
    done = command("run", "recipes/small.yaml")
    assert done.code == 0, done.err
    assert said(here / "artifacts/out/small/fp32", "--ids", "5 9 33", "--tokens", "8")


def test_init_writes_the_state_of_a_model_whose_config_does_not_say_it(here, command):  # noqa: F811
    tiny.saved(here / "weights/mamba", mamba)
    done = command("init", "weights/mamba")
    assert done.code == 0, done.err
    recipe = yaml.safe_load((here / "recipes/mamba.yaml").read_text())
    assert list(recipe["dummy_inputs"]) == ["input_ids"]
    assert recipe["dummy_inputs"]["input_ids"]["shape"] == ["batch", 1]
    parts = {part: each for each in recipe["state"].values() for part in each["each"]["part"]}
    assert parts.keys() == {"conv", "recurrent"}
    assert all(each["update"] == "replaced" for each in parts.values())
    assert command("lint", "recipes/mamba.yaml").code == 0
