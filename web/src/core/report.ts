/** The report that is shown, for all views, and links into it. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { sheetOf } from "./cells";
import { href } from "./route";
import type { Store } from "./store";
import { clipped } from "./text";

const Context = createContext<Store | null>(null);

export const StoreProvider = Context.Provider;

export function useStore(): Store {
  const store = useContext(Context);
  if (!store) throw new Error("no report");
  return store;
}

/** "rank 3, step 0", as far as the first table says so; its rows may have equal names without that. */
export function placeOf(store: Store, row: number): string {
  const about = store.report.tables[0];
  if (!about || row < 0 || row >= about.rows) return "";
  return sheetOf(store, about)
    .cells.filter(({ column }) => /^(rank|step)$/i.test(column.title))
    .map((cells) => cells.shown(row) && `${cells.column.title.toLowerCase()} ${clipped(cells.shown(row), 20)}`)
    .filter(Boolean)
    .join(", ");
}

/** To the page of a tensor if the row has one, else to the row. "": there is no such row. */
export function rowLink(store: Store, row: number, table = 0): string {
  const about = store.report.tables[table];
  if (!about || row < 0 || row >= about.rows) return "";
  const tensor = sheetOf(store, about).tensor[row];
  return tensor >= 0 && tensor < store.report.tensors.length
    ? href("tensor", tensor)
    : href("table", table, { row });
}
