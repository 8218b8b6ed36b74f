/**
 * Numbers as text, the same as the program prints them (src/base/number.c). Where a number lies
 * exactly between two, C rounds to the even digit and JavaScript to the larger one.
 */
import type { Style } from "../data";

const LARGE = 2 ** 53;

interface Decimal {
  digits: string; // does not end in 0
  before: number; // digits before the point: the value is 0.DIGITS * 10^before
}

function decimal(exponential: string): Decimal {
  const [mantissa, exponent] = exponential.split("e");
  const digits = mantissa.replace(".", "").replace(/0+$/, "");
  return { digits: digits || "0", before: Number(exponent) + 1 };
}

/** With an exponent when it is below 1e-4 or has more than `whole` digits before the point. */
function layOut(negative: boolean, value: Decimal, whole: number, point: boolean): string {
  const { digits, before } = value;
  const sign = negative ? "-" : "";
  if (before < -3 || before > whole) {
    const exponent = before - 1;
    const rest = digits.length > 1 ? "." + digits.slice(1) : "";
    const power = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits[0]}${rest}e${exponent < 0 ? "-" : "+"}${power}`;
  }
  if (before <= 0) return `${sign}0.${"0".repeat(-before)}${digits}`;
  if (digits.length <= before) return sign + digits.padEnd(before, "0") + (point ? ".0" : "");
  return `${sign}${digits.slice(0, before)}.${digits.slice(before)}`;
}

function special(value: number, point: boolean): string | null {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (value === 0) return (Object.is(value, -0) ? "-0" : "0") + (point ? ".0" : "");
  return null;
}

/** All digits: the shortest text that reads back as the value. */
export function exact(value: number, point = false): string {
  return (
    special(value, point) ??
    layOut(value < 0, decimal(Math.abs(value).toExponential()), 16, point)
  );
}

function significant(value: number, count: number): Decimal {
  const shortest = decimal(value.toExponential());
  const tie = shortest.digits.length === count + 1 && shortest.digits[count] === "5";
  if (tie && Number(shortest.digits[count - 1]) % 2 === 0) {
    const all = value.toExponential(100).replace(".", "");
    if (/^0*e/.test(all.slice(count + 1)))
      return { digits: shortest.digits.slice(0, count).replace(/0+$/, ""), before: shortest.before };
  }
  return decimal(value.toExponential(count - 1));
}

/** So many significant digits, whatever the magnitude. */
export function digits(value: number, count = 7): string {
  return special(value, false) ?? layOut(value < 0, significant(Math.abs(value), count), count, false);
}

function rounded(value: number): number {
  if (value === 0 || !(Math.abs(value) < LARGE)) return value;
  if (Math.abs(value * 256) % 2 === 1) {
    // Only odd multiples of 1/256 lie between two; these have eight decimals, the last one a 5.
    const eight = value.toFixed(8);
    if (Number(eight[eight.length - 2]) % 2 === 0) return Number(eight.slice(0, -1));
  }
  return Number(value.toFixed(7));
}

function percent(value: number): number {
  return Math.floor(value * 100 + 1e-9) / 100;
}

/** A real number as a column of this style shows it. */
export function shown(value: number, style: Style): string {
  if (style === "digits") return digits(value);
  const seen = style === "percent" ? percent(value) : rounded(value);
  if (style === "repr") return exact(seen, true);
  return seen === 0 && value !== 0 ? digits(value) : exact(seen);
}

/** An integer, with all its digits. */
export function integer(value: number): string {
  return Number.isInteger(value) ? BigInt(value).toString() : exact(value);
}

/** For labels and sentences of this page. */
export function brief(value: number, count = 4): string {
  return digits(value, count);
}

/** For axes: 9.1k, 40M; small numbers as they are. */
export function compact(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e3 && size < 1e6) return `${digits(value / 1e3, 3)}k`;
  if (size >= 1e6 && size < 1e9) return `${digits(value / 1e6, 3)}M`;
  return digits(value, 3);
}
