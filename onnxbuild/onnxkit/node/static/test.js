/**
 * Run the golden inputs through the model, and compare with the original's outputs.
 *
 *     npm test                              on the first provider that is there and loads
 *     node test.js [TARGET]                 on that target
 *     node test.js --outputs FOLDER         write what the model gives, too
 *
 * Exit codes: 0 all outputs are within the tolerances that the model was built with, 1 one is not, 2 an unknown
 * argument, 3 the model can't be loaded here.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { Judge } from "./judge.js";
import { ARRAYS, toHalf } from "./tensors.js";

/** onnxruntime-node is not installed, or has nothing for this platform. */
const NOT_THERE = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ERR_DLOPEN_FAILED"]);

const GOLDEN = new URL("golden/", import.meta.url);

process.exitCode = await main();

async function main() {
  let asked;
  try {
    asked = parseArgs({ options: { outputs: { type: "string" } }, allowPositionals: true });
  } catch (error) {
    console.error(`${error.message}\nusage: node test.js [TARGET] [--outputs FOLDER]`);
    return 2;
  }
  let model;
  try {
    const { load } = await import("./index.js");
    model = await load({ target: asked.positionals[0] });
  } catch (error) {
    if (error.name !== "LoadError" && !NOT_THERE.has(error.code)) {
      console.error(`the model can't be opened: ${error.message.split("\n")[0]}`);
      return 1;
    }
    console.error(error.message.split("\n")[0]);
    return 3;
  }
  console.log(`runs on ${model.provider}`);
  const isGood = await passes(model, asked.values.outputs);
  await model.release();
  return isGood ? 0 : 1;
}

/** Return whether all outputs at all points are within the tolerances; print what is not. */
async function passes(model, folder) {
  const judge = new Judge();
  const written = [];
  let isGood = true;
  for (const [number, point] of JSON.parse(readFileSync(new URL("points.json", GOLDEN), "utf8")).entries()) {
    const inputs = Object.fromEntries(point.inputs.map((each) => [each.name, read(each)]));
    let outputs;
    try {
      outputs = await model.run(inputs);
    } catch (error) {
      console.log(`${point.name}: ${error.message}`);
      isGood = false;
      continue;
    }
    const faults = [];
    for (const each of point.outputs) {
      const fault = !outputs[each.name] ? "it is not there" : judge.fault(each.name, outputs[each.name], read(each), each.bounds, point.skipped_rows);
      if (fault) faults.push(`${each.name}: ${fault}`);
    }
    if (folder !== undefined) written.push({ name: point.name, outputs: write(folder, number, outputs) });
    console.log(`${point.name}: ${faults.join("; ") || "ok"}`);
    isGood &&= !faults.length;
  }
  for (const fault of judge.pooledFaults()) {
    console.log(fault);
    isGood = false;
  }
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  if (folder !== undefined) writeFileSync(join(folder, "points.json"), `${JSON.stringify(written, null, 1)}\n`);
  return isGood;
}

function read({ dtype, shape, file }) {
  const bytes = readFileSync(new URL(file, GOLDEN));
  if (dtype === "string") return { dtype, shape, data: JSON.parse(bytes.toString("utf8")) };
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return { dtype, shape, data: new ARRAYS[dtype](buffer) };
}

/** Write a point's outputs, half precision as its bits; return what points.json says of them. */
function write(folder, number, outputs) {
  mkdirSync(folder, { recursive: true });
  return Object.entries(outputs).map(([name, { dtype, data, shape }], at) => {
    const file = `${number}-${at}${dtype === "string" ? ".json" : ".bin"}`;
    const array = dtype === "float16" ? toHalf(data) : data;
    const content = dtype === "string" ? JSON.stringify(data) : new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    writeFileSync(join(folder, file), content);
    return { name, dtype, shape, file };
  });
}
