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

import { judge, listPoints, readPoint } from "./golden.js";
import { load, toHalf } from "./model.js";

const NOT_HERE = 3;

async function main() {
  const folder = outputFolder(process.argv.slice(2));
  let model;
  try {
    model = await load({ provider: "wasm", threads: 1 });
  } catch (error) {
    console.error(error.message);
    return NOT_HERE;
  }
  const listed = [];
  let failed = 0;
  for (const [number, point] of (await listPoints()).entries()) {
    const { inputs, outputs: expected } = await readPoint(point);
    const found = await model.run(inputs);
    const about = new Map(point.outputs.map((each) => [each.name, each]));
    const wrong = Object.keys(expected)
      .map((name) => [name, judge(expected[name], found[name], about.get(name).bounds, point.skipped_rows)])
      .filter(([, verdict]) => !verdict.passed)
      .map(([name, verdict]) => `${name}: ${verdict.why}`);
    failed += wrong.length ? 1 : 0;
    console.log(`${point.name}: ${wrong.length ? wrong.join("; ") : "ok"}`);
    if (folder) listed.push({ name: point.name, outputs: await written(folder, number, found) });
  }
  if (folder) await writeFile(join(folder, "points.json"), `${JSON.stringify(listed, null, 1)}\n`);
  return failed ? 1 : 0;
}

function outputFolder(given) {
  if (given.length === 0) return "";
  if (given.length === 2 && given[0] === "--outputs") return given[1];
  console.error("usage: node test.mjs [--outputs FOLDER]");
  process.exit(2);
}

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
