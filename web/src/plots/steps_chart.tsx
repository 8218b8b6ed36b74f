/** Steps over equal cells, as SVG: histograms and profiles. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { compact } from "../core/number";

export interface Line {
  label: string;
  values: ArrayLike<number>;
  look: "filled" | "dashed";
}

interface Props {
  label: string;
  lines: Line[];
  log: boolean;
  ticks: [number, string][]; // places from 0 to the number of cells
  describe: (cell: number) => string;
}

const WIDTH = 480;
const HEIGHT = 200;
const LEFT = 66;
const BOTTOM = 26;
const TOP = 8;

/** From a value to a share of the height. */
function heights(lines: Line[], log: boolean): { share: (value: number) => number; ticks: number[] } {
  let high = 0;
  let low = Infinity;
  for (const { values } of lines)
    for (let i = 0; i < values.length; i++)
      if (Number.isFinite(values[i]) && values[i] > 0) {
        high = Math.max(high, values[i]);
        low = Math.min(low, values[i]);
      }
  if (high === 0) return { share: () => 0, ticks: [0] };
  if (!log) return { share: (v) => v / high, ticks: [0, high / 2, high] };
  const from = Math.floor(Math.log10(low)) - 0.3;
  const to = Math.max(Math.ceil(Math.log10(high)), from + 1);
  const each = Math.ceil((to - from) / 5);
  const ticks: number[] = [];
  for (let e = Math.ceil(from); e <= to; e += each) ticks.push(10 ** e);
  return { share: (v) => (v > 0 ? (Math.log10(v) - from) / (to - from) : 0), ticks };
}

export function StepsChart({ label, lines, log, ticks, describe }: Props): JSX.Element {
  const [at, setAt] = useState<number | null>(null);
  const count = Math.max(1, ...lines.map((line) => line.values.length));
  const scale = heights(lines, log);
  const x = (place: number): number => LEFT + (place / count) * (WIDTH - LEFT - 4);
  const y = (value: number): number => {
    const share = Number.isNaN(value) ? 0 : Math.max(0, Math.min(1, scale.share(value)));
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  };
  const outline = ({ values, look }: Line): string => {
    let path = look === "filled" ? `M${x(0)} ${y(0)}` : `M${x(0)} ${y(values[0] ?? 0)}`;
    for (let i = 0; i < values.length; i++) path += `V${y(values[i]).toFixed(1)}H${x(i + 1).toFixed(1)}`;
    return look === "filled" ? `${path}V${y(0)}Z` : path;
  };
  const point = (e: MouseEvent): void => {
    const area = (e.currentTarget as Element).getBoundingClientRect();
    const place = ((e.clientX - area.left) / area.width) * WIDTH;
    const cell = Math.floor(((place - LEFT) / (WIDTH - LEFT - 4)) * count);
    setAt(cell >= 0 && cell < count ? cell : null);
  };
  const onKey = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    setAt(Math.max(0, Math.min(count - 1, (at ?? -step) + step)));
    e.preventDefault();
  };
  return (
    <figure class="steps-chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${label}. Arrow keys move.`}
        tabindex={0}
        onPointerMove={point}
        onPointerLeave={() => setAt(null)}
        onKeyDown={onKey}
      >
        {scale.ticks.map((v) => (
          <g class="tick">
            <path d={`M${LEFT} ${y(v)}H${WIDTH - 4}`} />
            <text x={LEFT - 5} y={y(v) + 4} text-anchor="end">
              {compact(v)}
            </text>
          </g>
        ))}
        {ticks.map(([place, text], i) => (
          <text
            class="tick"
            x={x(place)}
            y={HEIGHT - 8}
            text-anchor={i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle"}
          >
            {text}
          </text>
        ))}
        {lines.map((line) => (
          <path class={`step-${line.look}`} d={outline(line)} />
        ))}
        {at !== null && <path class="pointer" d={`M${x(at + 0.5)} ${TOP}V${HEIGHT - BOTTOM}`} />}
      </svg>
      <figcaption class="soft" role="status">
        {at !== null
          ? describe(at)
          : lines.length > 1 &&
            lines.map((line) => (
              <span>
                <span class={`swatch swatch-${line.look}`} /> {line.label}{" "}
              </span>
            ))}
      </figcaption>
    </figure>
  );
}
