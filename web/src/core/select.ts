/** Which rows of a table are shown, and in which order. */
import type { Cells, Sheet } from "./cells";
import { moodOf } from "./mood";

export interface Sorting {
  column: number;
  down: boolean;
}

export interface Choice {
  find: string; // in any text
  moods: number; // bits, of moods that are shown
  columns: ReadonlyMap<number, string>; // conditions
  sorting: Sorting | null;
}

export const ALL_MOODS = 15;

type Test = (row: number) => boolean;

const COMPARISON = /^(<=|>=|!=|<|>|=)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf|nan)$/i;

function operand(text: string): number {
  const low = text.toLowerCase();
  if (low === "nan") return NaN;
  if (low.endsWith("inf")) return low[0] === "-" ? -Infinity : Infinity;
  return Number(text);
}

function comparing(sign: string, than: number): (value: number) => boolean {
  switch (sign) {
    case "<":
      return (v) => v < than;
    case "<=":
      return (v) => v <= than;
    case ">":
      return (v) => v > than;
    case ">=":
      return (v) => v >= than;
    case "!=":
      return Number.isNaN(than) ? (v) => !Number.isNaN(v) : (v) => v !== than;
    default:
      return Number.isNaN(than) ? (v) => Number.isNaN(v) : (v) => v === than;
  }
}

/** For each text of a column: whether it is wanted. */
function wanted(cells: Cells, test: (text: string) => boolean): Uint8Array {
  return Uint8Array.from(cells.column.dictionary, (text) => (test(text) ? 1 : 0));
}

function textTest(cells: Cells, test: (text: string) => boolean, empty: boolean): Test {
  const words = wanted(cells, test);
  return (row) => {
    const word = cells.word(row);
    if (word >= 0) return words[word] === 1;
    return word === -1 ? test(cells.shown(row).toLowerCase()) : empty;
  };
}

/**
 * What a column's condition asks for: ">1e-3", "<=0", "=nan" compare numbers; "=text" and "!=text"
 * whole texts, "!text" what does not contain it; "empty" and "!empty"; else what contains it.
 */
export function condition(cells: Cells, text: string): Test | null {
  const rule = text.trim();
  if (!rule) return null;
  const compare = COMPARISON.exec(rule);
  if (compare && cells.hasNumbers) {
    const test = comparing(compare[1], operand(compare[2]));
    return (row) => cells.word(row) === -1 && test(cells.number(row));
  }
  const low = rule.toLowerCase();
  if (low === "empty") return (row) => cells.word(row) === -2;
  if (low === "!empty") return (row) => cells.word(row) !== -2;
  const [, sign, word] = /^(!=|=|!)?\s*(.*)$/s.exec(low) as unknown as [string, string, string];
  if (sign === "=") return textTest(cells, (t) => t.toLowerCase() === word, false);
  if (sign === "!=") return textTest(cells, (t) => t.toLowerCase() !== word, true);
  if (sign === "!") return textTest(cells, (t) => !t.toLowerCase().includes(word), true);
  return textTest(cells, (t) => t.toLowerCase().includes(low), false);
}

function findTest(sheet: Sheet, find: string): Test | null {
  const low = find.trim().toLowerCase();
  if (!low) return null;
  const columns = sheet.cells
    .filter((cells) => cells.column.dictionary.length > 0)
    .map((cells) => ({ cells, words: wanted(cells, (t) => t.toLowerCase().includes(low)) }))
    .filter(({ words }) => words.includes(1));
  return (row) =>
    columns.some(({ cells, words }) => {
      const word = cells.word(row);
      return word >= 0 && words[word] === 1;
    });
}

/** Numbers before NaN before texts before nothing, whichever way is sorted; then as they came. */
function sort(rows: Int32Array, cells: Cells, down: boolean): void {
  const { dictionary } = cells.column;
  const order = dictionary.map((_, i) => i).sort((a, b) => (dictionary[a] < dictionary[b] ? -1 : 1));
  const rank = new Float64Array(dictionary.length);
  let last = 0;
  order.forEach((place, i) => {
    if (i > 0 && dictionary[place] !== dictionary[order[i - 1]]) last = i;
    rank[place] = last;
  });

  const size = rows.reduce((most, row) => Math.max(most, row), -1) + 1;
  const key = new Float64Array(size);
  const group = new Uint8Array(size);
  for (const row of rows) {
    const word = cells.word(row);
    const value = word >= 0 ? rank[word] : word === -1 ? cells.number(row) : 0;
    group[row] = word >= 0 ? 2 : word === -2 ? 3 : Number.isNaN(value) ? 1 : 0;
    key[row] = Number.isNaN(value) ? 0 : value;
  }
  const way = down ? -1 : 1;
  rows.sort((a, b) => {
    if (group[a] !== group[b]) return group[a] - group[b];
    if (key[a] !== key[b]) return key[a] < key[b] ? -way : way;
    return a - b;
  });
}

export function select(sheet: Sheet, choice: Choice): Int32Array {
  const tests: Test[] = [];
  if (choice.moods !== ALL_MOODS) tests.push((row) => ((choice.moods >> moodOf(sheet.mood[row])) & 1) === 1);
  const find = findTest(sheet, choice.find);
  if (find) tests.push(find);
  for (const [column, text] of choice.columns) {
    const cells = sheet.cells[column];
    const test = cells ? condition(cells, text) : null;
    if (test) tests.push(test);
  }
  const rows = new Int32Array(sheet.table.rows);
  let count = 0;
  for (let row = 0; row < sheet.table.rows; row++)
    if (tests.every((test) => test(row))) rows[count++] = row;
  const kept = rows.slice(0, count);
  const cells = choice.sorting ? sheet.cells[choice.sorting.column] : undefined;
  if (cells && choice.sorting) sort(kept, cells, choice.sorting.down);
  return kept;
}
