/**
 * Tensors of a model's inputs and outputs: what is passed is checked against the signature before ONNX Runtime
 * gets it. Written by onnxbuild.
 */

/** Array of each dtype; half precision as its bits. */
export const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};
const WHOLE = {
  int8: [-128, 127], int16: [-32768, 32767], int32: [-2147483648, 2147483647],
  uint8: [0, 255], uint16: [0, 65535], uint32: [0, 4294967295],
};

/** An input that the model does not take; `input` is its name. */
export class InputError extends Error {
  constructor(input, message) {
    super(input ? `input '${input}' ${message}` : message);
    this.name = "InputError";
    this.input = input;
  }
}

/**
 * Return inputs as the runtime takes them: name -> `{dtype, data, shape}`.
 *
 * The signature has `inputs` and `axes`, as in manifest.json. Throws InputError.
 * An array without a shape gets one where at most one of its axes is open.
 */
export function checkInputs(inputs, signature) {
  if (inputs === null || typeof inputs !== "object" || Array.isArray(inputs)) {
    throw new InputError("", `run() takes an object of inputs by name: ${names(signature.inputs)}`);
  }
  for (const name of Object.keys(inputs)) {
    if (!signature.inputs.some((port) => port.name === name)) {
      throw new InputError(name, `is none of this model's: ${names(signature.inputs)}`);
    }
  }
  const sizes = Object.create(null); // an axis may be called `constructor`
  const found = Object.create(null);
  const open = [];
  for (const port of signature.inputs) {
    const value = inputs[port.name];
    if (value === undefined || value === null) throw new InputError(port.name, `is missing: ${described(port)}`);
    const { data, shape } = read(port, value);
    found[port.name] = { dtype: port.dtype, data, shape };
    if (shape) bind(port, shape, sizes);
    else open.push(port);
  }
  for (const port of open) {
    const { data } = found[port.name];
    const shape = inferred(port, data.length, sizes);
    found[port.name].shape = shape;
    bind(port, shape, sizes);
  }
  for (const port of signature.inputs) checkShape(port, found[port.name], sizes, signature.axes);
  return found;
}

/** Return bits of IEEE half precision as numbers, each exactly. */
export function fromHalf(bits) {
  return Float32Array.from(bits, (half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
  });
}

/** Return numbers as bits of IEEE half precision, rounded to the nearest, ties to even. */
export function toHalf(numbers) {
  return Uint16Array.from(numbers, (number) => {
    const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0;
    const size = Math.abs(number);
    if (Number.isNaN(number)) return 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 2 ** -14) return sign | evened(size * 2 ** 24);
    const exponent = Math.min(15, Math.floor(Math.log2(size)));
    const low = 2 ** exponent > size ? exponent - 1 : exponent;
    return sign | (((low + 15) << 10) + evened((size / 2 ** low - 1) * 1024));
  });
}

function evened(number) {
  const floor = Math.floor(number);
  const rest = number - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2) ? floor + 1 : floor;
}

function names(ports) {
  return ports.map((port) => `'${port.name}'`).join(", ");
}

function described(port) {
  const array = port.dtype === "string" ? "strings" : (ARRAYS[port.dtype]?.name ?? "numbers");
  const shape = port.shape ? `of shape [${port.shape.join(", ")}]` : "of any shape";
  return `the model takes ${port.dtype} (${port.dtype === "float16" ? "Float32Array, rounded" : array}) ${shape}`;
}

/** Return data in the array that its dtype has, and the shape where the value says it. */
function read(port, value) {
  if (typeof value === "object" && !Array.isArray(value) && !ArrayBuffer.isView(value)) {
    if (value.data === undefined || !Array.isArray(value.shape ?? value.dims)) {
      throw new InputError(port.name, `is an object without data and shape: ${described(port)}`);
    }
    const shape = [...(value.shape ?? value.dims)];
    if (!shape.every((size) => Number.isInteger(size) && size >= 0)) {
      throw new InputError(port.name, `has the shape [${shape.join(", ")}], which has a size that is none`);
    }
    return { data: asArray(port, value.data), shape };
  }
  if (Array.isArray(value)) {
    const { flat, shape } = flattened(port, value);
    const isShaped = shape.length > 1 || port.shape?.length === 1;
    return { data: asArray(port, flat), shape: isShaped ? shape : null };
  }
  if (ArrayBuffer.isView(value)) return { data: asArray(port, value), shape: null };
  return { data: asArray(port, [value]), shape: port.shape ? port.shape.map(() => 1) : [] };
}

function flattened(port, value) {
  const shape = [];
  for (let level = value; Array.isArray(level); level = level[0]) shape.push(level.length);
  const flat = value.flat(Infinity);
  const isEven = (level, depth) =>
    depth === shape.length
      ? !Array.isArray(level)
      : Array.isArray(level) && level.length === shape[depth] && level.every((each) => isEven(each, depth + 1));
  if (!isEven(value, 0)) throw new InputError(port.name, "is an array whose rows have different lengths");
  return { flat, shape };
}

