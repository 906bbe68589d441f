/** Input of a model that takes text. */

import { element, sizeOf } from "./parts.js";

const MOST_EXAMPLES = 6;
const LONGEST = 70;

/** Fill the panel; `begin` shows the first example's result. */
export function textPanel(place, { config, signature, points, readPoint, run }) {
  const port = signature.inputs.find((each) => each.name === config.input);
  const box = element("textarea", { id: "text", rows: 4, spellcheck: false });
  const chips = element("ul", { class: "chips", "aria-label": "Examples" });
  const button = element("button", { type: "button", class: "main", disabled: true }, "Run");
  place.replaceChildren(
    element("div", { class: "stack" },
      element("div", { class: "field" }, element("label", { for: "text" }, "Type a text"), box),
      element("div", { class: "row start" }, button, element("span", { class: "quiet small" }, "or Ctrl + Enter")),
      element("div", { class: "stack", hidden: points.length === 0 }, element("p", { class: "legend" }, "Examples"), chips),
    ),
  );

  const submit = () => {
    press(null);
    const shape = port.shape.map((size) => sizeOf(size, 1, signature.axes));
    const count = shape.reduce((product, size) => product * size, 1);
    return run({ [port.name]: { data: new Array(count).fill(box.value), shape } });
  };
  const press = (chosen) => {
    for (const each of chips.querySelectorAll("button")) each.setAttribute("aria-pressed", each === chosen);
  };
  button.addEventListener("click", submit);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  });

  const examples = async () => {
    const seen = new Set();
    let first = null;
    for (const point of points) {
      if (seen.size === MOST_EXAMPLES) break;
      const { inputs, outputs } = await readPoint(point);
      const text = inputs[port.name].data[0] ?? "";
      if (!text.trim() || text.length > LONGEST || inputs[port.name].data.length > 1 || seen.has(text)) continue;
      seen.add(text);
      const chip = element("button", { type: "button", "aria-pressed": "false" }, text);
      const show = () => {
        box.value = text;
        press(chip);
        return run(inputs, { expected: outputs, point });
      };
      chip.addEventListener("click", show);
      chips.append(element("li", {}, chip));
      first ??= show;
    }
    return first;
  };

  return {
    async begin() {
      const first = await examples();
      button.disabled = false;
      if (first) await first();
    },
  };
}
