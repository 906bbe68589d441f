"""`packages: {genai: {}}`: which decoders it refuses, and its tokens by onnxruntime-genai, in an environment of its own."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from onnxbuild.features.packages.genai import PackageGenaiParams
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.bundles.manifest import read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.genai.config import NotForGenaiError, genai_config
from onnxbuild.resolver import resolve
from tests import tiny_transformers as tiny
from tests.environments import INSTALLED, make_venv
from tests.framework_environments import site_of
from tests.steps.decoders import load
from tests.written_recipes import faults, loader

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DECODER = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  ids: {dtype: int64, shape: [batch, sequence], high: 64}
  mask: {dtype: int64, shape: [batch, past + sequence], mask: left}
  positions: {dtype: int64, shape: [batch, sequence], arange: past}
state: {past: {each: {layer: 2, part: [key, value]}, shape: [batch, 2, past, 8]}}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 4, example: 2}
  sequence: {min: 1, max: 16, example: 4}
  past: {min: 0, max: 40, example: 4}
generate: {prompts: dummy}
"""
PACKAGED = f"{DECODER}packages: {{genai: {{}}}}\n"
MANIFEST = {
    "schema_version": 2, "name": "demo", "kind": "onnx", "file": "model.onnx", "precision": "fp32",
    "recipe_sha256": "00", "variant": "fp32", "validation": {}, "versions": {}, "size_bytes": 0, "files": {},
    "inputs": [], "outputs": [{"name": "logits", "dtype": "float32", "shape": ["batch", "sequence", 64]}],
    "dynamic_axes": {"past": {"min": 0, "max": 40, "example": 4, "multiple_of": 1}},
    "targets": {"cpu": {"chain": [], "session": {}}}, "session": {"intra_op_threads": 2},
    "decoder": {
        "ids": "ids", "masks": ["mask"], "positions": ["positions"], "logits": "logits", "past": "past",
        "new": "sequence",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("shape: [batch, 2, past, 8]", "shape: [batch, past, 2, 8]", "its state has the shape ['batch', 'past', 2, 8]"),
        ("past: {each", "past: {input: 'k.{layer}0.{part}', each", "genai numbers layers from 0"),
        ("[batch, past + sequence], mask", "[batch, sequence], mask", "one mask, over the past and the new tokens, and 'mask'"),
        ("shape: [batch, sequence], arange", "shape: [sequence], arange", "of shape [batch, sequence], and 'positions'"),
        ("positions: {dtype: int64", "positions: {dtype: int32", "its mask and positions are int32 and int64"),
        ("state: {past: {each: {layer: 2, part: [key, value]}, shape: [batch, 2, past, 8]}}\n", "", "onnxruntime-genai can't run this model: it has no `state`"),
        ("generate: {prompts: dummy}\n", "", "judged by the prompts of `generate`, and the recipe has none"),
    ],
)  # fmt: skip
def test_a_model_that_genai_can_not_feed_is_refused_at_its_line(tmp_path, old, new, what):
    assert old in PACKAGED
    text = PACKAGED.replace(old, new)
    found = faults(loader(tmp_path), text)
    line = 1 + text[: text.index("packages:")].count("\n")
    assert [where for said, where, _ in found if what in said] == [f"demo.yaml:{line}:12"], found


def cache(folder, text=PACKAGED):
    graph = resolve(loader(folder)(text).recipes, HostFacts("x86_64", frozenset()))
    params = graph.steps["demo:fp32-genai/package"].params
    assert isinstance(params, PackageGenaiParams)
    return params.cache


def test_names_are_the_recipes_and_layers_are_patterns(tmp_path):
    pattern = "each: {layer: 2, part: [key, value]}"
    text = PACKAGED.replace(
        pattern, f"input: '{{part}}_in.{{layer}}', output: '{{part}}_out.{{layer}}', {pattern}"
    )
    config = genai_config(read_manifest(MANIFEST), cache(tmp_path, text), tmp_path, None)
    decoder = config["model"]["decoder"]
    assert decoder["inputs"] == {
        "input_ids": "ids", "attention_mask": "mask", "position_ids": "positions",
        "past_key_names": "key_in.%d", "past_value_names": "value_in.%d",
    }  # fmt: skip
    assert decoder["outputs"] == {
        "logits": "logits", "present_key_names": "key_out.%d", "present_value_names": "value_out.%d",
    }  # fmt: skip
    assert decoder["session_options"] == {"intra_op_num_threads": 2}
    assert config["model"]["context_length"] == 41


def test_special_tokens_are_those_of_the_tokenizers_files(tmp_path):
    made, manifest = cache(tmp_path), read_manifest(MANIFEST)

    def ids(padding=None):
        model = genai_config(manifest, made, tmp_path, padding)["model"]
        return model.get("bos_token_id"), model["eos_token_id"], model["pad_token_id"]

    assert ids() == (None, [0], 0)
    assert ids(63) == (None, [63], 63)
    vocabulary = {"vocab": {"<s>": 1, "</s>": 2}}
    added = [{"id": 3, "content": "<pad>"}]
    (tmp_path / "tokenizer.json").write_text(
        json.dumps({"model": vocabulary, "added_tokens": added})
    )
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert ids() == (1, [2], 2)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"pad_token": "<pad>"}))
    assert ids() == (1, [2], 3)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 6]}))
    assert ids() == (1, [5, 6], 3)
    with pytest.raises(NotForGenaiError, match="pad_token_id is 64; the model has 64 tokens"):
        ids(64)


