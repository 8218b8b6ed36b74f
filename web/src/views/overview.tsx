import type { JSX } from "preact";
import type { Count, Report } from "../data";
import { moodName, moodOf, moodWord } from "../core/mood";
import { sheetOf, type Sheet } from "../core/cells";
import { placeOf, rowLink, useStore } from "../core/report";
import { href } from "../core/route";
import { clipped, plural } from "../core/text";
import { Line } from "../plots/line";
import { Badge } from "../ui/badge";
import { Command } from "../ui/copy";
import { Facts, Long, Name, Section } from "../ui/parts";

function Answer({ report }: { report: Report }): JSX.Element {
  const store = useStore();
  const { answer } = report;
  const link = rowLink(store, answer.row);
  const place = placeOf(store, answer.row);
  const mood = moodOf(answer.mood);
  return (
    <div class={`answer edge-${moodName(mood)}`}>
      <p class="sentence">
        <Badge mood={mood} label />
        <span>{answer.sentence ? <Long text={answer.sentence} /> : "Nothing to say."}</span>
      </p>
      <dl>
        {answer.where && (
          <div>
            <dt>{mood === 2 ? "Not judged" : "Where"}</dt>
            <dd>
              {link ? (
                <a href={link} class="where">
                  <Name text={answer.where} length={300} />
                </a>
              ) : (
                <Name text={answer.where} length={300} />
              )}
              {place && ` (${place})`}
            </dd>
          </div>
        )}
        {answer.sure && (
          <div>
            <dt>How sure</dt>
            <dd>
              <Long text={answer.sure} />
            </dd>
          </div>
        )}
      </dl>
    </div>
  );
}

/** Bars by the logarithm, so that one fault among thousands is seen. */
function Bars({ counts }: { counts: Count[] }): JSX.Element {
  const most = Math.max(1, ...counts.map((c) => c.count));
  const width = (count: number): number => (count > 0 ? (100 * Math.log1p(count)) / Math.log1p(most) : 0);
  return (
    <ul class="bars">
      {[...counts]
        .sort((a, b) => a.mood - b.mood)
        .map((c) => {
          const mood = moodOf(c.mood);
          return (
            <li>
              <Badge mood={mood} />
              <span class="word">
                <Name text={c.word} length={60} />
                <span class="offscreen"> ({moodWord(mood)})</span>
              </span>
              <span class="number">{c.count.toLocaleString("en")}</span>
              <span class="bar" aria-hidden="true">
                <span class={`fill fill-${moodName(mood)}`} style={{ width: `${width(c.count)}%` }} />
              </span>
            </li>
          );
        })}
    </ul>
  );
}

function badRows(sheet: Sheet): number {
  let count = 0;
  for (let row = 0; row < sheet.table.rows; row++) if (sheet.mood[row] === 0) count++;
  return count;
}

export function Overview({ print = false }: { print?: boolean }): JSX.Element {
  const store = useStore();
  const { report } = store;
  const rows = report.tables.reduce((sum, table) => sum + table.rows, 0);
  const bad = report.tables.map((table) => badRows(sheetOf(store, table)));
  const Heading = print ? "h2" : "h1";
  return (
    <div class="overview">
      <Heading class="offscreen">Overview</Heading>
      <Answer report={report} />
      {report.answer.next.length > 0 && (
        <Section title="What to do next">
          {report.answer.next.map((text) => (
            <Command text={text} />
          ))}
        </Section>
      )}
      {report.network && (
        <Section title="Error along the network">
          <Line net={report.network} />
        </Section>
      )}
      {report.counts.length > 0 && (
        <Section title="Counts">
          <Bars counts={report.counts} />
          {!print &&
            bad.map((count, part) =>
              count > 0 ? (
                <p>
                  <a href={href("table", part, { moods: 1 })}>
                    Show the {plural(count, "bad row")}
                    {bad.length > 1 && ` of ${clipped(report.tables[part].name, 60)}`}
                  </a>
                </p>
              ) : null,
            )}
          <p class="soft">
            Bars grow with the logarithm of the count. {rows > 0 && `${plural(rows, "row")} in all.`}
          </p>
        </Section>
      )}
      {report.notes.length > 0 && (
        <Section title="Good to know">
          <ul class="notes">
            {report.notes.map((text) => (
              <li>
                <Long text={text} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      {report.facts.length > 0 && (
        <Section title="What was looked at">
          <Facts facts={report.facts} />
        </Section>
      )}
      {report.reproduce && (
        <Section title="Get this report again">
          <Command text={report.reproduce} />
        </Section>
      )}
    </div>
  );
}
