/** Golden points: inputs, and what the original gives for them; in browsers and in Node. */

import { ARRAYS, fromHalf } from "./tensors.js";

const FOLDER = new URL("golden/", import.meta.url);

/** Return the list of points: names, sizes, files, bounds. */
export async function listPoints() {
  return JSON.parse(new TextDecoder().decode(await bytesOf("points.json")));
}

/** Return a point's `{inputs, outputs}`, by name: `{dtype, data, shape}`. */
export async function readPoint(point) {
  const [inputs, outputs] = await Promise.all([readAll(point.inputs), readAll(point.outputs)]);
  return { inputs, outputs };
}

/** Return how far two tensors are apart: `{largest}` of numbers; `{unequal, elements}` of whole numbers and others. */
export function distance(found, expected) {
  const [ours, theirs] = [numbersOf(found), numbersOf(expected)];
  if (expected.dtype.startsWith("float")) {
    return { largest: theirs.reduce((most, each, at) => Math.max(most, Object.is(each, ours[at]) ? 0 : Math.abs(each - ours[at])), 0) };
  }
  return { unequal: theirs.reduce((count, each, at) => count + (each === ours[at] ? 0 : 1), 0), elements: theirs.length };
}

/** Return a tensor's elements; half precision, which files and inputs have as its bits, as numbers. */
export function numbersOf({ dtype, data }) {
  return dtype === "float16" && data instanceof Uint16Array ? fromHalf(data) : data;
}

async function readAll(listed) {
  const read = await Promise.all(listed.map(async (each) => [each.name, await readArray(each)]));
  return Object.fromEntries(read);
}

async function readArray({ dtype, shape, file }) {
  const bytes = await bytesOf(file);
  if (dtype === "string") return { dtype, shape, data: JSON.parse(new TextDecoder().decode(bytes)) };
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return { dtype, shape, data: new ARRAYS[dtype](buffer) };
}

async function bytesOf(file) {
  const url = new URL(file, FOLDER);
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`'golden/${file}' can't be fetched: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}
