import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Network } from "../data";
import { MOODS, moodName, moodWord } from "../core/mood";
import { rowLink, useStore } from "../core/report";
import { current, go, note } from "../core/route";
import { clipped, plural } from "../core/text";
import { firstOpen, firstWorst, flat, matching, treeOf, type Node } from "../core/tree";
import { callsOf, wordOf } from "../plots/calls";
import { Badge } from "../ui/badge";
import { useVirtual } from "../ui/virtual";

const HEIGHT = 28;

function Counts({ counts }: { counts: Node["counts"] }): JSX.Element {
  return (
    <span class="tree-counts">
      {MOODS.filter((mood) => counts[mood] > 0).map((mood) => (
        <span title={`${moodWord(mood)}: ${counts[mood]}`}>
          <Badge mood={mood} /> {counts[mood].toLocaleString("en")}
          <span class="offscreen"> {moodWord(mood)}</span>
        </span>
      ))}
    </span>
  );
}

interface ItemProps {
  node: Node;
  open: boolean | undefined; // undefined: a leaf
  active: boolean;
  word: string;
}

function Item({ node, open, active, word }: ItemProps): JSX.Element {
  const place = node.parent ? node.parent.children.indexOf(node) + 1 : 1;
  return (
    <div
      class={`tree-item edge-${moodName(node.worst)}`}
      role="treeitem"
      id={`node-${node.id}`}
      data-node={node.id}
      aria-level={node.level}
      aria-setsize={node.parent?.children.length}
      aria-posinset={place}
      aria-expanded={open}
      aria-selected={active}
    >
      <span class="indent" style={{ width: `${Math.min(node.level - 1, 12) * 18}px` }} />
      <span class="twist" aria-hidden="true">
        {open === undefined ? "" : open ? "▾" : "▸"}
      </span>
      <Badge mood={node.worst} label />
      <bdi class="tree-name" title={clipped(node.path, 300)}>
        {clipped(node.label, 160) || "(no name)"}
      </bdi>
      {node.call < 0 ? <Counts counts={node.counts} /> : <span class="soft">{clipped(word, 40)}</span>}
    </div>
  );
}

export function TreeView({ net }: { net: Network }): JSX.Element {
  const store = useStore();
  const calls = callsOf(store, net);
  const tree = useMemo(() => treeOf(calls), [calls]);
  const [open, setOpen] = useState<ReadonlySet<number>>(() => firstOpen(tree));
  const [find, setFind] = useState(current().query.get("find") ?? "");
  const [at, setAt] = useState<Node | null>(() => firstWorst(tree, calls, store.report.answer.row));
  const box = useRef<HTMLDivElement>(null);

  const kept = useMemo(() => matching(tree, find), [tree, find]);
  const list = useMemo(() => flat(tree, kept && kept.size < 2000 ? kept : open, kept), [tree, open, kept]);
  const seen = useVirtual(box, list.length, HEIGHT, 0);
  const index = at ? list.indexOf(at) : -1;

  useLayoutEffect(() => {
    if (index > 0) seen.reveal(Math.min(list.length - 1, index + 4));
  }, []);

  const all = (): void => setOpen(new Set(tree.nodes.filter((n) => n.call < 0).map((n) => n.id)));
  const flip = (node: Node, on?: boolean): void => {
    const next = new Set(open);
    if (on ?? !open.has(node.id)) next.add(node.id);
    else next.delete(node.id);
    setOpen(next);
  };
  const enter = (node: Node): void => {
    if (node.call < 0) return flip(node);
    const link = rowLink(store, calls.row[node.call]);
    if (link) go(link);
  };
  const moveTo = (i: number): void => {
    const node = list[Math.max(0, Math.min(list.length - 1, i))];
    if (!node) return;
    setAt(node);
    seen.reveal(list.indexOf(node));
  };
  const isOpen = (node: Node): boolean => list[list.indexOf(node) + 1]?.parent === node;

  const onKey = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey || !list.length) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / HEIGHT) - 1);
    if (e.key === "ArrowDown") moveTo(index + 1);
    else if (e.key === "ArrowUp") moveTo(index < 0 ? 0 : index - 1);
    else if (e.key === "Home") moveTo(0);
    else if (e.key === "End") moveTo(list.length - 1);
    else if (e.key === "PageDown") moveTo(index + page);
    else if (e.key === "PageUp") moveTo(index - page);
    else if (e.key === "ArrowRight" && at) {
      if (at.call < 0 && !isOpen(at)) flip(at, true);
      else if (at.call < 0) moveTo(index + 1);
    } else if (e.key === "ArrowLeft" && at) {
      if (at.call < 0 && isOpen(at) && !kept) flip(at, false);
      else if (at.parent && at.parent !== tree.root) moveTo(list.indexOf(at.parent));
    } else if ((e.key === "Enter" || e.key === " ") && at) enter(at);
    else if (e.key === "*" && at?.parent)
      setOpen(new Set([...open, ...at.parent.children.map((n) => n.id)]));
    else if (e.key.length === 1 && /\S/.test(e.key)) {
      const low = e.key.toLowerCase();
      const order = [...list.slice(index + 1), ...list.slice(0, index + 1)];
      const next = order.find((n) => n.label.toLowerCase().startsWith(low));
      if (!next) return;
      moveTo(list.indexOf(next));
    } else return;
    e.preventDefault();
  };
  const onClick = (e: MouseEvent): void => {
    const line = (e.target as Element).closest("[data-node]");
    const node = line && tree.nodes[Number(line.getAttribute("data-node"))];
    if (!node) return;
    setAt(node);
    enter(node);
  };

  return (
    <div class="tree-view">
      <h1>Modules</h1>
      <div class="toolbar">
        <input
          type="search"
          class="find"
          placeholder="Find a module or call"
          aria-label="Find a module or call"
          value={find}
          onInput={(e) => (setFind(e.currentTarget.value), note({ find: e.currentTarget.value }))}
        />
        <button type="button" onClick={all}>
          Open all
        </button>
        <button type="button" onClick={() => setOpen(new Set())}>
          Close all
        </button>
        <span class="soft count">{plural(net.names.length, "call")}</span>
      </div>
      <div
        ref={box}
        class="tree-box"
        role="tree"
        tabIndex={0}
        aria-label="Modules and calls"
        aria-activedescendant={index >= seen.first && index < seen.last ? `node-${at?.id}` : undefined}
        onKeyDown={onKey}
        onFocus={() => !at && moveTo(0)}
      >
        <div class="tree-body" role="presentation" style={{ height: `${seen.height}px` }} onClick={onClick}>
          <div class="grid-slice" role="presentation" style={{ transform: `translateY(${seen.offset}px)` }}>
            {list.slice(seen.first, seen.last).map((node, i) => (
              <Item
                key={node.id}
                node={node}
                open={node.call >= 0 ? undefined : list[seen.first + i + 1]?.parent === node}
                active={node === at}
                word={node.call >= 0 ? wordOf(calls, node.call) : ""}
              />
            ))}
          </div>
        </div>
        {list.length === 0 && <p class="nothing">Nothing is called that.</p>}
      </div>
    </div>
  );
}
