"""A pipeline in a release: run again on its raw inputs, and a tampered one found."""

import json

import pytest

from tests.cli.conftest import QUICK, RECIPE, make_project
from tests.verification.conftest import give_keys, key_of, look_at, release, release_of

pytestmark = pytest.mark.slow

PROCESSING = """\
processing:
  postprocess:
    - softmax: {}
    - argmax: {}
    - labels: {file: labels.txt}
  outputs: [label, probabilities]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("pipelines") / "project")
    made.write("tiny.yaml", f"{RECIPE}{QUICK}{PROCESSING}")
    made.write("labels.txt", "no\nyes\n")
    give_keys(made)
    locked = made("lock", "tiny.yaml")
    assert locked.code == 0, locked.out + locked.err
    release(made)
    return made


def test_a_release_holds_a_pipeline_and_runs_it_on_its_golden_inputs(project):
    folder = release_of(project)
    about = json.loads((folder / "release.json").read_text())
    assert sorted(about["variants"]) == ["fp32", "fp32-pipeline"]
    assert about["variants"]["fp32-pipeline"]["golden"] == "golden-fp32-pipeline"
    bundle = folder / "variants/fp32-pipeline"
    gates = json.loads((bundle / "gates.json").read_text())
    assert gates["processing"]["held_against"].startswith("each operation's reference")
    verified = look_at(folder, *key_of(project), "--run")
    assert verified.code == 0, verified.out + verified.err
    assert "fp32-pipeline on cpu: " in verified.out
    assert "least share of equal elements 1.0000" in verified.out
