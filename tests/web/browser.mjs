/** A browser, reports, and a watch on what pages do. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg, tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
/** From the folder that tests/run.py installed packages into, or from beside this file. */
export const packages = createRequire(path.join(process.env.PLUMB_NODE_MODULES ?? here, "package.json"));
const { chromium } = packages("playwright-core");
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const shots = process.env.SHOTS ?? "";
if (shots) mkdirSync(shots, { recursive: true });

export class Bench {
  async start() {
    this.folder = mkdtempSync(path.join(tmpdir(), "plumb-report-"));
    this.made = new Map();
    this.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: FLAGS,
      env: { ...process.env, HOME: this.folder, XDG_CONFIG_HOME: this.folder, XDG_CACHE_HOME: this.folder },
    });
  }

  async stop() {
    await this.browser.close();
    rmSync(this.folder, { recursive: true });
  }

  /** The address of a report of this kind; made at its first use. real-KIND: by the program PLUMB. */
  report(kind) {
    if (!this.made.has(kind)) {
      const file = path.join(this.folder, `${kind}.html`);
      const [, real] = /^real-(.*)/.exec(kind) ?? [];
      const script = real ? ["real_reports.py", process.env.PLUMB, real] : ["make_report.py", kind];
      execFileSync(process.env.PLUMB_PYTHON ?? "python3", [path.join(here, script[0]), ...script.slice(1), file]);
      this.made.set(kind, pathToFileURL(file).href);
    }
    return this.made.get(kind);
  }

  /**
   * Opens a report. `page.faults` has whatever must not happen: dialogs, errors, requests for
   * anything but the file. `page.copied` has what was copied,
   * `page.worked()` says how many ms the page's thread has worked, whatever else the machine does.
   */
  async open(kind, hash = "", { width = 1280, height = 860, ...options } = {}) {
    const address = this.report(kind);
    const context = await this.browser.newContext({ viewport: { width, height }, ...options });
    const page = await context.newPage();
    page.faults = [];
    page.copied = [];
    await context.route("**/*", (route) => {
      const url = route.request().url();
      if (url.split("#")[0] === address || url === "data:,") return route.continue();
      page.faults.push(`request: ${url}`);
      return route.abort();
    });
    page.on("dialog", (dialog) => (page.faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
    page.on("pageerror", (error) => page.faults.push(`error: ${error.stack ?? error.message}`));
    page.on("console", (message) => page.faults.push(`console: ${message.text()}`));
    await page.exposeFunction("plumbTestCopied", (text) => void page.copied.push(text));
    await page.addInitScript(() => {
      Object.defineProperty(navigator, "clipboard", {
        value: { writeText: (text) => window.plumbTestCopied(text) },
      });
    });
    const session = await context.newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    page.worked = async () => {
      const { metrics } = await session.send("Performance.getMetrics");
      return metrics.find((m) => m.name === "TaskDuration").value * 1000;
    };
    await page.goto(address + hash);
    return page;
  }
}

/** A picture for people, when a folder is given for them. */
export async function shot(page, name, full = false) {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: full });
}

/** A picture for the pages in docs, when PICTURES names the folder for them. */
export async function take(page, name, size = { width: 1100, height: 620 }) {
  if (!process.env.PICTURES) return;
  const before = page.viewportSize();
  await page.setViewportSize(size);
  await page.evaluate(() => scrollTo(0, 0));
  await settle(page);
  await page.screenshot({ path: path.join(process.env.PICTURES, `${name}.png`) });
  await page.setViewportSize(before);
  await settle(page);
}

/** Until what was asked for has been done: the timers of the page, which are shorter, and then its work. */
export async function settle(page) {
  await page.waitForTimeout(350);
  await page.evaluate(
    () => new Promise((done) => requestAnimationFrame(() => requestIdleCallback(done, { timeout: 5000 }))),
  );
}

/** Whether other programs want the processors, too: what a clock says is then not about the page. */
export function busy() {
  return loadavg()[0] > cpus().length;
}

/** What the canvas inside an element shows. */
export function picture(page, selector) {
  return page.locator(`${selector} canvas`).first().evaluate((canvas) => canvas.toDataURL());
}

/** Times between frames while `act` runs in the page. */
export async function frames(page, act) {
  await page.evaluate(() => {
    window.plumbFrames = [];
    let last = performance.now();
    const tick = (now) => {
      window.plumbFrames.push(now - last);
      last = now;
      window.plumbTick = requestAnimationFrame(tick);
    };
    window.plumbTick = requestAnimationFrame(tick);
  });
  await act();
  const times = await page.evaluate(() => (cancelAnimationFrame(window.plumbTick), window.plumbFrames.slice(1)));
  times.sort((a, b) => a - b);
  return { count: times.length, p50: times[Math.floor(times.length * 0.5)], p95: times[Math.floor(times.length * 0.95)] };
}

/** How long the page's thread works while `act` runs, in ms, whatever else the machine does. */
export async function work(page, act) {
  const before = await page.worked();
  await act();
  return (await page.worked()) - before;
}
