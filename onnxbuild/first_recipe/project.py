"""A small whole project: a model in Python, its recipe, and what a repository needs around them."""

from collections.abc import Mapping

_MODEL = '''\
"""A small model to start from: replace it by your own, and the recipe's inputs with it."""

import torch


class Classifier(torch.nn.Module):
    """Four numbers in, three scores out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3)
        )

    def forward(self, features):
        return {"scores": self.layers(features)}


def load():
    """What the recipe names: it returns the model, with its weights.

    Weights of your own: add `files: [weights.pt]` to the recipe's `model`, and load them here with
    `torch.load(Path(__file__).with_name("weights.pt"), weights_only=True)`.
    """
    torch.manual_seed(0)
    return Classifier()


def calibration():
    """Real inputs, for the ranges of INT8: yield a dict of arrays for each sample."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(100):
        yield {"features": torch.randn(1, 4, generator=generator).numpy()}
'''

_RECIPE = """\
# Every key is described by `onnxbuild schema`; `onnxbuild explain recipes/{name}.yaml` prints this in full.
version: 1
name: {name}

# The callable that returns the model, relative to this file.
model: ../models/classifier.py:load

# What it takes: parameters of its forward.
dummy_inputs:
  features: {{dtype: float32, shape: [batch, 4]}}

# Keys of what forward returns.
outputs: [scores]

# The sizes that each axis may have.
dynamic_axes:
  batch: {{min: 1, max: 64, example: 2}}

# One model for each line, judged against PyTorch and measured against it.
quantization:
  fp32: none
  int8: static

# Real inputs, from which INT8 takes its ranges.
calibration:
  data: ../models/classifier.py:calibration
"""

_PYPROJECT = """\
[project]
name = "{package}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["onnxbuild", "torch"]

[tool.setuptools]
packages = []
"""

_GITIGNORE = """\
# what onnxbuild makes
/artifacts/
/dist/
__pycache__/
.venv/
"""

_WORKFLOW = """\
# Builds all recipes for each commit: it fails if a model can't be built, or a variant fails its gates.
name: models
on: [push, pull_request]
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install .
      - uses: actions/cache@v4  # steps whose inputs did not change are not run again
        with:
          path: artifacts
          key: onnxbuild-${{ github.run_id }}
          restore-keys: onnxbuild-
      - run: onnxbuild lint recipes/*.yaml
      - run: onnxbuild run recipes/*.yaml
"""


def project_files(name: str) -> Mapping[str, str]:
    """Path -> content of a project's files."""
    package = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-") or "models"
    return {
        "pyproject.toml": _PYPROJECT.format(package=package),
        ".gitignore": _GITIGNORE,
        "models/classifier.py": _MODEL,
        f"recipes/{name}.yaml": _RECIPE.format(name=name),
        ".github/workflows/models.yaml": _WORKFLOW,
    }
