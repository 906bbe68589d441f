/** Input of a model that takes a picture: drop or choose one, draw one, or take an example. */

import { numbersOf } from "../golden.js";
import { element, sizeOf } from "./parts.js";

const STAGE = 320;
const MOST_THUMBS = 10;
const MOST_THUMB_BYTES = 1 << 20;
const SCALES = {
  unit: ["0 to 1", (value) => value / 255],
  signed: ["−1 to 1", (value) => value / 127.5 - 1],
  byte: ["0 to 255", (value) => value],
  imagenet: ["ImageNet's mean and deviation", (value, channel) => (value / 255 - [0.485, 0.456, 0.406][channel]) / [0.229, 0.224, 0.225][channel]],
};

/** Fill the panel; `begin` runs the first example. */
export function imagePanel(place, { config, signature, points, readPoint, run }) {
  const { image } = config;
  const port = signature.inputs.find((each) => each.name === config.input);
  const stage = element("canvas", { width: STAGE, height: STAGE, role: "img", "aria-label": "The picture" });
  const pen = stage.getContext("2d", { willReadFrequently: true });
  const hint = element("p", { class: "hint" }, image.draws ? "Draw here, or drop a picture" : "Drop a picture here");
  const box = element("div", { class: image.draws ? "stage draws" : "stage" }, stage, hint);
  const file = element("input", { type: "file", accept: "image/*", id: "file", class: "visually-hidden" });
  const clear = element("button", { type: "button", hidden: !image.draws }, "Clear");
  const seen = element("canvas", { width: 1, height: 1, "aria-hidden": "true" });
  const seenText = element("span");
  const thumbs = element("ul", { class: "thumbs", "aria-label": "Examples" });
  const scale = element("select", { id: "scale" }, ...scalesFor(image).map(([key, [name]]) => element("option", { value: key }, name)));
  const inverted = element("input", { type: "checkbox", id: "inverted" });
  const settings = element("div", { class: "row start", hidden: image.whole },
    element("label", { class: "inline", for: "scale" }, "Pixels become", scale),
    element("label", { class: "inline", for: "inverted" }, inverted, "inverted"),
  );
  scale.value = image.scale in SCALES ? image.scale : "unit";
  place.replaceChildren(
    element("div", { class: "stack" },
      box,
      element("div", { class: "row start" }, element("label", { class: "button", for: "file" }, "Choose a picture", file), clear),
      element("div", { class: "seen" }, seen, seenText),
      settings,
      element("div", { class: "stack", hidden: points.length === 0 }, element("p", { class: "legend" }, "Examples, with what the original gives for them"), thumbs),
    ),
  );

  let source = null;
  const again = () => (source ? submit(source) : undefined);
  for (const each of [scale, inverted]) each.addEventListener("change", again);

  async function take(blob) {
    const bitmap = await createImageBitmap(blob).catch(() => null);
    hint.hidden = Boolean(bitmap);
    if (!bitmap) {
      hint.textContent = "This file is no picture that the browser can read.";
      return;
    }
    show(bitmap, bitmap.width, bitmap.height);
    press(null);
    await submit(bitmap);
  }

  function show(picture, width, height) {
    const ratio = Math.min(STAGE / width, STAGE / height);
    const [w, h] = [width * ratio, height * ratio];
    pen.clearRect(0, 0, STAGE, STAGE);
    pen.imageSmoothingEnabled = ratio < 1;
    pen.drawImage(picture, (STAGE - w) / 2, (STAGE - h) / 2, w, h);
    box.classList.toggle("coarse", ratio > 4);
    hint.hidden = true;
  }

  async function submit(picture) {
    source = picture;
    const pixels = pixelsOf(picture, image, signature.axes);
    showSeen(pixels);
    await run({ [port.name]: tensorOf(pixels, port, image, signature.axes, SCALES[scale.value][1], inverted.checked) });
  }

  function showSeen(pixels) {
    Object.assign(seen, { width: pixels.width, height: pixels.height });
    seen.getContext("2d").putImageData(image.channels === 1 ? grey(pixels) : pixels, 0, 0);
    seenText.textContent = `What the model sees: ${pixels.width} × ${pixels.height}${image.channels === 1 ? ", grey" : ""}`;
  }

  const press = (chosen) => {
    for (const each of thumbs.querySelectorAll("button")) each.setAttribute("aria-pressed", each === chosen);
  };
  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  for (const name of ["dragenter", "dragover"]) box.addEventListener(name, (event) => { event.preventDefault(); box.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) box.addEventListener(name, () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    const [dropped] = event.dataTransfer.files;
    if (dropped) take(dropped);
  });
  document.addEventListener("paste", (event) => {
    const [pasted] = event.clipboardData?.files ?? [];
    if (pasted) take(pasted);
  });
  if (image.draws) letDraw(stage, pen, { begin: () => { hint.hidden = true; press(null); box.classList.remove("coarse"); }, end: () => submit(stage) });
  clear.addEventListener("click", () => {
    pen.fillStyle = "#000";
    pen.fillRect(0, 0, STAGE, STAGE);
    source = null;
    hint.hidden = false;
  });

  /** Return the function that shows the first. */
  async function addThumbs() {
    let first = null;
    for (const point of points) {
      if (thumbs.childElementCount === MOST_THUMBS) break;
      const read = await readPoint(point);
      const tensor = read.inputs[port.name];
      if (tensor.data.byteLength > MOST_THUMB_BYTES || tensor.shape[0] !== 1) continue;
      const picture = canvasOf(tensor, image);
      const thumb = element("canvas", { width: picture.width, height: picture.height });
      thumb.getContext("2d").drawImage(picture, 0, 0);
      const button = element("button", { type: "button", "aria-pressed": "false", "aria-label": `Example ${thumbs.childElementCount + 1}` }, thumb);
      const choose = () => {
        press(button);
        show(picture, picture.width, picture.height);
        showSeen(picture.getContext("2d").getImageData(0, 0, picture.width, picture.height));
        source = null;
        return run(read.inputs, { expected: read.outputs, point });
      };
      button.addEventListener("click", choose);
      thumbs.append(element("li", {}, button));
      first ??= choose;
    }
    return first;
  }

  return {
    async begin() {
      if (image.draws) clear.click();
      const showFirst = await addThumbs();
      await showFirst?.();
    },
  };
}

