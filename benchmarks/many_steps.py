"""Projects of many steps, built: each combination of a matrix has a source file and 8 steps.

Nothing of onnxbuild is imported: a process that measures others must be smaller than they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MODEL = "import torch\n\n\ndef load():\n    return torch.nn.Linear(4, {width})\n"
RECIPE = """\
version: 1
name: many
matrix: {{number: [{numbers}]}}
model: {{entrypoint: "models/linear{{{{ number }}}}.py:load"}}
dummy_inputs:
  input: {{dtype: float32, shape: [batch, 4]}}
dynamic_axes:
  batch: {{min: 1, max: 8, example: 2}}
benchmark: {{max_time_s: 0.1, min_samples: 3}}
"""
STEPS_A_COMBINATION = 8
TOOL = str(Path(sys.executable).parent / "onnxbuild")


@dataclass(frozen=True)
class Project:
    """A project whose every step is up to date.

    Attributes:
        folder: Its root.
        steps: How many there are.
        command: What runs them.
    """

    folder: Path
    steps: int
    command: tuple[str, ...]

    @property
    def recipe(self) -> Path:
        """Its one recipe."""
        return self.folder / "many.yaml"

    @property
    def name(self) -> str:
        """Number of steps, as a table shows it."""
        return f"{self.steps:,} step" + ("s" if self.steps != 1 else "")

    def source(self, number: int = 1) -> Path:
        """One combination's source file."""
        return self.folder / "models" / f"linear{number}.py"

    @property
    def graph(self) -> Path:
        """Its graph as other build systems read it, in a JSON file."""
        return self.folder / "graph.json"


def build_project(folder: Path, steps: int) -> Project:
    """A project with at least `steps` steps, in a new folder; its results are small stand-ins."""
    (folder / "models").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    combinations = max(1, -(-steps // STEPS_A_COMBINATION))
    numbers = range(1, combinations + 1)
    for number in numbers:
        (folder / "models" / f"linear{number}.py").write_text(MODEL.format(width=number))
    recipe = folder / "many.yaml"
    recipe.write_text(RECIPE.format(numbers=", ".join(map(str, numbers))))
    fill = [sys.executable, str(Path(__file__).with_name("fill_store.py"))]
    only = ["export"] if steps == 1 else []
    filled = subprocess.run(
        [*fill, str(folder / "artifacts"), str(recipe), str(folder / "graph.json"), *only],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    options = ["--only", "export"] if steps == 1 else []
    command = (TOOL, "run", str(recipe), *options, "--store", str(folder / "artifacts"))
    return Project(folder, int(filled.stdout), command)


def with_bytecode(folder: Path) -> None:
    """Let all that is started from here keep its bytecode in `folder`, as an installed tool has it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
