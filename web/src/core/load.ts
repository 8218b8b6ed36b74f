/** From the block in the page to a Store: base64, deflate, container, and a look at what is in it. */
import type { Bulk, Column, Report } from "../data";
import { Store, Unreadable } from "./store";

function fromBase64(text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    throw new Unreadable("its data are not complete: the file was changed or cut on its way");
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array): Promise<ArrayBuffer> {
  let stream: DecompressionStream;
  try {
    stream = new DecompressionStream("deflate-raw");
  } catch {
    throw new Unreadable("this browser is too old for it; one of 2023 or later will do");
  }
  try {
    const packed = new Blob([bytes as BlobPart]).stream();
    return await new Response(packed.pipeThrough(stream)).arrayBuffer();
  } catch {
    throw new Unreadable("its data cannot be unpacked: the file was changed or cut on its way");
  }
}

function open(buffer: ArrayBuffer): Store {
  if (buffer.byteLength < 4) throw new Unreadable("its data end too early");
  const size = new DataView(buffer).getUint32(0, true);
  if (size > buffer.byteLength - 4) throw new Unreadable("its data end too early");
  let report: Report;
  try {
    const text = new TextDecoder("utf-8").decode(new Uint8Array(buffer, 4, size));
    report = JSON.parse(text) as Report;
  } catch {
    throw new Unreadable("its description is damaged");
  }
  return new Store(report, buffer, Math.ceil((4 + size) / 8) * 8);
}

function isBulk(value: object): value is Bulk {
  return "type" in value && "at" in value && "n" in value;
}

/** Each array lies inside, so that nothing that is shown later can fail. */
function checkArrays(store: Store, value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value) && isBulk(value)) {
    store.get(value);
    return;
  }
  for (const part of Object.values(value)) if (typeof part === "object") checkArrays(store, part);
}

function atLeast(bulk: Bulk | undefined, count: number, what: string): void {
  if (bulk && bulk.n < count) throw new Unreadable(`${what} is shorter than it should be`);
}

function checkColumn(column: Column, rows: number): void {
  for (const bulk of [column.words, column.numbers, column.whole]) atLeast(bulk, rows, "a column");
}

function checkLengths(report: Report): void {
  for (const table of report.tables) {
    atLeast(table.mood, table.rows, "a table");
    atLeast(table.tensor, table.rows, "a table");
    for (const column of table.columns) checkColumn(column, table.rows);
  }
  const net = report.network;
  if (net)
    for (const bulk of [
      ...[net.module, net.back, net.rank, net.step, net.total, net.local],
      ...[net.limit, net.band, net.mood, net.word, net.row],
    ])
      atLeast(bulk, net.names.length, "the network");
  for (const grid of report.grids) {
    const cells = grid.down.length * grid.across.length;
    for (const bulk of [grid.mood, grid.value, grid.row]) atLeast(bulk, cells, "a grid");
  }
  const steps = report.steps;
  if (steps)
    for (const series of [...steps.series, ...steps.earlier])
      atLeast(series.values, steps.names.length * steps.steps.length, "a series");
}

export async function load(block: string | null): Promise<Store> {
  if (block === null || block.includes("plumb:data") || !block.trim())
    throw new Unreadable("there are no data in this file");
  const store = open(await inflate(fromBase64(block)));
  const report = store.report;
  if (report.format !== 1)
    throw new Unreadable("its data have a format that this page does not know");
  if (!Array.isArray(report.tables) || !Array.isArray(report.tensors) || !report.answer)
    throw new Unreadable("its description is not complete");
  checkArrays(store, report);
  checkLengths(report);
  return store;
}
