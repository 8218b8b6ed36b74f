"""Every operator against PyTorch in float64, and every backward against finite differences too."""

import importlib
import os
import sys
import unittest
from collections import Counter
from pathlib import Path
from typing import Dict, List

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from ops import harness  # noqa: E402
from ops.native import Native  # noqa: E402

HERE = Path(__file__).parent / "ops"
PREFIXES = ("Tensor", "Torch", "Functional", "Complex")


def load_cases() -> List[harness.Case]:
    wanted = os.environ.get("PLUMB_OP_CASES", "").split()
    found: List[harness.Case] = []
    for path in sorted(HERE.glob("cases_*.py")):
        if wanted and path.stem[6:] not in wanted:
            continue
        harness.seed(path.stem)
        found += importlib.import_module(f"ops.{path.stem}").cases()
    return found


def exists(prefix: str, name: str) -> bool:
    place = {"Tensor": torch.Tensor, "Torch": torch, "Functional": F}.get(prefix)
    for part in name.split("."):
        place = getattr(place, part, None)
    return callable(place)


class Truth(unittest.TestCase):
    native = Native()

    def test_cases(self) -> None:
        torch.set_num_threads(1)
        operators = self.native.operators()
        owner: Dict[str, int] = {}
        for number, op in enumerate(operators):
            for name in op.names.decode().split():
                owner[name] = number
        seen: Counter = Counter()
        names: Counter = Counter()
        failures: List[str] = []
        cases = load_cases()
        first: Dict[int, harness.Case] = {}
        for case in cases:
            number = owner.get(case.api, owner.get(case.name))
            if any(t.is_complex() for t in harness.leaves((case.args, case.kwargs))):
                number = owner.get(f"Complex.{case.name}", number)
            if number is not None:
                seen[number] += 1
                names[case.name] += 1
                if not case.refused and not case.ref:
                    first.setdefault(number, case)
            try:
                harness.check(self.native, case)
            except Exception as error:  # a crash of PyTorch in one case must not hide the others
                failures.append(f"{case}: {type(error).__name__}: {error}")

        # Names that no case spells: the operator's first case, called by that name.
        for name, number in owner.items():
            bare = name.split(".", 1)[1] if name.split(".")[0] in PREFIXES else name
            case = first.get(number)
            if names[bare] or case is None or not exists(case.prefix, bare):
                continue
            twin = harness.Case(f"{case.prefix}.{bare}", case.args, case.kwargs, None, case.grad_output, case.rtol,
                                case.own_rtol, False, case.backward, case.values, False, False, case.check_own)
            try:
                if harness.run_torch(twin, torch.float64)[0] == [None]:
                    continue  # changes its arguments and returns nothing
            except Exception:
                continue  # PyTorch wants other arguments under that name
            names[bare] += 1
            try:
                harness.check(self.native, twin)
            except Exception as error:
                failures.append(f"{type(error).__name__}: {error}")
        if not os.environ.get("PLUMB_OP_CASES"):
            bare = [op.names.decode().split()[0] for number, op in enumerate(operators)
                    if not seen[number] and not op.random]
            if bare:
                failures.append(f"operators without a case: {' '.join(bare)}")
        print(f"\noperators: {len(seen)} of {len(operators)}, names: {len(names)} of {len(owner)}, "
              f"cases: {len(cases)}", file=sys.stderr)
        self.assertFalse(failures, f"{len(failures)} failures:\n" + "\n".join(failures[:60]))


if __name__ == "__main__":
    unittest.main()
