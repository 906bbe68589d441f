/** How far outputs may be from the original's at golden inputs. Written by onnxbuild. */

import { fromHalf } from "./tensors.js";

/** Judges outputs point by point; shares of equal elements are of all points together. */
export class Judge {
  #counts = new Map();

  /**
   * Return what is wrong with an output at one point; empty if nothing is.
   *
   * `found` and `expected` are `{dtype, data, shape}`; `bounds` has atol, rtol, cosine_min, sqnr_db_min, equal_min
   * and apart. Rows (of the first axis) in `skippedRows` are left out.
   */
  fault(name, found, expected, bounds, skippedRows = []) {
    const isHalf = found.dtype === "float16" && expected.dtype.startsWith("float");
    if (found.shape.join() !== expected.shape.join() || (found.dtype !== expected.dtype && !isHalf)) {
      return `${found.dtype} [${found.shape.join(", ")}] in place of ${expected.dtype} [${expected.shape.join(", ")}]`;
    }
    const rows = expected.shape[0] ?? 1;
    const width = rows ? expected.data.length / rows : 0;
    const actual = kept(numbersOf(found), skippedRows, width);
    const wanted = kept(numbersOf(expected), skippedRows, width);
    if (expected.dtype.startsWith("float")) return floatFault(actual, wanted, bounds);
    const count = this.#counts.get(name) ?? { wrong: 0, elements: 0, least: bounds.equal_min };
    count.wrong += differing(actual, wanted, expected.dtype === "bool" ? 0 : bounds.apart);
    count.elements += wanted.length;
    this.#counts.set(name, count);
    return "";
  }

  /** Return what is wrong over all points together: a sentence for each output. */
  pooledFaults() {
    const faults = [];
    for (const [name, { wrong, elements, least }] of this.#counts) {
      const share = elements ? 1 - wrong / elements : 1;
      if (typeof least === "number" && share < least) {
        faults.push(`${name}: ${share.toFixed(4)} of all elements are equal; at least ${least} are wanted`);
      }
    }
    return faults;
  }
}

function numbersOf({ dtype, data }) {
  return dtype === "float16" && data instanceof Uint16Array ? fromHalf(data) : data;
}

function kept(data, skippedRows, width) {
  if (!skippedRows.length) return data;
  const skipped = new Set(skippedRows);
  return data.filter((_, at) => !skipped.has(Math.floor(at / width)));
}

/** Count elements that differ: of numbers those that are more than `apart` from each other. */
function differing(actual, expected, apart) {
  let count = 0;
  for (let at = 0; at < expected.length; at += 1) {
    const [a, b] = [actual[at], expected[at]];
    if (a !== b && (typeof a === "string" || !apart || Number(a > b ? a - b : b - a) > apart)) count += 1;
  }
  return count;
}

/** Return what is wrong with an output of floats. */
function floatFault(actual, expected, bounds) {
  const elementwise = typeof bounds.atol === "number" || typeof bounds.rtol === "number";
  let [beyond, distance, size, largest] = [0, 0, 0, 0];
  for (let at = 0; at < expected.length; at += 1) {
    const [a, b] = [actual[at], expected[at]];
    if (Number.isNaN(a) || isInfinite(a) !== isInfinite(b)) return "NaN, or infinities that the original does not have";
    if (isInfinite(b)) {
      if (a !== b) return "infinities of the other sign";
      continue;
    }
    const apart = Math.abs(a - b);
    if (elementwise && !(apart <= (bounds.atol ?? 0) + (bounds.rtol ?? 0) * Math.abs(b))) beyond += 1;
    distance = Number.isNaN(apart) ? apart : Math.max(distance, apart);
    size = Math.max(size, Math.abs(b));
    largest = Math.max(largest, Math.abs(a));
  }
  if (beyond) return `${beyond} of ${expected.length} elements are too far off, by up to ${distance.toPrecision(3)}`;
  if (distance === 0) return "";
  const scale = Math.max(size, distance); // squares of what is divided by it neither overflow nor vanish
  let [product, ofActual, ofExpected, signal, noise] = [0, 0, 0, 0, 0];
  for (let at = 0; at < expected.length; at += 1) {
    const [a, b] = [actual[at], expected[at]];
    if (isInfinite(b)) continue;
    const [x, y] = [largest ? a / largest : 0, size ? b / size : 0];
    product += x * y;
    ofActual += x * x;
    ofExpected += y * y;
    signal += (b / scale) ** 2;
    noise += ((a - b) / scale) ** 2;
  }
  if (typeof bounds.cosine_min === "number") {
    const cosine = size && largest ? product / Math.sqrt(ofActual * ofExpected) : 0;
    if (!(cosine >= bounds.cosine_min)) return `cosine ${cosine.toFixed(5)}; at least ${bounds.cosine_min} is wanted`;
  }
  if (typeof bounds.sqnr_db_min === "number") {
    if (!size) return `the original is all zeros, this has ${distance.toPrecision(3)}`;
    const ratio = noise ? 10 * Math.log10(signal / noise) : Infinity;
    if (!(ratio >= bounds.sqnr_db_min)) return `signal to noise ${ratio.toFixed(1)} dB; at least ${bounds.sqnr_db_min} is wanted`;
  }
  return "";
}

function isInfinite(number) {
  return number === Infinity || number === -Infinity;
}
