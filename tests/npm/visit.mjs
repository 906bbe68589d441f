/** Visit pages in Chromium, and write as JSON what was seen: `node visit.mjs MODULES ASKED.json ANSWER.json`. */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , modules, asked, answer] = process.argv;
const require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { browser: program, flags, visits } = JSON.parse(readFileSync(asked, "utf8"));
const timeout = 300000; // of each wait, on a machine that may be busy
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", ...flags], timeout });
const found = {};
for (const { name, url, keys = [], scheme = "light", width = 1280, height = 800, picture, draw, shot } of visits) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const seen = { console: [], outside: [], failed: [], keys: [] };
  const own = new URL(url).origin;
  await context.route("**", (route) => {
    const to = route.request().url();
    if (to.startsWith(own) || to.startsWith("blob:") || to.startsWith("data:")) return route.continue();
    seen.outside.push(to);
    return route.abort();
  });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && seen.console.push(message.text()));
  page.on("pageerror", (error) => seen.console.push(error.message));
  page.on("requestfailed", (request) => seen.failed.push(request.url()));
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.state);
  seen.state = await page.evaluate(() => document.documentElement.dataset.state);
  seen.isolated = await page.evaluate(() => crossOriginIsolated);
  if (seen.state === "ready") {
    for (const key of keys) {
      if (key.wait) await page.waitForTimeout(key.wait);
      else if (key.text) await page.keyboard.type(key.text);
      else if (key.tab) {
        for (let left = 60; left > 0; left -= 1) {
          await page.keyboard.press("Tab");
          if (await page.evaluate((id) => document.activeElement?.matches(id), key.tab)) break;
        }
        const about = await page.evaluate(() => {
          const style = getComputedStyle(document.activeElement.closest(".button") ?? document.activeElement);
          return [document.activeElement.id || document.activeElement.textContent.trim(), style.outlineStyle];
        });
        seen.keys.push(about);
      } else await page.keyboard.press(key.press);
    }
    if (picture) {
      await page.setInputFiles("#file", picture);
      await page.waitForFunction(() => document.querySelector(".seen span")?.textContent);
      await page.waitForTimeout(300);
    }
    if (draw) {
      await page.getByRole("button", { name: "Clear" }).click();
      const box = await page.locator("#input canvas[role=img]").boundingBox();
      const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
      await page.mouse.move(...at(draw[0]));
      await page.mouse.down();
      for (const point of draw.slice(1)) await page.mouse.move(...at(point), { steps: 8 });
      await page.mouse.up();
      await page.mouse.move(0, 0);
      await page.waitForTimeout(800);
    }
    if (shot) await page.screenshot({ path: shot });
    await page.click("#check");
    await page.waitForFunction(() => !document.querySelector("#check").disabled && !document.querySelector("#measure").disabled);
  }
  const texts = ["#ran", "#checked", "#notes", "#problem", ".headline", "#said", "#time-load", "#time-first", "#time-median", ".seen span"];
  for (const each of texts) seen[each] = await page.evaluate((selector) => document.querySelector(selector)?.textContent ?? null, each);
  seen.bars = await page.locator(".bars .name").allTextContents();
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  seen.axe = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(", ")}`);
  seen.wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  found[name] = seen;
  await context.close();
}
await browser.close();
writeFileSync(answer, JSON.stringify(found, null, 1));
