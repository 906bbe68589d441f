"""The example page's sizes and results, by Node, with the few parts of a browser's document that they need."""

import json
import shutil
import subprocess
from importlib import resources

import pytest

from onnxbuild.onnxkit import web
from onnxbuild.onnxkit.packages.typescript import shared_javascript

RANKED = """
const bars = [];
const made = () => ({
  style: {}, setAttribute() {},
  append(...more) { bars.push(...more.filter((each) => typeof each === "string" && each)); },
});
globalThis.document = { createElement: made };
const { showResult } = await import("./page/results.js");
const config = { scores: "scores", labels: null, label: NAMES === "label" ? "label" : null, ranked: NAMES };
const outputs = {
  scores: { dtype: "float32", data: Float32Array.from(SCORES), shape: [2, 3] },
  label: { dtype: "string", data: ["eel", "cat", "dog", "cat", "dog", "eel"], shape: [2, 3] },
  class_id: { dtype: "int64", data: BigInt64Array.of(2n, 0n, 1n, 0n, 1n, 2n), shape: [2, 3] },
};
const said = showResult({ replaceChildren() {} }, outputs, { config });
console.log(JSON.stringify([said, bars.slice(0, 8)]));
"""


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def shown(tmp_path, script):
    """What code next to the page's modules prints, as JSON."""
    static = resources.files(web).joinpath("static")
    (tmp_path / "page").mkdir()
    names = ("image.js", "parts.js", "results.js", "text.js", "values.js")
    for name in ("golden.js", *(f"page/{each}" for each in names)):
        (tmp_path / name).write_text(static.joinpath(name).read_text(encoding="utf-8"))
    for name in ("tensors.js", "judge.js"):
        (tmp_path / name).write_text(shared_javascript(name))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "main.js").write_text(script)
    done = subprocess.run(
        ["node", "main.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
@pytest.mark.parametrize(
    ("names", "scores", "said", "bars"),
    [
        ("label", [0.5, 0.25, 0.125], "eel, 50.0 %",
         ["eel", "50.0 %", "cat", "25.0 %", "dog", "12.5 %"]),
        ("class_id", [0.25, 0.5, 0.25], "class 1, 50.0 %", ["class 1", "50.0 %"]),
    ],
)  # fmt: skip
def test_sorted_scores_are_shown_with_the_classes_that_stand_beside_them(
    tmp_path, names, scores, said, bars
):
    script = RANKED.replace("NAMES", json.dumps(names))
    script = script.replace("SCORES", json.dumps([*scores, 0, 0, 0]))
    found, texts = shown(tmp_path, script)
    assert found == said
    start = next(n for n, text in enumerate(texts) if text == bars[1]) - 1
    assert texts[start : start + len(bars)] == bars


PICTURES = """
const drawn = [];
globalThis.ImageData = class {
  constructor(width, height) { Object.assign(this, { width, height, data: new Uint8ClampedArray(width * height * 4) }); }
};
const pen = new Proxy({}, {
  get: (_, name) => (name === "putImageData" ? (pixels) => drawn.push(pixels.data) : () => new ImageData(1, 1)),
  set: () => true,
});
const made = (tag) => ({
  tag, children: [], style: {}, setAttribute() {}, addEventListener() {}, querySelectorAll: () => [],
  classList: { add() {}, remove() {}, toggle() {} }, getContext: () => pen,
  append(...more) { this.children.push(...more); }, replaceChildren() {},
  get childElementCount() { return this.children.length; },
});
globalThis.document = { createElement: made, addEventListener() {} };
const { imagePanel } = await import("./page/image.js");
const { toHalf } = await import("./tensors.js");
const numbers = new Float32Array(3 * SIDE * SIDE).fill(0.5);
numbers.set([-2, 2]);
const tensor = { dtype: DTYPE, data: DTYPE === "float16" ? toHalf(numbers) : numbers, shape: [1, 3, SIDE, SIDE] };
const runs = [];
const panel = imagePanel({ replaceChildren() {} }, {
  config: { input: "image", image: { layout: "nchw", channels: 3, height: SIDE, width: SIDE, whole: false, draws: false, range: null, scale: "unit" } },
  signature: { inputs: [{ name: "image", shape: ["batch", 3, SIDE, SIDE] }], axes: {} },
  points: [{ name: "example" }],
  readPoint: async () => ({ inputs: { image: tensor }, outputs: {} }),
  run: (inputs) => runs.push(inputs.image.shape),
});
await panel.begin();
console.log(JSON.stringify([runs, [...drawn[0].slice(0, 9)].filter((_, at) => at % 4 === 0)]));
"""


@needs_node
def test_an_example_picture_of_any_size_and_type_is_shown_from_its_least_to_its_greatest_number(
    tmp_path,
):
    script = PICTURES.replace("SIDE", "224").replace("DTYPE", '"float32"')
    assert shown(tmp_path, script) == [[[1, 3, 224, 224]], [0, 255, 159]]


VALUES = """
const made = (tag) => ({
  tag, children: [], listeners: {}, style: {}, setAttribute() {},
  addEventListener(name, listener) { this.listeners[name] = listener; },
  append(...more) { this.children.push(...more); }, replaceChildren(...more) { this.children = more; },
});
globalThis.document = { createElement: made };
const { valuesPanel } = await import("./page/values.js");
const { checkInputs, toHalf } = await import("./tensors.js");
const signature = { inputs: [{ name: "x", dtype: "float16", shape: ["n"] }], axes: {} };
const place = made("div");
const runs = [];
const panel = valuesPanel(place, {
  signature,
  points: [{ name: "example" }],
  readPoint: async () => ({ inputs: { x: { dtype: "float16", data: toHalf([1.5, -2]), shape: [2] } }, outputs: {} }),
  run: (inputs) => runs.push([...checkInputs(inputs, signature).x.data]),
});
await panel.begin();
const [, fields, row] = place.children[0].children;
const text = fields.children[0].children[1];
const first = text.value;
text.value = "0.5 4";
text.listeners.input();
await row.children[0].listeners.click();
console.log(JSON.stringify([first, runs, [...toHalf([0.5, 4])]]));
"""


@needs_node
def test_numbers_of_half_precision_are_shown_and_edited_as_numbers(tmp_path):
    first, (golden, edited), wanted = shown(tmp_path, VALUES)
    assert first == "1.5 -2"
    assert golden == [0x3E00, 0xC000]
    assert edited == wanted


SIDES = """
const { sidesOf } = await import("./page/image.js");
const axes = { h: { min: 1, max: 1024, multiple_of: 1 }, w: { min: 1, max: 1024, multiple_of: 1 }, n: { min: 32, max: 640, multiple_of: 32 } };
console.log(JSON.stringify(PICTURES.map(([width, height, image]) => sidesOf({ width, height }, image, axes))));
"""


@needs_node
def test_a_large_picture_keeps_its_proportions_where_the_model_takes_any(tmp_path):
    free, fixed, square = (
        {"width": w, "height": h} for w, h in (("w", "h"), (224, 224), ("n", "n"))
    )
    asked = [
        ((4000, 3000, free), [1024, 768]), ((3000, 4000, free), [768, 1024]), ((640, 480, free), [640, 480]),
        ((5000, 1, free), [1024, 1]), ((4000, 3000, fixed), [224, 224]), ((640, 480, square), [480, 480]),
        ((640, 480, {"width": "w", "height": 100}), [640, 100]),
    ]  # fmt: skip
    script = SIDES.replace("PICTURES", json.dumps([given for given, _ in asked]))
    assert shown(tmp_path, script) == [wanted for _, wanted in asked]
