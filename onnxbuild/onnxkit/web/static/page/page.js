/** The example page: load the model, take an input, show the result, the times and the comparison. */

import { distance, listPoints, readPoint } from "../golden.js";
import { Judge } from "../judge.js";
import { load, signature } from "../model.js";
import { imagePanel } from "./image.js";
import { element, milliseconds, number } from "./parts.js";
import { showResult } from "./results.js";
import { textPanel } from "./text.js";
import { valuesPanel } from "./values.js";

const PANELS = { image: imagePanel, text: textPanel, values: valuesPanel };
const FEW_RUNS = 7;
const MANY_RUNS = 20;
const QUIET_MS = 600;
const STAGES = { runtime: "Loading the runtime", model: "Loading the model", start: "Starting the model" };

const config = JSON.parse(document.querySelector("#config").textContent);
const at = (id) => document.querySelector(`#${id}`);
const asked = new URLSearchParams(location.search);
let model = null;
let lastInputs = null;
let isFirst = true;

async function main() {
  followProvider();
  const points = await listPoints();
  const panel = PANELS[config.kind](at("input"), { config, signature, points, readPoint, run });
  model = await load({
    onProgress: showProgress,
    provider: asked.get("provider") ?? "auto",
    threads: Number(asked.get("threads")) || undefined,
  });
  at("loading").hidden = true;
  showLoaded();
  at("check").addEventListener("click", () => busy(at("check"), () => check(points)));
  at("measure").addEventListener("click", () => busy(at("measure"), () => measureAny(points)));
  await panel.begin();
  for (const id of ["check", "measure"]) at(id).disabled = false;
  document.documentElement.dataset.state = "ready";
}

function showProgress({ stage, loaded, total }) {
  at("stage").textContent = STAGES[stage];
  if (stage === "start") {
    at("progress").removeAttribute("value");
    at("bytes").textContent = "";
    return;
  }
  at("progress").value = loaded / total;
  at("bytes").textContent = `${megabytes(loaded)} of ${megabytes(total)} MB`;
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}

function showLoaded() {
  const { provider, threads, timings, notes } = model;
  const many = `${threads} thread${threads === 1 ? "" : "s"}`;
  const name = { webgpu: "WebGPU", "webgpu+wasm": "WebGPU and WebAssembly", wasm: "WebAssembly" }[provider];
  const where = provider === "wasm" ? `${name}, ${many}` : name;
  at("where").textContent = `runs on ${where}`;
  at("ran").textContent = where;
  at("time-load").textContent = milliseconds(timings.load_ms);
  at("notes").replaceChildren(...notes.map((note) => element("li", {}, note)));
}

function followProvider() {
  const select = at("provider");
  if (!select) return;
  select.value = asked.get("provider") ?? "auto";
  select.addEventListener("change", () => {
    asked.set("provider", select.value);
    location.search = asked.toString();
  });
}

/** Run inputs and show what comes out; `expected` and `point` are there for a golden input. */
async function run(inputs, { expected = null, point = null } = {}) {
  if (!model) return;
  at("problem").hidden = true;
  let outputs;
  const begun = performance.now();
  try {
    outputs = await model.run(inputs);
  } catch (error) {
    showProblem(error);
    return;
  }
  const took = performance.now() - begun;
  if (isFirst) at("time-first").textContent = milliseconds(took);
  lastInputs = inputs;
  at("said").textContent = showResult(at("result"), outputs, { config, expected, point });
  if (isFirst) {
    isFirst = false;
    await measure(FEW_RUNS, QUIET_MS);
  }
}

/** Measure runs of the last input; of the first golden one where none has run, as it is too large to be shown. */
async function measureAny(points) {
  if (!lastInputs && points.length) {
    const { inputs, outputs } = await readPoint(points[0]);
    await run(inputs, { expected: outputs, point: points[0] });
  }
  if (lastInputs) await measure(MANY_RUNS, Infinity);
}

async function measure(most, most_ms) {
  const times = [];
  const begun = performance.now();
  while (times.length < most && (times.length === 0 || performance.now() - begun < most_ms)) {
    const start = performance.now();
    await model.run(lastInputs);
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done));
  }
  times.sort((a, b) => a - b);
  const middle = times.length >> 1;
  const median = times.length % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  at("median-name").textContent = `Median of ${times.length}`;
  at("time-median").textContent = milliseconds(median);
}

async function check(points) {
  const judge = new Judge();
  const rows = [];
  let passed = 0;
  let largest = 0;
  for (const [number, point] of points.entries()) {
    at("checked").textContent = `Input ${number + 1} of ${points.length}`;
    const { inputs, outputs } = await readPoint(point);
    const found = await model.run(inputs);
    let isGood = true;
    for (const { name, bounds } of point.outputs) {
      const fault = judge.fault(name, found[name], outputs[name], bounds, point.skipped_rows);
      const apart = distance(found[name], outputs[name]);
      isGood &&= !fault;
      largest = Math.max(largest, apart.largest ?? 0);
      rows.push(row(point.name, name, apart, fault));
    }
    passed += isGood ? 1 : 0;
    await new Promise((done) => setTimeout(done));
  }
  at("rows").querySelector("tbody").replaceChildren(...rows);
  at("rows").hidden = false;
  const pooled = judge.pooledFaults();
  at("checked").className = passed === points.length && !pooled.length ? "same" : "apart";
  at("checked").textContent = [
    `${passed} of ${points.length} inputs are within the tolerance. Largest difference of a number: ${number(largest)}.`,
    ...pooled.map((fault) => `${fault}.`),
  ].join(" ");
}

function row(point, output, { largest, unequal, elements }, fault) {
  const apart = largest === undefined ? `${unequal} of ${elements} unequal` : number(largest);
  return element("tr", {}, element("th", { scope: "row" }, point), element("td", {}, output), element("td", {}, apart), element("td", {}, fault || "within"));
}

async function busy(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    showProblem(error);
  } finally {
    button.disabled = false;
  }
}

function showProblem(error) {
  at("problem").textContent = error.message ?? String(error);
  at("problem").hidden = false;
}

main().catch((error) => {
  at("loading").hidden = true;
  at("where").textContent = "not loaded";
  document.documentElement.dataset.state = "failed";
  showProblem(error);
});
