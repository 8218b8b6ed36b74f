#!/usr/bin/env python3
"""Trainings on four gloo processes, right ones and with a fault at one rank, judged by `plumb blame` from one run alone.
Prints what was blamed wrongly, what was missed, and where something else was named first.

    PLUMB_BUILD=build PYTHONPATH=build/python /usr/bin/python3 tests/verdicts/ranks.py [--seeds 8]
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))
from rank_training import BLOCKS, OPERATORS, PLANTS
from test_blame_ranks import PARAMETERS, PLUMB, WORLD, case, train

CALLS = {"gelu": BLOCKS, "layer_norm": BLOCKS, "linear": 2 * BLOCKS + 1}  # in a step
Named = Tuple[int, str]  # rank and call; of a tensor that differs ""


def suite(seeds: int) -> Dict[str, Dict[str, Any]]:
    cases = {}
    for seed in range(seeds):
        draw = random.Random(seed)
        cases[f"healthy-{seed}"] = case("healthy", seed=seed)
        for kind in PLANTS:
            places = {"operator": 2 * CALLS[OPERATORS[seed % 3]], "nan": 2 * BLOCKS, "parameter": PARAMETERS}
            place = draw.randrange(places.get(kind, 2 * PARAMETERS))
            cases[f"{kind}-{seed}"] = case(kind, draw.randrange(WORLD), place, seed)
    return cases


def planted(one: Dict[str, Any]) -> Named:
    kind, place = one["kind"], one["place"]
    if kind in ("operator", "nan"):
        function = OPERATORS[one["seed"] % 3] if kind == "operator" else "gelu"
        return one["bad"], f"Functional.{function}.{place % CALLS[function]}.forward"
    if kind in ("collective", "missing"):
        return one["bad"], f"Distributed.all_reduce.{place % PARAMETERS}.forward"
    return one["bad"], ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    cases = suite(parser.parse_args().seeds)
    counts: Dict[str, int] = dict.fromkeys(("right", "blamed wrongly", "planted", "missed", "another named"), 0)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        train(root, cases)
        for name, one in cases.items():
            done = subprocess.run([str(PLUMB), "blame", str(root / name), "--format", "json"], stdout=subprocess.PIPE)
            answer = json.loads(done.stdout)
            named = [(is_["rank"], is_["call"]) for is_ in answer["first"]] or [(is_["rank"], "") for is_ in answer["odd"]]
            if one["kind"] == "healthy":
                counts["right"] += 1
                wrong = "blamed wrongly" if named or answer["not_finite"] else ""
            else:
                counts["planted"] += 1
                wrong = "missed" if not named else "another named" if named != [planted(one)] else ""
            if wrong:
                counts[wrong] += 1
                print(f"{wrong}: {name}: {one}, named {named}")
    print("; ".join(f"{what}: {count}" for what, count in counts.items()))


if __name__ == "__main__":
    main()
