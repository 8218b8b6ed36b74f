import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { sheetOf } from "../core/cells";
import { rowLink, useStore } from "../core/report";
import { go, note } from "../core/route";
import { select } from "../core/select";
import { clipped } from "../core/text";
import { useVirtual } from "../ui/virtual";
import { Drawer } from "./drawer";
import { Head } from "./head";
import { Row } from "./row";
import { useTableState } from "./state";
import { Toolbar } from "./toolbar";
import { widths } from "./widths";

const ROW_HEIGHT = 26;
const HEAD_HEIGHT = 62;

/** Where a key leads to from row `at` of `count`; -1: it is no such key. */
function moved(key: string, at: number, count: number, page: number): number {
  const steps: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + page,
    PageUp: at - page,
    Home: 0,
    End: count - 1,
  };
  return key in steps ? Math.max(0, Math.min(count - 1, steps[key])) : -1;
}

export function TableView({ part }: { part: number }): JSX.Element {
  const store = useStore();
  const { report } = store;
  const sheet = sheetOf(store, report.tables[part]);
  const [state, set] = useTableState();
  const box = useRef<HTMLDivElement>(null);

  const { choice } = state;
  const rows = useMemo(() => select(sheet, choice), [sheet, choice]);
  const wide = useMemo(() => widths(sheet), [sheet]);
  const columns = useMemo(
    () => sheet.cells.map((_, k) => k).filter((k) => !state.hidden.has(k)),
    [sheet, state.hidden],
  );
  const seen = useVirtual(box, rows.length, ROW_HEIGHT, HEAD_HEIGHT);
  const at = useMemo(() => (state.at < 0 ? -1 : rows.indexOf(state.at)), [rows, state.at]);

  useLayoutEffect(() => {
    const template = ["30px", ...columns.map((k) => `${wide[k]}ch`)].join(" ");
    box.current?.style.setProperty("--columns", template);
    const sum = columns.reduce((all, k) => all + wide[k], 0);
    box.current?.style.setProperty("--wide", `calc(30px + ${sum}ch)`);
  }, [columns, wide]);
  useLayoutEffect(() => {
    if (at >= 0) seen.reveal(at); // a link, or back from a tensor
  }, [at]);
  useEffect(() => {
    if (box.current && state.at < 0) box.current.scrollTop = 0;
  }, [choice]);

  const open = (row: number): void => {
    const link = rowLink(store, row, part);
    if (!link.startsWith("#/tensor")) return set({ at: row, row });
    note({ at: String(row), row: null }); // Back comes to this row
    go(link);
  };
  const close = (): void => {
    set({ row: -1 });
    box.current?.focus();
  };
  const onKey = (e: KeyboardEvent): void => {
    if (!box.current || e.target !== box.current || e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor((box.current.clientHeight - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
    const to = moved(e.key, at, rows.length, page);
    if (to >= 0 && rows.length) {
      set({ at: rows[to], row: state.row >= 0 ? rows[to] : -1 });
      seen.reveal(to);
    } else if (e.key === "Enter" && at >= 0) open(rows[at]);
    else if (e.key === " " && at >= 0) set({ row: rows[at] });
    else if (e.key === "Escape" && state.row >= 0) close();
    else return;
    e.preventDefault();
  };
  const onClick = (e: MouseEvent): void => {
    const line = (e.target as Element).closest("[data-row]");
    if (!line || String(getSelection() ?? "")) return; // somebody marks text to copy it
    open(Number(line.getAttribute("data-row")));
  };

  // Rows that leave at one end come in at the other: nothing is made anew while scrolling.
  const slots = Math.ceil(seen.room / ROW_HEIGHT) + 10;
  const lines: JSX.Element[] = [];
  for (let i = seen.first; i < seen.last; i++)
    lines.push(
      <Row
        key={i % slots}
        sheet={sheet}
        columns={columns}
        row={rows[i]}
        index={i}
        active={i === at}
      />,
    );
  return (
    <div class="table-view">
      <h1 class="offscreen">{clipped(sheet.table.name, 80) || "Table"}</h1>
      <Toolbar sheet={sheet} rows={rows} columns={columns} state={state} set={set} />
      <div
        ref={box}
        class="grid-box"
        role="grid"
        tabIndex={0}
        aria-label={clipped(sheet.table.name, 80) || "Table"}
        aria-rowcount={rows.length + 2}
        aria-colcount={columns.length + 1}
        aria-activedescendant={at >= seen.first && at < seen.last ? `row-${rows[at]}` : undefined}
        onKeyDown={onKey}
      >
        <Head sheet={sheet} columns={columns} state={state} set={set} />
        <div class="grid-body" role="rowgroup" style={{ height: `${seen.height}px` }} onClick={onClick}>
          <div class="grid-slice" style={{ transform: `translateY(${seen.offset}px)` }}>
            {lines}
          </div>
        </div>
        {rows.length === 0 && <p class="nothing">No row is like that.</p>}
      </div>
      {state.row >= 0 && state.row < sheet.table.rows && (
        <Drawer
          sheet={sheet}
          row={state.row}
          tensors={report.tensors.length}
          onClose={close}
        />
      )}
    </div>
  );
}
