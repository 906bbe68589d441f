/** What a run gave: a headline, bars for the likeliest classes, a table of all outputs. */

import { distance } from "../golden.js";
import { Judge } from "../judge.js";
import { element, number } from "./parts.js";

const MOST_BARS = 5;
const MOST_VALUES = 8;

/** Show outputs; return a sentence that says the result. */
export function showResult(place, outputs, { config, expected, point }) {
  const parts = [];
  let said = "";
  const label = config.label && outputs[config.label]?.data[0];
  if (label !== undefined && label !== null) {
    parts.push(element("p", { class: "headline" }, label));
    said = label;
  }
  const names = config.ranked && outputs[config.ranked]?.data;
  const scores = config.scores
    ? ((names && ranked(outputs[config.scores], names)) ?? classes(outputs[config.scores], config.labels))
    : null;
  if (scores) {
    if (!said) parts.push(element("p", { class: "headline" }, scores.top[0].name));
    parts.push(bars(scores));
    said = `${said || scores.top[0].name}, ${scores.top[0].text}`;
    if (scores.isSoftmax) parts.push(element("p", { class: "quiet small after" }, `Softmax of '${config.scores}'.`));
  }
  const many = Object.values(outputs)[0]?.shape[0] ?? 1;
  if ((said || scores) && many > 1) {
    parts.push(element("p", { class: "quiet small after" }, `The first of ${many} rows; all are below.`));
  }
  const table = tableOf(outputs);
  parts.push(said ? element("details", {}, element("summary", {}, "All outputs"), table) : table);
  if (expected && point) parts.push(compared(outputs, expected, point));
  place.replaceChildren(...parts);
  return said || `${Object.keys(outputs).length} outputs`;
}

/** Return the likeliest classes of the first row, null where there is no row; a softmax where the row is no distribution. */
function classes({ data, shape }, labels) {
  const count = shape.at(-1);
  const row = Array.from(data.slice(0, count), Number);
  if (!row.length) return null;
  const sum = row.reduce((total, each) => total + each, 0);
  const isSoftmax = Math.abs(sum - 1) > 0.02 || row.some((each) => each < -1e-6);
  const largest = Math.max(...row);
  const powers = isSoftmax ? row.map((each) => Math.exp(each - largest)) : row;
  const whole = isSoftmax ? powers.reduce((total, each) => total + each, 0) : 1;
  const top = powers
    .map((each, at) => ({ share: each / whole, name: labels?.[at] ?? `class ${at}` }))
    .sort((a, b) => b.share - a.share)
    .slice(0, MOST_BARS)
    .map((each) => ({ ...each, text: percent(each.share) }));
  return { top, isSoftmax };
}

/** Return the first row's scores, each with its own class beside it; null where they are not sorted, as top_k sorts them. */
function ranked({ data, shape }, names) {
  const row = Array.from(data.slice(0, shape.at(-1)), Number);
  if (!row.length || !row.every((each, at) => !Number.isNaN(each) && (at === 0 || row[at - 1] >= each))) return null;
  const areShares = row.every((each) => each >= -1e-6 && each <= 1 + 1e-6);
  const top = row.slice(0, MOST_BARS).map((each, at) => ({
    share: areShares || row[0] <= 0 ? each : each / row[0],
    name: typeof names[at] === "string" ? names[at] : `class ${names[at]}`,
    text: areShares ? percent(each) : number(each),
  }));
  return { top, isSoftmax: false };
}

function percent(share) {
  const value = share * 100;
  return `${value >= 99.95 ? 100 : value.toFixed(1)} %`;
}

function bars({ top }) {
  const list = element("ol", { class: "bars", "aria-label": "Likeliest classes" });
  for (const { name, share, text } of top) {
    const fill = element("div", { class: "fill" });
    fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    list.append(
      element("li", {},
        element("div", { class: "row" }, element("span", { class: "name" }, name), element("span", { class: "number" }, text)),
        element("div", { class: "track", "aria-hidden": "true" }, fill),
      ),
    );
  }
  return list;
}

function tableOf(outputs) {
  const head = ["Name", "Type", "Shape"].map((name) => element("th", { scope: "col" }, name));
  const rows = Object.entries(outputs).flatMap(([name, { dtype, data, shape }]) => [
    element("tr", { class: "port" },
      element("th", { scope: "row" }, element("code", {}, name)),
      element("td", {}, dtype),
      element("td", {}, element("code", {}, `[${shape.join(", ")}]`)),
    ),
    element("tr", {}, element("td", { class: "values", colspan: 3 }, values(dtype, data))),
  ]);
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "All outputs" }, table);
}

function values(dtype, data) {
  const first = Array.from(data.slice(0, MOST_VALUES), (each) => (dtype === "string" ? JSON.stringify(each) : number(each)));
  const more = data.length > MOST_VALUES ? ` … ${data.length - MOST_VALUES} more` : "";
  return `${first.join(", ")}${more}`;
}

/** Return a line that says how far the outputs are from the original's. */
function compared(outputs, expected, point) {
  const judge = new Judge();
  let largest = 0;
  const wrong = [];
  for (const { name, bounds } of point.outputs) {
    const fault = judge.fault(name, outputs[name], expected[name], bounds, point.skipped_rows);
    largest = Math.max(largest, distance(outputs[name], expected[name]).largest ?? 0);
    if (fault) wrong.push(`${name}: ${fault}`);
  }
  wrong.push(...judge.pooledFaults());
  if (wrong.length) return element("p", { class: "apart" }, `Beyond the tolerance of what the original gives. ${wrong.join("; ")}.`);
  const apart = largest ? `the largest difference of a number is ${number(largest)}` : "no number differs";
  return element("p", { class: "same" }, `Within the tolerance of what the original gives: ${apart}.`);
}