TOKENS = 32
CONTINUE = """\
import json, sys
import numpy as np
import onnxruntime_genai as og

model = og.Model(sys.argv[1])
prompts, count = json.loads(sys.argv[2])
longest = max(map(len, prompts))
parameters = og.GeneratorParams(model)
parameters.set_search_options(max_length=longest + count, batch_size=len(prompts))
generator = og.Generator(model, parameters)
generator.append_tokens(np.array([each + [63] * (longest - len(each)) for each in prompts], np.int32))
while not generator.is_done():
    generator.generate_next_token()
print(json.dumps([generator.get_sequence(n)[longest:].tolist() for n in range(len(prompts))]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(interpreter with onnxruntime-genai, project) whose recipe was built by it."""
    folder = tmp_path_factory.mktemp("genai")
    python = make_venv(folder / "python", site_of(HERE / "genai.txt", folder), INSTALLED, ROOT)
    tiny.saved(folder / "weights", lambda: load("qwen3"))
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        "version: 1\nname: demo\nmodel: {transformers: weights}\nexport: {exporter: torchscript}\n"
        "quantization: {fp32: none, int4: {mode: weight_only, bits: 4, validate: {cosine_min: 0.5}}}\n"
        f"generate: {{prompts: dummy, tokens: {TOKENS}}}\npackages: {{genai: {{pad_token_id: 63}}}}\n"
    )
    done = ran(python, folder, "-m", "onnxbuild", "run", "demo.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    return python, folder


def ran(python, folder, *arguments):
    return subprocess.run(
        [python, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def until(tokens):
    """The tokens before the id that pads and ends."""
    return tokens[: tokens.index(63)] if 63 in tokens else tokens


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["fp32", "int4"])
def test_the_build_continues_the_prompts_by_genai_where_it_is_installed(built, variant):
    report = json.loads((built[1] / f"artifacts/out/demo/{variant}-genai/run.json").read_text())
    assert (report["passed"], report["equal_min"]) == (True, 1.0)
    assert report["compared"] > 4 * TOKENS


@pytest.mark.slow
def test_genai_gives_pytorchs_tokens_alone_and_in_a_batch_padded_on_its_right(built):
    python, folder = built
    package = folder / "artifacts/out/demo/fp32-genai"
    golden = json.loads((package / "golden/tokens.json").read_text())
    usable = [n for n, each in enumerate(golden["prompts"]) if 63 not in each]
    one, other = usable[:2]
    assert len(golden["prompts"][one]) != len(golden["prompts"][other])
    for group in ((one,), (other,), (one, other)):
        asked = json.dumps([[golden["prompts"][n] for n in group], TOKENS])
        done = ran(python, folder, "-c", CONTINUE, package, asked)
        assert done.returncode == 0, done.stderr
        found = [until(each) for each in json.loads(done.stdout)]
        assert found == [until(golden["tokens"][n]) for n in group]


@pytest.mark.slow
def test_the_program_in_the_readme_continues_ids(built):
    python, folder = built
    package = folder / "artifacts/out/demo/fp32-genai"
    golden = json.loads((package / "golden/tokens.json").read_text())
    number = next(n for n, each in enumerate(golden["prompts"]) if 63 not in each)
    (program,) = re.findall(r"```python\n(.*?)```", (package / "README.md").read_text(), re.DOTALL)
    done = ran(python, package, "-c", program, " ".join(map(str, golden["prompts"][number])))
    assert done.returncode == 0, done.stderr
    assert until(list(map(int, done.stdout.split()))) == until(golden["tokens"][number])


JUDGE = """\
import json, sys
from pathlib import Path
from onnxbuild.features.packages.genai import FEATURE
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.packages.package_run import RunParams
from tests.fakes.step_context import run_step

package, scratch = map(Path, sys.argv[1:])
params = RunParams("the folder", VariantTolerances())
outcome, _ = run_step(FEATURE.run, params, scratch, {"package": package, "reference": package})
print(json.dumps([each.what for each in outcome.findings]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["a token of PyTorch's", "keys for values"])
def test_a_folder_whose_tokens_are_others_fails(built, tmp_path, damage):
    python, folder = built
    package = shutil.copytree(folder / "artifacts/out/demo/fp32-genai", tmp_path / "package")
    for each in (package / "run.json", package / "SHA256SUMS"):
        each.unlink()
    if damage == "keys for values":
        file = package / "genai_config.json"
        text = file.read_text().replace("present.%d.key", "present.%d.x")
        text = text.replace("present.%d.value", "present.%d.key")
        text = text.replace("present.%d.x", "present.%d.value")
    else:
        file = package / "golden/tokens.json"
        golden = json.loads(file.read_text())
        number = next(n for n, each in enumerate(golden["prompts"]) if 63 not in each)
        golden["tokens"][number][0] = (golden["tokens"][number][0] + 1) % 63
        text = json.dumps(golden)
    file.chmod(0o644)
    file.write_text(text)
    write_sums(package)
    done = ran(python, folder, "-c", JUDGE, package, tmp_path / "step")
    assert done.returncode == 0, done.stderr
    (said,) = json.loads(done.stdout.splitlines()[-1])
    assert re.search(r"tokens are others: token \d+ after prompt \d", said)


@pytest.mark.slow
def test_verify_runs_the_folder_of_a_release(built):
    python, folder = built
    release = ("release", "demo.yaml", "--version", "1.0.0", "--allow-dirty")
    for asked in (("lock", "demo.yaml"), release):
        done = ran(python, folder, "-m", "onnxbuild", *asked)
        assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (each.parent for each in folder.rglob("release.json"))
    asked = ("verify", made, "--run", "--trust-programs")
    done = ran(python, folder, "-m", "onnxbuild", *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    states = {line.split()[0] for line in done.stdout.splitlines() if "genai" in line}
    assert states == {"ok"}, done.stdout
