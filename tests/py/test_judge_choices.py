"""plumb.judge on choices: what dropout drops, and decisions among equals, with right variants and planted faults."""

import sys
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_case  # noqa: E402,F401  (puts the package under test into the path)
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import plumb  # noqa: E402


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 5) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def coarse(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 5) -> torch.Tensor:
    """Few different values, so that many are equal."""
    values = torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed))
    return values.to(dtype) / 4


class Dropout(unittest.TestCase):
    def dropped(self, x: torch.Tensor, p: float, seed: int = 1) -> torch.Tensor:
        """As a device may have it: any mask, x / (1 - p) rounded once."""
        keep = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) >= p
        return (x.double() * keep / (1 - p)).to(x.dtype)

    def test_right(self) -> None:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for p in (0.01, 0.1, 0.5, 0.9):
                for shape in ((7,), (64, 96), (4, 8, 33)):
                    for seed in range(3):
                        x = rows(*shape, dtype=dtype, seed=seed)
                        found = plumb.judge(self.dropped(x, p, seed), F.dropout, (x,), {"p": p})
                        self.assertIn(found.verdict, ("same", "rounding"), f"{dtype} {p} {shape} {found}")

    def test_of_pytorch(self) -> None:
        x = rows(48, 64).requires_grad_()
        calls: List[Tuple[Callable[..., Any], Tuple[int, ...]]] = [
            (F.dropout, (48, 64)), (F.alpha_dropout, (48, 64)), (F.dropout2d, (12, 16, 4, 4)),
            (F.feature_alpha_dropout, (12, 16, 4, 4))]
        for call, shape in calls:
            for p in (0.2, 0.5):
                got = call(x.reshape(shape), p=p, training=True)
                grad = rows(*shape, seed=9)
                grads, = torch.autograd.grad(got, x, grad)
                found = plumb.judge(got, call, (x.reshape(shape),), {"p": p, "training": True}, grad_outputs=grad,
                                    got_grads=grads.reshape(shape))
                for part in found.parts:
                    self.assertIn(part.verdict, ("same", "rounding"), f"{call.__name__} {p}: {part}")
        for p in (0.1, 0.3, 0.5):  # PyTorch rounds 1 / (1 - p) to bfloat16
            y = rows(48, 64, dtype=torch.bfloat16)
            found = plumb.judge(F.dropout(y, p), F.dropout, (y,), {"p": p})
            self.assertIn(found.verdict, ("same", "rounding", "cheaper arithmetic"), f"{p}: {found}")
        got, mask = torch.native_dropout(x, 0.3, True)
        self.assertEqual(plumb.judge((got, mask), "native_dropout", (x, 0.3, True)).verdict, "rounding")
        self.assertEqual(plumb.judge((got, ~mask), "native_dropout", (x, 0.3, True)).verdict, "fault")

    def test_nothing_to_drop(self) -> None:
        """An exact copy, and judged as one."""
        x = rows(32, 32)
        wrong = x.clone()
        wrong[3, 4] *= 1.001
        for kwargs in ({"p": 0.0}, {"p": 0.5, "training": False}):
            self.assertEqual(plumb.judge(x.clone(), F.dropout, (x,), kwargs).verdict, "same")
            self.assertEqual(plumb.judge(wrong, F.dropout, (x,), kwargs).verdict, "fault")
        self.assertEqual(plumb.judge(torch.zeros_like(x), F.dropout, (x,), {"p": 1.0}).verdict, "same")
        self.assertEqual(plumb.judge(x, F.dropout, (x,), {"p": 1.0}).verdict, "fault")

    def faults(self, x: torch.Tensor, p: float) -> List[Tuple[str, torch.Tensor]]:
        right = self.dropped(x, p)
        found = []

        def plant(name: str, change: Callable[[torch.Tensor], Any]) -> None:
            got = right.clone()
            out = change(got)
            found.append((name, got if out is None else out))

        mask = right != 0
        plant("not scaled", lambda got: torch.where(mask, x, got))
        plant("scaled by 1 - p", lambda got: (x * (1 - p) * mask).to(x.dtype))
        plant("an eighth is zero", lambda got: got[:len(got) // 8].zero_())
        plant("columns are zero", lambda got: got[:, :8].zero_())
        plant("a tile is zero", lambda got: got[16:48, 32:64].zero_())
        plant("nothing is dropped", lambda got: (x.double() / (1 - p)).to(x.dtype))
        plant("everything is dropped", lambda got: got.zero_())
        plant("another probability", lambda got: self.dropped(x, p + 0.2) * (1 - p - 0.2) / (1 - p))
        plant("one mask for all rows", lambda got: (x.double() * mask[0] / (1 - p)).to(x.dtype))
        plant("every other element", lambda got: (x.double() * (torch.arange(x.numel()).reshape(x.shape) % 2) /
                                                  (1 - p)).to(x.dtype))
        plant("one element is off", lambda got: got.view(-1)[int(mask.view(-1).nonzero()[7])].mul_(1.5))
        plant("traces", lambda got: got.view(-1)[int((~mask).view(-1).nonzero()[7])].fill_(1e-3))
        plant("NaN", lambda got: got.view(-1)[9].fill_(float("nan")))
        return found

    def test_faults(self) -> None:
        missed = []
        for dtype in (torch.float32, torch.bfloat16):
            for p in (0.1, 0.5):
                x = rows(128, 96, dtype=dtype)
                for name, got in self.faults(x, p):
                    found = plumb.judge(got, F.dropout, (x,), {"p": p})
                    if found.verdict != "fault":
                        missed.append(f"{dtype} {p} {name}: {found}")
        self.assertFalse(missed, "\n".join(missed))

    def test_gradients(self) -> None:
        x, grad = rows(40, 50), rows(40, 50, seed=8)
        got = self.dropped(x, 0.25)
        right = grad * (got != 0) / 0.75
        for name, grads, wanted in (("right", right, True), ("not scaled", right * 0.75, False),
                                    ("another mask", self.dropped(grad, 0.25, 3), False),
                                    ("not masked", grad / 0.75, False)):
            found = plumb.judge(got, F.dropout, (x,), {"p": 0.25}, grad_outputs=grad, got_grads=grads)
            self.assertEqual(bool(found), wanted, f"{name}: {found}")
            self.assertEqual(found.parts[0].verdict, "same", name)

    def test_channels(self) -> None:
        x = rows(16, 24, 5, 5)
        keep = torch.rand(16, 24, 1, 1, generator=torch.Generator().manual_seed(1)) >= 0.5
        got = x * keep * 2
        self.assertEqual(plumb.judge(got, F.dropout2d, (x,), {"p": 0.5}).verdict, "same")
        kept = int(keep.view(-1).nonzero()[3])
        got.view(-1, 25)[kept, 7] = 0
        found = plumb.judge(got, F.dropout2d, (x,), {"p": 0.5})
        self.assertEqual(found.verdict, "fault")
        self.assertIn("in part", found.why)

    def test_not_judged(self) -> None:
        found = plumb.judge(torch.rand(3), "rand", (3,))
        self.assertEqual(found.verdict, "not judged")
        self.assertIn("random", found.why)


class Decisions(unittest.TestCase):
    def test_sort(self) -> None:
        x = coarse(20, 30)
        values, places = torch.sort(x, stable=True)
        self.assertEqual(plumb.judge((values, places), torch.sort, (x,)).verdict, "same")
        # The other way round among equals.
        turned = torch.sort(x.flip(1), stable=True)
        other = 29 - turned.indices
        found = plumb.judge((turned.values, other), torch.sort, (x,))
        self.assertEqual(found.verdict, "tie")
        self.assertEqual(found.parts[0].verdict, "same")
        self.assertIn("as good", found.parts[1].why)
        for change in (lambda t: t.index_put_((torch.tensor(3), torch.tensor(0)), t[3, 29].clone()),
                       lambda t: t[5].copy_(t[5].roll(9))):
            wrong = other.clone()
            change(wrong)
            self.assertEqual(plumb.judge((turned.values, wrong), torch.sort, (x,)).verdict, "fault")

    def test_argmax_and_topk(self) -> None:
        x = coarse(40, 16)
        last = 15 - x.flip(1).argmax(1)
        self.assertEqual(plumb.judge(last, torch.argmax, (x, 1)).verdict, "tie")
        wrong = last.clone()
        wrong[4] = x[4].argmin()
        self.assertEqual(plumb.judge(wrong, torch.argmax, (x, 1)).verdict, "fault")
        x = rows(40, 16)
        near = x.topk(2, 1).indices[:, 1]
        self.assertEqual(plumb.judge(near, torch.argmax, (x, 1)).verdict, "fault")
        top = x.topk(5, 1)
        self.assertTrue(plumb.judge((top.values.flip(1), top.indices.flip(1)), torch.topk, (x, 5, 1),
                                    {"sorted": False}))
        self.assertEqual(plumb.judge((top.values.flip(1), top.indices.flip(1)), torch.topk, (x, 5, 1)).verdict,
                         "fault")

    def windows(self, x: torch.Tensor, grad: torch.Tensor, last: bool) -> torch.Tensor:
        """The gradient of max_pool2d(x, 3, 2, 1) that goes to the first, or to the last, of equal elements."""
        flipped = x.flip(2, 3) if last else x
        leaf = flipped.clone().requires_grad_()
        # Windows of an odd size lie the same from both ends.
        out = F.max_pool2d(leaf, 3, 2, 1)
        out.backward(grad.flip(2, 3) if last else grad)
        assert leaf.grad is not None
        return leaf.grad.flip(2, 3) if last else leaf.grad

    def test_gradient_of_a_pool(self) -> None:
        for dtype in (torch.float32, torch.float64):
            x = coarse(2, 3, 11, 11, dtype=dtype)
            out = F.max_pool2d(x, 3, 2, 1)
            grad = rows(*out.shape, dtype=dtype)
            first, last = self.windows(x, grad, False), self.windows(x, grad, True)
            self.assertFalse(torch.equal(first, last))

            def judge(grads: torch.Tensor) -> str:
                return plumb.judge(out, F.max_pool2d, (x, 3, 2, 1), grad_outputs=grad, got_grads=grads).parts[1].verdict

            self.assertIn(judge(first), ("same", "rounding"))
            self.assertEqual(judge(last), "tie")
            lost = last.clone()
            lost.view(-1)[int(lost.view(-1).nonzero()[11])] = 0
            self.assertEqual(judge(lost), "fault")
            doubled = last.clone()
            doubled.view(-1)[int(doubled.view(-1).nonzero()[11])] *= 2
            self.assertEqual(judge(doubled), "fault")
            self.assertEqual(judge(last.roll(1, 3)), "fault")
            self.assertEqual(judge(last * 1.001), "fault")

    def test_indices_of_a_pool(self) -> None:
        x = coarse(2, 3, 11, 11)
        values, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        other = 120 - F.max_pool2d(x.flip(2, 3), 3, 2, 1, return_indices=True)[1].flip(2, 3)
        self.assertFalse(torch.equal(places, other))
        name = "max_pool2d_with_indices"
        self.assertEqual(plumb.judge((values, places), name, (x, 3, 2, 1)).verdict, "same")
        self.assertEqual(plumb.judge((values, other), name, (x, 3, 2, 1)).verdict, "tie")
        wrong = other.clone()
        wrong[0, 0, 2, 2] = (wrong[0, 0, 2, 2] + 60) % 121  # not in the window
        self.assertEqual(plumb.judge((values, wrong), name, (x, 3, 2, 1)).verdict, "fault")

    def test_gradient_of_a_maximum(self) -> None:
        x = coarse(12, 40)
        out = x.max(1).values
        grad = rows(12)
        first = torch.zeros_like(x).scatter_(1, x.argmax(1, keepdim=True), grad[:, None])
        last = torch.zeros_like(x).scatter_(1, 39 - x.flip(1).argmax(1, keepdim=True), grad[:, None])
        ties = (x == out[:, None]).float()
        shared = ties / ties.sum(1, keepdim=True) * grad[:, None]
        for grads in (first, last, shared):
            found = plumb.judge((out,), torch.amax, (x, 1), grad_outputs=grad, got_grads=grads)
            self.assertIn(found.parts[1].verdict, ("same", "rounding", "tie"), str(found))
        for grads in (first.roll(1, 0), first * 2, torch.zeros_like(first)):
            found = plumb.judge((out,), torch.amax, (x, 1), grad_outputs=grad, got_grads=grads)
            self.assertEqual(found.parts[1].verdict, "fault")
        whole, one = x.max(), torch.tensor(2.0)
        places = (x == whole).nonzero()[-1]
        grads = torch.zeros_like(x)
        grads[places[0], places[1]] = 2
        found = plumb.judge(whole, torch.max, (x,), grad_outputs=one, got_grads=grads)
        self.assertEqual(found.parts[1].verdict, "tie")

    def test_rounded_quotients(self) -> None:
        """floor(a / b) next to a whole number: float32 may fall on either side, but not further."""
        b = rows(500).abs() + 0.5
        whole = torch.arange(500.0) + 1
        a = (b.double() * whole).float()
        right = torch.floor(a.double() / b.double()).float()
        other = torch.floor(a / b)
        self.assertFalse(torch.equal(right, other))
        self.assertIn(plumb.judge(other, torch.floor_divide, (a, b)).verdict, ("tie", "same"))
        self.assertEqual(plumb.judge(right, torch.floor_divide, (a, b)).verdict, "same")
        for wrong in (right + 1, right - 2, right * 1.001):
            self.assertEqual(plumb.judge(wrong, torch.floor_divide, (a, b)).verdict, "fault")
        a = (b.double() * (whole + 0.5)).float()
        right = torch.floor(a.double() / b.double()).float()
        got = right.clone()
        got[17] += 1
        self.assertEqual(plumb.judge(got, torch.floor_divide, (a, b)).verdict, "fault")


class Infinities(unittest.TestCase):
    """Where the right result is an infinity, no other number will do."""

    def cases(self) -> List[Tuple[torch.Tensor, str, Tuple[Any, ...]]]:
        x, mask, zeros = rows(8, 40), torch.zeros(40), torch.ones(40)
        mask[30:], zeros[30:] = -torch.inf, 0
        wide = x.clone()
        wide[0] = 1e30
        some = x.clone()
        some[0, 0] = torch.inf
        return [(x + mask, "add", (x, mask)), (x.masked_fill(mask < 0, -torch.inf), "masked_fill",
                                              (x, mask < 0, -torch.inf)),
                (some.relu(), "relu", (some,)), ((x.abs() + 1) / zeros, "div", (x.abs() + 1, zeros)),
                (wide * wide, "mul", (wide, wide))]

    def test_right(self) -> None:
        for right, op, inputs in self.cases():
            self.assertIn(plumb.judge(right, op, inputs).verdict, ("same", "rounding"), op)

    def test_wrong(self) -> None:
        for right, op, inputs in self.cases():
            at = tuple(right.isinf().nonzero()[0].tolist())
            for wrong in (torch.nan, 0.0, 3.0e38, float(-right[at])):
                got = right.clone()
                got[at] = wrong
                self.assertEqual(plumb.judge(got, op, inputs).verdict, "fault", f"{op} {wrong}")

    def test_beside_the_largest_number(self) -> None:
        """A sum that noise may carry across the largest number may be either; one far below may not."""
        most = torch.finfo(torch.float32).max
        x = torch.full((4, 64), most / 64, dtype=torch.float32)
        for right in (most, torch.inf):
            self.assertNotEqual(plumb.judge(torch.full((4,), right), "sum", (x, 1)).verdict, "fault", str(right))
        self.assertEqual(plumb.judge(torch.full((4,), torch.nan), "sum", (x, 1)).verdict, "fault")
        self.assertEqual(plumb.judge(torch.full((4,), torch.inf), "sum", (x / 2, 1)).verdict, "fault")


if __name__ == "__main__":
    unittest.main()
