"""`init FOLDER` of a folder in Hugging Face's form: what it marks, and what it says of the outputs."""

import json

import pytest
import yaml

BERT = {
    "architectures": ["BertModel"], "model_type": "bert", "vocab_size": 60, "type_vocab_size": 2,
    "max_position_embeddings": 24,
}  # fmt: skip


def save_folder(path, config, **files):
    """A folder of which nothing is loaded: a recipe is made of its JSON files."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "model.safetensors").write_bytes(b"")
    for name, content in files.items():
        file = path / name.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.with_suffix(".json").write_text(json.dumps(content))


def test_boxes_of_a_documents_words_are_an_input_that_is_to_be_filled_in(here, onnxbuild):
    config = BERT | {"model_type": "layoutlm", "architectures": ["LayoutLMForTokenClassification"]}
    save_folder(here / "weights/forms", config)
    said = onnxbuild("init", "weights/forms")
    assert said.code == 0, said.err
    assert "  4 inputs: input_ids, attention_mask, token_type_ids, bbox\n" in said.out
    assert "fill in first: recipes/forms.yaml, line 14\n" in said.out
    text = (here / "recipes/forms.yaml").read_text()
    assert yaml.safe_load(text)["dummy_inputs"]["bbox"] == {
        "dtype": "int64", "shape": ["batch", "sequence", 4], "fill": 0,
    }  # fmt: skip
    assert "# FILL IN: declare them: `dummy_inputs: {bbox: {" in text
    assert onnxbuild("lint", "recipes/forms.yaml").code == 0


def test_a_folder_of_sentence_transformers_says_how_embeddings_are_made(here, onnxbuild):
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    pooling = {"pooling_mode": "mean"}
    save_folder(here / "weights/e5", BERT, modules=modules, **{"1_Pooling__config": pooling})
    assert onnxbuild("init", "weights/e5").code == 0
    text = (here / "recipes/e5.yaml").read_text().replace("\n# ", " ")
    operations = "[pool: {mask: attention_mask}, l2_normalize: {}]"
    assert f"For embeddings, add `processing: {{postprocess: {operations}}}`" in text
    with (here / "recipes/e5.yaml").open("a") as file:
        file.write(f"processing: {{postprocess: {operations}}}\n")
    assert onnxbuild("lint", "recipes/e5.yaml").code == 0


def test_what_to_type_for_a_folder_whose_head_has_no_task(here, onnxbuild):
    save_folder(
        here / "weights/vectors", BERT | {"architectures": ["BertForNextSentencePrediction"]}
    )
    said = onnxbuild("init", "weights/vectors")
    assert said.code == 2
    assert "(of `init`: `--task feature-extraction`)" in said.err
    assert onnxbuild("init", "weights/vectors", "--task", "feature-extraction").code == 0


@pytest.mark.slow
def test_a_decoder_is_written_out_with_its_cache_and_first_calls_as_data(here, onnxbuild):
    llama = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 60, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
    }  # fmt: skip
    save_folder(here / "weights/llama", llama)
    assert onnxbuild("init", "weights/llama").code == 0
    text = (here / "recipes/llama.yaml").read_text()
    cache = yaml.safe_load(text)["state"]["past_key_values"]
    assert cache == {
        "each": {"layer": 2, "part": ["key", "value"]},
        "shape": ["batch", 4, "past", 8],
    }
    assert "past_key_values" not in (here / "recipes/llama_data.py").read_text()
    assert onnxbuild("lint", "recipes/llama.yaml").code == 0
