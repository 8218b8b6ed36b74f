import type { JSX } from "preact";
import type { Profile } from "../data";
import { brief } from "../core/number";
import { useStore } from "../core/report";
import { StepsChart } from "../plots/steps_chart";

export function ProfilePlot({ profile, log }: { profile: Profile; log: boolean }): JSX.Element {
  const store = useStore();
  const largest = store.get(profile.largest);
  const mean = store.get(profile.mean);
  const count = Math.max(1, largest.length);
  const first = (cell: number): number => Math.floor((cell * profile.extent) / count);
  const ticks = (count > 1 ? [0, 0.5, 1] : [0]).map((share): [number, string] => [
    share * count,
    String(Math.round(share * profile.extent)),
  ]);
  const describe = (cell: number): string => {
    const last = Math.max(first(cell), first(cell + 1) - 1);
    const where = first(cell) === last ? `at ${last}` : `from ${first(cell)} to ${last}`;
    return `${where}: largest ${brief(largest[cell], 4)}, mean ${brief(mean[cell], 4)}`;
  };
  return (
    <div class="plot">
      <h3>
        Axis {profile.axis} ({profile.extent})
      </h3>
      <StepsChart
        label={`Errors along axis ${profile.axis}`}
        lines={[
          { label: "largest error", values: largest, look: "filled" },
          { label: "mean error", values: mean, look: "dashed" },
        ]}
        log={log}
        ticks={ticks}
        describe={describe}
      />
    </div>
  );
}
