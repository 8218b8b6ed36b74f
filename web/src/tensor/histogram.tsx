import type { JSX } from "preact";
import type { Histogram } from "../data";
import { brief, compact, integer } from "../core/number";
import { useStore } from "../core/report";
import { clipped } from "../core/text";
import { StepsChart, type Line } from "../plots/steps_chart";

/** The value at the left edge of a bin. */
function edge(hist: Histogram, count: number, place: number): number {
  return hist.scale === "log2" ? 2 ** (hist.low + place) : hist.low + ((hist.high - hist.low) * place) / count;
}

export function HistogramPlot({ hist, log }: { hist: Histogram; log: boolean }): JSX.Element {
  const store = useStore();
  const lines: Line[] = hist.sides.map((side, i) => ({
    label: clipped(side.label, 30),
    values: store.get(side.bins),
    look: i === 0 ? "filled" : "dashed",
  }));
  const count = Math.max(1, ...lines.map((line) => line.values.length));
  const title = clipped(hist.title, 60);
  // Of few bins several would stand at the same place.
  const places = [...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * count)))];
  const ticks = places.map((place): [number, string] => [place, compact(edge(hist, count, place))]);
  const empty = lines.every((line) => Array.prototype.every.call(line.values, (n: number) => n === 0));
  const describe = (cell: number): string =>
    `${brief(edge(hist, count, cell), 4)} to ${brief(edge(hist, count, cell + 1), 4)}: ` +
    lines.map((line) => `${line.label} ${integer(line.values[cell])}`).join(", ");
  const beside = hist.beside.filter((b) => b.counts.some((n) => n > 0));
  return (
    <div class="plot">
      <h3>{title}</h3>
      {empty ? (
        <p class="soft">Nothing falls into bins.</p>
      ) : (
        <StepsChart label={`Histogram, ${title}`} lines={lines} log={log} ticks={ticks} describe={describe} />
      )}
      {beside.length > 0 && (
        <p class="soft">
          Not in the bins:{" "}
          {beside
            .map((b) => `${clipped(b.label, 20)}: ${b.counts.map((n) => n.toLocaleString("en")).join(" and ")}`)
            .join("; ")}
        </p>
      )}
    </div>
  );
}
