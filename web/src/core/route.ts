/** Where the reader is: "#/view/part?name=value", so that links and Back work. */
import { useEffect, useState } from "preact/hooks";

export interface Route {
  view: string;
  part: number; // which table, tensor, grid
  query: URLSearchParams;
}

const listeners = new Set<() => void>();

export function parse(hash: string): Route {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, part] = path.split("/");
  const number = Number(part);
  return {
    view: view || "overview",
    part: Number.isInteger(number) && number >= 0 ? number : 0,
    query: new URLSearchParams(query),
  };
}

export function href(view: string, part?: number, query?: Record<string, string | number>): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) values.set(name, String(value));
  const text = values.toString();
  return `#/${view}${part === undefined ? "" : `/${part}`}${text ? `?${text}` : ""}`;
}

export function current(): Route {
  return parse(location.hash);
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes what the address says about this view, without a step for Back. */
export function note(changes: Record<string, string | null>): void {
  const { view, part, query } = current();
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  const hash = href(view, part, Object.fromEntries(query));
  if (hash === location.hash) return;
  try {
    history.replaceState(history.state, "", hash);
  } catch {
    return; // too often, or not allowed in the frame that shows the page
  }
  for (const listener of listeners) listener();
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listener = (): void => setHash(location.hash);
    listeners.add(listener);
    window.addEventListener("hashchange", listener);
    return () => {
      listeners.delete(listener);
      window.removeEventListener("hashchange", listener);
    };
  }, []);
  return parse(hash);
}
