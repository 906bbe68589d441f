"""The example page's results, by Node, with the few parts of a browser's document that they need."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources

import pytest

from onnxbuild.onnxkit import web
from onnxbuild.onnxkit.packages.typescript import shared_javascript

DOCUMENT = """
const made = () => ({ children: [], style: {}, setAttribute() {}, append(...more) { this.children.push(...more); } });
globalThis.document = { createElement: made };
const { showResult } = await import("./page/results.js");
const place = { replaceChildren() {} };
const of = (data, shape) => ({ scores: { dtype: "float32", data: Float32Array.from(data), shape } });
const said = [of([0.25, 0.75], [1, 2]), of([], [0, 2])].map((outputs) =>
  showResult(place, outputs, { config: { scores: "scores", labels: ["no", "yes"] } }));
console.log(JSON.stringify(said));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_run_of_no_rows_is_shown_too(tmp_path):
    static = resources.files(web).joinpath("static")
    (tmp_path / "page").mkdir()
    for name in ("golden.js", "page/results.js", "page/parts.js"):
        (tmp_path / name).write_text(static.joinpath(name).read_text(encoding="utf-8"))
    for name in ("tensors.js", "judge.js"):
        (tmp_path / name).write_text(shared_javascript(name))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "main.js").write_text(DOCUMENT)
    done = subprocess.run(
        ["node", "main.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["yes, 75.0 %", "1 outputs"]
