/** The error along the network at a glance, as one drawing: for the overview and for paper. */
import type { JSX } from "preact";
import type { Network } from "../data";
import { brief } from "../core/number";
import { useStore } from "../core/report";
import { decades } from "./axes";
import { callsOf, distinct } from "./calls";

const POINTS = 600;

/** The largest of each stretch of calls, so that nothing bad is lost. */
function thinned(values: ArrayLike<number>): { at: number; value: number }[] {
  const each = Math.max(1, values.length / POINTS);
  const list: { at: number; value: number }[] = [];
  for (let start = 0; start < values.length; start += each) {
    let at = -1;
    for (let i = Math.floor(start); i < Math.min(values.length, start + each); i++)
      if (values[i] > 0 && (at < 0 || values[i] > values[at])) at = i;
    if (at >= 0) list.push({ at, value: values[at] });
  }
  return list;
}

export function Line({ net }: { net: Network }): JSX.Element {
  const calls = callsOf(useStore(), net);
  const [low, high] = decades([calls.total, calls.band]);
  const x = (call: number): number => 60 + (call / Math.max(1, net.names.length - 1)) * 730;
  const y = (v: number): number => {
    const share = (Math.log10(Math.min(v, high)) - Math.log10(low)) / (Math.log10(high) - Math.log10(low));
    return 215 - 200 * Math.max(0, share);
  };
  const path = (values: ArrayLike<number>): string =>
    thinned(values).map(({ at, value }, i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const faults = net.names.map((_, i) => i).filter((i) => calls.mood[i] === 0).slice(0, 200);
  return (
    <>
      <svg viewBox="0 0 800 245" class="paper-curve" role="img" aria-label="Error along the network">
        <path class="frame" d="M60 15V215H790" />
        {[low, high].map((v) => (
          <text x="54" y={y(v) + 4} text-anchor="end">
            {brief(v, 2)}
          </text>
        ))}
        <text x="60" y="235">
          call 0
        </text>
        <text x="790" y="235" text-anchor="end">
          {net.names.length.toLocaleString("en")}
        </text>
        <path class="paper-band" d={path(calls.band)} />
        <path class="paper-total" d={path(calls.total)} />
        {faults.map((i) => (
          <path class="paper-fault" d={`M${x(i)} ${y(calls.total[i] > 0 ? calls.total[i] : low) - 7}l7 7-7 7-7-7Z`} />
        ))}
      </svg>
      <p class="soft">
        Line: relative distance from the other run. Dashed: what rounding alone would give. Diamonds: what is bad.
        {distinct(calls.rank, net.names.length).length > 1 && " Ranks follow one another."}
      </p>
    </>
  );
}
