/** Every view, with mouse and keyboard. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { Bench, picture, settle as calm, shot } from "./browser.mjs";

const bench = new Bench();
let page;
before(() => bench.start());
after(() => bench.stop());
afterEach(async () => {
  const faults = page.faults;
  await page.context().close();
  assert.deepEqual(faults, []);
});

const text = (selector) => page.locator(selector).first().innerText();
const settle = () => calm(page);
const firstRow = (column) => page.locator(".line").first().locator(".cell").nth(column).innerText();

test("overview: what is wrong, where, how sure; Back works", async () => {
  page = await bench.open("small");
  await page.waitForSelector(".answer");
  assert.match(await text(".sentence"), /One call is at fault/);
  assert.match(await text("main"), /Show the 1 bad row/);
  assert.match(await text(".answer"), /793 standard deviations/);
  assert.equal(await page.locator("main .bars li").count(), 6);
  await shot(page, "overview", true);
  await page.locator(".command button").first().click();
  await settle();
  assert.match(page.copied[0], /^plumb capsule /);
  await page.click(".where");
  await page.waitForSelector(".tensor-name");
  await page.goBack();
  await page.waitForSelector(".answer");
});

test("curve: zoom by wheel, drag and keys, reset, cursor, open", async () => {
  page = await bench.open("calls", "#/curve");
  await page.waitForSelector(".chart canvas");
  await settle();
  const whole = await picture(page, ".chart");
  const area = await page.locator(".chart .u-over").first().boundingBox();
  await page.mouse.move(area.x + area.width * 0.3, area.y + 50);
  await page.mouse.wheel(0, -300);
  await settle();
  const near = await picture(page, ".chart");
  assert.notEqual(near, whole);
  await shot(page, "curve-zoomed");
  await page.locator(".chart").first().focus();
  await page.keyboard.press("Escape");
  await settle();
  assert.equal(await picture(page, ".chart"), whole);
  await page.mouse.move(area.x + 200, area.y + 40);
  await page.mouse.down();
  await page.mouse.move(area.x + 400, area.y + 40, { steps: 5 });
  await page.mouse.up();
  await settle();
  assert.notEqual(await picture(page, ".chart"), whole);
  assert.match(page.url(), /#\/curve/); // a drag is no click
  await page.mouse.dblclick(area.x + 300, area.y + 40);
  await settle();
  assert.match(page.url(), /#\/curve/); // nor are two
  assert.equal(await picture(page, ".chart"), whole);
  await page.locator(".chart").first().focus();
  await page.keyboard.press("f");
  assert.match(await text(".readout"), /fault.*model\.layers/s);
  await page.keyboard.press("+");
  await settle();
  await page.keyboard.press("ArrowRight");
  assert.doesNotMatch(await text(".readout"), /^fault/);
  await page.keyboard.press("Shift+F");
  await shot(page, "curve");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tensor-name");
  assert.match(await text(".tensor-name"), /softmax|layers/);
});

test("curve: the cursor is drawn to a fault near it", async () => {
  page = await bench.open("calls", "#/curve");
  await page.waitForSelector(".chart canvas");
  const area = await page.locator(".chart .u-over").first().boundingBox();
  const names = 10010;
  const at = 3003 / (names - 1);
  await page.mouse.move(area.x + area.width * at + 3, area.y + 60);
  await settle();
  assert.match(await text(".readout"), /^\s*B?\s*fault/);
});

test("curve: directions, ranks and steps", async () => {
  page = await bench.open("ranks", "#/curve");
  await page.waitForSelector(".multiples canvas");
  assert.equal(await page.locator(".multiples .chart").count(), 16);
  await settle();
  await shot(page, "ranks", true);
  assert.match(await text(".count"), /2,816 calls/);
  await page.getByLabel("Backward").uncheck();
  await settle();
  assert.match(await text(".count"), /1,408 calls/);
  await page.getByRole("combobox", { name: /^Rank/ }).selectOption("8");
  await settle();
  assert.equal(await page.locator(".chart").count(), 2);
  assert.match(page.url(), /rank=8/);
  await page.getByRole("combobox", { name: /^Step/ }).selectOption("1");
  await settle();
  await shot(page, "rank");
});

test("modules: keys of a tree, search", async () => {
  page = await bench.open("small", "#/modules");
  await page.waitForSelector("[role=tree]");
  await page.locator("[role=tree]").focus();
  await page.keyboard.press("Home");
  const selected = () => page.locator("[aria-selected=true]").first();
  assert.equal(await selected().locator(".tree-name").innerText(), "model");
  assert.equal(await selected().getAttribute("aria-expanded"), "true");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await selected().getAttribute("aria-expanded"), "false");
  assert.equal(await page.locator("[role=treeitem]").count(), 1);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.equal(await selected().getAttribute("aria-level"), "2");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await selected().getAttribute("aria-level"), "1");
  await page.fill("input[type=search]", "layers.2.attn.softmax");
  await settle();
  assert.ok((await page.locator("[role=treeitem]").count()) >= 5);
  await shot(page, "modules");
  await page.locator("[role=treeitem]").last().click();
  await page.waitForURL(/#\/(tensor|table)/);
});

test("table: find, moods, conditions, sorting, columns, CSV", async () => {
  page = await bench.open("small", "#/table/0");
  await page.waitForSelector(".line");
  await shot(page, "table");
  await page.fill(".find", "mlp.down");
  await settle();
  assert.match(await text(".count"), /^8 of 88 rows/);
  await page.getByRole("button", { name: "Copy the rows shown as CSV" }).click();
  await settle();
  assert.equal(page.copied[0].trim().split("\n").length, 9);
  assert.match(page.copied[0], /^Index,Name,Verdict,/);
  await page.getByRole("button", { name: "Clear all" }).click();
  await page.locator(".toolbar .pick button", { hasText: "bad" }).click();
  await settle();
  assert.match(await text(".count"), /^1 of 88/);
  await page.getByRole("button", { name: "Clear all" }).click();

  await page.getByLabel("Only rows where Verdict is").selectOption("=inherited");
  await page.getByLabel("Only rows where RelErr is").fill(">1e-4");
  await settle();
  assert.match(page.url(), /c3=.*inherited/);
  await page.reload();
  await page.waitForSelector(".line");
  assert.match(await text(".count"), / of 88 rows/);
  await page.getByRole("button", { name: "Clear all" }).click();

  const title = page.getByRole("button", { name: /^RelErr/ });
  await title.click();
  await settle();
  assert.equal(await page.locator("[role=columnheader][aria-sort=ascending]").count(), 1);
  assert.equal(await firstRow(6), "0");
  await title.focus();
  await page.keyboard.press("Enter");
  await settle();
  assert.equal(await page.locator("[role=columnheader][aria-sort=descending]").count(), 1);
  assert.ok(Number(await firstRow(6)) > 1e-4);

  await page.locator(".menu summary").click();
  await page.getByLabel("Dtype", { exact: true }).uncheck();
  await settle();
  assert.equal(await page.getByRole("button", { name: /^Dtype/ }).count(), 0);
  assert.match(page.url(), /hide=10/);
});

test("table: keyboard, drawer, tensor page and back", async () => {
  page = await bench.open("small", "#/table/0");
  await page.waitForSelector(".line");
  await page.locator("[role=grid]").focus();
  await page.keyboard.press("End");
  await settle();
  assert.equal(await page.locator(".line[aria-selected=true] .cell").nth(1).innerText(), "87");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator(".line[aria-selected=true] .cell").nth(1).innerText(), "2");
  await page.keyboard.press("Space");
  await page.waitForSelector(".drawer");
  assert.equal(await page.locator(".drawer dt").count(), 11);
  await shot(page, "drawer");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".drawer").count(), 0);
  await page.getByLabel("Only rows where Verdict is").selectOption("=fault");
  await settle();
  await page.locator(".line").first().click();
  await page.waitForSelector(".tensor-name");
  await page.goBack();
  await page.waitForSelector(".line");
  assert.match(await text(".count"), /^1 of 88/);
  assert.equal(await page.locator(".line[aria-selected=true]").count(), 1);
});

test("several tables are tabs, links lead to rows", async () => {
  page = await bench.open("small", "#/table/1");
  await page.waitForSelector(".line");
  assert.equal(await text("nav [aria-current]"), "Device 2");
  assert.equal(await page.locator(".line").nth(1).locator(".cell").nth(2).innerText(), "3.055902e-13");
  await page.evaluate(() => (location.hash = "#/table/0?row=80"));
  await page.waitForSelector(".drawer");
  assert.match(await text(".drawer h2"), /Row 81/);
  await page.evaluate(() => (location.hash = "#/nowhere"));
  await page.waitForSelector("text=There is nothing here");
});

test("tensor: all that is known of it", async () => {
  page = await bench.open("small", "#/tensor/0");
  await page.waitForSelector(".tensor-name");
  assert.equal(await page.locator(".steps-chart").count(), 7);
  await settle();
  await shot(page, "tensor", true);
  await page.locator(".steps-chart svg").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await text(".steps-chart figcaption"), /to .*: target .*golden/);
  await page.locator(".cellmap-box").focus();
  await page.keyboard.press("f");
  assert.match(await text(".cellmap .readout"), /axis 1: .*axis 2: .*(error up to|not finite)/);
  await page.keyboard.press("f");
  assert.match(await text(".cellmap .readout"), /error up to 0\.031/);
  const map = await picture(page, ".cellmap");
  await page.getByRole("combobox", { name: /^Axes/ }).selectOption("1");
  await settle();
  assert.notEqual(await picture(page, ".cellmap"), map);
  assert.equal(await page.locator(".window td.worst").count(), 1);
  assert.match(await page.locator(".window td.worst").innerText(), /0\.28/);
  await page.getByRole("button", { name: "all three" }).click();
  assert.match(await page.locator(".window td.worst").innerText(), /^-?[\d.]+\n-?[\d.]+\n0\.28/);
  await page.getByLabel("Logarithmic heights").check();
  await page.getByRole("button", { name: "Copy this command" }).first().click();
  await settle();
  assert.match(page.copied[0], /^plumb capsule/);
  assert.ok(await page.locator("text=line 88, in attention").isVisible());
});

test("tensors of one axis and of none", async () => {
  page = await bench.open("small", "#/tensor/1");
  await page.waitForSelector(".cellmap canvas");
  assert.match(await page.locator(".window td.worst").innerText(), /^-0\.25/);
  await page.locator(".cellmap-box").focus();
  await page.keyboard.press("ArrowRight");
  await settle();
  assert.match(await text(".cellmap .readout"), /^axis 0: 0: error up to 0\.25/);
  await shot(page, "tensor-line", true);
  await page.getByRole("link", { name: "Next" }).click();
  await page.waitForSelector(".tensor-name");
  await settle();
  assert.match(await text(".tensor"), /shape \[\s*\]/);
  await shot(page, "tensor-scalar", true);
});

test("grids: at a glance and cell by cell", async () => {
  page = await bench.open("ranks", "#/grid/1");
  await page.waitForSelector(".cellmap canvas");
  await settle();
  await shot(page, "grid");
  await page.locator(".cellmap-box").focus();
  await page.keyboard.press("f");
  assert.match(await text(".cellmap .readout"), /bad.*rank 8.*the worst of 19/s);
  await page.getByLabel("At a glance").uncheck();
  await page.getByRole("button", { name: "relative distance" }).click();
  await settle();
  await shot(page, "grid-values");
  await page.locator(".cellmap-box").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  assert.match(await text(".cellmap .readout"), /rank \d+/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/(table|tensor)/);
});

test("steps: search, statistics, jumps", async () => {
  page = await bench.open("steps", "#/steps");
  await page.waitForSelector(".chart canvas");
  await settle();
  await shot(page, "steps");
  const one = await picture(page, ".chart");
  await page.fill("input[type=search]", "layers.11.");
  await settle();
  assert.notEqual(await picture(page, ".chart"), one);
  assert.match(page.url(), /tensor=11/);
  await page.getByLabel("Statistic").selectOption("2");
  await page.getByLabel("Logarithmic").check();
  await page.locator(".jumps button").nth(1).click();
  await page.waitForURL(/tensor=2/);
  await settle();
  await page.locator(".chart").focus();
  await page.keyboard.press("f");
  assert.match(await text(".readout"), /Step 60: min .*earlier run/);
});

test("dark: as the system has it, and by hand", async () => {
  page = await bench.open("small", "", { colorScheme: "dark" });
  await page.waitForSelector(".answer");
  const back = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.equal(await back(), "rgb(21, 24, 28)");
  await page.getByRole("button", { name: "Dark" }).click();
  assert.equal(await back(), "rgb(255, 255, 255)");
  await page.getByRole("button", { name: "Dark" }).click();
  for (const hash of ["overview", "curve", "modules", "table/0", "tensor/0"]) {
    await page.evaluate((to) => (location.hash = `#/${to}`), hash);
    await settle();
    await shot(page, `dark-${hash.replace("/", "-")}`, true);
  }
});

test("paper: the answer, the curve and the worst rows, no navigation", async () => {
  page = await bench.open("calls", "#/table/0", { colorScheme: "dark" });
  await page.waitForSelector(".line");
  await settle();
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("nav").isVisible(), false);
  assert.equal(await page.locator("[role=grid]").isVisible(), false);
  assert.ok(await page.locator(".print .answer").isVisible());
  assert.ok(await page.locator(".print .paper-curve").isVisible());
  assert.equal(await page.locator(".print tbody tr").count(), 30);
  await page.emulateMedia({ media: null });
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 10000 && pdf.subarray(0, 5).toString() === "%PDF-");
  await page.emulateMedia({ media: "print" });
  await shot(page, "paper", true);
});

test("narrow: 320 pixels, nothing sticks out", async () => {
  page = await bench.open("small", "", { width: 320, height: 640 });
  await page.waitForSelector(".answer");
  for (const hash of ["overview", "curve", "modules", "table/0", "tensor/0", "tensors", "about"]) {
    await page.evaluate((to) => (location.hash = `#/${to}`), hash);
    await settle();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 320, `${hash} is ${wide} wide`);
    await shot(page, `narrow-${hash.replace("/", "-")}`);
  }
});

test("all controls have names", async () => {
  page = await bench.open("ranks");
  await page.waitForSelector(".answer");
  for (const hash of ["overview", "curve", "modules", "table/0", "tensor/0", "grid/0", "about"]) {
    await page.evaluate((to) => (location.hash = `#/${to}`), hash);
    await settle();
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, a, input, select, [tabindex='0'], svg[role=img]")]
        .filter((e) => e.checkVisibility())
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")))
        .map((e) => e.outerHTML.slice(0, 120)),
    );
    assert.deepEqual(nameless, []);
    const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
    assert.equal(new Set(ids).size, ids.length);
  }
});
