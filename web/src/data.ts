/**
 * What a report holds. The C side writes it (src/report/page.c), one page shows it.
 *
 * The page carries it as one block of base64: raw deflate (RFC 1951, without a header of zlib or
 * gzip) of
 *     4 bytes: the size of the JSON text (little-endian), the text in UTF-8, bytes up to the next
 *     multiple of 8, and the bulk.
 * Numbers that come in masses are in the bulk; the JSON says where. All of it is little-endian. JSON
 * has no NaN and no infinity: where these are possible, numbers are in the bulk or may be texts.
 */

/** An array in the bulk: `n` numbers from byte `at` of the bulk, a multiple of 8, on. */
export interface Bulk {
  type: "f64" | "f32" | "i32" | "u32" | "u8";
  at: number;
  n: number;
}

/**
 * How a thing is to be looked at, the worst first: 0 "bad" (a fault, a failed row), 1 "doubt"
 * (suspicious, cheaper arithmetic), 2 "unseen" (not judged, no counterpart, unreadable), 3 "good".
 * Arrays of moods are u8.
 */
export type Mood = 0 | 1 | 2 | 3;

export interface Answer {
  mood: Mood;
  sentence: string; // what is wrong: the first thing that a person reads
  where: string; // the name of the call or tensor; "": nowhere
  row: number; // of the first table, which shows it; -1: none
  sure: string; // how sure that is, with its numbers; "": nothing to be said
  next: string[]; // commands that lead on
}

export interface Count {
  word: string; // "fault", "rounding", "failed", "only in the target", ...
  count: number;
  mood: Mood;
}

/** How numbers of a column are shown; docs/REPORT.md. Copies as CSV get all digits. */
export type Style = "text" | "number" | "repr" | "percent" | "digits";

/**
 * A column. `words` has for each row the place of its text in `dictionary`, -1 for a number of
 * `numbers`, -2 for an empty cell. Without `words`, all rows are numbers; without `numbers`, none.
 */
export interface Column {
  title: string;
  style: Style;
  left: boolean; // aligned left
  dictionary: string[];
  words?: Bulk; // i32
  numbers?: Bulk; // f64
  whole?: Bulk; // u8, 1: an integer, shown with all its digits whatever the style; without: none
}

export interface Table {
  name: string;
  rows: number;
  columns: Column[];
  mood: Bulk; // u8, of each row
  tensor: Bulk; // i32: the page of the tensor (Report.tensors), -1: none
}

/** One point for each call, in the order of execution. */
export interface Network {
  names: string[]; // of calls
  modules: string[]; // paths of modules, "layers.0.attention"; "": not in one
  module: Bulk; // i32, for each call: which of them
  back: Bulk; // u8: 1 for backward
  rank: Bulk; // i32; -1: not counted
  step: Bulk; // i32; -1: not counted
  total: Bulk; // f64: relative distance of the results from the other run; NaN: not known
  local: Bulk; // f64: excess of the call by itself, in standard deviations; NaN: not judged
  limit: Bulk; // f64: for it; NaN: none
  band: Bulk; // f64: how far rounding would put the results; NaN: not known
  mood: Bulk; // u8
  word: Bulk; // u8: which of `words`
  words: string[]; // verdicts
  row: Bulk; // i32: the first row of the first table that is about it; -1: none
}

export interface Histogram {
  title: string; // "values", "absolute error", "relative error", "ULP error"
  /** linear: bins of equal width from low to high. log2: bin k holds [2^(low+k), 2^(low+k+1)). */
  scale: "linear" | "log2";
  low: number;
  high: number;
  sides: { label: string; bins: Bulk }[]; // f64 counts; two for values, else one
  beside: { label: string; counts: number[] }[]; // "0", "NaN", "+Inf", ...: one count for each side
}

/** Largest absolute errors over two axes; all other axes are maximised over. */
export interface HeatMap {
  axes: [number, number]; // down, across; -1: the tensor has no such axis, size 1
  size: [number, number]; // cells, at most 64 x 64
  extent: [number, number]; // elements along the two axes
  /** 0: no error; 1..254: 2^((value - 254) / 8) of `largest`; 255: not finite */
  values: Bulk; // u8, row by row
  largest: number;
}

/** Single elements round the worst one, along two axes; the other coordinates are those of `at`. */
export interface Window {
  axes: [number, number];
  at: number[]; // the worst element
  origin: [number, number];
  size: [number, number]; // at most 16 x 16
  target: Bulk; // f64
  golden: Bulk; // f64
}

export interface Worst {
  at: number[];
  target: number | string; // texts: "NaN", "Infinity", "-Infinity"
  golden: number | string;
  error: number | string;
  ulps: number | string | null; // null: of types that have none
}

/** Along one axis: cells of equal length, at most 256. */
export interface Profile {
  axis: number;
  extent: number;
  largest: Bulk; // f64, absolute error
  mean: Bulk; // f64
}

export interface TensorPage {
  name: string;
  row: number; // of the first table
  mood: Mood;
  dtypes: [string, string]; // of the two sides
  sides: [string, string]; // what they are called: "target", "golden"; "got", "expected"
  shape: number[];
  facts: [string, string][]; // verdict, why, pattern, arithmetic, module, arguments, ...
  stack: string[];
  commands: string[]; // capsule, replay
  histograms: Histogram[];
  maps: HeatMap[];
  window: Window | null;
  worst: Worst[];
  profiles: Profile[];
}

/** Ranks or steps down, calls across. */
export interface Grid {
  title: string;
  down: string[];
  across: string[];
  mood: Bulk; // u8, row by row; 255: nothing there
  value: Bulk; // f32; NaN: not known
  unit: string; // what value is: "relative distance"
  row: Bulk; // i32: of the first table; -1: none
}

/** Statistics of one run along its steps. */
export interface Steps {
  steps: number[]; // ascending
  names: string[]; // of tensors
  /** For each statistic: names.length * steps.length numbers, tensor by tensor; NaN: not there. */
  series: { title: string; values: Bulk }[]; // f64: "norm", "max", "min", "mean", "NaN", "Inf"
  earlier: { title: string; values: Bulk }[]; // the same of an earlier run; may be empty
  jumps: { tensor: number; step: number; why: string; mood: Mood }[];
}

export interface Report {
  format: 1;
  plumb: string; // version
  command: string; // "compare", "blame", ...
  title: string;
  made: string; // ISO 8601
  answer: Answer;
  counts: Count[];
  facts: [string, string][]; // what was compared: paths, versions, devices, types, options, time
  reproduce: string; // a command
  notes: string[]; // what was not looked at, and what else is to be known
  tables: Table[];
  network: Network | null;
  tensors: TensorPage[]; // at most 200
  grids: Grid[];
  steps: Steps | null;
}
