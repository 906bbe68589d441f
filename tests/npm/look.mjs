/** Open files in Chromium, and write as JSON what was seen: `node look.mjs MODULES ASKED.json ANSWER.json`. */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , modules, asked, answer] = process.argv;
const require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { browser: program, views } = JSON.parse(readFileSync(asked, "utf8"));
const timeout = 100000; // of each wait, on a machine that may be busy
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"], timeout });
const found = [];
for (const { url, width, scheme, picture, open } of views) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: true });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const seen = { console: [], outside: [] };
  await context.route("**", (route) => {
    const to = route.request().url();
    if (to === url || to.startsWith("data:")) return route.continue();
    seen.outside.push(to);
    return route.abort();
  });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && seen.console.push(message.text()));
  page.on("pageerror", (error) => seen.console.push(error.message));
  await page.goto(url);
  if (open) await page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  seen.axe = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(", ")}`);
  seen.wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  if (picture) await page.screenshot({ path: picture, fullPage: true });
  found.push(seen);
  await context.close();
}
await browser.close();
writeFileSync(answer, JSON.stringify(found));
