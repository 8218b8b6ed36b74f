/** The report as it comes out of the page: JSON, and arrays that lie in one buffer. */
import type { Bulk, Report } from "../data";

export type Numbers = Float64Array | Float32Array | Int32Array | Uint32Array | Uint8Array;

const KINDS = {
  f64: Float64Array,
  f32: Float32Array,
  i32: Int32Array,
  u32: Uint32Array,
  u8: Uint8Array,
} as const;

/** What keeps a report from being shown, in words for people. */
export class Unreadable extends Error {}

export class Store {
  constructor(
    readonly report: Report,
    private readonly buffer: ArrayBuffer,
    private readonly start: number,
  ) {}

  holds(bulk: Bulk): boolean {
    const kind = KINDS[bulk.type];
    return (
      kind !== undefined &&
      Number.isInteger(bulk.at) &&
      Number.isInteger(bulk.n) &&
      bulk.at >= 0 &&
      bulk.n >= 0 &&
      bulk.at % 8 === 0 &&
      this.start + bulk.at + bulk.n * kind.BYTES_PER_ELEMENT <= this.buffer.byteLength
    );
  }

  get(bulk: Bulk): Numbers {
    if (!this.holds(bulk)) throw new Unreadable("an array lies outside of the report's data");
    return new KINDS[bulk.type](this.buffer, this.start + bulk.at, bulk.n);
  }
}
