/** Calls of the network, chosen by direction, rank and step. */
import type { Network } from "../data";
import type { Numbers, Store } from "../core/store";

export interface Calls {
  net: Network;
  module: Numbers;
  back: Numbers;
  rank: Numbers;
  step: Numbers;
  total: Numbers;
  local: Numbers;
  limit: Numbers;
  band: Numbers;
  mood: Numbers;
  word: Numbers;
  row: Numbers;
}

const known = new WeakMap<Network, Calls>();

export function callsOf(store: Store, net: Network): Calls {
  let calls = known.get(net);
  if (!calls) {
    calls = {
      net,
      module: store.get(net.module),
      back: store.get(net.back),
      rank: store.get(net.rank),
      step: store.get(net.step),
      total: store.get(net.total),
      local: store.get(net.local),
      limit: store.get(net.limit),
      band: store.get(net.band),
      mood: store.get(net.mood),
      word: store.get(net.word),
      row: store.get(net.row),
    };
    known.set(net, calls);
  }
  return calls;
}

/** Different values, in order. */
export function distinct(list: Numbers, count: number): number[] {
  return [...new Set(list.subarray(0, count))].sort((a, b) => a - b);
}

export interface Wish {
  forward: boolean;
  backward: boolean;
  rank: number | null; // null: any
  step: number | null;
}

export function pick(calls: Calls, wish: Wish): number[] {
  const list: number[] = [];
  for (let i = 0; i < calls.net.names.length; i++) {
    if (!(calls.back[i] ? wish.backward : wish.forward)) continue;
    if (wish.rank !== null && calls.rank[i] !== wish.rank) continue;
    if (wish.step !== null && calls.step[i] !== wish.step) continue;
    list.push(i);
  }
  return list;
}

export function wordOf(calls: Calls, call: number): string {
  return calls.net.words[calls.word[call]] ?? "";
}

export function moduleOf(calls: Calls, call: number): string {
  return calls.net.modules[calls.module[call]] ?? "";
}
