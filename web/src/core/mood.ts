/** How a thing is to be looked at: each mood has a word, a letter and a shape besides its colour. */
import type { Mood } from "../data";

export const MOODS: readonly Mood[] = [0, 1, 2, 3];

const WORDS = ["bad", "in doubt", "not judged", "good"] as const;
const LETTERS = ["B", "D", "N", "G"] as const;
const NAMES = ["bad", "doubt", "unseen", "good"] as const;

/** Numbers beyond the known ones are taken for "not judged". */
export function moodOf(value: number): Mood {
  return value === 0 || value === 1 || value === 3 ? value : 2;
}

export const moodWord = (mood: Mood): string => WORDS[mood];
export const moodLetter = (mood: Mood): string => LETTERS[mood];
/** As in the style sheet: --bad, .mood-bad. */
export const moodName = (mood: Mood): string => NAMES[mood];
