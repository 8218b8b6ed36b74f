/** Plots that are zoomed together. */
import type uPlot from "uplot";

export class Group {
  private readonly plots = new Set<uPlot>();
  private busy = false;
  /** The plot that the reader is in: it alone tells what is under the cursor. */
  active: uPlot | null = null;

  add(plot: uPlot): void {
    this.plots.add(plot);
  }

  remove(plot: uPlot): void {
    this.plots.delete(plot);
    if (this.active === plot) this.active = null;
  }

  /** One has another range: the others follow. */
  follow(from: uPlot): void {
    const { min, max } = from.scales.x;
    if (this.busy || min == null || max == null) return;
    this.busy = true;
    for (const plot of this.plots)
      if (plot !== from && (plot.scales.x.min !== min || plot.scales.x.max !== max))
        plot.setScale("x", { min, max });
    this.busy = false;
  }

  /** `factor` below 1 goes nearer; `middle` stays where it is. */
  zoom(factor: number, middle?: number): void {
    const plot = this.active ?? [...this.plots][0];
    if (plot) zoom(plot, factor, middle);
  }

  reset(): void {
    for (const plot of this.plots) reset(plot);
  }
}

function ends(plot: uPlot): [number, number] {
  const x = plot.data[0];
  const low = x[0] ?? 0;
  const high = x[x.length - 1] ?? 1;
  return low === high ? [low - 1, high + 1] : [low, high];
}

/** Whether all of it is in sight. */
export function isWhole(plot: uPlot): boolean {
  const [low, high] = ends(plot);
  const { min, max } = plot.scales.x;
  return min != null && max != null && min <= low && max >= high;
}

export function reset(plot: uPlot): void {
  const [min, max] = ends(plot);
  plot.setScale("x", { min, max });
}

export function zoom(plot: uPlot, factor: number, middle?: number): void {
  const { min, max } = plot.scales.x;
  if (min == null || max == null) return;
  const [low, high] = ends(plot);
  const at = middle ?? (min + max) / 2;
  const width = Math.min(high - low, Math.max((max - min) * factor, Math.min(4, high - low)));
  const share = (at - min) / (max - min || 1);
  const from = Math.max(low, Math.min(high - width, at - share * width));
  plot.setScale("x", { min: from, max: from + width });
}

/** Moves the range so that `x` is in sight. */
export function show(plot: uPlot, x: number): void {
  const { min, max } = plot.scales.x;
  if (min == null || max == null || (x >= min && x <= max)) return;
  const width = max - min;
  const [low, high] = ends(plot);
  const from = Math.max(low, Math.min(high - width, x - width / 2));
  plot.setScale("x", { min: from, max: from + width });
}
