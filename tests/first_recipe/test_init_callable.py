"""`init FILE.py:CALLABLE`: run in a fenced process; what it returned is asked, and guesses are tried."""

import pytest
import yaml

from tests.first_recipe.conftest import files_in

pytestmark = pytest.mark.slow

CODE = '''\
from pathlib import Path

import torch

from helper import double

HERE = Path(__file__).parent


class Text(torch.nn.Module):
    """A table and a layer."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask):
        hidden = self.table(input_ids) * attention_mask[..., None]
        return {"scores": self.head(hidden), "pooled": hidden.mean(1)}


class Picture(torch.nn.Module):
    """Takes 32 x 32 pixels alone."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3, stride=2)
        self.head = torch.nn.Linear(4 * 15 * 15, 2)

    def forward(self, image, scale: float = 1.0):
        return self.head(double(self.first(image)).flatten(1)) * scale


class Odd(torch.nn.Module):
    """Says nothing of its input."""

    def forward(self, a):
        return a.reshape(-1, 7, 9).sum(1)


def picture():
    (HERE / "weights.txt").read_text()
    return Picture()


class Cached(torch.nn.Module):
    """Returns a cache, too, as a language model of transformers does."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(100, 16)

    def forward(self, input_ids):
        return {"logits": self.table(input_ids), "loss": None, "past_key_values": object()}


def loaded():
    from safetensors.torch import load_file

    module = torch.nn.Linear(4, 2)
    module.load_state_dict(load_file(HERE / "linear.safetensors"))
    return module


def raises():
    raise ValueError("no weights here")


def number():
    return 3


def writes():
    (HERE / "new.txt").write_text("x")
    return Odd()


def outside():
    (HERE.parents[1] / "kept/words.txt").read_text()
    return Picture()


def sized(width, depth):
    return Picture()


def path():
    return HERE / "two.onnx"


model = Odd()
'''


@pytest.fixture
def code(here):
    (here / "models").mkdir()
    (here / "models/mine.py").write_text(CODE)
    (here / "models/helper.py").write_text("def double(x):\n    return x * 2\n")
    (here / "models/weights.txt").write_text("words")
    return here


def written(folder, name="mine"):
    return yaml.safe_load((folder / f"recipes/{name}.yaml").read_text())


def test_inputs_of_a_text_model_are_known_and_it_builds(code, onnxbuild):
    said = onnxbuild("init", "models/mine.py:Text", "--name", "text")
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1] == "next: onnxbuild run recipes/text.yaml"
    found = written(code, "text")
    assert found["model"] == "../models/mine.py:Text"
    assert found["dummy_inputs"] == {
        "input_ids": {"dtype": "int64", "shape": ["batch", "sequence"], "low": 0, "high": 100},
        "attention_mask": {"dtype": "int64", "shape": ["batch", "sequence"], "mask": "right"},
    }
    assert found["outputs"] == ["scores", "pooled"]
    assert set(found["dynamic_axes"]) == {"batch", "sequence"}
    assert onnxbuild("run", "recipes/text.yaml").code == 0


def test_a_size_that_ran_is_taken_and_files_that_were_read_are_declared(code, onnxbuild):
    assert onnxbuild("init", "models/mine.py:picture").code == 0
    found = written(code)
    assert found["dummy_inputs"] == {"image": {"dtype": "float32", "shape": ["batch", 3, 32, 32]}}
    assert found["model"] == {
        "entrypoint": "../models/mine.py:picture",
        "files": ["../models/weights.txt"],
    }
    text = (code / "recipes/mine.yaml").read_text()
    assert "first (Conv2d) takes 3 channels; forward ran" in text
    assert onnxbuild("lint", "recipes/mine.yaml").code == 0


def test_what_can_not_be_known_is_marked_and_lints(code, onnxbuild):
    said = onnxbuild("init", "models/mine.py:Odd")
    assert said.code == 0
    text = (code / "recipes/mine.yaml").read_text()
    marked = [n for n, line in enumerate(text.splitlines(), 1) if "# FILL IN: what Odd" in line]
    assert len(marked) == 1
    assert f"fill in first: recipes/mine.yaml, line {marked[0]}\n" in said.out
    assert onnxbuild("lint", "recipes/mine.yaml").code == 0


def test_a_callable_that_gives_onnx_has_its_frontend_and_its_file(code, onnxbuild):
    from tests.first_recipe.test_init_file import save_model

    save_model(code / "models/two.onnx")
    assert onnxbuild("init", "models/mine.py:path").code == 0
    found = written(code)
    assert found["frontend"] == "onnx"
    assert found["model"]["files"] == ["../models/two.onnx"]
    assert found["dummy_inputs"] == {"x": {"dtype": "float32", "shape": ["n", 3]}}
    assert onnxbuild("run", "recipes/mine.yaml").code == 0