function asArray(port, data) {
  const { name, dtype } = port;
  if (dtype === "string") {
    const texts = Array.isArray(data) ? data : null;
    const at = texts ? texts.findIndex((each) => typeof each !== "string") : 0;
    if (at >= 0) throw new InputError(name, `holds ${kindOf(texts ? texts[at] : data)}: ${described(port)}`);
    return texts;
  }
  const Wanted = ARRAYS[dtype];
  if (dtype === "float16") {
    if (data instanceof Uint16Array) return data;
    if (globalThis.Float16Array && data instanceof globalThis.Float16Array) {
      return new Uint16Array(data.buffer, data.byteOffset, data.length);
    }
    if (data instanceof Float32Array || Array.isArray(data)) return toHalf(numbersOf(port, data));
  }
  if (data instanceof Wanted) {
    if (dtype === "bool" && data.some((each) => each > 1)) throw new InputError(name, "is bool and holds other numbers than 0 and 1");
    return data;
  }
  if (!Array.isArray(data)) throw new InputError(name, `is ${kindOf(data)}: ${described(port)}`);
  if (dtype === "bool") return Uint8Array.from(data, (each) => asBool(port, each));
  if (dtype === "int64" || dtype === "uint64") return Wanted.from(data, (each) => asBig(port, each));
  const numbers = numbersOf(port, data);
  const range = WHOLE[dtype];
  const bad = range && numbers.find((each) => !Number.isInteger(each) || each < range[0] || each > range[1]);
  if (bad !== undefined && range) throw new InputError(name, `is ${dtype} and holds ${bad}, which is no whole number from ${range[0]} to ${range[1]}`);
  return Wanted.from(numbers);
}

function numbersOf(port, data) {
  const at = Array.isArray(data) ? data.findIndex((each) => typeof each !== "number") : -1;
  if (at >= 0) throw new InputError(port.name, `holds ${kindOf(data[at])}: ${described(port)}`);
  return data;
}

function asBool(port, each) {
  if (each === true || each === 1) return 1;
  if (each === false || each === 0) return 0;
  throw new InputError(port.name, `is bool and holds ${kindOf(each)}`);
}

function asBig(port, each) {
  const isWhole = typeof each === "bigint" || Number.isSafeInteger(each);
  const big = isWhole ? BigInt(each) : 0n;
  const [low, high] = port.dtype === "int64" ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
  if (!isWhole || big < low || big > high) {
    throw new InputError(port.name, `is ${port.dtype} and holds ${kindOf(each)} ${String(each)}; write a bigint or a safe integer`);
  }
  return big;
}

function kindOf(value) {
  if (ArrayBuffer.isView(value)) return value.constructor.name;
  if (Array.isArray(value)) return "an array";
  return value === null ? "null" : `a ${typeof value}`;
}

/** Note which size each axis has; two axes of one name have one. */
function bind(port, shape, sizes) {
  if (!port.shape) return;
  if (shape.length !== port.shape.length) {
    throw new InputError(port.name, `has ${shape.length} dimensions, [${shape.join(", ")}]: ${described(port)}`);
  }
  port.shape.forEach((size, at) => {
    if (typeof size === "string" && !size.includes("+") && !(size in sizes)) sizes[size] = shape[at];
  });
}

function checkShape(port, { data, shape }, sizes, axes) {
  const count = shape.reduce((product, size) => product * size, 1);
  if (data.length !== count) {
    throw new InputError(port.name, `has ${data.length} elements, and its shape [${shape.join(", ")}] needs ${count}`);
  }
  (port.shape ?? []).forEach((size, at) => {
    const found = shape[at];
    const given = `is of size ${found} in dimension ${at} of [${shape.join(", ")}]`;
    if (typeof size === "number" && found !== size) throw new InputError(port.name, `${given}; it is ${size}: ${described(port)}`);
    if (typeof size !== "string") return;
    const wanted = sizeAt(size, sizes);
    if (wanted !== null && found !== wanted) throw new InputError(port.name, `${given}; '${size}' is ${wanted} here`);
    const axis = Object.hasOwn(axes, size) ? axes[size] : null;
    if (axis && (found < axis.min || found > axis.max || found % axis.multiple_of)) {
      const rule = axis.multiple_of > 1 ? `a multiple of ${axis.multiple_of} from ${axis.min} to ${axis.max}` : `${axis.min} to ${axis.max}`;
      throw new InputError(port.name, `${given}; '${size}' takes ${rule}`);
    }
  });
}

/** Return an axis, a number or a sum of both at known sizes; null where one is not known. */
function sizeAt(size, sizes) {
  let total = 0;
  for (const part of String(size).split("+").map((each) => each.trim())) {
    const value = /^\d+$/.test(part) ? Number(part) : sizes[part];
    if (value === undefined) return null;
    total += value;
  }
  return total;
}

function inferred(port, count, sizes) {
  const known = port.shape?.map((size) => sizeAt(size, sizes));
  const left = known?.filter((size) => size === null).length;
  if (!known || left > 1) {
    throw new InputError(port.name, `has ${count} elements and no shape; write {data, shape}: ${described(port)}`);
  }
  const rest = known.reduce((product, size) => product * (size ?? 1), 1);
  const fits = left ? rest > 0 && count % rest === 0 : count === rest;
  if (!fits) throw new InputError(port.name, `has ${count} elements, which no shape [${port.shape.join(", ")}] has`);
  return known.map((size) => size ?? count / rest);
}

/** Return bits of half precision in the array that ONNX Runtime takes them in. */
export function asHalfArray(bits) {
  const Half = globalThis.Float16Array;
  return Half ? new Half(bits.buffer, bits.byteOffset, bits.length) : bits;
}

/** Return an output as `{dtype, data, shape}`; half precision as numbers. */
export function fromTensor(tensor) {
  const shape = [...tensor.dims];
  if (tensor.type !== "float16") return { dtype: tensor.type, data: tensor.data, shape };
  const { data } = tensor;
  return { dtype: "float16", data: data instanceof Uint16Array ? fromHalf(data) : Float32Array.from(data), shape };
}
