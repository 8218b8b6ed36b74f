import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Grid } from "../data";
import { moodName, moodOf, moodWord } from "../core/mood";
import { brief } from "../core/number";
import { rowLink, useStore } from "../core/report";
import { go } from "../core/route";
import type { Numbers } from "../core/store";
import { clipped, headed, plural } from "../core/text";
import { colour } from "../core/theme";
import { CellMap, type Pen } from "../plots/cellmap";
import { heat } from "../plots/heat";
import { Badge } from "../ui/badge";
import { Check, Name, Pick } from "../ui/parts";

const NOTHING = 255;
const SIZES = [3, 6, 10, 16, 24];
const FEW = 320; // columns that are seen at a glance

/** How much of its cell each mood fills: they are told apart without colour, at any size. */
const FILLS = [1, 0.7, 0.5, 0.28];

function paintMood(pen: Pen, value: number, x: number, y: number, w: number, h: number): void {
  const mood = moodOf(value);
  const high = Math.max(2, (h - 1) * FILLS[mood]);
  pen.fillStyle = colour(moodName(mood));
  pen.fillRect(x, y + h - high, w > 3 ? w - 1 : w, high - 1);
}

/** The powers of ten that the values lie in, for colours. */
function magnitudes(values: ArrayLike<number>): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (!(v > 0) || v === Infinity) continue;
    low = Math.min(low, Math.log10(v));
    high = Math.max(high, Math.log10(v));
  }
  return low <= high ? [low, Math.max(high, low + 1)] : [0, 1];
}

/**
 * For each cell that is drawn, which of the grid's it stands for: itself, or the worst of `each`
 * cells that share a column.
 */
function gather(down: number, across: number, each: number, mood: Numbers, value: Numbers): Int32Array {
  const columns = Math.ceil(across / each);
  const list = new Int32Array(down * columns);
  const worse = (a: number, b: number): boolean =>
    mood[a] !== mood[b] ? mood[a] < mood[b] : value[a] > value[b];
  for (let i = 0; i < down; i++)
    for (let c = 0; c < columns; c++) {
      let best = i * across + c * each;
      const end = i * across + Math.min(across, (c + 1) * each);
      for (let n = best + 1; n < end; n++) if (worse(n, best)) best = n;
      list[i * columns + c] = best;
    }
  return list;
}

export function GridView({ grid }: { grid: Grid }): JSX.Element {
  const store = useStore();
  const down = grid.down.length;
  const all = grid.across.length;
  const mood = useMemo(() => store.get(grid.mood), [grid]);
  const value = useMemo(() => store.get(grid.value), [grid]);
  const row = useMemo(() => store.get(grid.row), [grid]);
  const [by, setBy] = useState<"mood" | "value">("mood");
  const [size, setSize] = useState(all <= 40 ? 4 : all <= 100 ? 3 : all <= 200 ? 1 : 0);
  const [glance, setGlance] = useState(all > FEW);
  const each = glance ? Math.ceil(all / FEW) : 1;
  const across = Math.ceil(all / each);
  const cells = useMemo(() => gather(down, all, each, mood, value), [grid, each]);
  const range = useMemo(() => magnitudes(value), [value]);

  const paint = useCallback(
    (pen: Pen, i: number, k: number, x: number, y: number, w: number, h: number): void => {
      const n = cells[i * across + k];
      if (mood[n] === NOTHING) return;
      if (by === "mood") return paintMood(pen, mood[n], x, y, w, h);
      const v = value[n];
      pen.fillStyle = v > 0 ? heat((Math.log10(v) - range[0]) / (range[1] - range[0])) : colour("panel");
      pen.fillRect(x, y, w, h - 1);
    },
    [by, mood, value, range, across, cells],
  );
  const describe = (i: number, k: number): JSX.Element => {
    const n = cells[i * across + k];
    const where = (
      <>
        <Name text={grid.down[i]} length={60} />, <Name text={grid.across[n % all]} length={100} />
        {each > 1 && ` (the worst of ${each})`}
      </>
    );
    if (mood[n] === NOTHING) return <>{where}: nothing there</>;
    const m = moodOf(mood[n]);
    return (
      <>
        <Badge mood={m} /> <b>{moodWord(m)}</b> {where}
        {!Number.isNaN(value[n]) && `: ${clipped(grid.unit, 40)} ${brief(value[n])}`}
      </>
    );
  };
  const open = (i: number, k: number): void => {
    const link = rowLink(store, row[cells[i * across + k]]);
    if (link) go(link);
  };
  const name = clipped(headed(grid.title), 80) || "Grid";
  const high = down <= 8 ? 30 : down <= 32 ? 20 : 12;
  return (
    <div class="grid-view">
      <h1>{name}</h1>
      <div class="toolbar">
        <Pick
          label="Colours"
          value={by}
          options={[
            ["mood", "verdict"],
            ["value", clipped(grid.unit, 40) || "value"],
          ]}
          onPick={setBy}
        />
        <div class="pick" role="group" aria-label="Size of cells">
          <button type="button" aria-label="Wider cells" onClick={() => setSize(Math.min(SIZES.length - 1, size + 1))}>
            +
          </button>
          <button type="button" aria-label="Narrower cells" onClick={() => setSize(Math.max(0, size - 1))}>
            −
          </button>
        </div>
        {all > FEW && <Check label="At a glance" on={glance} onSet={setGlance} />}
        <span class="soft count">
          {down.toLocaleString("en")} × {all.toLocaleString("en")}
        </span>
      </div>
      {down * all === 0 ? (
        <p>There are no cells.</p>
      ) : (
        <CellMap
          label={name}
          down={down}
          across={across}
          width={SIZES[size]}
          height={high}
          rowLabels={grid.down}
          paint={paint}
          describe={describe}
          isStop={(i, k) => mood[cells[i * across + k]] === 0}
          onOpen={open}
        />
      )}
      {all > 0 && (
        <p class="soft">
          Across: {plural(all, "call")} in the order of execution, from <Name text={grid.across[0]} length={60} /> to{" "}
          <Name text={grid.across[all - 1]} length={60} />.
        </p>
      )}
      <p class="soft">
        {by === "mood" ? (
          "The higher a bar in its cell, the worse: full bars are bad, then in doubt, not judged, good. "
        ) : (
          <>
            {brief(10 ** range[0], 2)} <span class="scale-bar" aria-hidden="true" /> {brief(10 ** range[1], 2)}.{" "}
          </>
        )}
        Empty: nothing there. F goes to the next bad cell, a click or Enter opens its row.
      </p>
    </div>
  );
}