EXAMPLES = """
import numpy as np

def pictures():
    for count in (2, 3):
        yield {"image": np.random.default_rng(0).random((count, 3, 32, 32)).astype("float32")}

def one():
    ids = np.array([[3, 60, 7], [1, 2, 0]])
    return ids, (ids > 0).astype(np.int64)

def wrong():
    return {"image": np.zeros((1, 3, 8, 8), np.float32)}
"""


@pytest.mark.parametrize(
    ("model", "example", "inputs"),
    [
        (
            "Picture",
            "pictures",
            {"image": {"dtype": "float32", "shape": ["batch", 3, 32, 32], "low": 0, "high": 1}},
        ),
        (
            "Text",
            "one",
            {
                "input_ids": {"dtype": "int64", "shape": ["batch", 3], "low": 0, "high": 61},
                "attention_mask": {"dtype": "int64", "shape": ["batch", 3], "mask": "right"},
            },
        ),
    ],
)
def test_real_inputs_say_names_types_sizes_and_ranges(code, onnxbuild, model, example, inputs):
    (code / "models/examples.py").write_text(EXAMPLES)
    said = onnxbuild(
        "init", f"models/mine.py:{model}", "--inputs", f"models/examples.py:{example}"
    )
    assert said.code == 0, said.err
    found = written(code)
    assert found["dummy_inputs"] == inputs
    assert found["dynamic_axes"] == {"batch": {"min": 1, "max": 8, "example": 2}}


def test_inputs_that_forward_does_not_take_are_one_error(code, onnxbuild):
    (code / "models/examples.py").write_text(EXAMPLES)
    said = onnxbuild("init", "models/mine.py:Picture", "--inputs", "models/examples.py:wrong")
    assert said.code == 1
    assert "forward, with the inputs of models/examples.py:wrong, raised RuntimeError" in said.err
    said = onnxbuild("init", "models/mine.py:Picture", "--inputs", "models/examples.py:none")
    assert "models/examples.py defines no 'none'" in said.err


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("raises", "raised ValueError: no weights here"),
        ("number", "returned an int; `init` writes recipes of models of pytorch and onnx"),
        ("model", "is the model itself"),
        ("writes", "raised PermissionError"),
    ],
)
def test_a_callable_that_gives_no_model_is_one_error(code, onnxbuild, name, what):
    before = files_in(code)
    said = onnxbuild("init", f"models/mine.py:{name}")
    assert (said.code, said.out) == (1, "")
    assert what in said.err
    assert "fix: " in said.err
    assert said.err.count("error:") == 1
    assert files_in(code) == before


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("import sys\nsys.exit('no weights')\n", "left by sys.exit('no weights')"),
        (
            (
                "import argparse\np = argparse.ArgumentParser()\np.add_argument('--width', required=True)\n"
                "p.parse_args()\n"
            ),
            "left by sys.exit(2)",
        ),
    ],
)
def test_code_that_exits_is_one_error_with_its_line_and_a_fix(code, onnxbuild, lines, what):
    text = f"{lines}def load(): ...\n"
    (code / "models/script.py").write_text(text)
    said = onnxbuild("init", "models/script.py:load")
    assert (said.code, said.out) == (1, "")
    line = lines.count("\n")
    assert f"error: models/script.py:{line}: models/script.py:load {what}" in said.err
    assert "fix: move what exits, or reads a command line, below `if __name__" in said.err


def test_files_outside_of_the_project_are_read_once_they_are_named(code, onnxbuild):
    kept = code.parent / "kept"
    kept.mkdir()
    (kept / "words.txt").touch()
    refused = onnxbuild("init", "models/mine.py:outside")
    assert refused.code == 1
    assert "PermissionError" in refused.err
    assert "--files" in refused.err
    assert onnxbuild("init", "models/mine.py:outside", "--files", "../kept").code == 0
    assert written(code)["model"]["files"] == ["../../kept"]
    assert onnxbuild("lint", "recipes/mine.yaml").code == 0


def test_relative_paths_start_at_the_project_s_root(code, onnxbuild):
    (code / "words.txt").write_text("words")
    text = CODE + "\n\ndef relative():\n    open('words.txt').close()\n    return Picture()\n"
    (code / "models/mine.py").write_text(text)
    assert onnxbuild("init", "models/mine.py:relative").code == 0
    assert written(code)["model"]["files"] == ["../words.txt"]
    (code / "words.txt").rename(code / "models/words.txt")
    said = onnxbuild("init", "models/mine.py:relative", "--name", "other")
    assert "raised FileNotFoundError" in said.err
    assert (
        "fix: relative paths start at the project's root; next to this file write `Path(__file__).with_name('words.txt')`"
        in said.err
    )
