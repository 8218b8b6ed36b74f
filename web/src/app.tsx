import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Report } from "./data";
import { moodOf } from "./core/mood";
import { useStore } from "./core/report";
import { href, useRoute, type Route } from "./core/route";
import { toggleTheme, useTheme } from "./core/theme";
import { clipped, headed } from "./core/text";
import { Badge } from "./ui/badge";
import { Guard } from "./ui/guard";
import { TableView } from "./table/view";
import { TensorList, TensorView } from "./tensor/view";
import { About } from "./views/about";
import { Curve } from "./views/curve";
import { GridView } from "./views/grid";
import { Overview } from "./views/overview";
import { Paper } from "./views/print";
import { StepsView } from "./views/steps";
import { TreeView } from "./views/tree";

interface Place {
  view: string;
  part?: number;
  title: string;
}

/** What there is to be seen, in the order of the navigation. */
function places(report: Report): Place[] {
  const list: Place[] = [{ view: "overview", title: "Overview" }];
  if (report.network) list.push({ view: "curve", title: "Error along the network" });
  if (report.network) list.push({ view: "modules", title: "Modules" });
  report.tables.forEach((table, part) => list.push({ view: "table", part, title: table.name || "Table" }));
  report.grids.forEach((grid, part) => list.push({ view: "grid", part, title: grid.title || "Grid" }));
  if (report.steps) list.push({ view: "steps", title: "Steps" });
  if (report.tensors.length) list.push({ view: "tensors", title: "Tensors" });
  list.push({ view: "about", title: "About" });
  return list;
}

function View({ route }: { route: Route }): JSX.Element {
  const { report } = useStore();
  if (route.view === "overview") return <Overview />;
  if (route.view === "about") return <About />;
  if (route.view === "curve" && report.network) return <Curve net={report.network} />;
  if (route.view === "modules" && report.network) return <TreeView net={report.network} />;
  if (route.view === "grid" && report.grids[route.part])
    return <GridView key={route.part} grid={report.grids[route.part]} />;
  if (route.view === "steps" && report.steps) return <StepsView steps={report.steps} />;
  if (route.view === "tensors") return <TensorList />;
  if (route.view === "tensor" && report.tensors[route.part])
    return <TensorView key={route.part} part={route.part} />;
  if (route.view === "table" && report.tables[route.part])
    return <TableView key={route.part} part={route.part} />;
  return (
    <div class="message">
      <h1>There is nothing here</h1>
      <p>
        The address names no part of this report. <a href="#/overview">To the overview</a>
      </p>
    </div>
  );
}

function isCurrent(place: Place, route: Route): boolean {
  if (route.view === "tensor") return place.view === "tensors";
  return place.view === route.view && (place.part ?? 0) === route.part;
}

export function App(): JSX.Element {
  const { report } = useStore();
  const route = useRoute();
  const theme = useTheme();
  const main = useRef<HTMLElement>(null);
  const shown = useRef("");
  const [settled, setSettled] = useState(false); // what is printed can wait until the page is seen
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), 50);
    return () => clearTimeout(timer);
  }, []);
  const where = `${route.view}/${route.part}`;

  useEffect(() => {
    // Readers of the screen are taken along; not at the start, where the page itself is read.
    if (shown.current && shown.current !== where) {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    shown.current = where;
  }, [where]);

  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>
        To the content
      </a>
      <header>
        <div class="brand">
          <Badge mood={moodOf(report.answer.mood)} label />
          <span class="title" title={clipped(report.title, 400)}>
            {clipped(report.title, 120) || "plumb"}
          </span>
          <button type="button" class="theme" onClick={toggleTheme} aria-pressed={theme === "dark"}>
            Dark
          </button>
        </div>
        <nav aria-label="Parts of the report">
          {places(report).map((place) => (
            <a
              href={href(place.view, place.part)}
              aria-current={isCurrent(place, route) ? "page" : undefined}
            >
              {clipped(headed(place.title), 40)}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Guard key={where}>
          <View route={route} />
        </Guard>
      </main>
      {settled && (
        <div class="print">
          <Guard>
            <Paper />
          </Guard>
        </div>
      )}
    </>
  );
}
