import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { csv } from "../core/csv";
import type { Sheet } from "../core/cells";
import { MOODS, moodOf, moodWord } from "../core/mood";
import { ALL_MOODS } from "../core/select";
import { clipped } from "../core/text";
import { Badge } from "../ui/badge";
import { CopyButton } from "../ui/copy";
import { Check } from "../ui/parts";
import type { TableState } from "./state";

interface Props {
  sheet: Sheet;
  rows: Int32Array;
  columns: number[]; // that are shown
  state: TableState;
  set: (change: Partial<TableState>) => void;
}

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function Moods({ sheet, state, set }: Props): JSX.Element {
  const counts = [0, 0, 0, 0];
  for (let row = 0; row < sheet.table.rows; row++) counts[moodOf(sheet.mood[row])]++;
  const { moods } = state.choice;
  const toggle = (bit: number): void => {
    // The first click picks one mood, those after it add or take away.
    const next = moods === ALL_MOODS ? bit : moods ^ bit;
    set({ choice: { ...state.choice, moods: next || ALL_MOODS } });
  };
  return (
    <div class="pick" role="group" aria-label="Rows that are">
      {MOODS.filter((mood) => counts[mood] > 0).map((mood) => (
        <button
          type="button"
          aria-pressed={moods !== ALL_MOODS && (moods & (1 << mood)) !== 0}
          onClick={() => toggle(1 << mood)}
        >
          <Badge mood={mood} /> {moodWord(mood)} <b>{counts[mood].toLocaleString("en")}</b>
        </button>
      ))}
    </div>
  );
}

function Columns({ sheet, state, set }: Props): JSX.Element {
  const flip = (column: number, on: boolean): void => {
    const hidden = new Set(state.hidden);
    if (on) hidden.delete(column);
    else hidden.add(column);
    set({ hidden });
  };
  const box = useRef<HTMLDetailsElement>(null);
  const onKey = (e: KeyboardEvent): void => {
    if (e.key !== "Escape" || !box.current) return;
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  };
  const onLeave = (e: FocusEvent): void => {
    const to = e.relatedTarget as Element | null;
    if (to && box.current && !box.current.contains(to)) box.current.open = false;
  };
  return (
    <details class="menu" ref={box} onKeyDown={onKey} onFocusOut={onLeave}>
      <summary>Columns{state.hidden.size > 0 && ` (${state.hidden.size} hidden)`}</summary>
      <div class="menu-box">
        <button type="button" onClick={() => set({ hidden: new Set() })}>
          Show all
        </button>
        {sheet.cells.map((cells, k) => (
          <Check
            label={clipped(cells.column.title, 40) || `column ${k + 1}`}
            on={!state.hidden.has(k)}
            onSet={(on) => flip(k, on)}
          />
        ))}
      </div>
    </details>
  );
}

export function Toolbar(props: Props): JSX.Element {
  const { sheet, rows, columns, state, set } = props;
  const { choice } = state;
  const narrowed = choice.find || choice.moods !== ALL_MOODS || choice.columns.size || choice.sorting;
  const text = (): string => csv(sheet, rows, columns);
  const clear = (): void =>
    set({ choice: { find: "", moods: ALL_MOODS, columns: new Map(), sorting: null } });
  return (
    <div class="toolbar">
      <input
        type="search"
        class="find"
        placeholder="Find in texts"
        aria-label="Find in texts"
        value={choice.find}
        onInput={(e) => set({ choice: { ...choice, find: e.currentTarget.value } })}
      />
      <Moods {...props} />
      <Columns {...props} />
      <CopyButton text={text} label="Copy CSV" name="Copy the rows shown as CSV" />
      <button type="button" onClick={() => save(text(), "plumb.csv")}>
        Save CSV
      </button>
      {narrowed && (
        <button type="button" onClick={clear}>
          Clear all
        </button>
      )}
      <span class="soft count" role="status">
        {rows.length === sheet.table.rows
          ? `${rows.length.toLocaleString("en")} rows`
          : `${rows.length.toLocaleString("en")} of ${sheet.table.rows.toLocaleString("en")} rows`}
      </span>
    </div>
  );
}
