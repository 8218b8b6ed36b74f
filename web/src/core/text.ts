/** Texts that come from files of others: nothing in them may be obeyed or hidden. */

// Controls, and what turns the direction of text round, which could make a name look like another.
export const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function name(character: string): string {
  return `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** With what cannot be seen shown by its number. */
export function visible(text: string): string {
  return text.replace(HIDDEN, name);
}

/** On one line, and cut in the middle: both ends of a long name tell something. */
export function clipped(text: string, length = 160): string {
  const cut =
    text.length <= length
      ? text
      : `${text.slice(0, Math.ceil(length * 0.6))} … ${text.slice(-Math.floor(length * 0.4))}`;
  return visible(cut.replace(/[\t\n\r]+/g, " ")).replace(/[\ud800-\udfff]/gu, "\ufffd");
}

/** As a heading: a plain word begins with a capital, a name of a file stays as it is. */
export function headed(text: string): string {
  return /^[a-z ]+$/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
}

export function plural(count: number, one: string, many = one + "s"): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
