"""What a model may depend on without anybody saying so: each change is noticed."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest


@pytest.fixture
def package():
    """Installs and removes a package of one module, as pip would."""
    site = Path(sysconfig.get_paths()["purelib"])
    module = site / "onnxbuild_test_package.py"
    info = site / "onnxbuild_test_package-1.0.dist-info"

    def install(text: str) -> None:
        module.write_text(text)
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Name: onnxbuild-test-package\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"onnxbuild_test_package.py,sha256={hash(text)},1\n")

    yield install
    module.unlink(missing_ok=True)
    for path in info.glob("*"):
        path.unlink()
    if info.exists():
        info.rmdir()
    for path in site.glob("__pycache__/onnxbuild_test_package*"):
        path.unlink()


@pytest.mark.slow
def test_a_package_that_is_installed_later_and_one_that_is_upgraded_are_noticed(
    project,
    package,
):
    optional = (
        "    try:\n        import onnxbuild_test_package as p; width = p.WIDTH\n"
        "    except ImportError:\n        width = 8"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)", optional)
    assert project.run("--only", "export").ran == ["export"]
    assert project.run("--only", "export").ran == []
    package("WIDTH = 4\n")
    installed = project.run("--only", "export")
    assert installed.ran == ["export"]
    assert "onnxbuild_test_package.py" in installed.out
    assert project.run("--only", "export").ran == []
    package("WIDTH = 5\n")
    upgraded = project.run("--only", "export")
    assert upgraded.ran == ["export"]
    assert "package onnxbuild-test-package: " in upgraded.out


@pytest.mark.slow
def test_a_folder_that_the_code_lists_is_an_input(project):
    project.write("models/layers/a.txt", "")
    listing = "    import os; width = 2 + len(os.listdir(os.path.dirname(__file__) + '/layers'))"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", listing)
    assert project.run("--only", "export").ran == ["export"]
    assert project.run("--only", "export").ran == []
    project.write("models/layers/b.txt", "")
    again = project.run("--only", "export")
    assert again.ran == ["export"]
    assert "file models/layers/: " in again.out


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
