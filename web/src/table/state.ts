/** What the reader chose in a table, kept in the address so that links and Back bring it again. */
import { useEffect, useRef, useState } from "preact/hooks";
import { note, useRoute } from "../core/route";
import { ALL_MOODS, type Choice } from "../core/select";

export interface TableState {
  choice: Choice;
  hidden: ReadonlySet<number>;
  row: number; // its drawer is open; -1: none is
  at: number; // the row that the keyboard is on; -1: none
}

function whole(text: string | null): number {
  return text !== null && /^\d+$/.test(text) ? Number(text) : -1;
}

export function fromQuery(query: URLSearchParams): TableState {
  const columns = new Map<number, string>();
  for (const [name, value] of query) if (/^c\d+$/.test(name)) columns.set(Number(name.slice(1)) - 1, value);
  const sort = /^(-?)(\d+)$/.exec(query.get("sort") ?? "");
  const moods = whole(query.get("moods"));
  const row = whole(query.get("row"));
  return {
    choice: {
      find: query.get("find") ?? "",
      moods: moods >= 0 && moods < ALL_MOODS ? moods : ALL_MOODS,
      columns,
      sorting: sort ? { column: Number(sort[2]) - 1, down: sort[1] === "-" } : null,
    },
    hidden: new Set((query.get("hide") ?? "").split(",").filter(Boolean).map((n) => Number(n) - 1)),
    row,
    at: row >= 0 ? row : whole(query.get("at")),
  };
}

function toQuery(state: TableState): Record<string, string> {
  const { choice } = state;
  const query: Record<string, string> = {};
  if (choice.find) query.find = choice.find;
  if (choice.moods !== ALL_MOODS) query.moods = String(choice.moods);
  if (choice.sorting) query.sort = `${choice.sorting.down ? "-" : ""}${choice.sorting.column + 1}`;
  for (const [column, text] of choice.columns) if (text) query[`c${column + 1}`] = text;
  if (state.hidden.size) query.hide = [...state.hidden].map((n) => n + 1).join(",");
  if (state.row >= 0) query.row = String(state.row);
  else if (state.at >= 0) query.at = String(state.at);
  return query;
}

function changes(old: URLSearchParams, query: Record<string, string>): Record<string, string | null> {
  const list: Record<string, string | null> = { ...query };
  for (const name of old.keys()) if (!(name in query)) list[name] = null;
  return list;
}

export function useTableState(): [TableState, (change: Partial<TableState>) => void] {
  const route = useRoute();
  const [state, setState] = useState(() => fromQuery(route.query));
  const latest = useRef(state);
  const written = useRef(route.query.toString());
  const timer = useRef(0);

  const write = (): void => {
    timer.current = 0;
    const query = toQuery(latest.current);
    written.current = new URLSearchParams(query).toString();
    note(changes(route.query, query));
  };
  const set = (change: Partial<TableState>): void => {
    latest.current = { ...latest.current, ...change };
    setState(latest.current);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(write, 200);
  };
  useEffect(() => {
    if (timer.current || route.view !== "table" || route.query.toString() === written.current) return;
    written.current = route.query.toString();
    latest.current = fromQuery(route.query); // Back, or a link
    setState(latest.current);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return [state, set];
}
