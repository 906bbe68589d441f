/** Golden points: inputs, and what the original gives for them; and how far an output may be from it. */

import { fromHalf } from "./model.js";

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

const FOLDER = new URL("golden/", import.meta.url);

/** Return the list of points: names, sizes, files. */
export async function listPoints() {
  return JSON.parse(new TextDecoder().decode(await bytesOf("points.json")));
}

/** Return a point's `{inputs, outputs}`, by name: `{dtype, data, shape}`. */
export async function readPoint(point) {
  const [inputs, outputs] = await Promise.all([readAll(point.inputs), readAll(point.outputs)]);
  for (const each of Object.values(outputs)) {
    if (each.dtype === "float16") each.data = fromHalf(each.data);
  }
  return { inputs, outputs };
}

/**
 * Return what is wrong with an output, and how far it is from the original's.
 *
 * A short form of the build's own judgement: equal shapes, no NaN where there was none, and the bounds.
 */
export function judge(expected, found, bounds, skippedRows = []) {
  if (found.shape.join() !== expected.shape.join()) {
    return { passed: false, difference: Infinity, why: `shape [${found.shape.join(", ")}] in place of [${expected.shape.join(", ")}]` };
  }
  const width = expected.data.length / (expected.shape[0] || 1);
  const skipped = new Set(skippedRows);
  const isJudged = (at) => skipped.size === 0 || !skipped.has(Math.floor(at / width));
  const isExact = !expected.dtype.startsWith("float");
  return isExact ? judgeExact(expected, found, bounds, isJudged) : judgeFloats(expected, found, bounds, isJudged);
}

function judgeExact(expected, found, bounds, isJudged) {
  let unequal = 0;
  for (let at = 0; at < expected.data.length; at += 1) {
    if (isJudged(at) && expected.data[at] !== found.data[at]) unequal += 1;
  }
  const share = 1 - unequal / Math.max(1, expected.data.length);
  const passed = bounds.equal_min === null || bounds.equal_min === undefined || share >= bounds.equal_min;
  return { passed, difference: unequal, unequal, elements: expected.data.length, why: passed ? "" : `${unequal} of ${expected.data.length} elements differ` };
}

function judgeFloats(expected, found, bounds, isJudged) {
  let largest = 0, product = 0, ofExpected = 0, ofFound = 0, noise = 0, beyond = 0;
  const isElementwise = typeof bounds.atol === "number" || typeof bounds.rtol === "number";
  for (let at = 0; at < expected.data.length; at += 1) {
    const [a, b] = [Number(found.data[at]), Number(expected.data[at])];
    if (!isJudged(at) || Object.is(a, b) || (Number.isNaN(a) && Number.isNaN(b))) {
      if (isJudged(at) && Number.isFinite(b)) [product, ofExpected, ofFound] = [product + a * b, ofExpected + b * b, ofFound + a * a];
      continue;
    }
    const apart = Math.abs(a - b);
    if (!Number.isFinite(apart)) return { passed: false, difference: Infinity, why: "a NaN or an infinity" };
    largest = Math.max(largest, apart);
    product += a * b;
    ofExpected += b * b;
    ofFound += a * a;
    noise += apart * apart;
    if (isElementwise && apart > (bounds.atol ?? 0) + (bounds.rtol ?? 0) * Math.abs(b)) beyond += 1;
  }
  const cosine = ofExpected && ofFound ? product / Math.sqrt(ofExpected * ofFound) : 1;
  const ratio = noise && ofExpected ? 10 * Math.log10(ofExpected / noise) : Infinity;
  const why = [
    beyond && `${beyond} of ${expected.data.length} elements differ by more than the tolerance`,
    typeof bounds.cosine_min === "number" && cosine < bounds.cosine_min && `a cosine of ${cosine.toFixed(4)}`,
    typeof bounds.sqnr_db_min === "number" && ratio < bounds.sqnr_db_min && `${ratio.toFixed(1)} dB`,
  ].filter(Boolean);
  return { passed: why.length === 0, difference: largest, cosine, why: why.join(", ") };
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
