"""Outputs under their keys, wherever the module runs."""

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.programs.artifact_file import read_description
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps import export, reference
from tests.fakes.step_context import run_step
from tests.steps.programs import BATCH, MODULES, X, Y, expected, judged, make, outputs_of
from tests.steps.test_torch_formats import FORMS

SWAPPED = ("pooler_output", "last_hidden_state")
BERT = Entrypoint(f"{MODULES}:bert")
IDS = (DummyInput("input_ids", "int64", ("batch", "sequence"), low=0, high=99),)
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 16, 7))


def exported(folder, model, inputs, outputs, axes):
    options = export.ExportOptions(exporter="torchscript")
    params = export.ExportParams(model, inputs, outputs, axes, 18, None, options)
    return run_step(export.KIND, params, folder)


def test_a_stock_bert_gives_its_outputs_under_their_own_names(tmp_path):
    pytest.importorskip("transformers")
    _, context = exported(tmp_path / "export", BERT, IDS, SWAPPED, AXES)
    made = summarize(load_model(context.output("model")))["outputs"]
    assert [(each["name"], each["shape"]) for each in made] == [
        ("pooler_output", ["batch", 16]),
        ("last_hidden_state", ["batch", "sequence", 16]),
    ]
    options = reference.ReferenceOptions()
    params = reference.ReferenceParams(BERT, IDS, SWAPPED, AXES, None, options)
    _, truth = run_step(reference.KIND, params, tmp_path / "reference")
    session = open_session(context.output("model"))
    for point in read_reference(truth.output("reference")):
        assert list(point.outputs) == list(SWAPPED)
        found = session.run(list(SWAPPED), point.feeds)
        for name, array in zip(SWAPPED, found, strict=True):
            np.testing.assert_allclose(array, point.outputs[name], atol=1e-5)


def test_a_wrong_name_is_refused_with_its_own_fix_by_every_step_that_runs_the_module(tmp_path):
    model = Entrypoint(f"{MODULES}:load", {"name": "Nested"})
    options = reference.ReferenceOptions()
    params = reference.ReferenceParams(model, (X,), ("a.1",), (BATCH,), None, options)
    refusals = [
        lambda: run_step(reference.KIND, params, tmp_path / "reference"),
        lambda: exported(tmp_path / "export", model, (X,), ("a.1",), (BATCH,)),
        lambda: make(tmp_path / "trace", "Nested", outputs=("a.1",)),
        lambda: make(tmp_path / "program", "Nested", "torch-export", outputs=("a.1",)),
    ]
    for refuse in refusals:
        with pytest.raises(StepError) as caught:
            refuse()
        assert caught.value.what == (
            "`outputs` names 'a.1', which is no key of what forward returns; its keys are z, a.1.0"
        )
        assert caught.value.fix == "name what is in it: `outputs: [a.1.0]`"


@pytest.mark.parametrize(("kind", "options"), FORMS, ids=str)
def test_programs_give_what_is_declared_by_key(tmp_path, kind, options):
    names = ("b", "y_out", "a")
    _, context = make(tmp_path, "Keyed", kind, inputs=(X, Y), outputs=names, **options)
    assert read_description(context.output("program")).outputs == names
    found, want = outputs_of(context, inputs=(X, Y)), expected("Keyed", inputs=(X, Y))
    assert list(found) == list(names)
    for name, array in found.items():
        np.testing.assert_allclose(array, want[name.removesuffix("_out")].numpy(), rtol=1e-6)
    outcome, _ = judged(tmp_path, "Keyed", context, inputs=(X, Y), names=names)
    assert outcome.findings == ()
