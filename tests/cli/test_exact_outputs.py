"""Outputs of ids, from the table to `verify`."""

import json

import pytest

IDS = """\
import torch


class Ids(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 9)

    def forward(self, input):
        return self.linear(input).argmax(-1) + 20_000


def load():
    return Ids()
"""


@pytest.mark.slow
def test_a_model_of_ids_alone_is_built_released_and_verified(project):
    project.write("models/tiny.py", IDS)
    project.edit("tiny.yaml", "logits", "ids")
    project.edit("tiny.yaml", "benchmark:", "# ")
    built = project("lock", "tiny.yaml")
    assert built.code == 0, built.err
    shown = project.run().out.splitlines()
    (head,) = [line for line in shown if line.startswith("recipe ")]
    (row,) = [line for line in shown if line.startswith("tiny ")]
    found = dict(zip(head.replace("max abs error", "error").split(), row.split(), strict=False))
    assert "equal" in found
    assert "1.0000" in row.split()

    manifest = json.loads((project.folder / "artifacts/out/tiny/fp32/manifest.json").read_text())
    judged = manifest["validation"]["cpu"]
    assert judged["tolerances"]["equal_min"] == 1.0
    assert judged["metrics"]["equal_min"] == 1.0
    assert judged["metrics"]["cosine_min"] is None

    made = project("release", "tiny.yaml", "--version", "1", "--allow-dirty")
    assert made.code == 0, made.err
    verified = project("verify", "dist/tiny-1", "--run")
    assert verified.code == 0, verified.err
    assert "golden points within tolerance, least share of equal elements 1.0000" in verified.out
