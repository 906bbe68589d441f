/** Read pages by keyboard and on paper, and write as JSON what was found: `node read.mjs MODULES ASKED.json ANSWER.json`. */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [, , modules, asked, answer] = process.argv;
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const { browser: program, views } = JSON.parse(readFileSync(asked, "utf8"));
const timeout = 100000; // of each wait, on a machine that may be busy
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"], timeout });
const found = [];
for (const { url, scheme, pdf } of views) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: scheme });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  await page.goto(url);
  const seen = {};
  // By keyboard: Tab goes to everything that a mouse can use, and each shows that it has the focus.
  seen.usable = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], summary, [tabindex='0']")].filter((each) => each.checkVisibility({ contentVisibilityAuto: true }));
    all.forEach((each, n) => (each.dataset.n = n));
    return all.length;
  });
  const reached = new Set();
  seen.unmarked = [];
  for (let n = 0; n < seen.usable + 5; n += 1) {
    await page.keyboard.press("Tab");
    const [number, outline, name] = await page.evaluate(() => {
      const each = document.activeElement;
      return [each.dataset.n, getComputedStyle(each).outlineStyle, each.textContent.trim().slice(0, 60)];
    });
    if (number === undefined) break;
    reached.add(number);
    if (outline === "none") seen.unmarked.push(name);
  }
  seen.reached = reached.size;
  const summary = page.locator("summary").first();
  await summary.focus();
  await page.keyboard.press("Enter");
  seen.opened = await summary.evaluate((each) => each.parentElement.open);
  await page.keyboard.press("Enter");
  // On paper: what is closed on the screen is printed, dark on white.
  await page.emulateMedia({ media: "print", colorScheme: scheme });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))); // what opens is laid out with a frame
  Object.assign(seen, await page.evaluate(() => {
    const closed = [...document.querySelectorAll("details:not([open])")];
    const inside = closed.flatMap((each) => [...each.querySelectorAll("table, pre")]);
    const printed = (each) => each.checkVisibility({ contentVisibilityAuto: true }) && each.getBoundingClientRect().height > 10;
    const body = getComputedStyle(document.body);
    return {
      closed: closed.length,
      inside: inside.length,
      unprinted: inside.filter((each) => !printed(each)).map((each) => each.closest("details").querySelector("summary").textContent),
      colours: [body.color, body.backgroundColor],
    };
  }));
  await page.pdf({ path: pdf, format: "A4" });
  found.push(seen);
  await context.close();
}
await browser.close();
writeFileSync(answer, JSON.stringify(found));
