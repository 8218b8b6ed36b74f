import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useTheme } from "../core/theme";
import { isWhole, show, zoom, type Group } from "./group";

export interface ChartProps {
  label: string; // read out
  options: () => Omit<uPlot.Options, "width" | "height">; // keep the same while nothing changes
  data: uPlot.AlignedData;
  height: number;
  group: Group;
  sync?: string; // cursors of plots with the same key go together
  stops?: readonly number[]; // for F
  onHover?: (index: number | null) => void;
  onOpen?: (index: number) => void;
  marked?: (index: number) => number; // the importance of a point; the cursor is drawn to it
}

const NEAR = 6; // pixels
const DOUBLE_CLICK = 250; // ms

/** The most important point near the cursor, so that one fault among thousands can be hit. */
function drawn(plot: uPlot, index: number, marked: (index: number) => number): number {
  const x = plot.data[0];
  const left = plot.cursor.left ?? 0;
  let best = index;
  let rank = marked(index);
  for (const way of [-1, 1])
    for (let i = index + way; i >= 0 && i < x.length; i += way) {
      if (Math.abs(plot.valToPos(x[i], "x") - left) > NEAR) break;
      if (marked(i) > rank) {
        best = i;
        rank = marked(i);
      }
    }
  return best;
}

export function Chart(props: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const keyed = useRef<number | null>(null); // where the keyboard put the cursor
  const live = useRef(props);
  live.current = props;
  const theme = useTheme();
  const { options, data, height, group, sync } = props;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const pointed = (u: uPlot): number | null => {
      const index = u.cursor.idx;
      if (keyed.current !== null) return keyed.current;
      if (index == null || (u.cursor.left ?? -1) < 0) return null;
      const { marked } = live.current;
      return marked ? drawn(u, index, marked) : index;
    };
    const made = options();
    const u = new uPlot(
      {
        ...made,
        width: Math.max(200, element.clientWidth),
        height,
        legend: { show: false },
        cursor: {
          drag: { x: true, y: false },
          points: { size: 9 },
          dataIdx: (self, _series, index) => (group.active === self ? (pointed(self) ?? index) : index),
          ...(sync ? { sync: { key: sync, scales: ["x", null] } } : {}),
        },
        hooks: {
          ...made.hooks,
          setScale: [(self, key) => key === "x" && group.follow(self)],
          setCursor: [(self) => group.active === self && live.current.onHover?.(pointed(self))],
        },
      },
      data,
      element,
    );
    plot.current = u;
    group.add(u);
    const onMove = (): void => {
      keyed.current = null;
      group.active = u;
    };
    const onWheel = (e: WheelEvent): void => {
      if (e.ctrlKey || (e.deltaY > 0 && isWhole(u))) return; // the browser's own zoom, or scrolling
      e.preventDefault();
      group.active = u;
      const left = e.clientX - u.over.getBoundingClientRect().left;
      zoom(u, e.deltaY < 0 ? 0.8 : 1.25, u.posToVal(left, "x"));
    };
    let clicked = 0; // opens when no second click comes
    const onClick = (e: MouseEvent): void => {
      clearTimeout(clicked);
      const index = pointed(u);
      if (index !== null && e.detail < 2)
        clicked = window.setTimeout(() => live.current.onOpen?.(index), DOUBLE_CLICK);
    };
    u.over.addEventListener("pointermove", onMove);
    u.over.addEventListener("wheel", onWheel, { passive: false });
    u.over.addEventListener("click", onClick);
    const observer = new ResizeObserver(() => {
      const width = Math.max(200, element.clientWidth);
      if (width !== u.width) u.setSize({ width, height });
    });
    observer.observe(element);
    return () => {
      clearTimeout(clicked);
      observer.disconnect();
      group.remove(u);
      plot.current = null;
      u.destroy();
    };
  }, [options, data, height, group, sync, theme]);

  const put = (u: uPlot, index: number): void => {
    const x = data[0][index];
    show(u, x);
    keyed.current = index;
    group.active = u;
    u.setCursor({ left: u.valToPos(x, "x"), top: u.over.clientHeight / 2 });
    props.onHover?.(index);
  };
  const stop = (at: number, back: boolean): number | undefined => {
    const stops = props.stops ?? [];
    return back ? [...stops].reverse().find((i) => i < at) : stops.find((i) => i > at);
  };
  const onKey = (e: KeyboardEvent): void => {
    const u = plot.current;
    const count = data[0].length;
    if (!u || !count || e.ctrlKey || e.metaKey || e.altKey) return;
    const at = keyed.current ?? u.cursor.idx ?? -1;
    const moves: Record<string, number | undefined> = {
      ArrowRight: at + 1,
      ArrowLeft: at < 0 ? 0 : at - 1,
      PageDown: at + Math.ceil(count / 20),
      PageUp: at - Math.ceil(count / 20),
      Home: 0,
      End: count - 1,
      f: stop(at, false),
      F: stop(at, true),
    };
    group.active = u;
    const to = moves[e.key];
    if (to !== undefined) put(u, Math.max(0, Math.min(count - 1, to)));
    else if (e.key === "Enter" && at >= 0) props.onOpen?.(at);
    else if (e.key === "+" || e.key === "=") zoom(u, 0.5, at >= 0 ? data[0][at] : undefined);
    else if (e.key === "-") zoom(u, 2, at >= 0 ? data[0][at] : undefined);
    else if (e.key === "Escape") group.reset();
    else return;
    e.preventDefault();
  };
  return (
    <div
      ref={box}
      class="chart"
      role="application"
      tabIndex={0}
      aria-label={`${props.label}. Arrow keys move, F goes to the next fault, Enter opens, + and - zoom.`}
      onKeyDown={onKey}
    />
  );
}
