/** Reports that the program wrote: what is seen first says what is wrong, where, and how sure that is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { settle as calm, shot, take } from "./browser.mjs";
import { has, open as openReport, page } from "./reports.mjs";

const settle = () => calm(page);
const text = (selector) => page.locator(selector).first().innerText();

/** Opens a report at its first screen; false where there is no program to write it. */
async function open(t, kind) {
  if (!(await openReport(t, kind, { width: 1280, height: 720 }))) return false;
  // All of the answer is on the screen, without scrolling.
  const box = await page.locator("main .answer").boundingBox();
  assert.ok(box.y >= 0 && box.y + box.height <= 720, `the answer ends at ${box.y + box.height}`);
  await shot(page, `real-${kind}`);
  return true;
}

async function go(hash, selector) {
  await page.evaluate((to) => (location.hash = `#/${to}`), hash);
  await page.waitForSelector(selector);
  await settle();
}

/** Every view of the navigation opens, and shows something. */
async function walk(kind, expected) {
  const links = await page.locator("nav a").evaluateAll((list) => list.map((a) => a.getAttribute("href")));
  assert.deepEqual(await page.locator("nav a").allInnerTexts(), expected);
  for (const link of links) {
    await page.evaluate((to) => (location.hash = to), link);
    await settle();
    assert.equal(await page.locator(".message").count(), 0, link);
    assert.ok((await text("main")).length > 40, link);
    await shot(page, `real-${kind}${link.replace(/\W+/g, "-")}`, true);
  }
}

test("the demo: a LayerNorm of block 2, by a rule and its numbers", async (t) => {
  if (!(await open(t, "demo"))) return;
  assert.equal(await text(".sentence > span:last-child"), "20 of 119 tensors fail.");
  const answer = await text(".answer");
  assert.match(answer, /Where\s+blocks\.2\.norm2\.LayerNorm\.5\.forward_output\.0/);
  assert.match(answer, /How sure\s+max_abs 0\.03320312 > 0\.01\s+119 compared: 99 pass, 20 fail/);
  assert.equal(await page.locator("main .paper-fault").count(), 11);
  await take(page, "report-overview", { width: 1100, height: 735 });

  await go("curve", ".chart canvas");
  assert.equal(await page.locator(".chart").count(), 1); // nothing was judged by itself
  assert.doesNotMatch(await text("main"), /adds by itself|its limit/);
  await page.locator(".chart").focus();
  await page.keyboard.press("f");
  assert.match(await text(".readout"), /beyond a limit.*blocks\.2\.norm2\.LayerNorm\.5\.forward in blocks\.2\.norm2/s);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tensor-name");
  assert.match(await text(".tensor-name"), /blocks\.2\.norm2\.LayerNorm\.5\.forward_output\.0/);
  assert.match(await page.locator(".window td.worst").innerText(), /^0\.0332/);
  const overhang = await page.locator(".scroll").first().evaluate((e) => e.scrollWidth - e.clientWidth);
  assert.ok(overhang <= 0, `${overhang} pixels of the elements are hidden`);
  await take(page, "report-tensor", { width: 1280, height: 1640 });
  await go("modules", "[role=tree]");
  assert.match(await text("[aria-selected=true]"), /blocks\.2\.norm2\.LayerNorm\.5\.forward\s+beyond a limit/);
  await go("table/0?moods=1", ".line");
  assert.match(await text(".count"), /^20 of 119 rows/);
  await take(page, "report-table", { width: 1360, height: 585 });
  await walk("demo", ["Overview", "Error along the network", "Modules", "Comparison", "Tensors", "About"]);
});

