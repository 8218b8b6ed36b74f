/** Real reports without a mouse, as a screen reader has them, and with names that try to be something else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { settle, shot } from "./browser.mjs";
import { open as openReport, page } from "./reports.mjs";

const open = (t, kind) => openReport(t, kind, { width: 1280, height: 800 });

/** Presses Tab until what has the focus fits; how often that was. */
async function tabTo(fits, most = 60) {
  for (let n = 1; n <= most; n++) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const e = document.activeElement;
      const box = e.getBoundingClientRect();
      const style = getComputedStyle(e);
      return { text: e.textContent.slice(0, 200), label: e.getAttribute("aria-label") ?? "", role: e.getAttribute("role") ?? "",
               tag: e.tagName, wide: box.width, outline: style.outlineStyle };
    });
    if (seen.tag !== "BODY") {
      assert.ok(seen.wide > 0, `the focus is on something that is not seen: ${seen.tag} ${seen.text}`);
      assert.notEqual(seen.outline, "none", `no ring round ${seen.tag} ${seen.text} ${seen.label}`);
    }
    if (fits(seen)) return n;
  }
  assert.fail("Tab does not lead there");
}

const views = async () => [
  ...(await page.locator("nav a").evaluateAll((list) => list.map((a) => a.getAttribute("href")))),
  ...((await page.locator("nav a", { hasText: "Tensors" }).count()) ? ["#/tensor/0"] : []),
];

test("by keys alone: from the answer to the tensor, back, through the curve, the tree and the table", async (t) => {
  if (!(await open(t, "transformer"))) return;
  await tabTo((e) => e.tag === "A" && /Functional\.softmax\.2/.test(e.text));
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tensor-name");
  await page.goBack();
  await page.waitForSelector("main .answer");
  await settle(page);

  await tabTo((e) => e.tag === "A" && e.text === "Error along the network");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".chart canvas");
  await settle(page);
  await tabTo((e) => /adds by itself/.test(e.label) || (e.tag === "DIV" && e.label));
  await page.keyboard.press("f");
  assert.match(await page.locator(".readout").first().innerText(), /Functional\.softmax\.2\.forward/);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tensor-name");

  await page.evaluate(() => (location.hash = "#/modules"));
  await page.waitForSelector("[role=tree]");
  await settle(page);
  await tabTo((e) => e.role === "treeitem" || e.role === "tree");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("[role=treeitem][aria-selected=true]").count(), 1);

  await page.evaluate(() => (location.hash = "#/table/0"));
  await page.waitForSelector(".line");
  await settle(page);
  await tabTo((e) => e.role === "grid" || e.role === "row" || e.role === "gridcell");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.ok(await page.locator(".drawer, .tensor-name").first().isVisible());
});

/** What a screen reader would say: role and name of all that can be reached or looked at. */
async function spoken() {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  return nodes
    .filter((node) => !node.ignored)
    .map((node) => ({ role: node.role?.value ?? "", name: (node.name?.value ?? "").trim() }));
}

test("for a screen reader: everything that can be used has a name, each view one heading, the answer its words", async (t) => {
  const named = new Set("button link searchbox textbox combobox checkbox radio slider grid tree treeitem img image tab region navigation".split(" "));
  for (const kind of ["transformer", "ranks", "steps"]) {
    if (!(await open(t, kind))) return;
    for (const view of await views()) {
      await page.evaluate((to) => (location.hash = to), view);
      await settle(page);
      const nodes = await spoken();
      const nameless = nodes.filter(({ role, name }) => named.has(role) && !name);
      assert.deepEqual(nameless, [], `${kind} ${view}`);
      assert.equal(await page.locator("main h1").count(), 1, `${kind} ${view}`);
      assert.ok(nodes.some(({ role }) => role === "main") && nodes.some(({ role }) => role === "navigation"), view);
      if (view === "#/overview") {
        const words = nodes.map(({ name }) => name).join("\n");
        assert.match(words, kind === "steps" ? /jumps?, the first in step 27/ : /wrong/);
        assert.match(words, /bad|in doubt/); // the sign of the answer has a word
      }
    }
    assert.deepEqual(page.faults, []);
    if (kind !== "steps") await page.context().close();
  }
});

test("names, modules, lines and paths that are markup: they are texts everywhere", async (t) => {
  if (!(await open(t, "hostile"))) return;
  for (const view of await views()) {
    await page.evaluate((to) => (location.hash = to), view);
    await settle(page);
    assert.equal(await page.locator(".message").count(), 0, view);
    assert.equal(await page.locator("main img, main script, main b b, main [onerror]").count(), 0, view);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${view} sticks out by ${wide}`);
    const hidden = await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069\x1b]/.test(document.body.innerText));
    assert.equal(hidden, false, view);
    await shot(page, `real-hostile${view.replace(/\W+/g, "-")}`, true);
  }
  await page.evaluate(() => (location.hash = "#/tensor/0"));
  await page.waitForSelector(".tensor-name");
  assert.match(await page.locator(".tensor").innerText(), /<\/script><script>alert\(1\)<\/script>/);
  assert.match(await page.locator(".tensor").innerText(), /plumb capsule 'a'\\''b <b>c' Torch\.mul\.0 /);
});
