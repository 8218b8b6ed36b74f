import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TensorPage } from "../data";
import { sheetOf } from "../core/cells";
import { moodOf, moodWord } from "../core/mood";
import { placeOf, useStore } from "../core/report";
import { current, href, note } from "../core/route";
import { clipped, plural, visible } from "../core/text";
import { rowFacts } from "../table/drawer";
import { Badge } from "../ui/badge";
import { Command } from "../ui/copy";
import { Check, Facts, Name, Section } from "../ui/parts";
import { ElementWindow, WorstTable } from "./elements";
import { HistogramPlot } from "./histogram";
import { Maps } from "./maps";
import { ProfilePlot } from "./profile";

function Head({ page, part, count }: { page: TensorPage; part: number; count: number }): JSX.Element {
  const mood = moodOf(page.mood);
  const place = placeOf(useStore(), page.row);
  return (
    <>
      <p class="toolbar">
        <a href={href("tensors")}>All tensors</a>
        {part > 0 && <a href={href("tensor", part - 1)}>Previous</a>}
        {part + 1 < count && <a href={href("tensor", part + 1)}>Next</a>}
        {page.row >= 0 && <a href={href("table", 0, { row: page.row })}>Its row in the table</a>}
      </p>
      <h1 class="tensor-name">
        <Badge mood={mood} /> <Name text={page.name} length={240} />
      </h1>
      <p class="soft">
        {moodWord(mood)}; {page.dtypes[0] === page.dtypes[1] ? "" : `${clipped(page.sides[0], 20)} `}
        {clipped(page.dtypes[0], 40)}
        {page.dtypes[0] !== page.dtypes[1] && `, ${clipped(page.sides[1], 20)} ${clipped(page.dtypes[1], 40)}`}; shape [
        {page.shape.join(", ")}]{page.dtypes[0].includes("complex") && ", the last axis for real and imaginary parts"}
        {place && `; ${place}`}
      </p>
    </>
  );
}

export function TensorView({ part }: { part: number }): JSX.Element {
  const store = useStore();
  const { report } = store;
  const page = report.tensors[part];
  const [log, setLog] = useState(false);
  const first = report.tables[0];
  return (
    <div class="tensor">
      <Head page={page} part={part} count={report.tensors.length} />
      <Facts facts={page.facts} />
      {page.commands.length > 0 && (
        <Section title="Look at it alone">
          {page.commands.map((text) => (
            <Command text={text} />
          ))}
        </Section>
      )}
      {(page.histograms.length > 0 || page.profiles.length > 0) && (
        <Check label="Logarithmic heights" on={log} onSet={setLog} />
      )}
      {page.histograms.length > 0 && (
        <Section title="Histograms">
          <div class="plots">
            {page.histograms.map((hist) => (
              <HistogramPlot hist={hist} log={log} />
            ))}
          </div>
        </Section>
      )}
      {page.worst.length === 0 && <p>No element differs.</p>}
      {page.maps.length > 0 && page.worst.length > 0 && (
        <Section title="Where the errors are">
          <Maps maps={page.maps} />
        </Section>
      )}
      {page.profiles.length > 0 && page.worst.length > 0 && (
        <Section title="Errors along each axis">
          <div class="plots">
            {page.profiles.map((profile) => (
              <ProfilePlot profile={profile} log={log} />
            ))}
          </div>
        </Section>
      )}
      {page.window && (
        <Section title="Elements round the worst one">
          <ElementWindow window={page.window} sides={page.sides} />
        </Section>
      )}
      {page.worst.length > 0 && (
        <Section title="The worst elements">
          <WorstTable worst={page.worst} sides={page.sides} />
        </Section>
      )}
      {page.stack.length > 0 && (
        <Section title="Where it was called">
          <pre class="stack" tabIndex={0}>
            {page.stack.map((line) => clipped(line, 2000)).join("\n")}
          </pre>
        </Section>
      )}
      {first && page.row >= 0 && page.row < first.rows && (
        <Section title="All columns of its row">
          <Facts facts={rowFacts(sheetOf(store, first), page.row)} />
        </Section>
      )}
    </div>
  );
}

export function TensorList(): JSX.Element {
  const store = useStore();
  const { report } = store;
  const [find, setFind] = useState(current().query.get("find") ?? "");
  const low = find.trim().toLowerCase();
  const list = report.tensors
    .map((page, part) => ({ page, part, place: placeOf(store, page.row) }))
    .filter(({ page, place }) => !low || `${page.name} ${place}`.toLowerCase().includes(low));
  return (
    <div class="tensors">
      <h1>Tensors looked at closely</h1>
      <div class="toolbar">
        <input
          type="search"
          class="find"
          placeholder="Find a tensor"
          aria-label="Find a tensor"
          value={find}
          onInput={(e) => (setFind(e.currentTarget.value), note({ find: e.currentTarget.value }))}
        />
        <span class="soft count">{plural(list.length, "tensor")}</span>
      </div>
      <ul class="tensor-list">
        {list.map(({ page, part, place }) => (
          <li>
            <a href={href("tensor", part)}>
              <Badge mood={moodOf(page.mood)} label /> <Name text={page.name} />
            </a>{" "}
            <span class="soft">
              {place && `${place}, `}
              {clipped(page.dtypes[0], 30)} [{page.shape.join(", ")}]
              {page.facts[0] && ` ${visible(clipped(page.facts[0][1], 60))}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
