/** Light or dark: as the system has it, until the reader chooses. */
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";

const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
const colours = new Map<string, string>();
let chosen: Theme | null = null;

export function theme(): Theme {
  return chosen ?? (system.matches ? "dark" : "light");
}

function apply(): void {
  document.documentElement.dataset.theme = theme();
  colours.clear();
  for (const listener of listeners) listener();
}

export function toggleTheme(): void {
  chosen = theme() === "dark" ? "light" : "dark";
  apply();
}

export function startTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

export function useTheme(): Theme {
  const [value, setValue] = useState(theme());
  useEffect(() => {
    const listener = (): void => setValue(theme());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return value;
}

/** A colour of the style sheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}
