import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/table.css";
import "./style/plots.css";
import "./style/tree.css";
import "./style/tensor.css";
import "./style/print.css";
import { render } from "preact";
import { App } from "./app";
import { load } from "./core/load";
import { StoreProvider } from "./core/report";
import { startTheme } from "./core/theme";
import { Store, Unreadable } from "./core/store";

/** Puts a message above the plain answer, which stays: it is all that can be read. */
function complain(root: HTMLElement, error: unknown): void {
  const box = document.createElement("div");
  box.className = "message";
  box.setAttribute("role", "alert");
  const head = document.createElement("h1");
  head.textContent = "This report cannot be shown";
  const text = document.createElement("p");
  const why = error instanceof Unreadable ? error.message : "something unexpected is in its data";
  text.textContent = `The page is there, but ${why}. Get the file again, or make it again with plumb.`;
  box.append(head, text);
  root.prepend(box);
}

async function start(): Promise<void> {
  const root = document.getElementById("app");
  if (!root) return;
  startTheme();
  let store: Store;
  try {
    store = await load(document.getElementById("plumb-data")?.textContent ?? null);
  } catch (error) {
    complain(root, error);
    return;
  }
  root.textContent = "";
  render(
    <StoreProvider value={store}>
      <App />
    </StoreProvider>,
    root,
  );
}

void start();
