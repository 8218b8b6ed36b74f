"""NaN and infinities that came to a rank from outside: whose they were, and that nobody who passed them on is named."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from test_blame_exchanges import PLUMB, Writer  # noqa: E402

WORLD = 3
GROUP = list(range(WORLD))


class Step(Writer):
    """Calls of functions, too."""

    def function(self, rank: int, name: str, args: List[Any], output: List[Any]) -> None:
        direction = "" if name.endswith("backward") else ".forward"
        title = f"{name}{direction}"
        inputs = [self.leaf(rank, value, f"{title}.input.{i}") for i, value in enumerate(args)]
        given = {"input": inputs} if not direction else {"input_args": inputs, "input_kwargs": {}}
        self.world[rank][title] = {**given, "output": [self.leaf(rank, value, f"{title}.output.{i}") for i, value in enumerate(output)]}

    def gradients(self, rank: int, name: str, value: np.ndarray) -> None:
        self.world[rank][name] = {"weight": [self.leaf(rank, value, f"{name}.weight")]}

    def all_reduce(self, terms: List[np.ndarray]) -> np.ndarray:
        total = np.sum(terms, axis=0, dtype=np.float32)
        for rank in range(WORLD):
            self.call(rank, "all_reduce.0", [terms[rank]], [total], GROUP)
        return total


def spoilt(x: np.ndarray, value: float) -> np.ndarray:
    x = x.copy()
    x.reshape(-1)[4] = value
    return x


class GivenTest(unittest.TestCase):
    def setUp(self) -> None:
        np.seterr(all="ignore")
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root, self.made = Path(place.name), 0
        self.random = np.random.default_rng(3)

    def step(self) -> Step:
        self.made += 1
        return Step(self.root / f"step{self.made}", WORLD)

    def terms(self) -> List[np.ndarray]:
        return [np.abs(self.random.standard_normal((4, 5))).astype(np.float32) + 1 for _ in range(WORLD)]

    def blame(self, step: Step, code: int) -> Dict[str, Any]:
        step.write()
        done = subprocess.run([str(PLUMB), "blame", str(step.folder), "--format", "json"], stdout=subprocess.PIPE)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["faults"], answer["first"]), ([], []))
        self.assertEqual(done.returncode, code, answer)
        return answer

    def overflow(self, step: Step, code: int) -> List[Tuple[str, str, str]]:
        done = subprocess.run([str(PLUMB), "overflow_check", str(step.folder), "-o", str(self.root), "--format", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout)
        return [(str(row["Rank"]), row["Node"], row["Output"]) for row in json.loads(done.stdout)["rows"]] if done.stdout else []

    def origins(self, answer: Dict[str, Any]) -> List[Tuple[Any, ...]]:
        return [(one["rank"], one["call"], one["place"], one["since"], [hop["to"] for hop in one["hops"]])
                for one in answer["not_finite"]]

    def others(self, bad: int) -> List[int]:
        return [rank for rank in GROUP if rank != bad]

    def test_input_of_one_rank(self) -> None:
        for bad in GROUP:
            step, terms = self.step(), self.terms()
            terms[bad] = spoilt(terms[bad], np.nan)
            for rank, x in enumerate(terms):
                step.function(rank, "Functional.relu.0", [x], [np.maximum(x, 0)])
            total = step.all_reduce(terms)
            for rank in GROUP:
                # The gradient that came in is finite: what was saved is not.
                step.function(rank, "Tensor.square.0.backward", [terms[0] if bad else terms[1]], [total])
            found = self.blame(step, 1)
            self.assertEqual(self.origins(found), [(bad, "Functional.relu.0.forward", "input.0", None, [self.others(bad)])])
            self.assertEqual(self.overflow(step, 1), [(str(bad), "Functional.relu.0.forward", "input.0")])

    def test_straight_into_an_exchange(self) -> None:
        for bad in GROUP:
            step, terms = self.step(), self.terms()
            terms[bad] = spoilt(terms[bad], np.nan)
            step.all_reduce(terms)
            self.assertEqual(self.origins(self.blame(step, 1)),
                             [(bad, "Distributed.all_reduce.0.forward", "input.0", None, [self.others(bad)])])
            self.assertEqual(self.overflow(step, 1), [(str(bad), "Distributed.all_reduce.0.forward", "input.0")])

    def test_nan_of_a_given_infinity(self) -> None:
        for bad in GROUP:
            step, terms = self.step(), self.terms()
            weight = np.ones((4, 5), np.float32)
            made = []
            for rank, x in enumerate(terms):
                own = spoilt(weight, np.inf) if rank == bad else weight
                step.function(rank, "Torch.mul.0", [x, own], [x * own])
                step.function(rank, "Torch.sub.0", [x * own, x * own], [x * own - x * own])
                made.append(x * own - x * own)
            step.all_reduce(made)
            self.assertEqual(self.origins(self.blame(step, 1)),
                             [(bad, "Torch.mul.0.forward", "input.1", "Torch.sub.0.forward", [self.others(bad)])])
            self.assertEqual(self.overflow(step, 1), [(str(bad), "Torch.sub.0.forward", "output.0")])

    def test_nan_of_an_infinity_from_another_rank(self) -> None:
        for bad in GROUP:
            step, terms = self.step(), self.terms()
            terms[bad] = spoilt(terms[bad], np.inf)
            total = step.all_reduce(terms)
            for rank in GROUP:
                step.function(rank, "Torch.sub.0", [total, total], [total - total])
            self.assertEqual(self.origins(self.blame(step, 1)),
                             [(bad, "Distributed.all_reduce.0.forward", "input.0", "Torch.sub.0.forward", [self.others(bad)])])

    def test_gradients_that_were_reduced(self) -> None:
        for bad in GROUP:
            step, terms = self.step(), self.terms()
            terms[bad] = spoilt(terms[bad], np.nan)
            mean = np.mean(terms, axis=0, dtype=np.float32)
            for rank, x in enumerate(terms):
                step.function(rank, "Functional.relu.0", [x], [np.maximum(x, 0)])
                step.gradients(rank, "Module.0.Linear.parameters_grad.0", x)
                step.gradients(rank, "Module.reduced.0.Linear.parameters_grad.0", mean)
                weight = terms[0 if bad else 1]
                step.function(rank, "Torch.add.0", [weight, mean], [weight + mean])
            self.assertEqual(self.origins(self.blame(step, 1)),
                             [(bad, "Functional.relu.0.forward", "input.0", None, [self.others(bad)])])
            self.assertEqual(self.overflow(step, 1), [(str(bad), "Functional.relu.0.forward", "input.0")])

    def test_beside_another_run(self) -> None:
        """What a backward saved, and what other ranks put in, explains what comes out."""
        for bad in GROUP:
            for value in (np.nan, np.inf, 9.0):
                steps = []
                clean = self.terms()
                for wrong in (True, False):
                    step = self.step()
                    steps.append(step)
                    terms = [spoilt(x, value) if wrong and rank == bad else x for rank, x in enumerate(clean)]
                    for rank, x in enumerate(terms):
                        step.function(rank, "Functional.relu.0", [x], [np.maximum(x, 0)])
                    total = step.all_reduce(terms)
                    for rank in GROUP:
                        step.function(rank, "Torch.unknown.0", [total], [total])
                        # As if of x * total: the gradient that comes in is the same in both runs.
                        step.function(rank, "Torch.unknown.0.backward", [clean[0]], [clean[0] * total])
                    step.write()
                done = subprocess.run([str(PLUMB), "blame", str(steps[0].folder), str(steps[1].folder), "--format", "json"],
                                      stdout=subprocess.PIPE)
                answer = json.loads(done.stdout)
                self.assertEqual((answer["faults"], answer["first"], answer["parting"]), ([], [], None), done.stdout.decode())
                self.assertEqual([(one["rank"], one["call"], one["place"]) for one in answer["sources"]],
                                 [(bad, "Functional.relu.0.forward", "input.0")])

    def test_entry_that_is_cut_short(self) -> None:
        """What stood behind the cut may be what explains the result: its call is not judged, and named."""
        step, x, weight, bias = self.step(), *self.terms()
        names = [f"Module.{k}.Linear.forward.0" for k in range(2)]
        for name in names:
            step.world[0][name] = {
                "input_args": [step.leaf(0, x, f"{name}.input.0")], "input_kwargs": {},
                "output": [step.leaf(0, (x @ weight.T + bias[:, 0][:4]).astype(np.float32), f"{name}.output.0")],
                "parameters": {"weight": step.leaf(0, weight, f"{name}.parameters.weight"),
                               "bias": step.leaf(0, bias[:, 0].copy(), f"{name}.parameters.bias")}}
        step.write()
        path = step.folder / "rank0" / "dump.json"
        whole = path.read_text()
        last = whole.index(names[1])
        for end in range(whole.index('"weight"', last), len(whole)):
            if end % 7 and whole[end - 1] not in "{,}":
                continue
            path.write_text(whole[:end])
            done = subprocess.run([str(PLUMB), "blame", str(path), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            answer = json.loads(done.stdout)
            self.assertEqual((done.returncode, answer["faults"], answer["suspicious"]), (0, [], []), whole[last:end])
            cut = [{"count": 1, "what": f"dump.json is cut short in {names[1]}"}] if end < len(whole) - 2 else []
            self.assertEqual(answer["not_judged"], cut, whole[last:end])

    def test_a_mask_is_no_origin(self) -> None:
        mask = np.where(np.arange(5) > 2, -np.inf, 0).astype(np.float32) * np.ones((4, 1), np.float32)
        for bad in (None, *GROUP):
            step, terms = self.step(), self.terms()
            made = []
            for rank, x in enumerate(terms):
                step.function(rank, "Torch.add.0", [x, mask], [x + mask])
                step.function(rank, "Torch.exp.0", [x + mask], [np.exp(x + mask)])
                made.append(np.log(-x if rank == bad else x))
                step.function(rank, "Torch.log.0", [-x if rank == bad else x], [made[-1]])
            step.all_reduce(made)
            answer = self.blame(step, 0 if bad is None else 1)
            self.assertEqual(self.origins(answer), [] if bad is None else [(bad, "Torch.log.0.forward", None, None, [self.others(bad)])])

    def test_buffers_of_receivers_and_what_was_asked_for(self) -> None:
        step, terms = self.step(), self.terms()
        for rank in GROUP:
            nothing = np.full((4, 5), np.nan, np.float32)
            step.function(rank, "Torch.full.0", [[4, 5], float("nan")], [nothing])
            step.call(rank, "broadcast.0", [terms[0] if rank == 0 else nothing, 0], [terms[0], 0], GROUP)
            step.function(rank, "Functional.relu.0", [terms[0]], [np.maximum(terms[0], 0)])
        self.assertEqual(self.origins(self.blame(step, 0)), [])


if __name__ == "__main__":
    unittest.main()
