"""How long an up-to-date `onnxbuild run` takes, at 1 to 10,000 steps, beside the interpreter itself.

The store is filled by an executor that writes small outputs instead of exporting thousands of
models; records, blobs, views, reasons and the command that is measured are the real ones.

    python benchmarks/uptodate.py [--steps 1 100 1000 10000] [--rounds 15]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import interleave, machine, median_s, peak_bytes

MODEL = "import torch\n\n\ndef load(width):\n    return torch.nn.Linear(4, width)\n"
RECIPE = """\
version: 1
name: many
matrix: {{width: [{widths}]}}
model: {{entrypoint: models/linear.py:load, args: {{width: "{{{{ width }}}}"}}}}
dummy_inputs:
  input: {{dtype: float32, shape: [batch, 4]}}
dynamic_axes:
  batch: {{min: 1, max: 8, example: 2}}
"""
STEPS_A_COMBINATION = 8
TARGETS = {
    "--help": "8 x",
    "1 step": "8 x",
    "1,000 steps": "100 ms, 40 MiB",
    "10,000 steps": "500 ms, 40 MiB",
}


def project(folder: Path, steps: int) -> tuple[Path, int]:
    """A project with at least `steps` steps, built; its recipe, and how many there are."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "linear.py").write_text(MODEL)
    (folder / "pyproject.toml").write_text("")
    combinations = max(1, -(-steps // STEPS_A_COMBINATION))
    recipe = folder / "many.yaml"
    recipe.write_text(RECIPE.format(widths=", ".join(str(n + 1) for n in range(combinations))))
    fill = [sys.executable, str(Path(__file__).with_name("fill_store.py"))]
    only = ["export"] if steps == 1 else []
    filled = subprocess.run(
        [*fill, str(folder / "artifacts"), str(recipe), *only],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return recipe, int(filled.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp:
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        tool = str(Path(sys.executable).parent / "onnxbuild")
        commands["--help"] = [tool, "--help"]
        for steps in arguments.steps:
            folder = Path(temp) / str(steps)
            recipe, count = project(folder, steps)
            name = f"{count:,} step" + ("s" if count != 1 else "")
            only = ["--only", "export"] if steps == 1 else []
            store = ["--store", str(folder / "artifacts")]
            commands[name] = [tool, "run", str(recipe), *only, *store]
        samples = interleave(commands, rounds=arguments.rounds)
    base_s = median_s(samples["python -c pass"])
    print(f"{'command':<18}{'median':>10}{'ratio':>8}{'peak':>10}   target")
    for name, taken in samples.items():
        value_s, peak = median_s(taken), peak_bytes(taken)
        print(
            f"{name:<18}{value_s * 1e3:>7.1f} ms{value_s / base_s:>6.1f} x"
            f"{peak / 2**20:>6.1f} MiB   {TARGETS.get(name, '')}"
        )


if __name__ == "__main__":
    main()
