"""What operators say of their own rounding: their class, how many terms they add up, and the changes that errors in
their inputs make, in closed form. Walks the same cases as test_op_truth.py, for every operator of the registry."""

import math
import sys
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import torch

sys.path.insert(0, str(Path(__file__).parent))
from ops import harness  # noqa: E402
from ops.native import CLASSES, Call, CNoise, Native, Ran, Refused  # noqa: E402
from test_op_truth import load_cases  # noqa: E402

# One output depends on many elements of an input, and yet no long sum leads to it.
NO_SUMS = {
    # products, whose relative errors add up and are seen by perturbation
    "prod", "cumprod", "cumprod_", "_foreach_norm",
    # p norms with p = inf or 0, ranges, elements that are chosen
    "aminmax", "quantile", "nanquantile", "logcumsumexp", "vander",
}
MOST = 24  # elements of an output that are looked at


def floats(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


class Jacobian:
    """How many elements of one argument an output depends on, and how many elements of the output one gradient."""

    def __init__(self, native: Native, case: harness.Case, output: torch.Tensor) -> None:
        self.inputs = self.outputs = 0
        count = output.numel()
        columns: List[Optional[torch.Tensor]] = []
        rows = range(0, count, max(1, count // MOST))
        for at in rows:
            one = torch.zeros(output.shape, dtype=torch.float64)
            one.view(-1)[at] = 1
            ran = native.run_noisy(Call(case.prefix, case.name, case.args, case.kwargs, one, case.grad_output), None)
            for k, grad in enumerate(ran.grads):
                if grad is None or not grad.numel():
                    continue
                used = (grad != 0) & torch.isfinite(grad)
                self.inputs = max(self.inputs, int(used.sum()))
                while len(columns) <= k:
                    columns.append(None)
                before = columns[k]
                columns[k] = used.long() if before is None else before + used
        for column in columns:
            if column is not None and len(rows) == count:
                self.outputs = max(self.outputs, int(column.max()))


class Noise(unittest.TestCase):
    native = Native()

    def runnable(self) -> List[Tuple[harness.Case, Ran]]:
        torch.set_num_threads(1)
        found = []
        for case in load_cases():
            if case.refused or self.native.is_random(case.prefix, case.name):
                continue
            try:
                found.append((case, self.native.run_noisy(Call(case.prefix, case.name, case.args, case.kwargs), None)))
            except Refused:
                continue
        return found

    def test_classes(self) -> None:
        """Every operator has one, and those with a closed form are of a class that can have it."""
        wanted = {"mm": "bilinear", "conv2d": "bilinear", "sum": "linear", "add": "elementwise", "sort": "decision",
                  "argmax": "decision", "topk": "decision", "max_pool2d": "decision", "floor_divide": "decision",
                  "unique": "decision", "searchsorted": "decision", "bucketize": "decision", "nonzero": "decision",
                  "kthvalue": "decision", "layer_norm": "composite", "transpose": "exact", "masked_fill": "exact",
                  "dropout": "random", "cummax": "decision", "cumprod": "composite"}
        for name, word in wanted.items():
            op = self.native.find(None, name)
            assert op is not None
            self.assertEqual(CLASSES[op.results], word, name)
        for op in self.native.operators():
            word = CLASSES[op.results]
            names = op.names.decode()
            if op.closed:
                self.assertIn(word, ("linear", "bilinear", "elementwise"), names)
            self.assertEqual(word == "random", op.random, names)
            if op.exact:
                self.assertIn(word, ("exact", "decision"), names)

    def test_terms(self) -> None:
        """K is no less than half of what one output, or gradient, is seen to depend on; where several steps lead to
        it, each a sum, no less than a root of that."""
        failures: Dict[str, str] = {}
        looked = 0
        for case, ran in self.runnable():
            op = self.native.find(case.prefix, case.name)
            output = ran.outputs[case.grad_output] if case.grad_output < len(ran.outputs) else None
            wants = any(floats(t) and t.requires_grad for t in harness.leaves((case.args, case.kwargs)))
            if not (op and op.backward and floats(output) and wants and case.backward) or output.numel() > 1024:
                continue
            try:
                seen = Jacobian(self.native, case, output)
                grad = torch.ones(output.shape, dtype=torch.float64)
                ran = self.native.run_noisy(Call(case.prefix, case.name, case.args, case.kwargs, grad,
                                                 case.grad_output), None)
            except Refused:
                continue
            looked += 1
            if case.name in NO_SUMS:
                continue
            steps = (3 if CLASSES[op.results] == "composite" else
                     2 if op.family in (b"product", b"einsum", b"resample") else 1)

            def least(count: int) -> float:
                return count / 2 if steps == 1 else count ** (1 / steps)

            if not op.exact and seen.inputs >= 4 and ran.terms < least(seen.inputs):
                failures[f"{case}"] = f"an output depends on {seen.inputs} elements, K is {ran.terms}"
            elif seen.outputs >= 4 and max(ran.grad_terms, ran.terms) < least(seen.outputs):
                failures[f"{case}"] = f"a gradient adds up {seen.outputs} terms, K is {ran.grad_terms}"
        self.assertGreater(looked, 500)
        self.assertFalse(failures, f"{len(failures)} of {looked}:\n" +
                         "\n".join(f"{case}: {why}" for case, why in failures.items()))

    def test_closed_forms(self) -> None:
        """Noise from squares is what many perturbed runs give, forward and backward."""
        runs, relative = 60, 2.0 ** -24
        failures: List[str] = []
        looked = set()
        for case, plain in self.runnable():
            op = self.native.find(case.prefix, case.name)
            output = plain.outputs[case.grad_output] if case.grad_output < len(plain.outputs) else None
            if not (op and op.closed and floats(output)) or output.numel() > 600:
                continue
            grad = harness.gradient_for(case, output)
            call = Call(case.prefix, case.name, case.args, case.kwargs, grad, case.grad_output)
            try:
                closed = self.native.run_noisy(call, CNoise(squares=True))
            except Refused:
                continue
            exact = self.native.run_noisy(call, None)
            looked.add(case.name)
            sums: Dict[Tuple[str, int], torch.Tensor] = {}
            for seed in range(runs):
                ran = self.native.run_noisy(call, CNoise(relative, seed + 1))
                for part in ("outputs", "grads"):
                    for k, (a, b) in enumerate(zip(getattr(ran, part), getattr(exact, part))):
                        if floats(a) and a.numel():
                            square = ((a - b) / relative) ** 2 / runs
                            sums[part, k] = sums[part, k] + square if (part, k) in sums else square
            for (part, k), square in sums.items():
                # Squared and averaged: single elements of so few runs are noisy themselves.
                fine = torch.isfinite(square)
                if not fine.any():
                    continue
                perturbed = math.sqrt(float(square[fine].mean()))
                form = math.sqrt(float((getattr(closed, part)[k][fine] ** 2).mean()))
                y = math.sqrt(float((getattr(exact, part)[k][fine] ** 2).mean()))
                few = 3 / math.sqrt(max(1, min(int(fine.sum()), output.numel())) * runs)
                # A product that a bias is added to is disturbed as a whole too: at most y and the bias together.
                slack = 0.03 + few
                if not form * (1 - slack) <= perturbed + 1e-300 or not perturbed <= form * (1 + slack) + 0.6 * y:
                    failures.append(f"{case}: {part} {k}: {form:.4g} in closed form, {perturbed:.4g} by perturbation")
        print(f"\nclosed forms: {len(looked)} names", file=sys.stderr)
        self.assertGreater(len(looked), 20)
        self.assertFalse(failures, "\n".join(failures[:40]))

    def test_closed_form_of_a_product(self) -> None:
        """Where nothing is disturbed on the way: element by element, within a few percent."""
        torch.manual_seed(3)
        x, w = torch.randn(6, 40), torch.randn(40, 5)
        grad = torch.randn(6, 5).double()
        call = Call("Torch", "mm", (x.requires_grad_(), w.requires_grad_()), {}, grad)
        closed = self.native.run_noisy(call, CNoise(squares=True))
        want = (2 / 3 * (x.double() ** 2) @ (w.double() ** 2)).sqrt()
        torch.testing.assert_close(closed.outputs[0], want.detach(), rtol=1e-12, atol=0)
        want = (2 / 3 * grad ** 2 @ (w.double() ** 2).T).sqrt()
        torch.testing.assert_close(closed.grads[0], want.detach(), rtol=1e-12, atol=0)
        for scale in (1e-120, 1e120):  # squares of these are no float64
            call = Call("Torch", "mm", (x.detach().double() * scale, w.detach().double()), {})
            scaled = self.native.run_noisy(call, CNoise(squares=True))
            torch.testing.assert_close(scaled.outputs[0] / scale, closed.outputs[0], rtol=1e-9, atol=0)

    def test_form_of_a_bias(self) -> None:
        x, w, bias = torch.zeros(2, 3), torch.zeros(4, 3), torch.tensor([1.0, 2.0, 3.0, 4.0])
        closed = self.native.run_noisy(Call("Functional", "linear", (x, w, bias), {}), CNoise(squares=True))
        torch.testing.assert_close(closed.outputs[0][0], bias.double() / math.sqrt(3))
        x, y = torch.tensor([3.0]), torch.tensor([4.0])
        for name in ("add", "sub"):
            closed = self.native.run_noisy(Call("Torch", name, (x, y), {"alpha": 2}), CNoise(squares=True))
            self.assertAlmostEqual(float(closed.outputs[0]), math.sqrt((9 + 64) / 3), places=12)
        closed = self.native.run_noisy(Call("Torch", "add", (x, 100.0), {}), CNoise(squares=True))
        self.assertAlmostEqual(float(closed.outputs[0]), math.sqrt(3), places=12)
        closed = self.native.run_noisy(Call("Torch", "mean", (torch.full((50,), 2.0),), {}), CNoise(squares=True))
        self.assertAlmostEqual(float(closed.outputs[0]), 2 / math.sqrt(3 * 50), places=12)
        with self.assertRaises(Refused):
            self.native.run_noisy(Call("Torch", "softmax", (x, 0), {}), CNoise(squares=True))


if __name__ == "__main__":
    unittest.main()
