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


TEXTS = """
const made = () => ({
  children: [], style: {}, setAttribute() {}, addEventListener() {}, querySelectorAll: () => [],
  append(...more) { this.children.push(...more); },
  querySelector() { return this.children[0].children[0]; },
  get textContent() { return this.children[0]; },
});
globalThis.document = { createElement: made };
const { textPanel } = await import("./page/text.js");
const point = (name, data) => ({ name, inputs: { text: { data } }, outputs: { name } });
const points = [point("batch", ["one", "two"]), point("blank", [" "]), point("one", ["one"])];
const runs = [];
const panel = textPanel({ replaceChildren() {} }, {
  config: { input: "text" },
  signature: { inputs: [{ name: "text", shape: ["batch"] }], axes: {} },
  points,
  readPoint: async ({ inputs, outputs }) => ({ inputs, outputs }),
  run: (inputs, { expected, point }) => runs.push([inputs.text.data, expected.name, point.name]),
});
await panel.begin();
console.log(JSON.stringify(runs));
"""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def test_a_run_of_no_rows_is_shown_too(tmp_path):
    assert run(DOCUMENT, tmp_path) == ["yes, 75.0 %", "1 outputs"]


def test_the_first_text_is_compared_with_what_its_own_golden_input_gives(tmp_path):
    assert run(TEXTS, tmp_path) == [[["one"], "one", "one"]]


def run(code, folder):
    """What code next to the page's modules prints, as JSON."""
    static = resources.files(web).joinpath("static")
    (folder / "page").mkdir()
    for name in ("golden.js", "page/results.js", "page/parts.js", "page/text.js"):
        (folder / name).write_text(static.joinpath(name).read_text(encoding="utf-8"))
    for name in ("tensors.js", "judge.js"):
        (folder / name).write_text(shared_javascript(name))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "main.js").write_text(code)
    done = subprocess.run(
        ["node", "main.js"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
