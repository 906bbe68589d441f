"""Models whose code comes with them: transformers copies it below the step's home, and what it copied counts."""

import json

import pytest

from onnxbuild.adapters.kernel.kernel_watch import reason_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(reason_not()), reason="system calls can't be observed here"),
]
ONLY = ("--only", "reference")
CONFIG = {
    "model_type": "small",
    "auto_map": {"AutoConfig": "small.SmallConfig", "AutoModel": "small.SmallModel"},
    "width": 8,
}
CODE = """\
import torch
from transformers import PretrainedConfig, PreTrainedModel

from .scaling import SCALE


class SmallConfig(PretrainedConfig):
    model_type = "small"

    def __init__(self, width=8, **others):
        self.width = width
        super().__init__(**others)


class SmallModel(PreTrainedModel):
    config_class = SmallConfig

    def __init__(self, config):
        super().__init__(config)
        self.first = torch.nn.Linear(4, config.width)
        self.second = torch.nn.Linear(config.width, 2)
        self.post_init()

    def forward(self, input):
        return SCALE * self.second(torch.relu(self.first(input)))
"""
SCALING = "SCALE = 2\n"
MODEL = """\
import pathlib

import torch
from transformers import AutoModel


def load(width=8):
    folder = pathlib.Path(__file__).parent / "small"
    return AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
"""


def save_weights(path):
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)
    shapes = {
        "first.weight": (8, 4),
        "first.bias": (8,),
        "second.weight": (2, 8),
        "second.bias": (2,),
    }
    weights = {name: torch.rand(shape, generator=generator) for name, shape in shapes.items()}
    save_file(weights, path, metadata={"format": "pt"})


@pytest.fixture
def remote(project):
    """A project whose model is a folder with weights, a config, and the code for them."""
    project.write("models/small/config.json", json.dumps(CONFIG))
    project.write("models/small/small.py", CODE)
    project.write("models/small/scaling.py", SCALING)
    save_weights(project.folder / "models/small/model.safetensors")
    project.write("models/tiny.py", MODEL)
    entrypoint = (
        "models/tiny.py:load, files: ['models/small/*.json', 'models/small/*.safetensors']"
    )
    project.edit("tiny.yaml", "models/tiny.py:load", entrypoint)
    return project


def test_a_model_with_its_own_code_is_up_to_date_until_the_code_changes(remote):
    first = remote.run(*ONLY)
    assert first.code == 0, first.out + first.err
    again = remote.run(*ONLY)
    assert (again.code, again.ran) == (0, []), again.out
    edits = {"small.py": ("torch.relu", "torch.tanh"), "scaling.py": ("SCALE = 2", "SCALE = 3")}
    for name, (old, new) in edits.items():
        remote.edit(f"models/small/{name}", old, new)
        edited = remote.run(*ONLY)
        assert (edited.code, edited.ran) == (0, ["reference"]), edited.out + edited.err
        assert f"models/small/{name}" in edited.out
    assert remote.run(*ONLY).ran == []
