"""Decoders in GGUF: what the file says of a recipe, its tokens and its tokenizer."""

import json
import subprocess
import sys

import pytest
import yaml

import onnxbuild
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface.gguf import read_gguf
from tests.features.sources.test_decoders import said
from tests.first_recipe.conftest import here  # noqa: F401 - a fixture
from tests.first_recipe.conftest import onnxbuild as command  # noqa: F401 - a fixture
from tests.late_imports import Late
from tests.steps.decoders import load
from tests.written_recipes import faults, loader

gguf, torch = Late("gguf"), Late("torch")

WORDS = [*map(chr, range(33, 94)), "\u0120", "AB", "<|end|>"]
"""Bytes, a blank, a merged pair and the token that ends a text."""

PROMPT = [5, 9, 14, 7, 30, 22]


def written(path, model, **metadata):
    """A llama as llama.cpp's converter writes it: the rows of queries and keys in another order."""
    config = model.config
    file = gguf.GGUFWriter(str(path), "llama")
    file.add_block_count(config.num_hidden_layers)
    file.add_context_length(config.max_position_embeddings)
    file.add_embedding_length(config.hidden_size)
    file.add_feed_forward_length(config.intermediate_size)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_rope_dimension_count(config.head_dim)
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("qwen2")
    file.add_token_list(WORDS)
    file.add_token_types([1] * 63 + [3])
    file.add_token_merges(["A B"])
    file.add_eos_token_id(63)
    file.add_chat_template("{% for each in messages %}{{ each.content }}{% endfor %}")
    for key, value in metadata.items():
        file.add_uint16(key, value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for key, value in model.state_dict().items():
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        own = next((count for name, count in heads.items() if name in key), 0)
        if own:
            value = value.reshape(own, 2, -1, value.shape[-1]).transpose(1, 2).reshape(value.shape)  # noqa: PLW2901
        name = names.get_name(key, try_suffixes=(".weight",))
        file.add_tensor(name, value.contiguous().numpy())
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path


RECIPE = """\
version: 1
name: demo
model: {gguf: tiny.gguf}
export: {exporter: torchscript}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
TEXTS = "texts: ['AB', 'C D', 'EFG', 'H', 'AAB', 'BA', '&', '0 1']"


def test_a_file_says_state_inputs_and_axes_without_the_package_that_reads_it(tmp_path):
    written(tmp_path / "tiny.gguf", load("llama"))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "demo.yaml").write_text(RECIPE)
    code = (
        "import sys, json; from pathlib import Path; from onnxbuild.recipe.load import load_recipes\n"
        "(recipe,) = load_recipes(Path('demo.yaml'), project=Path('.')).recipes\n"
        "print(json.dumps([[e.name, e.shape, e.fed_by] for e in recipe.inputs]), recipe.model.files)\n"
        "assert not {'gguf', 'transformers', 'torch', 'numpy'} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    inputs, _, files = done.stdout.rpartition(" (")
    assert files == "'tiny.gguf',)\n"
    assert json.loads(inputs)[3:5] == [
        ["past_key_values.0.key", ["batch", 2, "past", 8], "present.0.key"],
        ["past_key_values.0.value", ["batch", 2, "past", 8], "present.0.value"],
    ]


def test_a_file_that_is_cut_or_a_part_is_refused(tmp_path):
    whole = written(tmp_path / "tiny.gguf", load("llama"), **{"split.count": 2})
    with pytest.raises(SourceError, match=r"tiny\.gguf is one of 2 parts of a model"):
        read_gguf(whole)
    content = whole.read_bytes()
    for size in (0, 3, 7, 20, 100, 600):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(SourceError, match=r"cut\.gguf is no GGUF file that can be read"):
            read_gguf(tmp_path / "cut.gguf")


def test_a_recipe_of_a_file_without_a_cache_and_texts_without_a_tokenizer_are_refused(tmp_path):
    file = gguf.GGUFWriter(str(tmp_path / "tiny.gguf"), "mamba")
    file.add_block_count(2)
    file.add_ssm_state_size(4)
    file.add_vocab_size(64)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.close()
    load_of = loader(tmp_path)
    ((what, _, fix),) = faults(load_of, RECIPE)
    assert "(mamba) does not say what is in the model's cache" in what
    assert "onnxbuild init" in fix
    written(tmp_path / "tiny.gguf", load("llama"))
    ((what, _, _),) = faults(load_of, f"{RECIPE}generate: {{{TEXTS}}}\n")
    assert "names no tokenizer.json" in what


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_file_is_built_with_its_tokenizer_and_gives_the_tokens_of_the_model_in_it(tmp_path):
    model = load("llama")
    written(tmp_path / "tiny.gguf", model)
    (tmp_path / "pyproject.toml").write_text("")
    file = tmp_path / "demo.yaml"
    file.write_text(f"{RECIPE}generate: {{{TEXTS}, tokenizer: [tiny.gguf]}}\n")
    result = onnxbuild.build(onnxbuild.Request((file,)))
    assert result.exit_code == 0, result.report.failures
    bundle = tmp_path / "artifacts/out/demo/fp32"
    gate = json.loads((bundle / "gates.json").read_text())["generate/cpu"]
    assert (gate["passed"], gate["by"], gate["prompts"]) == (True, "generate", 8)
    ids = torch.tensor([PROMPT])
    model.generation_config.eos_token_id = None
    expected = model.generate(ids, max_new_tokens=24, do_sample=False, pad_token_id=0)
    found = said(bundle, "--ids", " ".join(map(str, PROMPT)), "--tokens", "24")
    assert list(map(int, found)) == expected[0, len(PROMPT) :].tolist()
    assert {each.name for each in (bundle / "tokenizer").iterdir()} == {
        "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
    }  # fmt: skip
    assert "".join(said(bundle, "AB C", "--tokens", "8"))  # ids 62, 61, 34


@pytest.mark.slow
def test_init_writes_the_recipe_of_a_file_with_texts_and_its_tokenizer(here, command):  # noqa: F811
    written(here / "tiny.gguf", load("llama"))
    done = command("init", "tiny.gguf")
    assert done.code == 0, done.err
    assert "  state: 4 tensors that go out and come in again\n" in done.out
    recipe = yaml.safe_load((here / "recipes/tiny.yaml").read_text())
    assert recipe["model"] == {"gguf": "../tiny.gguf"}
    assert recipe["state"]["past_key_values"]["shape"] == ["batch", 2, "past", 8]
    assert recipe["generate"]["tokenizer"] == ["../tiny.gguf"]
    assert command("lint", "recipes/tiny.yaml").code == 0
