import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Sheet } from "../core/cells";
import { moodOf, moodWord } from "../core/mood";
import { href } from "../core/route";
import { visible } from "../core/text";
import { Badge } from "../ui/badge";
import { Facts } from "../ui/parts";

/** All columns of a row: as shown, and with all digits where that is more. */
export function rowFacts(sheet: Sheet, row: number): [string, string][] {
  return sheet.cells.map((cells) => {
    const word = cells.word(row);
    const text = word === -2 ? "(empty)" : cells.shown(row);
    const exact = word === -1 ? cells.exact(row) : text;
    return [cells.column.title, exact === text ? text : `${text}  (${visible(exact)})`];
  });
}

interface Props {
  sheet: Sheet;
  row: number;
  tensors: number;
  onClose: () => void;
}

export function Drawer({ sheet, row, tensors, onClose }: Props): JSX.Element {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus(), []);
  const mood = moodOf(sheet.mood[row]);
  const tensor = sheet.tensor[row];
  return (
    <div
      class="drawer"
      role="dialog"
      aria-label={`Row ${row + 1}, all columns`}
      onKeyDown={(e) => e.key === "Escape" && onClose()}
    >
      <div class="drawer-head">
        <Badge mood={mood} />
        <h2>
          Row {(row + 1).toLocaleString("en")}: {moodWord(mood)}
        </h2>
        <button type="button" ref={close} onClick={onClose}>
          Close
        </button>
      </div>
      {tensor >= 0 && tensor < tensors && (
        <p>
          <a href={href("tensor", tensor)}>To the page of this tensor</a>
        </p>
      )}
      <Facts facts={rowFacts(sheet, row)} />
    </div>
  );
}
