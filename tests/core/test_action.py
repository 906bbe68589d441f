"""What enters a key; expected keys are committed, so that none changes by accident."""

import json
from pathlib import Path

import pytest

from onnxbuild.core.action import (
    KEY_FORMAT,
    NO_FILE,
    Action,
    ActionResult,
    Expense,
    Listing,
    Observed,
)
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.step import Finding

GOLDEN = Path(__file__).parents[1] / "golden" / "keys.json"

EXPORT = Action(
    kind="export",
    version=1,
    params={"opset": 18, "options": {"exporter": "auto"}, "outputs": ["logits"], "bound": 0.5},
    inputs={},
    files={"models/weights.bin": "f" * 64},
    toolchain={"python": "cpython-311", "torch": "torch 2.13.0 abc"},
    host=None,
)
VALIDATE = Action(
    kind="validate",
    version=2,
    params={"variant": "größe", "tolerances": {"atol": 1e-5, "rtol": None}},
    inputs={"model": "a" * 64, "reference": "b" * 64},
    files={},
    toolchain={"onnxruntime": "onnxruntime-gpu 1.31.1 def"},
    host={"cpu": "Fake", "cores": "2"},
)
EMPTY = Action("k", 1, {}, {}, {}, {}, None)
ACTIONS = {"empty": EMPTY, "export": EXPORT, "validate": VALIDATE}


@pytest.mark.parametrize("name", ACTIONS)
def test_keys_are_as_they_always_were(name):
    expected = json.loads(GOLDEN.read_text())
    assert expected["key_format"] == KEY_FORMAT, (
        f"write the new format and its keys to {GOLDEN.name}: {_found()}"
    )
    assert ACTIONS[name].key == expected["keys"][name], (
        "the key of an unchanged action has changed: every store would be built anew. If that is "
        f"meant, raise KEY_FORMAT and write to {GOLDEN.name}: {_found()}"
    )


def _found() -> str:
    return json.dumps({name: action.key for name, action in ACTIONS.items()})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "export2"),
        ("params", {**EXPORT.params, "opset": 17}),
        ("inputs", {"model": "a" * 64}),
        ("files", {"models/other.bin": "f" * 64}),
        ("host", {}),
    ],
)
def test_every_field_counts(field, value):
    fields = {**EXPORT.to_json(), field: value}
    assert Action(**fields).key != EXPORT.key


def test_a_result_reads_back_whole():
    result = ActionResult(
        key="a" * 64,
        observed=Observed(
            {"m.py": "1"},
            {"w.bin": "2", "gone.bin": NO_FILE},
            {".": Listing(("m",), ("m.py",))},
            {"torch": "torch 2"},
        ),
        outputs={"model": Artifact("onnx-model", (("model.onnx", Digest.of(b"x")),))},
        metrics={"n": 1, "x": 0.5, "none": None},
        findings=(Finding("what", "where", "fix"),),
        notes=("a note",),
        expense=Expense(1.5, 1.0, 2),
    )
    again = ActionResult.from_json(json.loads(json.dumps(result.to_json())))
    assert again == result
    assert again.expense == result.expense
