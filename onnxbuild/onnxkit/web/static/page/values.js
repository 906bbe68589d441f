/** Input of any other model: golden examples, whose numbers can be edited. */

import { numbersOf } from "../golden.js";
import { element, pointSelect } from "./parts.js";

const MOST_EDITED = 4096;

/** Fill the panel; `begin` runs the first example. */
export function valuesPanel(place, { signature, points, readPoint, run }) {
  const fields = element("div", { class: "stack" });
  const button = element("button", { type: "button", class: "main", disabled: true }, "Run");
  const chosen = { point: points[0], read: null };
  const edited = new Map();
  const { field } = pointSelect(points, async (at) => {
    await show(at);
    await submit();
  });

  async function show(at) {
    chosen.point = points[at];
    chosen.read = await readPoint(chosen.point);
    edited.clear();
    fields.replaceChildren(...signature.inputs.map((port, number) => fieldOf(port, number)));
  }

  function fieldOf(port, number) {
    const { dtype, shape } = chosen.read.inputs[port.name];
    const data = numbersOf(chosen.read.inputs[port.name]);
    const id = `value-${number}`;
    const label = element("label", { for: id }, element("code", {}, port.name), ` ${dtype} [${shape.join(", ")}]`);
    const isLong = data.length > MOST_EDITED;
    const shown = Array.from(isLong ? data.slice(0, 64) : data);
    const text = element("textarea", { id, class: "values", rows: Math.min(6, 1 + (shown.length >> 3)), readonly: isLong, spellcheck: false });
    text.value = dtype === "string" ? JSON.stringify(shown) : shown.map(String).join(" ");
    text.addEventListener("input", () => edited.set(port.name, text));
    const note = isLong ? element("p", { class: "quiet small" }, `The first of ${data.length} elements; these can't be edited here.`) : "";
    return element("div", { class: "field" }, label, text, note);
  }

  async function submit() {
    const inputs = { ...chosen.read.inputs };
    for (const [name, text] of edited) inputs[name] = { shape: inputs[name].shape, data: parsed(inputs[name].dtype, text.value) };
    const golden = edited.size ? {} : { expected: chosen.read.outputs, point: chosen.point };
    await run(inputs, golden);
  }

  button.addEventListener("click", submit);
  place.replaceChildren(element("div", { class: "stack" }, field, fields, element("div", { class: "row start" }, button)));
  return {
    async begin() {
      await show(0);
      button.disabled = false;
      await submit();
    },
  };
}

/** Return the elements that a text holds; what is none stays text, which the model refuses by name. */
function parsed(dtype, text) {
  if (dtype === "string") {
    try {
      return JSON.parse(text);
    } catch {
      return [text];
    }
  }
  const words = text.split(/[\s,[\]]+/).filter(Boolean);
  if (dtype === "bool") return words.map((word) => ({ true: true, false: false, 1: true, 0: false })[word] ?? word);
  if (dtype === "int64" || dtype === "uint64") return words.map((word) => (/^[+-]?\d+$/.test(word) ? BigInt(word) : word));
  return words.map((word) => (Number.isNaN(Number(word)) && word !== "NaN" ? word : Number(word)));
}
