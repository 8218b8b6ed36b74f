#!/usr/bin/env python3
"""The planted suite: right results, faults and cheaper arithmetic, judged by plumb and by others.

    tests/verdicts/run.py [--fast] [--type float32,bfloat16] [--op mm,softmax] [--list]

Prints a table of what was missed and what was blamed; --list names each such case. --fast is the part
that the tests run. Ends with 1 when a right result is called a fault, or a fault is not.
"""

import argparse
import collections
import os
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # as tests/run.py does
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import faults  # noqa: E402
import operators  # noqa: E402
import plumb  # noqa: E402

TYPES = ("float32", "bfloat16", "float16", "float64")


class Item(NamedTuple):
    kind: str     # "right", "fault" or "cheaper"
    where: str
    case: operators.Case
    got: torch.Tensor
    word: str
    pattern: str
    reference: torch.Tensor  # what another run would have given


def items(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Any) -> Iterator[Item]:
    for name in types:
        dtype = getattr(torch, name)
        for large in (False, True):
            for seed in seeds:
                for title, case in operators.cases(dtype, large, seed):
                    if wanted and title not in wanted and case.op not in wanted:
                        continue
                    where = f"{name} {'large' if large else 'small'} {seed} {title}"
                    yield from of_case(where, case, dtype, seed)


def of_case(where: str, case: operators.Case, dtype: torch.dtype, seed: int) -> Iterator[Item]:
    wide = [operators.raised(value, dtype) for value in case.inputs]
    right = case.run(*wide, **case.kwargs).to(dtype)
    yield Item("right", f"{where}: float32", case, right, "", "", right)
    for name, variant in case.variants.items():
        yield Item("right", f"{where}: {name}", case, variant(*wide, **case.kwargs).to(dtype), "", "",
                   right)
    try:
        own = case.run(*case.inputs, **case.kwargs)
        yield Item("right", f"{where}: PyTorch", case, own, "", "", right)
    except RuntimeError:
        pass  # PyTorch has no kernel of this type
    for fault in (*faults.results(case, right, dtype, seed), *faults.calls(case, dtype)):
        if torch.equal(fault.got, right):
            continue  # changes nothing here
        yield Item("fault", f"{where}: {fault.name}", case, fault.got, fault.word, fault.pattern, right)
    for fault in faults.cheaper(case, dtype):
        if not torch.equal(fault.got, right):
            yield Item("cheaper", f"{where}: {fault.name}", case, fault.got, fault.word, fault.pattern,
                       right)


# -- Other rules -----------------------------------------------------------------------------------


def by_assert_close(item: Item) -> bool:
    try:
        torch.testing.assert_close(item.got, item.reference)
        return True
    except AssertionError:
        return False


def by_nmse(item: Item) -> bool:
    a, b = item.got.double(), item.reference.double()
    return bool(((a - b) ** 2).sum() <= 5e-4 * (b ** 2).sum())


def by_cosine(item: Item) -> bool:
    a, b = item.got.double().flatten(), item.reference.double().flatten()
    return bool(torch.dot(a, b) >= 0.99 * a.norm() * b.norm())


OTHERS = {"assert_close": by_assert_close, "NMSE 5e-4": by_nmse, "cosine 0.99": by_cosine}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--type", default=",".join(TYPES))
    parser.add_argument("--op", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    counts: Dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    bad: List[str] = []
    wanted = tuple(filter(None, options.op.split(",")))
    seeds = (1,) if options.fast else (1, 2)
    for item in items(tuple(options.type.split(",")), seeds, wanted):
        opinion = plumb.judge(item.got, item.case.op, item.case.inputs, item.case.kwargs)
        counts[item.kind]["all"] += 1
        counts[item.kind][opinion.verdict] += 1
        flagged = opinion.verdict in ("fault", "cheaper arithmetic")
        wrong = (opinion.verdict == "fault" if item.kind == "right" else
                 opinion.verdict != "fault" if item.kind == "fault" else not flagged)
        if wrong:
            bad.append(f"{item.kind}: {item.where}: {opinion.verdict}: {opinion.why}")
        elif item.pattern:
            counts[item.kind]["patterns"] += 1
            counts[item.kind]["named"] += item.pattern in opinion.pattern + opinion.arithmetic
        for name, rule in OTHERS.items():
            passes = rule(item)
            counts[item.kind][name] += passes != (item.kind == "right")
    print_table(counts, bad)
    if options.list:
        print("\n".join(bad))
    return 1 if bad else 0


def print_table(counts: Dict[str, collections.Counter], bad: List[str]) -> None:
    missed = sum(line.startswith("fault") for line in bad)
    blamed = sum(line.startswith("right") for line in bad)
    unseen = sum(line.startswith("cheaper") for line in bad)
    right, fault, cheap = counts["right"], counts["fault"], counts["cheaper"]
    print(f"right results: {right['all']}; called a fault: {blamed}, cheaper arithmetic: "
          f"{right['cheaper arithmetic']}")
    print(f"planted faults: {fault['all']}; missed: {missed}; pattern named: {fault['named']} of "
          f"{fault['patterns']}")
    print(f"cheaper arithmetic: {cheap['all']}; not seen: {unseen}; named: {cheap['named']} of "
          f"{cheap['patterns']}")
    for name in OTHERS:
        print(f"{name}: blames {right[name]} right results, misses {fault[name]} faults")


if __name__ == "__main__":
    sys.exit(main())
