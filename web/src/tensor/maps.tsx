import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type { HeatMap } from "../data";
import { brief } from "../core/number";
import { useStore } from "../core/report";
import { colour } from "../core/theme";
import { CellMap, type Pen } from "../plots/cellmap";
import { cross, heat } from "../plots/heat";
import { Select } from "../ui/parts";

const axisName = (axis: number): string => `axis ${axis}`;

/** Elements of cell `place` along an axis: "12" or "12 to 23". */
function span(place: number, cells: number, extent: number): string {
  const first = Math.floor((place * extent) / cells);
  const last = Math.max(first, Math.ceil(((place + 1) * extent) / cells) - 1);
  return first === last ? String(first) : `${first} to ${last}`;
}

function Map({ map }: { map: HeatMap }): JSX.Element {
  const store = useStore();
  const [down, across] = map.size;
  const values = useMemo(() => store.get(map.values), [map]);
  const least = useMemo(() => {
    let low = 254;
    for (const v of values) if (v > 0 && v < low) low = v;
    return Math.min(low, 253);
  }, [values]);
  const paint = useCallback(
    (pen: Pen, i: number, k: number, x: number, y: number, w: number, h: number): void => {
      const v = values[i * across + k];
      pen.fillStyle = v === 0 || v === 255 ? colour("panel") : heat((v - least) / (254 - least));
      pen.fillRect(x, y, w, h);
      if (v === 255) cross(pen, x, y, w, h, colour("bad"));
    },
    [values, across, least],
  );
  const error = (v: number): string =>
    v === 255 ? "not finite" : v === 0 ? "no error" : `error up to ${brief(2 ** ((v - 254) / 8) * map.largest, 3)}`;
  const describe = (i: number, k: number): string => {
    const at = [
      map.axes[0] >= 0 ? `${axisName(map.axes[0])}: ${span(i, down, map.extent[0])}` : "",
      map.axes[1] >= 0 ? `${axisName(map.axes[1])}: ${span(k, across, map.extent[1])}` : "",
    ].filter(Boolean);
    return `${at.join(", ")}: ${error(values[i * across + k])}`;
  };
  const cell = Math.max(5, Math.min(24, Math.floor(620 / Math.max(across, 1))));
  return (
    <>
      <p class="soft">
        {map.axes[0] >= 0 && `Down: axis ${map.axes[0]} (${map.extent[0]}). `}
        {map.axes[1] >= 0 && `Across: axis ${map.axes[1]} (${map.extent[1]}). `}
        Over all other axes, the largest error counts.
      </p>
      <CellMap
        label="Largest errors over two axes"
        down={down}
        across={across}
        width={cell}
        height={Math.max(cell, down <= 4 ? 22 : 0)}
        paint={paint}
        describe={describe}
        isStop={(i, k) => values[i * across + k] >= 254}
      />
      <p class="soft scale-line">
        {error(least).replace("error up to ", "")} <span class="scale-bar" aria-hidden="true" />{" "}
        {brief(map.largest, 3)}; crosses are not finite, empty cells have no error
      </p>
    </>
  );
}

export function Maps({ maps }: { maps: HeatMap[] }): JSX.Element {
  const [which, setWhich] = useState("0");
  const map = maps[Number(which)] ?? maps[0];
  const options = maps.map(
    (m, i) => [String(i), m.axes.filter((a) => a >= 0).map(axisName).join(" and ") || "all"] as const,
  );
  return (
    <>
      {maps.length > 1 && <Select label="Axes" value={which} options={options} onPick={setWhich} />}
      <Map key={which} map={map} />
    </>
  );
}
