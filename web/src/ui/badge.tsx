import type { JSX } from "preact";
import type { Mood } from "../data";
import { moodLetter, moodName, moodWord } from "../core/mood";

const SHAPES: Record<Mood, JSX.Element> = {
  0: <path d="M8 0 16 8 8 16 0 8Z" />,
  1: <path d="M8 0 16 15H0Z" />,
  2: <path d="M1 1H15V15H1Z" class="hollow" />,
  3: <circle cx="8" cy="8" r="8" />,
};

/** A shape with a letter in it. With `label`, it is read out; else the text beside it says it. */
export function Badge({ mood, label = false }: { mood: Mood; label?: boolean }): JSX.Element {
  const name = label ? { role: "img" as const, "aria-label": moodWord(mood) } : { "aria-hidden": true };
  return (
    <svg class={`badge mood-${moodName(mood)}`} viewBox="0 0 16 16" {...name}>
      {SHAPES[mood]}
      <text x="8" y={mood === 1 ? 13.2 : 11.6} text-anchor="middle">
        {moodLetter(mood)}
      </text>
    </svg>
  );
}
