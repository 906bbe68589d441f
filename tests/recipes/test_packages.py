"""A model of pictures, one of ids, a ready ONNX and one of texts, in every form of package, each run by its build."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Project
from tests.native import include_folder

RECIPES = Path(__file__).parents[2] / "recipes"
WHICH = {"digits": "int8", "bert": "int8", "vad": "fp32", "intents": "int8-pipeline"}
"""Recipe -> the bundle that is packaged."""

FORMS = ("triton", "mlflow", "oci", "web", "wheel", "node", "cpp")
NEEDS = {"web": "node", "node": "node", "cpp": "c++"}
"""Form -> the program without which its run step is skipped."""

QUICK = "benchmark.max_time_s=0.1"


@pytest.mark.slow
def test_four_kinds_of_models_are_packaged_in_every_form_and_run(tmp_path):
    project = Project(tmp_path / "project", patience_s=600)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(RECIPES, project.folder / "recipes", ignore=ignored)
    project.write("pyproject.toml", "")
    asked = []
    for recipe, bundle in WHICH.items():
        forms = [each for each in FORMS if (recipe, each) != ("intents", "cpp")]  # text, in C++
        options = "".join(f"  {each}: {{}}\n" for each in forms)
        path = project.folder / f"recipes/{recipe}.yaml"
        path.write_text(f"{path.read_text()}\npackages:\n  variants: [{bundle}]\n{options}")
        asked += [f"{bundle}-{each}" for each in forms]
    files = [f"recipes/{name}.yaml" for name in WHICH]
    only = [part for each in dict.fromkeys(asked) for part in ("--only", each)]
    headers = include_folder()
    env = {"ORT_INCLUDE_DIR": str(headers)} if headers else {}
    done = project("run", *files, *only, "--set", QUICK, env=env)
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts/out"
    for recipe, bundle in WHICH.items():
        model = (out / recipe / bundle / "model.onnx").read_bytes()
        for form in FORMS:
            folder = out / recipe / f"{bundle}-{form}"
            if (recipe, form) == ("intents", "cpp"):
                assert not folder.exists()
                continue
            assert (folder / "SHA256SUMS").is_file(), folder
            if form == "wheel":
                assert len(list(folder.glob("*.whl"))) == 1
            else:
                assert any(
                    path.stat().st_size == len(model) and path.read_bytes() == model
                    for path in folder.rglob("*")
                    if path.is_file()
                ), folder
            if form in ("triton", "mlflow"):
                continue  # a server runs them, in tests of their own
            report = json.loads((folder / "run.json").read_text())
            is_here = form not in NEEDS or shutil.which(NEEDS[form]) is not None
            is_here = is_here and (form != "cpp" or headers is not None)
            assert report.get("passed") is True or (not is_here and "skipped" in report), folder