function scalesFor(image) {
  return Object.entries(SCALES).filter(([key]) => key !== "imagenet" || image.channels === 3);
}

/** Return [width, height] that the model takes of a picture: its proportions where both sides are axes of their own. */
export function sidesOf(picture, image, axes) {
  const { width, height } = image;
  if (width === height) {
    const side = sizeOf(width, Math.min(picture.width, picture.height), axes);
    return [side, side];
  }
  const isFree = typeof width === "string" && typeof height === "string";
  const most = (size) => axes[size]?.max ?? Infinity;
  const ratio = isFree ? Math.min(1, most(width) / picture.width, most(height) / picture.height) : 1;
  return [sizeOf(width, Math.round(picture.width * ratio), axes), sizeOf(height, Math.round(picture.height * ratio), axes)];
}

/** Return the picture's pixels in the size that the model takes: scaled to cover it, what is beyond it cut. */
function pixelsOf(picture, image, axes) {
  const [width, height] = sidesOf(picture, image, axes);
  const canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  const ratio = Math.max(width / picture.width, height / picture.height);
  const [w, h] = [picture.width * ratio, picture.height * ratio];
  pen.drawImage(picture, (width - w) / 2, (height - h) / 2, w, h);
  return pen.getImageData(0, 0, width, height);
}

function grey(pixels) {
  const copy = new ImageData(new Uint8ClampedArray(pixels.data), pixels.width, pixels.height);
  for (let at = 0; at < copy.data.length; at += 4) copy.data.fill(luma(copy.data, at), at, at + 3);
  return copy;
}

function luma(data, at) {
  return Math.round(0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]);
}

function tensorOf({ data, width, height }, port, image, axes, scaled, isInverted) {
  const { channels, layout } = image;
  const area = width * height;
  const one = image.whole ? new Uint8Array(area * channels) : new Float32Array(area * channels);
  for (let pixel = 0; pixel < area; pixel += 1) {
    for (let channel = 0; channel < channels; channel += 1) {
      const read = channels === 1 ? luma(data, pixel * 4) : data[pixel * 4 + channel];
      const value = isInverted ? 255 - read : read;
      one[layout === "nchw" ? channel * area + pixel : pixel * channels + channel] = image.whole ? value : scaled(value, channel);
    }
  }
  const batch = sizeOf(port.shape[0], 1, axes);
  const all = new one.constructor(one.length * batch);
  for (let row = 0; row < batch; row += 1) all.set(one, row * one.length);
  const numbers = ["float32", "float16", "uint8"].includes(port.dtype) ? all : Array.from(all);
  return { data: numbers, shape: layout === "nchw" ? [batch, channels, height, width] : [batch, height, width, channels] };
}

/** Return a canvas with the first picture of a golden input. */
function canvasOf(tensor, image) {
  const { shape } = tensor;
  const [height, width] = image.layout === "nchw" ? shape.slice(2) : shape.slice(1, 3);
  const area = width * height;
  const one = Array.from(numbersOf(tensor).slice(0, area * image.channels), Number);
  const [low, high] = image.whole ? [0, 255] : (image.range ?? rangeOf(one));
  const pixels = new ImageData(width, height);
  for (let pixel = 0; pixel < area; pixel += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const from = Math.min(channel, image.channels - 1);
      const value = one[image.layout === "nchw" ? from * area + pixel : pixel * image.channels + from];
      pixels.data[pixel * 4 + channel] = (255 * (value - low)) / (high - low || 1);
    }
    pixels.data[pixel * 4 + 3] = 255;
  }
  const canvas = element("canvas", { width, height });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

/** Return the least and the greatest number; a picture has too many to be arguments of Math.min. */
function rangeOf(numbers) {
  return numbers.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [Infinity, -Infinity]);
}

/** White strokes on black, as handwritten digits are. */
function letDraw(stage, pen, { begin, end }) {
  let last = null;
  const place = (event) => {
    const { left, top, width, height } = stage.getBoundingClientRect();
    return [((event.clientX - left) * STAGE) / width, ((event.clientY - top) * STAGE) / height];
  };
  const stroke = (to) => {
    Object.assign(pen, { lineWidth: STAGE / 9, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
    pen.beginPath();
    pen.moveTo(...last);
    pen.lineTo(...to);
    pen.stroke();
    last = to;
  };
  stage.addEventListener("pointerdown", (event) => {
    stage.setPointerCapture(event.pointerId);
    begin();
    last = place(event);
    stroke(last);
  });
  stage.addEventListener("pointermove", (event) => last && stroke(place(event)));
  for (const name of ["pointerup", "pointercancel"]) {
    stage.addEventListener(name, () => {
      if (last) end();
      last = null;
    });
  }
}
