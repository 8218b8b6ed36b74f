#!/usr/bin/env python3
"""The planted suite: right results, faults and cheaper arithmetic, judged by plumb and by others.

    tests/verdicts/run.py [--fast] [--type float32,bfloat16] [--op mm,softmax]
                          [--pass backward] [--list] [--alone]
    tests/verdicts/run.py --calibrate [--fast] [--type ...] [--op ...] [--pass ...] [--list]

Outputs and gradients of each operator are judged in every type. Prints what was missed and what was
blamed; --list names each such case. --fast uses one seed, and plants each fault into one of the
gradients. --alone asks plumb only, not the other rules. Ends with 1 when a right result is called a
fault, a fault is not, or cheaper arithmetic is not seen. --list also notes right results that are called cheaper although they were not.

"none" counts what was planted and is a right result all the same: number for number one of the right
results, or the exact one, rounded. "hidden" counts what was not found and is no farther from the exact
result, on average and at most, than a right result of the same call that was computed in float32
(float64): smaller than right arithmetic's own noise. --list gives the reason of each.

"own" counts those of the blamed that PyTorch computed in the type, in whatever arithmetic it likes; the
others computed in float32 (float64) and rounded once.

--calibrate judges right results only, with several seeds and ranges of values, and prints for each
family of operators and type how many were called a fault or cheaper arithmetic, and the largest excess
beside its limit (1 is the limit) among those that are not PyTorch's own and were not called cheaper.
"""

import argparse
import collections
import os
import sys
from typing import Any, Dict, List

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # as tests/run.py does
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import kinds  # noqa: E402
import rules  # noqa: E402
from calibrate import calibrate  # noqa: E402
from planted import backward_items, items, judge  # noqa: E402
from rules import Item, own_kernel  # noqa: E402


class Count:
    """What became of the results of one pass in one type."""

    def __init__(self) -> None:
        self.all: Dict[str, int] = collections.Counter()
        self.wrong: Dict[str, int] = collections.Counter()
        self.named: Dict[str, int] = collections.Counter()
        self.patterns: Dict[str, int] = collections.Counter()
        self.cheaper = self.own = 0  # right results: called cheaper; PyTorch's own kernels blamed
        self.hidden = 0

    def take(self, item: Item, opinion: Any) -> bool:
        """Whether the verdict is wrong."""
        flagged = opinion.verdict in ("fault", "cheaper arithmetic")
        wrong = (opinion.verdict == "fault" if item.kind == "right" else
                 opinion.verdict != "fault" if item.kind == "fault" else not flagged)
        if wrong and item.hidden:
            self.hidden += 1
            return False
        self.all[item.kind] += 1
        self.wrong[item.kind] += wrong
        self.cheaper += item.kind == "right" and opinion.verdict == "cheaper arithmetic"
        self.own += item.kind == "right" and wrong and own_kernel(item)
        if item.pattern and not wrong:
            self.patterns[item.kind] += 1
            self.named[item.kind] += item.pattern in opinion.pattern + opinion.arithmetic
        return wrong

    def take_none(self) -> None:
        self.all["none"] += 1

    def row(self) -> str:
        def named(kind: str) -> str:
            return f"{self.all[kind]:>9}{self.wrong[kind]:>8}{self.named[kind]:>7}/{self.patterns[kind]:<5}"
        return (f"{self.all['right']:>9}{self.wrong['right']:>8}{self.own:>5}{self.cheaper:>9}" +
                named("fault") + named("cheaper") + f"{self.hidden:>8}{self.all['none']:>7}")


class Table:
    def __init__(self, alone: bool) -> None:
        self.alone = alone
        self.counts: Dict[str, Count] = collections.defaultdict(Count)
        self.others: Dict[str, Dict[str, int]] = collections.defaultdict(collections.Counter)
        self.documented = rules.Documented() if rules.tool().exists() and not alone else None
        self.bad: List[str] = []
        self.notes: List[str] = []

    def take(self, which: str, item: Item) -> None:
        if item.kind == "none":
            for name in (f"{which} {item.type.name}", f"{which}, all"):
                self.counts[name].take_none()
            return
        opinion = judge(item)
        wrong = self.counts[f"{which} {item.type.name}"].take(item, opinion)
        self.counts[f"{which}, all"].take(item, opinion)
        if item.hidden and opinion.verdict in ("same", "rounding"):
            self.notes.append(f"hidden: {item.kind}: {item.where}: {opinion.verdict}: {item.hidden}")
        if wrong:
            self.bad.append(f"{item.kind}: {item.where}: {opinion.verdict}: {opinion.why}")
        elif item.kind == "right" and opinion.verdict == "cheaper arithmetic" and not own_kernel(item):
            self.notes.append(f"note: right: {item.where}: {opinion.verdict}: {opinion.why}")
        for name, rule in ({} if self.alone else rules.OTHERS).items():
            passes = rule(item)
            self.others[name][item.kind] += passes is not None and passes != (item.kind == "right")
        if self.documented:
            self.documented.add(item)

    def print(self) -> None:
        print(f"{'':24}    right  blamed  own  cheaper    fault  missed  named/of     cheaper  unseen"
              "  named/of   hidden   none")
        for name, count in sorted(self.counts.items(), key=lambda item: item[0].endswith(", all")):
            print(f"{name:24}{count.row()}")
        others = dict(self.others)
        if self.documented:
            self.documented.flush()
            others["documented rules"] = self.documented.wrong
        elif not self.alone:
            print(f"documented rules: not judged, there is no {rules.tool()}")
        for name, wrong in others.items():
            print(f"{name}: blames {wrong['right']} right results, misses {wrong['fault']} faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--type", default=",".join(kinds.NAMES))
    parser.add_argument("--op", default="")
    parser.add_argument("--pass", dest="passes", default="forward,backward")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    types, passes = tuple(options.type.split(",")), tuple(options.passes.split(","))
    wanted = tuple(filter(None, options.op.split(",")))
    if options.calibrate:
        return calibrate(types, (1,) if options.fast else (1, 2, 3), wanted, passes, options.list)
    seeds = (1,) if options.fast else (1, 2)
    table = Table(options.alone)
    if "forward" in passes:
        for item in items(types, seeds, wanted):
            table.take("forward", item)
    if "backward" in passes:
        for item in backward_items(types, seeds, wanted, not options.fast):
            table.take("backward", item)
    table.print()
    if options.list:
        print("\n".join(table.bad + table.notes))
    return 1 if table.bad else 0


if __name__ == "__main__":
    sys.exit(main())
