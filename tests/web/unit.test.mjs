/** Numbers, rows, and CSV: the parts of the page that need no browser. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { packages } from "./browser.mjs";

const web = new URL("../../web/", import.meta.url);
const { build } = packages("esbuild");

const bundled = await build({
  stdin: {
    contents: ["number", "select", "cells", "csv", "text"].map((m) => `export * from "./src/core/${m}";`).join("\n"),
    resolveDir: web.pathname,
  },
  bundle: true,
  write: false,
  format: "esm",
});
const code = Buffer.from(bundled.outputFiles[0].text).toString("base64");
const core = await import(`data:text/javascript;base64,${code}`);

function fromBits(hex) {
  return Buffer.from(hex, "hex").readDoubleBE(0);
}

test("numbers are those that the program prints", () => {
  const list = JSON.parse(readFileSync(new URL("numbers.json", import.meta.url), "utf8"));
  assert.ok(list.length > 500);
  for (const [bits, exact, number, repr, percent, digits] of list) {
    const value = fromBits(bits);
    assert.equal(core.exact(value), exact, `exact ${bits}`);
    assert.equal(core.shown(value, "number"), number, `number ${bits}`);
    assert.equal(core.shown(value, "text"), number, `text ${bits}`);
    assert.equal(core.shown(value, "repr"), repr, `repr ${bits}`);
    assert.equal(core.shown(value, "percent"), percent, `percent ${bits}`);
    assert.equal(core.shown(value, "digits"), digits, `digits ${bits}`);
  }
});

test("integers have all their digits", () => {
  assert.equal(core.integer(12345678), "12345678");
  assert.equal(core.integer(-(2 ** 53)), "-9007199254740992");
  assert.equal(core.integer(2 ** 60), "1152921504606846976");
});

test("integers of a column keep their look in every style", () => {
  const arrays = [[12345678, 12345678, 3, 3], [1, 0, 1, 0]];
  const store = { get: (bulk) => arrays[bulk.at] };
  const look = (style) => {
    const column = { title: "", style, left: false, dictionary: [], numbers: { at: 0 }, whole: { at: 1 } };
    const cells = new core.Cells(store, column);
    return [0, 1, 2, 3].map((row) => cells.shown(row));
  };
  assert.deepEqual(look("digits"), ["12345678", "1.234568e+07", "3", "3"]);
  assert.deepEqual(look("repr"), ["12345678", "12345678.0", "3", "3.0"]);
});

/** A sheet of these columns; numbers, texts, null. */
function sheet(columns, moods) {
  const arrays = [];
  const put = (array) => ({ at: arrays.push(array) - 1 });
  const store = { get: (bulk) => arrays[bulk.at] };
  const described = Object.entries(columns).map(([title, values]) => {
    const dictionary = [...new Set(values.filter((v) => typeof v === "string"))];
    return {
      title,
      style: "number",
      left: false,
      dictionary,
      words: put(values.map((v) => (typeof v === "string" ? dictionary.indexOf(v) : v === null ? -2 : -1))),
      numbers: put(values.map((v) => (typeof v === "number" ? v : 0))),
    };
  });
  const rows = Object.values(columns)[0].length;
  const mood = put(moods ?? new Array(rows).fill(3));
  return core.sheetOf(store, { name: "", rows, columns: described, mood, tensor: put(new Array(rows).fill(-1)) });
}

const every = { find: "", moods: core.ALL_MOODS, columns: new Map(), sorting: null };
const rows = (s, choice) => [...core.select(s, { ...every, ...choice })];

test("sorting: numbers, NaN, texts, nothing; equal ones as they came", () => {
  const s = sheet({ a: [2, null, "b", NaN, 1, "a", 2, -Infinity, "b"] });
  assert.deepEqual(rows(s, { sorting: { column: 0, down: false } }), [7, 4, 0, 6, 3, 5, 2, 8, 1]);
  assert.deepEqual(rows(s, { sorting: { column: 0, down: true } }), [0, 6, 4, 7, 3, 2, 8, 5, 1]);
  assert.deepEqual(rows(s, { sorting: { column: 9, down: true } }).length, 9);
});

test("conditions of columns", () => {
  const s = sheet({ n: [1e-3, 2e-3, NaN, null, "N/A", -1], t: ["Fault", "rounding", "fault", null, "", "same"] });
  const only = (column, text) => rows(s, { columns: new Map([[column, text]]) });
  assert.deepEqual(only(0, ">1e-3"), [1]);
  assert.deepEqual(only(0, ">= 1e-3"), [0, 1]);
  assert.deepEqual(only(0, "<0"), [5]);
  assert.deepEqual(only(0, "=nan"), [2]);
  assert.deepEqual(only(0, "!=nan"), [0, 1, 5]);
  assert.deepEqual(only(0, "empty"), [3]);
  assert.deepEqual(only(0, "n/a"), [4]);
  assert.deepEqual(only(0, "0.00"), [0, 1]);
  assert.deepEqual(only(1, "fault"), [0, 2]);
  assert.deepEqual(only(1, "=FAULT"), [0, 2]);
  assert.deepEqual(only(1, "!fault"), [1, 3, 4, 5]);
  assert.deepEqual(only(1, "  "), [0, 1, 2, 3, 4, 5]);
});

test("finding texts and moods", () => {
  const s = sheet({ a: ["Layer.1", "layer.2", "x"], b: ["x", "y", "z"] }, [0, 1, 3]);
  assert.deepEqual(rows(s, { find: "LAYER" }), [0, 1]);
  assert.deepEqual(rows(s, { find: "x" }), [0, 2]);
  assert.deepEqual(rows(s, { moods: 0b0011 }), [0, 1]);
  assert.deepEqual(rows(s, { find: "nowhere" }), []);
});

test("CSV is that of the program", () => {
  const s = sheet({ "a,b": ["=1+1", 'say "x"', "-inf", "-1.5", "l1\nl2", "\u202ex"], n: [0.1, 1e-20, NaN, null, -0, 12345678.5] });
  assert.equal(
    core.csv(s, [0, 1, 2, 3, 4, 5], [0, 1]),
    '"a,b",n\n' + "'=1+1,0.1\n" + '"say ""x""",1e-20\n' + "-inf,NaN\n" + "-1.5,\n" + '"l1\nl2",-0\n' + "\ufffdx,12345678.5\n",
  );
  assert.equal(core.csv(sheet({ a: [null] }), [0], [0]), 'a\n""\n');
});

test("nothing in a text is hidden or too long", () => {
  assert.equal(core.visible("a\u202eb\u0000"), "a⟨U+202E⟩b⟨U+0000⟩");
  assert.ok(core.clipped("x".repeat(10000)).length < 200);
  assert.equal(core.clipped("a\nb"), "a b");
});
