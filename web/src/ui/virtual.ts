/** Which rows of a long list are in sight. */
import type { RefObject } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

// Browsers cannot lay out more; longer lists scroll by more than a row at a time.
const TALLEST = 12e6;

export interface Virtual {
  first: number;
  last: number; // exclusive
  room: number; // for rows, in pixels
  height: number; // of all rows
  offset: number; // where the first of them stands
  reveal: (row: number) => void;
}

export function useVirtual(
  box: RefObject<HTMLElement>,
  count: number,
  rowHeight: number,
  head: number, // height of what stays on top
): Virtual {
  const [seen, setSeen] = useState({ top: 0, view: 600 });
  const frame = useRef(0);
  const full = count * rowHeight;
  const height = Math.min(full, TALLEST);
  const room = Math.max(1, seen.view - head);
  const scale = height > room && full > room ? (full - room) / (height - room) : 1;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = (): void => {
      frame.current = 0;
      setSeen((old) => {
        const now = { top: element.scrollTop, view: element.clientHeight };
        return old.top === now.top && old.view === now.view ? old : now;
      });
    };
    const later = (): void => {
      if (!frame.current) frame.current = requestAnimationFrame(read);
    };
    read();
    element.addEventListener("scroll", later, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", later);
      observer.disconnect();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [box]);

  const start = seen.top * scale; // in the list as if it were not squeezed
  const first = Math.max(0, Math.min(count - 1, Math.floor(start / rowHeight) - 4));
  const last = Math.min(count, Math.ceil((start + room) / rowHeight) + 4);
  const offset = seen.top - (start - Math.max(0, first) * rowHeight);

  const reveal = useCallback(
    (row: number): void => {
      const element = box.current;
      if (!element) return;
      const view = Math.max(rowHeight, element.clientHeight - head);
      const at = element.scrollTop * scale;
      const top = row * rowHeight;
      if (top < at) element.scrollTop = top / scale;
      else if (top + rowHeight > at + view) element.scrollTop = (top + rowHeight - view) / scale + 1;
    },
    [box, rowHeight, head, scale],
  );
  return { first: Math.max(0, first), last: Math.max(0, last), room, height, offset, reveal };
}
