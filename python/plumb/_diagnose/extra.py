"""Calls that only one of two runs makes, and that change what flows on.

    a:  gelu -> mul(1.02) -> linear        b:  gelu -> linear

Nothing is wrong with the call, and it has no partner; in 16 bits what follows may hide behind rounding. But the other
run goes on with what the call was given, and not with what it gave: that can be seen where the two meet again."""

import contextlib
import json
import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import torch

ROUNDING = {"torch.bfloat16": 2.0 ** -9, "torch.float16": 2.0 ** -12}
USUAL = 2.0 ** -20  # of float32, with the errors of sums
LEAST = 3           # roundings that a change must be worth
MOST = 64           # calls that are looked at
LONGEST = 8         # calls in a row that only one run makes


class Leaf(NamedTuple):
    """A recorded tensor."""
    entry: int  # its call's number in the order of the run
    call: str
    name: str   # with its place
    seen: Tuple[Any, ...]  # what tells it from others, without reading it
    dtype: str


class Run:
    """The tensors that calls of a dump got and gave in forward, in order."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "dump.json"), encoding="utf-8") as file:
            data = json.load(file)["data"]
        self.parents: Dict[str, Optional[str]] = {}
        with contextlib.suppress(OSError, ValueError), \
                open(os.path.join(folder, "construct.json"), encoding="utf-8") as file:
            self.parents = json.load(file)
        self.given: List[Leaf] = []
        self.inputs: Dict[str, List[Leaf]] = {}
        self.outputs: Dict[str, Leaf] = {}
        for number, (call, entry) in enumerate(data.items()):
            for key in ("input_args", "input_kwargs", "output"):
                for leaf in _leaves(number, call, entry.get(key) if isinstance(entry, dict) else None):
                    if key == "output":
                        self.outputs.setdefault(call, leaf)
                    else:
                        self.given.append(leaf)
                        self.inputs.setdefault(call, []).append(leaf)

    def load(self, name: str) -> Optional[torch.Tensor]:
        try:
            tensor = torch.load(os.path.join(self.folder, "dump_tensor_data", f"{name}.pt"), map_location="cpu")
        except Exception:  # it was not written, or under another name
            return None
        return tensor if isinstance(tensor, torch.Tensor) and not tensor.is_complex() else None


def _leaves(number: int, call: str, value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict) and isinstance(value.get("data_name"), str):
        seen = (tuple(value["shape"]), *(value.get(key) for key in ("Max", "Min", "Mean", "Norm")))
        yield Leaf(number, call, value["data_name"].rsplit(".", 1)[0], seen, str(value.get("dtype")))
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(number, call, item)


def call_of(name: str) -> str:
    """Of a recorded tensor, by its name."""
    for place in (".input.", ".output.", ".kwargs.", ".parameters.", ".buffers."):
        if place in name:
            return name.rsplit(place, 1)[0]
    return name


def _follow(run: Run, call: str, alone: Iterable[str], pairs: Dict[str, str]) -> Optional[Leaf]:
    """The first input that has a partner, of those that the call's result, or what others that are alone make
    of it, goes to."""
    for _ in range(LONGEST):
        result = run.outputs.get(call)
        if result is None:
            return None
        taken = [leaf for leaf in run.given if leaf.entry > result.entry and leaf.seen == result.seen]
        met = next((leaf for leaf in taken if leaf.name in pairs), None)
        if met is not None or not taken or taken[0].call not in alone:
            return met
        call = taken[0].call
    return None


def _shows(run: Run, other: Run, call: str, pairs: Dict[str, str], least: float) -> bool:
    """Whether the results of the call where the runs meet are apart as well: a mask may say the same in two ways."""
    result = run.outputs.get(call)
    mine = run.load(result.name) if result is not None else None
    theirs = other.load(pairs[result.name]) if result is not None and result.name in pairs else None
    if mine is None or theirs is None or mine.shape != theirs.shape:
        return False
    size = float(theirs.double().norm()) or 1.0
    return not float((mine.double() - theirs.double()).norm()) / size <= least / 3


def _share(run: Run, other: Run, call: str, alone: Iterable[str], pairs: Dict[str, str]) -> Optional[Tuple[float, str]]:
    """How much of what it is given the call changes, and the tensor where the runs meet again; None: the other run does
    the same in another way, or it is no more than rounding."""
    met = _follow(run, call, alone, pairs)
    if met is None:
        return None
    got, theirs = run.load(met.name), other.load(pairs[met.name])
    for leaf in run.inputs.get(call, []):
        before = run.load(leaf.name) if leaf.seen[0] == met.seen[0] else None
        if before is None or got is None or theirs is None or theirs.shape != before.shape or \
                len({one.is_floating_point() or one.dtype for one in (before, got, theirs)}) > 1:
            continue
        before, got, theirs = before.double(), got.double(), theirs.double()
        size, step = float(before.norm()) or 1.0, got - before
        moved, away = float(step.norm()) / size, float((theirs - before).norm()) / size
        least = LEAST * max([ROUNDING.get(kind, USUAL) for kind in (leaf.dtype, met.dtype)] +
                            [ROUNDING.get(one.dtype, USUAL) for one in other.given if one.name == pairs[met.name]])
        # How far the other run has gone along: 0 not at all, 1 all the way. Its own rounding goes anywhere.
        along = float((theirs - before).flatten() @ step.flatten()) / (moved * size) ** 2 if moved > least else 1.0
        if abs(along) < 0.25 and away < moved and _shows(run, other, met.call, pairs, least):
            return moved, met.name
    return None


def find(folders: List[str], report: Iterable[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Of both runs, as Diagnosis has them. report: the rows of their comparison. before: the call of a that the two meet
    again in."""
    forth: Dict[str, str] = {}
    alone: List[Dict[str, None]] = [{}, {}]
    for row in report:
        names, why = row["Data Name"], str(row["Err_message"])
        if not isinstance(names, str) or ".forward" not in row["API Name"]:
            continue
        one, _, two = names.strip("[]").partition(", ")
        side = 0 if why.startswith("only in the target run") else 1 if why.startswith("only in the golden run") else -1
        if side >= 0:
            name = row["API Name"]
            alone[side][call_of(name)] = None
        elif "N/A" not in (one, two):
            forth[one] = two
    if not any(alone):
        return []
    runs = [Run(folder) for folder in folders]
    back = {two: one for one, two in forth.items()}
    found = []
    for side, pairs in ((0, forth), (1, back)):
        for call in list(alone[side])[:MOST]:
            share = _share(runs[side], runs[1 - side], call, alone[side], pairs)
            if share is not None:
                me, other = "ab"[side], "ba"[side]
                found.append({"call": call, "place": "output.0", "parent": runs[side].parents.get(call), "side": me,
                              "apart": share[0], "before": call_of(share[1] if side == 0 else back[share[1]]),
                              "why": f"only {me} does this; it changes what it is given by {100 * share[0]:.3g} %, "
                                     f"and {other} goes on with what it was given"})
    return found
