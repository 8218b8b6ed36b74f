/** What tests of real reports share: a browser, a page at a time, and whether there is a program to write reports. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, afterEach, before } from "node:test";
import { Bench, settle } from "./browser.mjs";

const bench = new Bench();
let missing = "";

/** The page of the test that runs; null before open(). */
export let page = null;

/** Whether the Python that makes reports has a module. */
export function has(module) {
  try {
    execFileSync(process.env.PLUMB_PYTHON ?? "python3", ["-c", `import ${module}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

before(() => {
  if (!process.env.PLUMB) missing = "PLUMB names no program";
  else if (!has("numpy")) missing = "numpy is not installed";
  return missing ? undefined : bench.start();
});
after(() => (missing ? undefined : bench.stop()));
afterEach(async () => {
  if (!page) return;
  const faults = page.faults;
  await page.context().close();
  page = null;
  assert.deepEqual(faults, []);
});

/** Opens a report of that kind and waits for what is named; false, and the test is skipped, where nothing can write it. */
export async function open(t, kind, options, selector = "main .answer") {
  if (missing) {
    t.skip(missing);
    return false;
  }
  page = await bench.open(`real-${kind}`, "", options);
  await page.waitForSelector(selector);
  await settle(page);
  return true;
}
