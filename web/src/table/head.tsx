import type { JSX } from "preact";
import type { Cells, Sheet } from "../core/cells";
import type { Sorting } from "../core/select";
import { clipped } from "../core/text";
import type { TableState } from "./state";

interface Props {
  sheet: Sheet;
  columns: number[];
  state: TableState;
  set: (change: Partial<TableState>) => void;
}

const FEW = 12;

/** Up, down, as it came. */
function nextSorting(now: Sorting | null, column: number): Sorting | null {
  if (now?.column !== column) return { column, down: false };
  return now.down ? null : { column, down: true };
}

function Filter(props: { cells: Cells; value: string; onSet: (text: string) => void }): JSX.Element {
  const { cells, value, onSet } = props;
  const { title, dictionary } = cells.column;
  const name = `Only rows where ${clipped(title, 40)} is`;
  if (!cells.hasNumbers && dictionary.length > 1 && dictionary.length <= FEW)
    return (
      <select aria-label={name} value={value} onChange={(e) => onSet(e.currentTarget.value)}>
        <option value="">all</option>
        {!["", "empty", ...dictionary.map((text) => `=${text.toLowerCase()}`)].includes(value) && (
          <option value={value}>{clipped(value, 40)}</option>
        )}
        {[...dictionary].sort().map((text) => (
          <option value={`=${text.toLowerCase()}`}>{clipped(text, 40) || "(nothing)"}</option>
        ))}
        {cells.hasEmpty && <option value="empty">(empty)</option>}
      </select>
    );
  return (
    <input
      type="text"
      aria-label={name}
      placeholder={cells.hasNumbers ? ">1e-3" : "contains"}
      title="Numbers: >1e-3, <=0, =nan. Texts: part of it, =all of it, !without it. Also: empty, !empty."
      value={value}
      spellcheck={false}
      onInput={(e) => onSet(e.currentTarget.value)}
    />
  );
}

export function Head({ sheet, columns, state, set }: Props): JSX.Element {
  const { choice } = state;
  const sort = (column: number): void =>
    set({ choice: { ...choice, sorting: nextSorting(choice.sorting, column) } });
  const filter = (column: number, text: string): void => {
    const map = new Map(choice.columns);
    if (text) map.set(column, text);
    else map.delete(column);
    set({ choice: { ...choice, columns: map } });
  };
  const way = (column: number): "ascending" | "descending" | "none" =>
    choice.sorting?.column !== column ? "none" : choice.sorting.down ? "descending" : "ascending";
  return (
    <div class="grid-head" role="rowgroup">
      <div class="grid-row titles" role="row" aria-rowindex={1}>
        <div class="cell sign" role="columnheader">
          <span class="offscreen">How it is</span>
        </div>
        {columns.map((k) => {
          const { title, left } = sheet.cells[k].column;
          const to = way(k);
          return (
            <div class={left ? "cell left" : "cell"} role="columnheader" aria-sort={to}>
              <button type="button" title={clipped(title, 200)} onClick={() => sort(k)}>
                <span class="text">{clipped(title, 60)}</span>
                <span aria-hidden="true">{to === "none" ? "" : to === "ascending" ? " ▲" : " ▼"}</span>
              </button>
            </div>
          );
        })}
      </div>
      <div class="grid-row filters" role="row" aria-rowindex={2}>
        <div class="cell sign" role="gridcell" />
        {columns.map((k) => (
          <div class="cell" role="gridcell">
            <Filter
              cells={sheet.cells[k]}
              value={choice.columns.get(k) ?? ""}
              onSet={(text) => filter(k, text)}
            />
          </div>
        ))}
      </div>
    </div>
  );
}
