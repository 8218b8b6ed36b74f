/** Single elements: those round the worst one, and the worst of all. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TensorPage, Window, Worst } from "../data";
import { brief, exact } from "../core/number";
import { useStore } from "../core/report";
import { Pick } from "../ui/parts";

type Sides = TensorPage["sides"];
type Shown = "difference" | "target" | "golden" | "both";

/** How large a difference is among those shown: 0 to 4, for the shade of the cell. */
function shade(difference: number, largest: number): number {
  if (difference === 0) return 0;
  if (!Number.isFinite(difference)) return 4;
  return Math.max(1, Math.min(4, 4 + Math.ceil(Math.log(Math.abs(difference) / largest) / Math.log(3))));
}

function content(shown: Shown, target: number, golden: number): JSX.Element {
  if (shown === "target") return <>{brief(target, 6)}</>;
  if (shown === "golden") return <>{brief(golden, 6)}</>;
  const difference = brief(target - golden, 3);
  if (shown === "difference") return <>{difference}</>;
  return (
    <>
      {brief(target, 5)}
      <br />
      {brief(golden, 5)}
      <br />
      <span class="soft">{difference}</span>
    </>
  );
}

export function ElementWindow({ window: around, sides }: { window: Window; sides: Sides }): JSX.Element {
  const store = useStore();
  const [shown, setShown] = useState<Shown>("difference");
  const target = store.get(around.target);
  const golden = store.get(around.golden);
  const [down, across] = around.size;
  const [a, b] = around.axes;
  let largest = 0;
  for (let i = 0; i < target.length; i++) {
    const d = Math.abs(target[i] - golden[i]);
    if (Number.isFinite(d)) largest = Math.max(largest, d);
  }
  const rows = Array.from({ length: down }, (_, i) => i);
  const columns = Array.from({ length: across }, (_, k) => k);
  const isWorst = (i: number, k: number): boolean =>
    (a < 0 || around.at[a] === around.origin[0] + i) && (b < 0 || around.at[b] === around.origin[1] + k);
  const cell = (i: number, k: number): JSX.Element => {
    const t = target[i * across + k];
    const g = golden[i * across + k];
    const worst = isWorst(i, k);
    return (
      <td
        class={`shade-${shade(t - g, largest)}${worst ? " worst" : ""}`}
        title={`${sides[0]} ${exact(t)}, ${sides[1]} ${exact(g)}, difference ${exact(t - g)}`}
      >
        {content(shown, t, g)}
        {worst && <span class="offscreen"> (the worst)</span>}
      </td>
    );
  };
  return (
    <>
      <div class="toolbar">
        <Pick
          label="Show"
          value={shown}
          options={[
            ["difference", "difference"],
            ["target", sides[0]],
            ["golden", sides[1]],
            ["both", "all three"],
          ]}
          onPick={setShown}
        />
      </div>
      <p class="soft">
        The worst element is [{around.at.join(", ")}], framed.
        {a >= 0 && ` Down: axis ${a}.`}
        {b >= 0 && ` Across: axis ${b}.`} The stronger the shade, the larger the difference.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Elements round the worst one">
        <table class="plain window">
          <thead>
            <tr>
              <td />
              {columns.map((k) => (
                <th scope="col">{around.origin[1] + k}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((i) => (
              <tr>
                <th scope="row">{around.origin[0] + i}</th>
                {columns.map((k) => cell(i, k))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function text(value: number | string | null): string {
  if (value === null) return "";
  return typeof value === "number" ? brief(value, 9) : value.slice(0, 40);
}

export function WorstTable({ worst, sides }: { worst: Worst[]; sides: Sides }): JSX.Element {
  const ulps = worst.some((w) => w.ulps !== null);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="The worst elements">
      <table class="plain">
        <thead>
          <tr>
            <th class="left">element</th>
            <th>{sides[0]}</th>
            <th>{sides[1]}</th>
            <th>error</th>
            {ulps && <th>ULP</th>}
          </tr>
        </thead>
        <tbody>
          {worst.map((w) => (
            <tr>
              <td class="left">[{w.at.join(", ")}]</td>
              <td>{text(w.target)}</td>
              <td>{text(w.golden)}</td>
              <td>{text(w.error)}</td>
              {ulps && <td>{text(w.ulps)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
