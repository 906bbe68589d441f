"""The test that a web package holds, in Node, with a model that fails."""

from __future__ import annotations

import json
import shutil
from importlib import resources

import pytest

from onnxbuild.onnxkit import web
from onnxbuild.onnxkit.packages.package_run import run_own_test
from onnxbuild.onnxkit.packages.typescript import shared_javascript

MODEL = """
export const toHalf = null;
export const load = async () => ({ run: async () => { throw new Error("no memory for a buffer\\nat 0x1"); } });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_model_that_loads_and_fails_at_a_point_says_where_and_why(tmp_path):
    # Node ends what it says of an exception with its own version
    package = tmp_path / "package"
    (package / "golden").mkdir(parents=True)
    static = resources.files(web).joinpath("static")
    for name in ("test.mjs", "golden.js"):
        (package / name).write_text(static.joinpath(name).read_text(encoding="utf-8"))
    for name in ("tensors.js", "judge.js"):
        (package / name).write_text(shared_javascript(name))
    (package / "package.json").write_text('{"type": "module"}')
    (package / "model.js").write_text(MODEL)
    points = [{"name": "min", "inputs": [], "outputs": []}]
    (package / "golden/points.json").write_text(json.dumps(points))
    command = ["node", package / "test.mjs", "--outputs", tmp_path]
    test = run_own_test(command, tmp_path, tmp_path)
    assert test.code == 1
    assert test.said == "min: the model can't be run: no memory for a buffer"
    assert not test.is_complete