test("a transformer of four blocks: the softmax of block 2, what it does wrong, and how to look at it", async (t) => {
  if (!(await open(t, "transformer"))) return;
  assert.equal(await text(".sentence > span:last-child"), "1 of 56 judged calls is wrong.");
  const answer = await text(".answer");
  assert.match(answer, /Where\s+Functional\.softmax\.2\.forward, output 0, in Module\.layers\.2\.attention/);
  assert.match(answer, /How sure\s+each row is scaled by a factor of its own.*as if the sums left out the last 1 of 16/s);
  assert.match(answer, /sigma \(limit [\d.]+\)/);
  assert.match(await text("main"), /What to do next\s+plumb capsule device Functional\.softmax\.2 /);
  await go("curve", ".chart canvas");
  assert.equal(await page.locator(".chart").count(), 2);
  await page.locator(".chart").nth(1).focus();
  await page.keyboard.press("f");
  assert.match(await text(".readout"), /fault.*Functional\.softmax\.2\.forward in layers\.2\.attention/s);
  await take(page, "report-curve", { width: 1100, height: 860 });
  await go("modules", "[role=tree]");
  assert.match(await text("[aria-selected=true]"), /Functional\.softmax\.2\.forward\s+fault/);
  await take(page, "report-modules", { width: 1100, height: 720 });
  await go("tensors", ".tensor-list");
  await page.click(".tensor-list a");
  await page.waitForSelector(".tensor-name");
  assert.match(await text(".tensor-name"), /Functional\.softmax\.2\.forward, output 0/);
  const tensor = await text(".tensor");
  assert.match(tensor, /pattern\s+each row is scaled.*arguments\s+\(2, 4, 16, 16\):torch\.float32, dim=-1/s);
  assert.match(tensor, /Look at it alone\s+plumb capsule device Functional\.softmax\.2 /);
  assert.match(tensor, /element\s+got\s+expected\s+error\s+ULP/);
  assert.match(await text(".stack"), /File model\.py, line 45/);
  await walk("transformer", ["Overview", "Error along the network", "Modules", "Calls", "Tensors", "About"]);
});

test("a pre-check without a fault: nothing is bad, and what was not judged is said", async (t) => {
  if (!(await open(t, "precheck"))) return;
  assert.match(await text(".sentence > span:last-child"), /^None of the \d+ judged rows is bad\.$/);
  assert.match(await text(".answer"), /Not judged\s+Functional\.embedding\.0\.backward/);
  assert.match(await text(".answer"), /How sure\s+\d+ not judged, \d+ good/);
  assert.equal(await page.locator("main").getByText("Show the").count(), 0);
  await walk("precheck", await page.locator("nav a").allInnerTexts());
});

test("a pre-check of a real model on a device with a fault: which operator, what it does, how sure that is", async (t) => {
  if (!has("torch")) return t.skip("PyTorch is not installed");
  if (!(await open(t, "device"))) return;
  assert.equal(
    await text(".sentence > span:last-child"),
    "2 of 55 APIs fail. 2 of 55 judged APIs are wrong by themselves.",
  );
  const answer = await text(".answer");
  assert.match(answer, /Where\s+Functional\.gelu\.0/);
  assert.match(answer, /How sure\s+24 elements in column 127 are zero;.* sigma \(limit [\d.]+\)/s);
  assert.match(answer, /55 APIs: 53 pass, 0 warning, 2 error, 0 skipped/);
  assert.match(await text("main"), /What to do next\s+plumb acc_check .* -save_error_data/);
  await take(page, "report-precheck", { width: 1100, height: 520 });
  await page.click(".where");
  await page.waitForSelector(".line");
  await walk("device", await page.locator("nav a").allInnerTexts());
});

test("a pre-check of two devices: the gelu, in every table that says so", async (t) => {
  if (!(await open(t, "devices"))) return;
  assert.match(await text(".sentence > span:last-child"), /^3 of \d+ judged rows are bad\.$/);
  assert.match(await text(".answer"), /Where\s+Functional\.gelu\.0\.forward\.output\.0/);
  assert.equal(await page.locator("main").getByText(/Show the 1 bad row of /).count(), 3);
  await page.getByText("Show the 1 bad row of npu.csv").click();
  await page.waitForSelector(".line");
  assert.match(await text(".count"), /^1 of \d+ rows/);
  assert.match(await page.locator(".line").innerText(), /Functional\.gelu\.0\.forward\.output\.0/);
  await walk("devices", await page.locator("nav a").allInnerTexts());
});

