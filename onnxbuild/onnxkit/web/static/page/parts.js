/** Small parts that all panels are made of. */

/** Return a new element with attributes and children; `on...` attributes are listeners. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Return a number in a few digits. */
export function number(value) {
  const plain = Number(value);
  if (!Number.isFinite(plain)) return String(plain);
  if (Number.isInteger(plain) && Math.abs(plain) < 1e9) return String(value);
  const size = Math.abs(plain);
  return size >= 1e6 || size < 1e-3 ? plain.toExponential(1) : String(Number(plain.toPrecision(4)));
}

/** Return milliseconds with their unit. */
export function milliseconds(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)} ms`;
}

/** Return a select of golden inputs with its label. */
export function pointSelect(points, onChoice) {
  const options = points.map((point, at) => element("option", { value: at }, `${at + 1}: ${point.name}`));
  const select = element("select", { id: "point", onchange: () => onChoice(Number(select.value)) }, ...options);
  return { select, field: element("div", { class: "field" }, element("label", { for: "point" }, "Example"), select) };
}

/** Return the size that an axis takes which is nearest to a wanted one; a number is itself. */
export function sizeOf(size, wanted, axes) {
  if (typeof size === "number") return size;
  const axis = axes[size];
  if (!axis) return wanted;
  const least = Math.ceil(Math.max(1, axis.min) / axis.multiple_of) * axis.multiple_of;
  const near = Math.round(wanted / axis.multiple_of) * axis.multiple_of;
  return Math.max(least, Math.min(axis.max, near));
}
