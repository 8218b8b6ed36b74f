/** Many cells on a canvas; those in sight are drawn. Mouse and keyboard tell and open them. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { colour, useTheme } from "../core/theme";
import { clipped } from "../core/text";

export type Pen = CanvasRenderingContext2D;

export interface CellMapProps {
  label: string;
  down: number;
  across: number;
  width: number; // of a cell
  height: number;
  rowLabels?: readonly string[];
  /** Keep the same function while nothing changes. */
  paint: (pen: Pen, i: number, k: number, x: number, y: number, w: number, h: number) => void;
  describe: (i: number, k: number) => JSX.Element | string;
  isStop?: (i: number, k: number) => boolean; // for F
  onOpen?: (i: number, k: number) => void;
}

const GUTTER = 96;
const VIEW = 520; // highest that is drawn at a time

interface Place {
  i: number;
  k: number;
}

function nextStop(props: CellMapProps, from: Place, way: number): Place | null {
  const { down, across, isStop } = props;
  for (let n = from.i * across + from.k + way; n >= 0 && n < down * across; n += way) {
    const place = { i: Math.floor(n / across), k: n % across };
    if (isStop?.(place.i, place.k)) return place;
  }
  return null;
}

function draw(props: CellMapProps, canvas: HTMLCanvasElement, box: HTMLElement, at: Place | null): void {
  const { down, across, width: w, height: h, rowLabels } = props;
  const gutter = rowLabels ? GUTTER : 0;
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.min(box.clientWidth, gutter + across * w);
  const high = Math.min(VIEW, down * h);
  canvas.width = Math.round(wide * ratio);
  canvas.height = Math.round(high * ratio);
  canvas.style.width = `${wide}px`;
  canvas.style.height = `${high}px`;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(ratio, ratio);
  const left = box.scrollLeft;
  const top = box.scrollTop;
  const k0 = Math.floor(left / w);
  const k1 = Math.min(across, Math.ceil((left + wide - gutter) / w));
  const i0 = Math.floor(top / h);
  const i1 = Math.min(down, Math.ceil((top + high) / h));
  for (let i = i0; i < i1; i++)
    for (let k = k0; k < k1; k++) props.paint(pen, i, k, gutter + k * w - left, i * h - top, w, h);
  if (at) {
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    pen.strokeRect(gutter + at.k * w - left - 1, at.i * h - top - 1, w + 2, h + 2);
  }
  if (!rowLabels) return;
  pen.fillStyle = colour("back");
  pen.fillRect(0, 0, gutter, high);
  pen.fillStyle = colour("soft");
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const each = Math.max(1, Math.ceil(14 / h));
  for (let i = i0 + ((each - (i0 % each)) % each); i < i1; i += each)
    pen.fillText(clipped(rowLabels[i] ?? "", 13), 2, i * h - top + h / 2, gutter - 6);
}

export function CellMap(props: CellMapProps): JSX.Element {
  const { down, across, width: w, height: h, rowLabels, label } = props;
  const gutter = rowLabels ? GUTTER : 0;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<Place | null>(null);
  const theme = useTheme();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const later = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => canvas.current && draw(props, canvas.current, element, at));
    };
    later();
    element.addEventListener("scroll", later, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(element);
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("scroll", later);
      observer.disconnect();
    };
  }, [props.paint, down, across, w, h, rowLabels, at, theme]);

  const under = (e: MouseEvent): Place | null => {
    const element = box.current;
    if (!element) return null;
    const area = element.getBoundingClientRect();
    const x = e.clientX - area.left - element.clientLeft - gutter;
    const k = Math.floor((x + element.scrollLeft) / w);
    const i = Math.floor((e.clientY - area.top - element.clientTop + element.scrollTop) / h);
    return x >= 0 && i >= 0 && i < down && k >= 0 && k < across ? { i, k } : null;
  };
  const put = (to: Place): void => {
    const element = box.current;
    setAt(to);
    if (!element) return;
    const wide = element.clientWidth - gutter;
    if (to.k * w < element.scrollLeft || (to.k + 1) * w > element.scrollLeft + wide)
      element.scrollLeft = to.k * w - wide / 2;
    if (to.i * h < element.scrollTop || (to.i + 1) * h > element.scrollTop + element.clientHeight)
      element.scrollTop = to.i * h - element.clientHeight / 2;
  };
  const onKey = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { i, k } = at ?? { i: 0, k: -1 };
    const moves: Record<string, Place | null> = {
      ArrowRight: { i, k: k + 1 },
      ArrowLeft: { i, k: k - 1 },
      ArrowDown: { i: at ? i + 1 : 0, k: Math.max(0, k) },
      ArrowUp: { i: i - 1, k },
      Home: { i, k: 0 },
      End: { i, k: across - 1 },
      PageDown: { i: down - 1, k },
      PageUp: { i: 0, k },
      f: nextStop(props, { i, k }, 1),
      F: nextStop(props, { i, k }, -1),
    };
    if (e.key === "Enter" && at) props.onOpen?.(at.i, at.k);
    else if (e.key === "Escape") setAt(null);
    else if (e.key in moves) {
      const to = moves[e.key];
      if (to) put({ i: Math.max(0, Math.min(down - 1, to.i)), k: Math.max(0, Math.min(across - 1, to.k)) });
    } else return;
    e.preventDefault();
  };
  return (
    <div class="cellmap">
      <div
        ref={box}
        class="cellmap-box"
        tabIndex={0}
        role="application"
        aria-label={`${label}, ${down} by ${across} cells. Arrow keys move${props.onOpen ? ", Enter opens" : ""}.`}
        style={{
          height: `${Math.min(VIEW, down * h) + 16}px`,
          maxWidth: `${gutter + across * w + (down * h > VIEW ? 18 : 2)}px`,
        }}
        onKeyDown={onKey}
        onPointerMove={(e) => setAt(under(e))}
        onPointerLeave={() => setAt(null)}
        onClick={(e) => {
          const place = under(e);
          if (place) props.onOpen?.(place.i, place.k);
        }}
      >
        <div style={{ width: `${gutter + across * w}px`, height: `${down * h}px` }}>
          <canvas ref={canvas} />
        </div>
      </div>
      <p class="readout" role="status">
        {at ? props.describe(at.i, at.k) : <span class="soft">Point at a cell, or use the arrow keys.</span>}
      </p>
    </div>
  );
}
