import type { Sheet } from "../core/cells";

const SAMPLES = 300;
const WIDEST = { text: 44, number: 22 };

/** Widths of columns in characters, by a look at some of the rows. */
export function widths(sheet: Sheet): number[] {
  const { rows } = sheet.table;
  const step = Math.max(1, Math.floor(rows / SAMPLES));
  return sheet.cells.map((cells) => {
    const { title, left } = cells.column;
    let most = Math.min(title.length + 3, 20);
    for (let row = 0; row < rows; row += step) most = Math.max(most, cells.shown(row).length);
    return Math.min(Math.max(most, 6), left ? WIDEST.text : WIDEST.number) + 2;
  });
}
