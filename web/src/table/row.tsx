import { Component, type JSX } from "preact";
import type { Sheet } from "../core/cells";
import { moodName, moodOf } from "../core/mood";
import { clipped } from "../core/text";
import { Badge } from "../ui/badge";

interface Props {
  sheet: Sheet;
  columns: number[];
  row: number;
  index: number; // among those shown
  active: boolean;
}

const CUT = 300; // what no column is wide enough for

/** Drawn again only when something of it changed: scrolling would be slow otherwise. */
export class Row extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    const now = this.props;
    return (
      next.row !== now.row ||
      next.index !== now.index ||
      next.active !== now.active ||
      next.columns !== now.columns ||
      next.sheet !== now.sheet
    );
  }

  render({ sheet, columns, row, index, active }: Props): JSX.Element {
    const mood = moodOf(sheet.mood[row]);
    return (
      <div
        class={`grid-row line edge-${moodName(mood)}`}
        role="row"
        id={`row-${row}`}
        data-row={row}
        aria-rowindex={index + 3}
        aria-selected={active}
      >
        <div class="cell sign" role="gridcell">
          <Badge mood={mood} label />
        </div>
        {columns.map((k) => {
          const cells = sheet.cells[k];
          const text = cells.shown(row);
          return (
            <div class={cells.column.left ? "cell left" : "cell"} role="gridcell">
              {text.length > CUT ? clipped(text, CUT) : text}
            </div>
          );
        })}
      </div>
    );
  }
}
