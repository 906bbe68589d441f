"""Words of a diagnosis where nothing could be compared, or hardly anything was tried."""

from types import SimpleNamespace

import numpy as np
from onnx import helper

from onnxbuild.core.target import CPU_TARGET
from onnxbuild.diagnosis.advice import advice, trial_line
from onnxbuild.diagnosis.chain import Chain
from onnxbuild.diagnosis.diagnose import Diagnosis
from onnxbuild.diagnosis.measurements import Stage
from onnxbuild.diagnosis.remedies import Remedy
from onnxbuild.diagnosis.trials import RemedyTrial
from onnxbuild.onnxkit.accuracy.node_trace import stage_error
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.terminal.diagnosis_output import diagnosis_document, show_stages
from tests.onnxkit import models


def diagnosed(folder, x, expected, **about):
    """The diagnosis of a model y = log(x) whose reference gave `expected`."""
    made = models.model(
        [helper.make_node("Log", ["x"], ["y"])],
        [models.value("x", ["n"])],
        [models.value("y", ["n"])],
    )
    save_model(made, folder / "model")
    (folder / "reference").mkdir()
    writer = ReferenceWriter(folder / "reference")
    writer.add(ReferencePoint("example", {}, {"x": np.float32(x)}, {"y": np.float32(expected)}))
    writer.finish()
    error = stage_error(None, folder / "model", folder / "reference")
    stages = (
        Stage("r:import", "import", "reference", error, 1.0),
        Stage("r:v", "", "", error, 1.0),
    )
    chain = Chain("r", "v", (SimpleNamespace(kind="import"),), (), "", "", CPU_TARGET)
    return Diagnosis(None, None, "", chain, (("r:v/validate", "bad"),), stages, **about)


def test_what_was_not_compared_has_no_figures(tmp_path, capsys):
    found = diagnosed(tmp_path, [-1, -2], [0, 1], fault=None)
    stage = diagnosis_document(found, 20.0)["stages"][-1]
    assert (stage["max_abs"], stage["cosine_min"], stage["sqnr"]) == (None, None, "lost")
    show_stages(found)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("whole")]
    assert row.split()[-4:] == ["-", "-", "lost", "100%"]


def test_a_gate_that_compared_nothing_has_its_own_fix_shown(tmp_path, capsys):
    found = diagnosed(tmp_path, [], [], fault=None, fixes=("feed something",))
    show_stages(found)
    assert "no element at any point" in capsys.readouterr().out
    assert advice(found) == ["fix of the gate that fails: feed something"]


def test_the_score_stands_next_to_each_remedy():
    remedy = Remedy("1 node in fp32", {}, ())
    assert trial_line(RemedyTrial(remedy, True, "", 0.98, score=0.9889)) == (
        "try     1 node in fp32, least cosine 0.980000, score 0.9889: passes"
    )
