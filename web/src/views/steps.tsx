import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Steps } from "../data";
import { moodOf } from "../core/mood";
import { brief } from "../core/number";
import { useStore } from "../core/report";
import { current, note } from "../core/route";
import { clipped, plural, visible } from "../core/text";
import { colour } from "../core/theme";
import { decades, positive, scale, xAxis, yAxis } from "../plots/axes";
import { Chart } from "../plots/chart";
import { Group } from "../plots/group";
import { marks } from "../plots/marks";
import { Badge } from "../ui/badge";
import { Check, Name, Select } from "../ui/parts";

const MOST = 300; // names in the list at a time

interface PlotProps {
  steps: Steps;
  tensor: number;
  series: number;
  log: boolean;
  group: Group;
}

function Plot({ steps, tensor, series, log, group }: PlotProps): JSX.Element {
  const store = useStore();
  const [at, setAt] = useState<number | null>(null);
  const count = steps.steps.length;
  const { title } = steps.series[series];
  const part = (values: ArrayLike<number>): number[] =>
    Array.from({ length: count }, (_, i) => values[tensor * count + i]);
  const now = useMemo(() => part(store.get(steps.series[series].values)), [steps, tensor, series]);
  const before = useMemo(() => {
    const found = steps.earlier.find((s) => s.title === title);
    return found ? part(store.get(found.values)) : null;
  }, [steps, tensor, series]);
  const moods = useMemo(() => {
    const list = new Array<number>(count).fill(3);
    for (const jump of steps.jumps) {
      const place = steps.steps.indexOf(jump.step);
      if (jump.tensor === tensor && place >= 0) list[place] = Math.min(list[place], moodOf(jump.mood));
    }
    return list;
  }, [steps, tensor]);
  const range = useMemo(() => (log ? decades([now, before ?? []]) : null), [log, now, before]);
  const data = useMemo<uPlot.AlignedData>(() => {
    const fit = (list: number[]): (number | null)[] =>
      range ? positive(list, range) : list.map((v) => (Number.isFinite(v) ? v : null));
    return [steps.steps, fit(before ?? []), fit(now)];
  }, [steps, now, before, range]);
  const options = useCallback(
    () => ({
      scales: { x: { time: false }, y: scale(log ? "log" : "linear", range) },
      axes: [xAxis("step"), yAxis(clipped(title, 30), log ? "log" : "linear")],
      series: [
        {},
        { label: "earlier", stroke: colour("golden"), width: 1.5, dash: [6, 4], points: { show: false } },
        { label: "now", stroke: colour("target"), width: 1.8 },
      ],
      hooks: { draw: [marks(moods, 2)] },
    }),
    [log, range, moods, title],
  );
  return (
    <>
      <p class="readout" role="status">
        {at === null ? (
          <span class="soft">Point at a step, or use the arrow keys in the plot.</span>
        ) : (
          `Step ${steps.steps[at]}: ${clipped(title, 30)} ${brief(now[at], 7)}` +
          (before ? `, earlier run ${brief(before[at], 7)}` : "")
        )}
      </p>
      <Chart
        label={`${clipped(title, 30)} of ${clipped(steps.names[tensor], 80)} along the steps`}
        options={options}
        data={data}
        height={320}
        group={group}
        stops={moods.map((_, i) => i).filter((i) => moods[i] < 2)}
        marked={(i) => 3 - moods[i]}
        onHover={setAt}
      />
      <ul class="legend">
        <li>
          <span class="swatch line-target" /> this run
        </li>
        {before && (
          <li>
            <span class="swatch swatch-dashed" /> earlier run
          </li>
        )}
        <li>
          <Badge mood={0} /> <Badge mood={1} /> jumps
        </li>
      </ul>
    </>
  );
}

export function StepsView({ steps }: { steps: Steps }): JSX.Element {
  const { query } = current();
  const [find, setFind] = useState("");
  const [tensor, setTensor] = useState(Number(query.get("tensor") ?? steps.jumps[0]?.tensor ?? 0) || 0);
  const [series, setSeries] = useState(Number(query.get("series") ?? 0) || 0);
  const [log, setLog] = useState(false);
  const group = useMemo(() => new Group(), []);
  const low = find.trim().toLowerCase();
  const names = useMemo(
    () => steps.names.map((name, i) => ({ name, i })).filter((t) => !low || t.name.toLowerCase().includes(low)),
    [steps, low],
  );
  const choose = (i: number): void => (setTensor(i), note({ tensor: String(i) }));
  const listed = names.slice(0, MOST).map((t) => [String(t.i), t.name] as const);
  const missing = !listed.some(([key]) => key === String(tensor));
  const known = tensor >= 0 && tensor < steps.names.length && steps.series[series] !== undefined;
  return (
    <div class="steps-view">
      <h1>Statistics along the steps</h1>
      <div class="toolbar">
        <input
          type="search"
          class="find"
          placeholder="Find a tensor"
          aria-label="Find a tensor"
          value={find}
          onInput={(e) => {
            const text = e.currentTarget.value;
            setFind(text);
            const first = steps.names.findIndex((name) => name.toLowerCase().includes(text.trim().toLowerCase()));
            if (text.trim() && first >= 0) choose(first);
          }}
        />
        <Select
          label="Tensor"
          value={String(tensor)}
          options={missing && known ? [[String(tensor), steps.names[tensor]], ...listed] : listed}
          onPick={(key) => choose(Number(key))}
        />
        <Select
          label="Statistic"
          value={String(series)}
          options={steps.series.map((s, i) => [String(i), s.title] as const)}
          onPick={(key) => (setSeries(Number(key)), note({ series: key }))}
        />
        <Check label="Logarithmic" on={log} onSet={setLog} />
        <button type="button" onClick={() => group.reset()}>
          All steps
        </button>
        <span class="soft count">{plural(names.length, "tensor")}</span>
      </div>
      {known && steps.steps.length > 0 ? (
        <Plot key={tensor} steps={steps} tensor={tensor} series={series} log={log} group={group} />
      ) : (
        <p>There is nothing to draw.</p>
      )}
      <section>
        <h2>Jumps</h2>
        {steps.jumps.length === 0 && <p>None.</p>}
        <ul class="jumps">
          {steps.jumps.map((jump) => (
            <li>
              <button type="button" aria-pressed={jump.tensor === tensor} onClick={() => choose(jump.tensor)}>
                <Badge mood={moodOf(jump.mood)} label /> step {jump.step}: <Name text={steps.names[jump.tensor] ?? ""} />
              </button>{" "}
              <span>{visible(clipped(jump.why, 300))}</span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
