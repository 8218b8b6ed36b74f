/** The two plots of a run: how far the results are, and what each call adds by itself. */
import type { JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import type uPlot from "uplot";
import { colour } from "../core/theme";
import { decades, positive, scale, within, xAxis, yAxis } from "./axes";
import type { Calls } from "./calls";
import { Chart } from "./chart";
import type { Group } from "./group";
import { equals, marks } from "./marks";

export interface PanelProps {
  calls: Calls;
  list: number[]; // which calls, in order
  title: string;
  height: number;
  group: Group;
  sync: string;
  range?: [number, number]; // of y; else by the calls
  onHover: (call: number | null) => void;
  onOpen: (call: number) => void;
}

const of = (list: number[], values: ArrayLike<number>): number[] => list.map((call) => values[call]);

function useCommon({ calls, list, onHover, onOpen }: PanelProps) {
  const moods = useMemo(() => of(list, calls.mood), [calls, list]);
  const stops = useMemo(() => list.map((_, i) => i).filter((i) => moods[i] === 0), [list, moods]);
  const marked = useCallback((i: number) => (moods[i] === 0 ? 2 : moods[i] === 1 ? 1 : 0), [moods]);
  return {
    moods,
    stops,
    marked,
    onHover: (i: number | null) => onHover(i === null ? null : list[i]),
    onOpen: (i: number) => onOpen(list[i]),
  };
}

/** Calls do not follow from each other here: no line between them. */
const dots = (): uPlot.Series.Points => ({ show: true, size: 3, fill: colour("golden"), width: 0 });

const places = (list: number[]): number[] => list.map((_, i) => i);

export function Total(props: PanelProps): JSX.Element {
  const { calls, list, title, height, group, sync } = props;
  const { moods, ...rest } = useCommon(props);
  const [low, high] = useMemo(
    () => props.range ?? decades([of(list, calls.total), of(list, calls.band)]),
    [calls, list, props.range],
  );
  const data = useMemo<uPlot.AlignedData>(
    () => [
      places(list),
      positive(of(list, calls.band), [low, high]),
      positive(of(list, calls.total), [low, high]),
    ],
    [calls, list, low, high],
  );
  const equal = useMemo(() => list.map((call) => calls.total[call] === 0), [calls, list]);
  const options = useCallback(
    () => ({
      scales: { x: { time: false }, y: scale("log", [low, high]) },
      axes: [xAxis("call"), yAxis("relative distance", "log")],
      series: [
        {},
        { label: "rounding", fill: colour("band"), stroke: colour("good"), width: 0.5, fillTo: low, points: { show: false } },
        { label: "distance", stroke: colour("target"), width: 1.5, spanGaps: true },
      ],
      hooks: { draw: [equals(equal), marks(moods, 2)] },
    }),
    [low, high, moods, equal],
  );
  return <Chart {...rest} label={title} options={options} data={data} height={height} group={group} sync={sync} />;
}

/** Infinities stand a little beyond the largest of the others. */
function reach(lists: number[][]): [number, number] {
  let low = 0;
  let high = 1;
  for (const list of lists)
    for (const v of list)
      if (Number.isFinite(v)) {
        low = Math.min(low, v);
        high = Math.max(high, v);
      }
  return [low * 1.5, high * 1.5];
}

export function Local(props: PanelProps): JSX.Element {
  const { calls, list, title, height, group, sync } = props;
  const { moods, ...rest } = useCommon(props);
  const data = useMemo<uPlot.AlignedData>(() => {
    const local = of(list, calls.local);
    const limit = of(list, calls.limit);
    const range = reach([local, limit]);
    return [places(list), within(limit, range), within(local, range)];
  }, [calls, list]);
  const options = useCallback(() => {
    const range = reach([of(list, calls.local), of(list, calls.limit)]);
    return {
      scales: { x: { time: false }, y: scale("both", range) },
      axes: [xAxis("call"), yAxis("sigma", "both")],
      series: [
        {},
        { label: "limit", stroke: colour("limit"), width: 1.5, dash: [6, 4], points: { show: false } },
        { label: "excess", stroke: colour("golden"), paths: () => null, points: dots() },
      ],
      hooks: { draw: [marks(moods, 2)] },
    };
  }, [calls, list, moods]);
  return <Chart {...rest} label={title} options={options} data={data} height={height} group={group} sync={sync} />;
}
