"""Code that draws at random gives the same model again."""

import json

import pytest


@pytest.mark.slow
def test_every_generator_starts_at_the_same_place(project):
    drawing = (
        "    import random, numpy\n"
        "    scale = random.random() + float(numpy.random.rand()) + float(torch.rand(1))"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)", drawing)
    project.edit("models/tiny.py", "torch.nn.Sequential(", "torch.nn.Sequential(Scale(scale), ")
    scale = (
        "class Scale(torch.nn.Module):\n"
        "    def __init__(self, by):\n        super().__init__()\n        self.by = by\n\n"
        "    def forward(self, input):\n        return input * self.by\n\n\ndef load("
    )
    project.edit("models/tiny.py", "def load(", scale)
    seen = project.run("--only", "fp32/validate")
    assert seen.code == 0, seen.out
    digests = []
    for store in ("one", "two"):
        done = project.run("--only", "export", "--store", store, "--json")
        assert done.code == 0
        records = list((project.folder / store / "ac").rglob("*.json"))
        digests.append(json.loads(records[0].read_text())["traces"][0]["outputs"])
    assert digests[0] == digests[1]