test("16 ranks: one call of one rank, among all that it spoiled", async (t) => {
  if (!(await open(t, "ranks"))) return;
  assert.equal(await text(".sentence > span:last-child"), "1 result is wrong by its own call.");
  const answer = await text(".answer");
  assert.match(answer, /Where\s+Functional\.gelu\.0\.forward\.output\.0 \(rank 11\)/);
  assert.match(answer, /How sure\s+32 elements are scaled by 1\.25; .* sigma \(limit/s);
  await page.click(".where");
  await page.waitForSelector(".tensor-name");
  assert.match(await text(".tensor"), /shape \[4, 8\]; rank 11/);
  await go("curve", ".multiples canvas");
  assert.equal(await page.locator(".multiples .chart").count(), 16);
  await go("grid/0", ".cellmap canvas");
  await page.locator(".cellmap-box").focus();
  await page.keyboard.press("f");
  assert.match(await text(".cellmap .readout"), /bad.*rank/s);
  for (let at = ""; !/rank 11, Functional\.gelu\.0/.test(at); at = await text(".cellmap .readout")) {
    assert.doesNotMatch(at, /rank 12/);
    await page.keyboard.press("f");
  }
  await take(page, "report-ranks");
  await go("modules", "[role=tree]");
  assert.match(await text("[aria-selected=true]"), /Functional\.gelu\.0\.forward \(rank 11\)\s+fault/);
  await page.fill("input[type=search]", "all_reduce.0");
  await settle();
  assert.match(await text("[role=tree]"), /all_reduce\.0\.forward \(rank 15\)\s+beyond a limit/);
  await go("tensors?find=gelu.0", ".tensor-list");
  assert.match(await text(".tensor-list"), /Functional\.gelu\.0\.forward\.output\.0\s+rank 11/);
  await walk("ranks", ["Overview", "Error along the network", "Modules", "Comparison", "Ranks", "Tensors", "About"]);
});

test("odd tensors: nothing to count, parts of complex numbers, a single error", async (t) => {
  if (!(await open(t, "odd"))) return;
  const look = async (name) => {
    await go("tensors", ".tensor-list");
    await page.locator(".tensor-list a", { hasText: name }).click();
    await page.waitForSelector(".tensor-name");
    await settle();
    await shot(page, `real-odd-${name}`, true);
    return text(".tensor");
  };
  const nothing = await look("nothing");
  assert.match(nothing, /Nothing falls into bins\./);
  assert.match(nothing, /Not in the bins: NaN: 12 and 12/);
  assert.match(nothing, /No element differs\./);
  assert.doesNotMatch(nothing, /Where the errors are|Errors along each axis/);
  assert.match(await look("parts"), /complex64; shape \[3, 4, 2\], the last axis for real and imaginary parts/);
  assert.match(await look("one"), /The worst element is \[1, 2\], framed/);
});

test("second opinions: where it was called, and what the rules say beside it", async (t) => {
  if (!(await open(t, "opinions"))) return;
  assert.equal(await text(".sentence > span:last-child"), "2 results are wrong by their own call.");
  assert.match(await text(".answer"), /Where\s+Functional\.gelu\.0\.forward\.output\.0\s+How sure\s+no simple pattern/);
  await page.click(".where");
  await page.waitForSelector(".tensor-name");
  assert.match(await text(".tensor"), /verdict\s+fault/);
  assert.match(await text(".stack"), /File model\.py, line 12, in forward/);
  await walk("opinions", ["Overview", "Error along the network", "Modules", "Comparison", "Tensors", "About"]);
});

test("steps of a training run: what jumped, and when", async (t) => {
  if (!(await open(t, "steps"))) return;
  assert.match(await text(".sentence > span:last-child"), /jumps?, the first in step 27\./);
  assert.match(await text(".answer"), /Where\s+Functional\.linear\.1\.forward/);
  await go("steps", ".chart canvas");
  assert.match(await text(".jumps"), /Functional\.linear\.1\.forward/);
  await page.locator(".jumps button").first().click();
  await settle();
  await page.locator(".chart").focus();
  await page.keyboard.press("f");
  assert.match(await text(".readout"), /Step 27: .*earlier run/);
  await take(page, "report-steps", { width: 1100, height: 720 });
  await walk("steps", await page.locator("nav a").allInnerTexts());
});
