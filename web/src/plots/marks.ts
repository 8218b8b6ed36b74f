/** Marks for points that are to be looked at: a shape for each mood. */
import type uPlot from "uplot";
import type { Mood } from "../data";
import { moodName } from "../core/mood";
import { colour } from "../core/theme";

type Pen = CanvasRenderingContext2D;

function shape(pen: Pen, mood: Mood, x: number, y: number, r: number): void {
  pen.beginPath();
  if (mood === 0) {
    pen.moveTo(x, y - r * 1.3);
    pen.lineTo(x + r * 1.3, y);
    pen.lineTo(x, y + r * 1.3);
    pen.lineTo(x - r * 1.3, y);
  } else if (mood === 1) {
    pen.moveTo(x, y - r);
    pen.lineTo(x + r, y + r * 0.8);
    pen.lineTo(x - r, y + r * 0.8);
  } else if (mood === 2) pen.rect(x - r * 0.7, y - r * 0.7, r * 1.4, r * 1.4);
  else pen.arc(x, y, r * 0.8, 0, 2 * Math.PI);
  pen.closePath();
}

/** One mark on a canvas; also used for legends. */
export function mark(pen: Pen, mood: Mood, x: number, y: number, r: number): void {
  const ink = colour(moodName(mood));
  shape(pen, mood, x, y, r);
  pen.lineWidth = Math.max(1, r / 4);
  if (mood === 2) {
    pen.strokeStyle = ink;
    pen.stroke();
    return;
  }
  pen.fillStyle = ink;
  pen.fill();
  pen.strokeStyle = colour("back");
  pen.stroke();
}

/**
 * Draws them after the lines: the worst last, so that they are on top. Of those that fall on the
 * same pixel, one is drawn. A point without a value is marked at the bottom.
 */
export function marks(moods: ArrayLike<number>, series: number): (u: uPlot) => void {
  return (u) => {
    const [first, last] = u.series[0].idxs ?? [0, -1];
    const { ctx: pen } = u;
    const ratio = window.devicePixelRatio || 1;
    const x = u.data[0];
    const y = u.data[series];
    const scale = u.series[series].scale ?? "y";
    const bottom = u.bbox.top + u.bbox.height - 6 * ratio;
    pen.save();
    pen.beginPath();
    pen.rect(u.bbox.left - 9 * ratio, u.bbox.top - 9 * ratio, u.bbox.width + 18 * ratio, u.bbox.height + 18 * ratio);
    pen.clip();
    for (const mood of [2, 1, 0] as const) {
      let previous = -1;
      for (let i = first; i <= last; i++) {
        if (moods[i] !== mood) continue;
        const px = Math.round(u.valToPos(x[i], "x", true));
        if (px - previous < 2 * ratio && mood !== 0) continue;
        previous = px;
        const value = y[i];
        const py = value == null ? bottom : u.valToPos(value, scale, true);
        mark(pen, mood, px, py, (mood === 0 ? 6 : 4.5) * ratio);
      }
    }
    pen.restore();
  };
}

/** Ticks at the bottom for results that are equal in both runs: they have no magnitude. */
export function equals(which: boolean[]): (u: uPlot) => void {
  return (u) => {
    const [first, last] = u.series[0].idxs ?? [0, -1];
    const { ctx: pen } = u;
    const ratio = window.devicePixelRatio || 1;
    const bottom = u.bbox.top + u.bbox.height;
    pen.save();
    pen.fillStyle = colour("target");
    for (let i = first; i <= last; i++)
      if (which[i]) pen.fillRect(u.valToPos(u.data[0][i], "x", true) - ratio / 2, bottom - 7 * ratio, ratio * 1.5, 7 * ratio);
    pen.restore();
  };
}
