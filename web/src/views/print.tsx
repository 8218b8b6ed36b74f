/** What goes on paper: the overview and the worst rows. Hidden on the screen. */
import type { JSX } from "preact";
import { sheetOf, type Sheet } from "../core/cells";
import { moodOf } from "../core/mood";
import { useStore } from "../core/report";
import { clipped } from "../core/text";
import { Badge } from "../ui/badge";
import { Overview } from "./overview";

const ROWS = 30;
const COLUMNS = 8;

function worstRows(sheet: Sheet): number[] {
  const rows: number[] = [];
  for (const mood of [0, 1, 2, 3])
    for (let row = 0; row < sheet.table.rows && rows.length < ROWS; row++)
      if (moodOf(sheet.mood[row]) === mood) rows.push(row);
  return rows;
}

function Rows({ sheet }: { sheet: Sheet }): JSX.Element {
  const cells = sheet.cells.slice(0, COLUMNS);
  const rows = worstRows(sheet);
  return (
    <section>
      <h2>
        {clipped(sheet.table.name, 60)}: the worst {rows.length} of {sheet.table.rows.toLocaleString("en")} rows
      </h2>
      <table class="plain">
        <thead>
          <tr>
            <th />
            {cells.map((c) => (
              <th class={c.column.left ? "left" : ""}>{clipped(c.column.title, 30)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              <td>
                <Badge mood={moodOf(sheet.mood[row])} />
              </td>
              {cells.map((c) => (
                <td class={c.column.left ? "left" : ""}>{clipped(c.shown(row), 60)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Paper(): JSX.Element {
  const store = useStore();
  const { report } = store;
  return (
    <>
      <h1>{clipped(report.title, 200)}</h1>
      <Overview print />
      {report.tables.slice(0, 1).map((table) => (
        <Rows sheet={sheetOf(store, table)} />
      ))}
      <p class="soft">
        plumb {clipped(report.plumb, 40)}, {clipped(report.made, 40)}
      </p>
    </>
  );
}
