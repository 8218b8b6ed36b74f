/** plumb.report() in a notebook: the frame shows the report, can be used, and reaches nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { settle, shot } from "./browser.mjs";
import { open as openReport, page } from "./reports.mjs";

async function open(t, options) {
  if (!(await openReport(t, "notebook", { width: 1100, height: 900, ...options }, "iframe"))) return null;
  const frames = [0, 1].map((k) => page.frameLocator("iframe").nth(k));
  for (const frame of frames) await frame.locator("main .answer").waitFor();
  await settle(page);
  return frames;
}

test("two reports in a notebook: each with its answer, as high as it was asked to be", async (t) => {
  const frames = await open(t);
  if (!frames) return;
  assert.match(await frames[0].locator("main .answer").innerText(), /20 of 119 tensors fail/);
  assert.match(await frames[1].locator("main .answer").innerText(), /1 of 56 judged calls is wrong/);
  const box = await page.locator("iframe").first().boundingBox();
  assert.equal(Math.round(box.height), 720);
  assert.ok(box.width > 1000, `${box.width} pixels wide`);
  const wide = await frames[0].locator("html").evaluate((html) => html.scrollWidth - html.clientWidth);
  assert.ok(wide <= 0, `${wide} pixels stick out`);
  await shot(page, "notebook", true);
});

test("every view of a frame opens, and the notebook stays where it is", async (t) => {
  const frames = await open(t);
  if (!frames) return;
  const before = page.url();
  for (const name of await frames[0].locator("nav a").allInnerTexts()) {
    await frames[0].locator("nav a", { hasText: name }).first().click();
    await settle(page);
    assert.equal(await frames[0].locator(".message").count(), 0, name);
    assert.ok((await frames[0].locator("main").innerText()).length > 40, name);
  }
  assert.match(await frames[1].locator("main .answer").innerText(), /judged calls/); // the other one did not move
  assert.equal(page.url(), before);
});

test("search, filter, tensor and keys work in a frame", async (t) => {
  const frames = await open(t);
  if (!frames) return;
  const [demo, blame] = frames;
  await demo.locator("nav a", { hasText: "Comparison" }).click();
  await demo.locator(".line").first().waitFor();
  await demo.locator("input[type=search]").first().fill("blocks.2.norm2");
  await settle(page);
  assert.match(await demo.locator(".count").innerText(), /^\d of 119 rows/);
  await demo.locator("nav a", { hasText: "Modules" }).click();
  await demo.locator("[role=tree]").focus();
  await page.keyboard.press("ArrowDown");
  await blame.locator("main .where").click();
  await blame.locator(".tensor-name").waitFor();
  assert.match(await blame.locator(".tensor-name").innerText(), /Functional\.softmax\.2\.forward, output 0/);
  await blame.locator("nav a", { hasText: "Error along" }).click();
  await blame.locator(".chart").nth(1).focus();
  await page.keyboard.press("f");
  assert.match(await blame.locator(".readout").first().innerText(), /Functional\.softmax\.2\.forward/);
});

test("a frame reaches neither the notebook nor its cookies", async (t) => {
  const frames = await open(t);
  if (!frames) return;
  const inside = page.frames().find((frame) => frame !== page.mainFrame());
  const found = await inside.evaluate(() => {
    const tries = {};
    for (const [name, act] of Object.entries({
      parent: () => window.parent.document.title,
      cookie: () => document.cookie,
      storage: () => localStorage.length,
      top: () => (window.top.location.href = "data:,"),
    }))
      try {
        tries[name] = String(act());
      } catch (error) {
        tries[name] = error.name;
      }
    return tries;
  });
  assert.deepEqual([found.parent, found.cookie, found.storage], ["SecurityError", "SecurityError", "SecurityError"]);
  assert.equal(await page.title(), "Notebook");
  page.faults = page.faults.filter((fault) => !/navigat/i.test(fault)); // what the browser says of the last try
});

test("dark, and in a narrow column", async (t) => {
  const frames = await open(t, { width: 420, height: 800, colorScheme: "dark" });
  if (!frames) return;
  const back = await frames[0].locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
  const [, red] = /(\d+)/.exec(back) ?? [];
  assert.ok(Number(red) < 64, back);
  const wide = await frames[0].locator("html").evaluate((html) => html.scrollWidth - html.clientWidth);
  assert.ok(wide <= 0, `${wide} pixels stick out`);
  await shot(page, "notebook-dark");
});
