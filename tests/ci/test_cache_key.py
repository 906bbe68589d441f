"""Which files the key of a CI's cache is made of."""

from pathlib import Path

from onnxbuild.building.request import Request
from onnxbuild.ci.cache_key import cache_key
from tests.cli.conftest import make_cheap_project

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plugins.md"


def test_code_counts_whether_a_recipe_names_its_file_or_its_module(tmp_path, monkeypatch):
    project = make_cheap_project(tmp_path / "project")
    monkeypatch.chdir(project.folder)
    by_file = cache_key(Request((Path("tiny.yaml"),)))
    project.edit("tiny.yaml", "models/tiny.py:load", "models.tiny:load")
    by_module = cache_key(Request((Path("tiny.yaml"),)))
    assert "models/tiny.py" in by_file["files"]
    assert by_module["files"] == by_file["files"]
    project.edit("models/tiny.py", "width=8", "width=9")
    assert cache_key(Request((Path("tiny.yaml"),)))["key"] != by_module["key"]


def test_code_outside_of_the_project_counts(tmp_path, monkeypatch):
    project = make_cheap_project(tmp_path / "project")
    project.write("pyproject.toml", "")
    monkeypatch.chdir(project.folder)
    Path("models").rename("../models")
    text = Path("tiny.yaml").read_text()
    project.write("tiny.yaml", text.replace("models/", "../models/"))
    before = cache_key(Request((Path("tiny.yaml"),)))
    assert "../models/tiny.py" in before["files"]


def test_plug_ins_and_lists_of_environments_count(tmp_path, monkeypatch):
    project = make_cheap_project(tmp_path / "project")
    monkeypatch.chdir(project.folder)
    project.write("pyproject.toml", '[tool.onnxbuild]\nplugins = ["tools/added.py"]\n')
    project.write("tools/added.py", PAGE.read_text().split("```python\n")[1].partition("```")[0])
    project.write("lists/other.txt", "onnxruntime==1.0\n")
    target = "{provider: cpu, environment: {requirements: lists/other.txt}}"
    project.edit(
        "tiny.yaml", "quantization", f"providers: {{cpu: {{}}, other: {target}}}\nquantization"
    )
    found = cache_key(Request((Path("tiny.yaml"),)))["files"]
    assert {"tools/added.py", "lists/other.txt"} <= {*found}


def test_a_recipe_whose_model_or_labels_are_a_file_has_a_key_of_that_file(monkeypatch):
    name = "wine"
    monkeypatch.chdir(ROOT)
    files = {
        "wine": "recipes/weights/wine.txt",
        "digits_pipeline": "recipes/models/digits_labels.txt",
        "digits_exported": "recipes/weights/digits.pt2",
    }
    assert files[name] in cache_key(Request((Path(f"recipes/{name}.yaml"),)))["files"]


def test_dummy_data_has_no_code(tmp_path, monkeypatch):
    project = make_cheap_project(tmp_path / "project")
    monkeypatch.chdir(project.folder)
    before = cache_key(Request((Path("tiny.yaml"),)))
    project.write("tiny.yaml", Path("tiny.yaml").read_text() + "calibration: {data: dummy}\n")
    project.edit("tiny.yaml", "fp32: none", "fp32: none, int8: static")
    assert cache_key(Request((Path("tiny.yaml"),)))["files"] == before["files"]
