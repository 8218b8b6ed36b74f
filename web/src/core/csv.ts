/** The same CSV as the program writes (src/report/csv.c). */
import type { Sheet } from "./cells";
import { HIDDEN } from "./text";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Spreadsheets run such a cell; a quote before it makes it text. */
function isFormula(text: string): boolean {
  if (!/^[=+\-@\t\r]./s.test(text)) return false;
  const rest = text.slice(1);
  return rest !== "inf" && rest !== "NaN" && !NUMBER.test(text);
}

export function csvText(text: string): string {
  const safe = (isFormula(text) ? "'" : "") + text.replace(HIDDEN, "\ufffd");
  return /[,"\r\n]/.test(text) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

export function csv(sheet: Sheet, rows: ArrayLike<number>, columns: number[]): string {
  const cells = columns.map((k) => sheet.cells[k]);
  const lines = [cells.map((c) => csvText(c.column.title)).join(",")];
  for (let i = 0; i < rows.length; i++) {
    const line = cells
      .map((c) => (c.word(rows[i]) >= 0 ? csvText(c.exact(rows[i])) : c.exact(rows[i])))
      .join(",");
    lines.push(line === "" ? '""' : line); // a line with nothing on it would not be read as a row
  }
  return lines.join("\n") + "\n";
}
