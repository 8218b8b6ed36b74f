/** Modules as a tree, made from their paths, with calls as leaves. */
import { moodOf } from "./mood";
import type { Mood } from "../data";
import { distinct, type Calls } from "../plots/calls";

export interface Node {
  id: number;
  label: string;
  path: string;
  level: number; // from 1
  parent: Node | null;
  children: Node[];
  call: number; // -1: a module
  counts: [number, number, number, number]; // calls by mood
  worst: Mood;
}

function node(id: number, label: string, path: string, parent: Node | null, call: number): Node {
  const level = parent ? parent.level + 1 : 0;
  return { id, label, path, level, parent, children: [], call, counts: [0, 0, 0, 0], worst: 3 };
}

/** With rank and step where there are several. */
function callLabel(calls: Calls, call: number, several: { ranks: boolean; steps: boolean }): string {
  const where = [
    several.ranks && calls.rank[call] >= 0 ? `rank ${calls.rank[call]}` : "",
    several.steps && calls.step[call] >= 0 ? `step ${calls.step[call]}` : "",
  ].filter(Boolean);
  return calls.net.names[call] + (where.length ? ` (${where.join(", ")})` : "");
}

export interface Tree {
  root: Node;
  nodes: Node[];
}

export function treeOf(calls: Calls): Tree {
  const root = node(0, "", "", null, -1);
  const nodes = [root];
  const add = (label: string, path: string, parent: Node, call: number): Node => {
    const made = node(nodes.length, label, path, parent, call);
    nodes.push(made);
    parent.children.push(made);
    return made;
  };
  const byPath = new Map<string, Node>();
  const moduleNode = (path: string): Node => {
    let at = byPath.get(path);
    if (at) return at;
    at = root;
    let so = "";
    for (const part of path === "" ? ["(in no module)"] : path.split(".").slice(0, 100)) {
      so = so ? `${so}.${part}` : part;
      let next = byPath.get(so);
      if (!next) byPath.set(so, (next = add(part, so, at, -1)));
      at = next;
    }
    byPath.set(path, at);
    return at;
  };
  const modules = calls.net.modules.map(moduleNode);
  const count = calls.net.names.length;
  const several = { ranks: distinct(calls.rank, count).length > 1, steps: distinct(calls.step, count).length > 1 };
  for (let call = 0; call < calls.net.names.length; call++) {
    const parent = modules[calls.module[call]] ?? moduleNode("");
    const mood = moodOf(calls.mood[call]);
    const leaf = add(callLabel(calls, call, several), calls.net.names[call], parent, call);
    for (let at: Node | null = leaf; at; at = at.parent) {
      at.counts[mood]++;
      if (mood < at.worst) at.worst = mood;
    }
  }
  return { root, nodes };
}

/** Open at the start: the way to whatever is worst, unless that is everything. */
export function firstOpen(tree: Tree): Set<number> {
  const open = new Set<number>();
  for (const child of tree.root.children) open.add(child.id);
  const { worst } = tree.root;
  if (worst === 3) return open;
  let left = 50;
  for (const leaf of tree.nodes)
    if (leaf.call >= 0 && leaf.worst === worst && left-- > 0)
      for (let at = leaf.parent; at; at = at.parent) open.add(at.id);
  return open;
}

/** The call to begin with; null: all is good. */
/** The call that the answer is about, by its row; else the first of the worst. */
export function firstWorst(tree: Tree, calls: Calls, answer: number): Node | null {
  const { worst } = tree.root;
  const among = worst === 3 ? [] : tree.nodes.filter((n) => n.call >= 0 && n.worst === worst);
  let best = among[0] ?? null;
  let row = -1;
  for (const n of among)
    if (calls.row[n.call] <= answer && calls.row[n.call] > row) row = calls.row[(best = n).call];
  return best;
}

/** Those whose name has the text, with all that leads to them. */
export function matching(tree: Tree, text: string): Set<number> | null {
  const low = text.trim().toLowerCase();
  if (!low) return null;
  const kept = new Set<number>();
  for (const n of tree.nodes) {
    if (!n.parent || !(n.path.toLowerCase().includes(low) || n.label.toLowerCase().includes(low))) continue;
    for (let at: Node | null = n; at && !kept.has(at.id); at = at.parent) kept.add(at.id);
  }
  return kept;
}

/** What is to be seen, from top to bottom. */
export function flat(tree: Tree, open: ReadonlySet<number>, kept: ReadonlySet<number> | null): Node[] {
  const list: Node[] = [];
  const walk = (n: Node): void => {
    for (const child of n.children) {
      if (kept && !kept.has(child.id)) continue;
      list.push(child);
      if (open.has(child.id)) walk(child);
    }
  };
  walk(tree.root);
  return list;
}
