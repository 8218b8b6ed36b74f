import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Network } from "../data";
import { moodOf, moodWord } from "../core/mood";
import { brief } from "../core/number";
import { rowLink, useStore } from "../core/report";
import { current, go, note } from "../core/route";
import { plural } from "../core/text";
import { decades } from "../plots/axes";
import { callsOf, distinct, moduleOf, pick, wordOf, type Calls } from "../plots/calls";
import { Group } from "../plots/group";
import { Local, Total, type PanelProps } from "../plots/panels";
import { Badge } from "../ui/badge";
import { Check, Name, Select } from "../ui/parts";

function chosen(name: string, among: number[]): number | null {
  const text = current().query.get(name);
  return text !== null && among.includes(Number(text)) ? Number(text) : null;
}

/** What is under the cursor. */
function Readout({ calls, call }: { calls: Calls; call: number | null }): JSX.Element {
  if (call === null)
    return <p class="readout soft">Point at a call, or use the arrow keys in a plot. A click opens it.</p>;
  const mood = moodOf(calls.mood[call]);
  const values: [string, string][] = [
    ["distance", brief(calls.total[call])],
    ["rounding", brief(calls.band[call])],
    ["by itself", `${brief(calls.local[call])} sigma`],
    ["limit", brief(calls.limit[call])],
  ];
  const module = moduleOf(calls, call);
  return (
    <p class="readout" role="status">
      <Badge mood={mood} /> <b>{wordOf(calls, call) || moodWord(mood)}</b>{" "}
      <Name text={calls.net.names[call]} length={90} />
      {module && (
        <span class="soft">
          {" "}
          in <Name text={module} length={70} />
        </span>
      )}
      <br />
      {calls.rank[call] >= 0 && `rank ${calls.rank[call]}, `}
      {calls.step[call] >= 0 && `step ${calls.step[call]}, `}
      {values
        .filter(([, text]) => !text.startsWith("NaN"))
        .map(([name, text]) => `${name} ${text}`)
        .join(", ") || "no values"}
    </p>
  );
}

function Legend({ local }: { local: boolean }): JSX.Element {
  return (
    <ul class="legend">
      <li>
        <span class="swatch line-target" /> distance from the other run
      </li>
      <li>
        <span class="swatch area-band" /> what rounding alone would give
      </li>
      {local && (
        <>
          <li>
            <span class="swatch line-golden" /> what a call adds by itself
          </li>
          <li>
            <span class="swatch line-limit" /> its limit
          </li>
        </>
      )}
      <li>
        <Badge mood={0} /> bad
      </li>
      <li>
        <Badge mood={1} /> in doubt
      </li>
      <li>
        <Badge mood={2} /> not judged
      </li>
    </ul>
  );
}

export function Curve({ net }: { net: Network }): JSX.Element {
  const store = useStore();
  const calls = callsOf(store, net);
  const count = net.names.length;
  const ranks = useMemo(() => distinct(calls.rank, count), [calls]);
  const steps = useMemo(() => distinct(calls.step, count), [calls]);
  const both = useMemo(() => distinct(calls.back, count).length > 1, [calls]);
  const [forward, setForward] = useState(current().query.get("forward") !== "0");
  const [backward, setBackward] = useState(current().query.get("backward") !== "0");
  const [rank, setRank] = useState(chosen("rank", ranks));
  const [step, setStep] = useState(chosen("step", steps) ?? (steps.length > 1 ? steps[0] : null));
  const [call, setCall] = useState<number | null>(null);
  const group = useMemo(() => new Group(), []);

  const shown = rank !== null ? [rank] : ranks.length > 1 ? ranks : [null];
  const lists = useMemo(
    () => shown.map((r) => pick(calls, { forward, backward, rank: r, step })),
    [calls, forward, backward, rank, step],
  );
  const all = lists.flat();
  const local = lists.length === 1 && all.some((i) => !Number.isNaN(calls.local[i]));
  const range = useMemo(
    () => decades([all.map((i) => calls.total[i]), all.map((i) => calls.band[i])]),
    [lists],
  );
  const open = (i: number): void => {
    const link = rowLink(store, calls.row[i]);
    if (link) go(link);
  };
  const panel = (k: number, title: string, height: number): PanelProps => ({
    calls,
    list: lists[k],
    title,
    height,
    group,
    sync: "calls",
    range,
    onHover: setCall,
    onOpen: open,
  });
  const number = (text: string): number | null => (text === "" ? null : Number(text));
  return (
    <div class="curve">
      <h1>Error along the network</h1>
      <div class="toolbar">
        {both && (
          <>
            <Check label="Forward" on={forward} onSet={(on) => (setForward(on), note({ forward: on ? null : "0" }))} />
            <Check label="Backward" on={backward} onSet={(on) => (setBackward(on), note({ backward: on ? null : "0" }))} />
          </>
        )}
        {ranks.length > 1 && (
          <Select
            label="Rank"
            value={rank === null ? "" : String(rank)}
            options={[["", "all"], ...ranks.map((r) => [String(r), String(r)] as const)]}
            onPick={(text) => (setRank(number(text)), note({ rank: text }))}
          />
        )}
        {steps.length > 1 && (
          <Select
            label="Step"
            value={step === null ? "" : String(step)}
            options={[["", "all"], ...steps.map((s) => [String(s), String(s)] as const)]}
            onPick={(text) => (setStep(number(text)), note({ step: text }))}
          />
        )}
        <div class="pick" role="group" aria-label="Zoom">
          <button type="button" aria-label="Nearer" onClick={() => group.zoom(0.5)}>
            +
          </button>
          <button type="button" aria-label="Farther" onClick={() => group.zoom(2)}>
            −
          </button>
          <button type="button" onClick={() => group.reset()}>
            All
          </button>
        </div>
        <span class="soft count">{plural(all.length, "call")}</span>
      </div>
      <Readout calls={calls} call={call} />
      {all.length === 0 && <p>No call is like that.</p>}
      {all.length > 0 && lists.length === 1 && (
        <>
          <h2>Distance from the other run</h2>
          <Total {...panel(0, "Distance of each call from the other run", local ? 300 : 420)} />
          {local && (
            <>
              <h2>What each call adds by itself, in standard deviations</h2>
              <Local {...panel(0, "Excess of each call by itself", 220)} />
            </>
          )}
        </>
      )}
      {all.length > 0 && lists.length > 1 && (
        <div class="multiples">
          {shown.map((r, k) => (
            <div key={r}>
              <h2>
                Rank {r}{" "}
                {lists[k].some((i) => calls.mood[i] === 0) && <Badge mood={0} label />}
              </h2>
              <Total {...panel(k, `Distance of each call of rank ${r} from the other run`, 170)} />
            </div>
          ))}
        </div>
      )}
      <Legend local={local} />
      <p class="soft">
        Wheel or drag: nearer. Double click or Esc: all again. Ticks on the lower edge of the first
        plot: results that are equal in both runs.
      </p>
    </div>
  );
}
