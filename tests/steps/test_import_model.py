"""Models in ORT format from elsewhere: taken as they are, or refused by name."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, DummyInput, Entrypoint
from onnxbuild.onnxkit.host.made_for import this_machine
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps import ort_format
from onnxbuild.steps.import_model import KIND, ImportParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear

INPUT = DummyInput("x", "float32", ("batch", 4))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """`linear` in ORT format."""
    folder = tmp_path_factory.mktemp("ort")
    save_model(linear(), folder / "model")
    params = ort_format.OrtFormatParams(ort_format.OrtFormatOptions())
    _, context = run_step(ort_format.KIND, params, folder, {"model": folder / "model"})
    return context.output("artifact") / "model.ort"


def imported(file: Path, folder: Path, *others: Path, takes: DummyInput = INPUT) -> Path:
    names = (str(file), *map(str, others))
    params = ImportParams(Entrypoint(FILE_DATA, files=names), "that.ort", (takes,))
    _, context = run_step(KIND, params, folder)
    return context.output("model")


def manifest(folder: Path, made_for: object) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps({"made_for": made_for}))
    return path


def test_it_is_taken_as_it_is(file, tmp_path):
    (made,) = imported(file, tmp_path).iterdir()
    assert (made.name, made.read_bytes()) == ("model.ort", file.read_bytes())
    for made_for in (None, asdict(this_machine())):
        imported(file, tmp_path, manifest(tmp_path, made_for))


def test_one_of_other_inputs_is_refused(file, tmp_path):
    with pytest.raises(StepError) as caught:
        imported(file, tmp_path, takes=replace(INPUT, name="y"))
    assert "that.ort takes x; the recipe feeds y" in caught.value.what


def test_one_that_can_not_run_here_is_refused(file, tmp_path):
    cut = tmp_path / "cut.ort"
    cut.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StepError, match="ONNX Runtime refuses the model") as caught:
        imported(cut, tmp_path)
    assert "or name the .onnx file that it was made of" in caught.value.fix
    other = {**asdict(this_machine()), "machine": "riscv64"}
    with pytest.raises(StepError, match=r"that\.ort can't run here: it was made for riscv64"):
        imported(file, tmp_path, manifest(tmp_path, other))
    with pytest.raises(StepError, match="says nothing that can be followed"):
        imported(file, tmp_path, manifest(tmp_path, 3))
