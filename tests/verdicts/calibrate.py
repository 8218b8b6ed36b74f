"""How far right results stay from the limit: see run.py --calibrate."""

import collections
from typing import Any, Dict, Iterator, List, Tuple

import operators
from planted import chosen, first_of, judge, output_gradient, right_gradients, right_outputs
from rules import Item, own_kernel


class Row:
    """One family of operators in one type."""

    def __init__(self) -> None:
        self.all = self.faults = self.own = self.cheaper = 0
        self.largest, self.where = 0.0, ""

    def take(self, item: Item, opinion: Any) -> None:
        own = own_kernel(item)
        self.all += 1
        self.faults += opinion.verdict == "fault"
        self.own += own and opinion.verdict == "fault"
        self.cheaper += opinion.verdict == "cheaper arithmetic"
        if own or opinion.verdict == "cheaper arithmetic" or not opinion.limit:
            return
        if opinion.worst / opinion.limit > self.largest:
            self.largest, self.where = opinion.worst / opinion.limit, item.where


def right_items(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Tuple[str, ...], which: str,
                spread: str) -> Iterator[Item]:
    for where, case, kind, seed in chosen(types, seeds, wanted, spread):
        if which == "forward":
            found, g = [right_outputs(case, kind)], None
        else:
            g = output_gradient(case, kind, seed)
            found = right_gradients(case, kind, g)
        for part, ways in enumerate(found):
            of_gradient = (g, part) if g is not None else ()
            for name, got in ways.items():
                place = f"{which} {spread} {where}{f' gradient {part}' if of_gradient else ''}: {name}"
                yield Item("right", place, case, got, "", first_of(ways), kind, *of_gradient)


def calibrate(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Tuple[str, ...],
              passes: Tuple[str, ...], listed: bool) -> int:
    found: Dict[Tuple[str, str, str], Row] = collections.defaultdict(Row)
    bad: List[str] = []
    for which in passes:
        for spread in operators.RANGES:
            for item in right_items(types, seeds, wanted, which, spread):
                opinion = judge(item)
                found[which, item.case.family, item.type.name].take(item, opinion)
                if opinion.verdict == "fault":
                    bad.append(f"{item.where}: {opinion.why}")
    print(f"{'':38}    right   fault  own  cheaper  t/limit  largest at")
    for key, row in found.items():
        print(f"{' '.join(key):38}{row.all:>9}{row.faults:>8}{row.own:>5}{row.cheaper:>9}"
              f"{row.largest:>9.3g}  {row.where}")
    if listed:
        print("\n".join(bad))
    return 1 if bad else 0
