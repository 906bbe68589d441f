/** Select two boxes of a model's picture, by keyboard and by mouse; print what came into focus: `node follow.mjs MODULES CHROMIUM URL`. */
import { createRequire } from "node:module";

const [, , modules, executablePath, url] = process.argv;
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const timeout = 100000; // of each wait, on a machine that may be busy
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout });
const page = await browser.newPage();
page.setDefaultTimeout(timeout);
await page.goto(url);
const boxes = page.locator("section.card >> nth=0 >> svg.model a");
const look = async (box) => ({
  wanted: await box.locator("text.name").first().textContent(),
  ...(await page.evaluate(() => {
    const focused = document.activeElement;
    let closed = 0;
    for (let each = focused.closest("details"); each; each = each.parentElement.closest("details")) closed += !each.open;
    return { focused: focused.textContent.trim(), closed };
  })),
});
await boxes.first().focus();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.activeElement.matches("summary"));
const found = [await look(boxes.first())];
await boxes.last().click();
await page.waitForFunction((before) => document.activeElement.matches("summary") && document.activeElement.textContent.trim() !== before, found[0].focused);
found.push(await look(boxes.last()));
await browser.close();
console.log(JSON.stringify(found));
