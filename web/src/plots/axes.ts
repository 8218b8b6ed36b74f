/** Looks of plots, and scales that hold many magnitudes. */
import type uPlot from "uplot";
import { brief } from "../core/number";
import { colour } from "../core/theme";

const FONT = "12px system-ui, sans-serif";

type Splits = (u: uPlot, axis: number, min: number, max: number) => number[];

function thinned(values: number[], most = 7): number[] {
  const step = Math.ceil(values.length / most);
  return values.filter((_, i) => i % step === 0);
}

/** Powers of ten from min to max. */
const powers: Splits = (_u, _axis, min, max) => {
  const low = Math.ceil(Math.log10(min) - 1e-9);
  const high = Math.floor(Math.log10(max) + 1e-9);
  const list: number[] = [];
  for (let e = low; e <= high; e++) list.push(10 ** e);
  return thinned(list);
};

/** ..., -10, -1, 0, 1, 10, ... */
const bothWays: Splits = (_u, _axis, min, max) => {
  const list: number[] = [0];
  const most = Math.max(Math.abs(min), Math.abs(max));
  const step = Math.max(1, Math.ceil(Math.log10(most + 1) / 5));
  for (let e = 0; 10 ** e <= most; e += step) list.push(10 ** e, -(10 ** e));
  return list.filter((v) => v >= min && v <= max).sort((a, b) => a - b);
};

export type Distribution = "linear" | "log" | "both";

export function scale(kind: Distribution, range: [number, number] | null): uPlot.Scale {
  const fixed: Pick<uPlot.Scale, "range"> = range ? { range: () => range } : {};
  if (kind === "log") return { distr: 3, ...fixed };
  return kind === "both" ? { distr: 4, asinh: 1, ...fixed } : fixed;
}

export function yAxis(label: string, kind: Distribution): uPlot.Axis {
  return {
    ...look(label),
    size: 62,
    filter: (_u, list) => list,
    values: (_u, list) => list.map((v) => (v === null ? "" : brief(v, 5))),
    ...(kind === "log" ? { splits: powers } : kind === "both" ? { splits: bothWays } : {}),
  };
}

export function look(label: string): uPlot.Axis {
  const line = colour("line");
  return {
    stroke: colour("soft"),
    font: FONT,
    labelFont: FONT,
    label,
    labelSize: 18,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 5 },
  };
}

/** Whole numbers only: calls and steps have no halves. */
export function xAxis(label: string): uPlot.Axis {
  return {
    ...look(label),
    size: 34,
    incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8],
    values: (_u, list) => list.map((v) => v.toLocaleString("en")),
  };
}

/** From the power of ten below all values to the one above. */
export function decades(lists: ArrayLike<number>[]): [number, number] {
  let low = Infinity;
  let high = 0;
  for (const list of lists)
    for (let i = 0; i < list.length; i++) {
      const v = list[i];
      if (!(v > 0) || v === Infinity) continue;
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
  if (high === 0) return [1e-8, 1];
  const from = Math.max(-307, Math.floor(Math.log10(low)));
  const to = Math.min(308, Math.ceil(Math.log10(high)));
  return [10 ** from, 10 ** Math.max(to, from + 1)];
}

/** Values as a plot takes them: gaps for NaN, and what is outside stands on the edge. */
export function within(list: ArrayLike<number>, [low, high]: [number, number]): (number | null)[] {
  return Array.from(list, (v) => (Number.isNaN(v) ? null : Math.min(high, Math.max(low, v))));
}

/** The same for a scale of magnitudes, which has no place for 0. */
export function positive(list: ArrayLike<number>, range: [number, number]): (number | null)[] {
  return within(Array.from(list, (v) => (v > 0 ? v : NaN)), range);
}
