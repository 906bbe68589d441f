/**
 * Run the golden points through model.js in Node, on the WebAssembly that browsers run.
 *
 *     node test.mjs [--outputs FOLDER]
 *
 * It ends with 0 if all outputs are within their bounds, 1 if not, 3 if the model can't be loaded here.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";

import { listPoints, readPoint } from "./golden.js";
import { Judge } from "./judge.js";
import { load, toHalf } from "./model.js";

const NOT_HERE = 3;

async function main() {
  let folder;
  try {
    folder = parseArgs({ options: { outputs: { type: "string" } } }).values.outputs;
  } catch (error) {
    console.error(`${error.message}\nusage: node test.mjs [--outputs FOLDER]`);
    return 2;
  }
  let model;
  try {
    model = await load({ provider: "wasm", threads: 1 });
  } catch (error) {
    if (error.name !== "LoadError") throw error;
    console.error(error.message.split("\n")[0]);
    return NOT_HERE;
  }
  const judge = new Judge();
  const listed = [];
  let isGood = true;
  for (const [number, point] of (await listPoints()).entries()) {
    const { inputs, outputs: expected } = await readPoint(point);
    let found;
    try {
      found = await model.run(inputs);
    } catch (error) {
      console.error(`${point.name}: the model can't be run: ${String(error.message ?? error).split("\n")[0]}`);
      return 1;
    }
    const faults = point.outputs
      .map(({ name, bounds }) => [name, found[name] ? judge.fault(name, found[name], expected[name], bounds, point.skipped_rows) : "it is not there"])
      .filter(([, fault]) => fault)
      .map(([name, fault]) => `${name}: ${fault}`);
    console.log(`${point.name}: ${faults.join("; ") || "ok"}`);
    isGood &&= !faults.length;
    if (folder !== undefined) listed.push({ name: point.name, outputs: await written(folder, number, found) });
  }
  for (const fault of judge.pooledFaults()) {
    console.log(fault);
    isGood = false;
  }
  if (folder !== undefined) await writeFile(join(folder, "points.json"), `${JSON.stringify(listed, null, 1)}\n`);
  return isGood ? 0 : 1;
}

/** Write a point's outputs; return what points.json says of them. */
async function written(folder, number, outputs) {
  const place = String(number).padStart(2, "0");
  await mkdir(join(folder, place), { recursive: true });
  const listed = [];
  for (const [at, [name, { dtype, data, shape }]] of Object.entries(outputs).entries()) {
    const file = `${place}/output-${at}.${dtype === "string" ? "json" : "bin"}`;
    const stored = dtype === "float16" ? toHalf(data) : data;
    const content = dtype === "string" ? `${JSON.stringify(data)}\n` : new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
    await writeFile(join(folder, file), content);
    listed.push({ name, dtype, shape, file });
  }
  return listed;
}

process.exitCode = await main();
