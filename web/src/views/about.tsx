import type { JSX } from "preact";
import licences from "../../LICENSES.txt?raw";
import { moodWord, MOODS } from "../core/mood";
import { useStore } from "../core/report";
import { visible } from "../core/text";
import { Badge } from "../ui/badge";
import { Section } from "../ui/parts";

const KEYS: [string, string][] = [
  ["Tab", "to the next control; tables, plots, maps and trees are one stop each"],
  ["Arrow keys, Home, End, Page up, Page down", "move inside of a table, plot, map or tree"],
  ["Enter", "opens the row, call or cell; on a heading of a column, sorts by it"],
  ["Space", "in a table: all columns of the row"],
  ["+ and -", "in a plot: nearer and farther; the wheel and dragging do it too"],
  ["F, Shift+F", "in a plot: to the next or previous fault"],
  ["Esc", "in a plot: all of it again; elsewhere, closes what is open"],
];

export function About(): JSX.Element {
  const { report } = useStore();
  return (
    <div class="about">
      <h1>About this page</h1>
      <p>
        Made by plumb {visible(report.plumb)} ({visible(report.command)})
        {report.made && `, ${visible(report.made)}`}. The page is one file: it loads nothing and
        sends nothing.
      </p>
      <Section title="Signs">
        <ul class="signs">
          {MOODS.map((mood) => (
            <li>
              <Badge mood={mood} /> {moodWord(mood)}
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Keys">
        <dl class="facts">
          {KEYS.map(([key, text]) => (
            <div>
              <dt>{key}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      </Section>
      <Section title="Licences">
        <pre class="licences" tabIndex={0}>
          {licences}
        </pre>
      </Section>
    </div>
  );
}
