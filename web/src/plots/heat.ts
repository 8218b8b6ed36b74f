/** A scale of colours that grows in lightness, so that it is read without colours too (viridis). */
const STOPS = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];

export function heat(share: number): string {
  const at = Math.max(0, Math.min(1, share)) * (STOPS.length - 1);
  const k = Math.min(STOPS.length - 2, Math.floor(at));
  const mix = STOPS[k].map((low, i) => Math.round(low + (STOPS[k + 1][i] - low) * (at - k)));
  return `rgb(${mix.join(",")})`;
}

type Pen = CanvasRenderingContext2D;

/** A cell that is not a number: a cross. */
export function cross(pen: Pen, x: number, y: number, w: number, h: number, ink: string): void {
  pen.strokeStyle = ink;
  pen.lineWidth = Math.max(1, Math.min(w, h) / 6);
  pen.beginPath();
  pen.moveTo(x + 1, y + 1);
  pen.lineTo(x + w - 1, y + h - 1);
  pen.moveTo(x + w - 1, y + 1);
  pen.lineTo(x + 1, y + h - 1);
  pen.stroke();
}
