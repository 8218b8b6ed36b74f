/** Small things that several views use. */
import type { ComponentChildren, JSX } from "preact";
import { clipped, visible } from "../core/text";

export function Section(props: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}

/** A text from the data that may be long or of another direction. */
export function Name({ text, length }: { text: string; length?: number }): JSX.Element {
  const short = clipped(text, length ?? 160);
  return (
    <bdi class="name" title={short === text ? undefined : clipped(text, 1000)}>
      {short}
    </bdi>
  );
}

const LONG = 600;

export function Long({ text }: { text: string }): JSX.Element {
  const all = visible(text);
  if (all.length <= LONG) return <bdi class="value">{all}</bdi>;
  return (
    <details class="long">
      <summary>
        <bdi class="value">{clipped(text, 200)}</bdi>
      </summary>
      <bdi class="value">{all}</bdi>
    </details>
  );
}

export function Facts({ facts }: { facts: [string, string][] }): JSX.Element | null {
  if (!facts.length) return null;
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div>
          <dt>
            <Name text={name} length={80} />
          </dt>
          <dd>
            <Long text={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface PickProps<T extends string> {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onPick: (value: T) => void;
}

/** A few choices, all in sight. */
export function Pick<T extends string>({ label, value, options, onPick }: PickProps<T>): JSX.Element {
  return (
    <div class="pick" role="group" aria-label={label}>
      <span class="pick-label" aria-hidden="true">
        {label}
      </span>
      {options.map(([key, text]) => (
        <button type="button" aria-pressed={key === value} onClick={() => onPick(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** One of many. */
export function Select<T extends string>({ label, value, options, onPick }: PickProps<T>): JSX.Element {
  return (
    <label class="select">
      <span>{label}</span>
      <select value={value} onChange={(e) => onPick(e.currentTarget.value as T)}>
        {options.map(([key, text]) => (
          <option value={key}>{clipped(text, 60)}</option>
        ))}
      </select>
    </label>
  );
}

export function Check(props: {
  label: string;
  on: boolean;
  onSet: (on: boolean) => void;
}): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={props.on} onChange={(e) => props.onSet(e.currentTarget.checked)} />
      {props.label}
    </label>
  );
}
