#!/usr/bin/python3
"""Verdicts on complex numbers: PyTorch's own results are not blamed, planted faults are found. Counts both."""

import sys
import unittest
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import python_case  # finds the package

import torch
import torch.nn.functional as F

import plumb

FINE = ("same", "rounding")


class Trial(NamedTuple):
    """A call, and what PyTorch makes of it."""
    name: str
    function: Callable[..., Any]
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any] = {}
    hidden: Tuple[str, ...] = ()  # faults that change nothing but rounding errors


def elementwise(c: torch.dtype, r: torch.dtype) -> Iterator[Trial]:
    z, w = torch.randn(24, 32, dtype=c), torch.randn(24, 32, dtype=c)
    for name in ("exp", "log", "sqrt", "rsqrt", "reciprocal", "square", "sin", "cos", "tan", "sinh", "cosh", "tanh",
                 "sigmoid", "asin", "acos", "atan", "asinh", "atanh", "log2", "log10", "sgn"):
        yield Trial(name, getattr(torch, name), (z,))
    for name in ("abs", "angle"):
        yield Trial(name, getattr(torch, name), (z,))
    for name in ("add", "sub", "mul", "div"):
        yield Trial(name, getattr(torch, name), (z, w))
        yield Trial(name, getattr(torch, name), (z, w[0]))
        yield Trial(name, getattr(torch, name), (z, w.real.contiguous()))
    yield Trial("mul", torch.mul, (z, 0.5 - 2j))
    yield Trial("pow", torch.pow, (z, 2))
    yield Trial("pow", torch.pow, (z, 0.7))
    yield Trial("pow", torch.pow, (z, w))
    yield Trial("polar", torch.polar, (torch.rand(24, 32, dtype=r) + 0.5, torch.randn(24, 32, dtype=r) * 3))
    yield Trial("addcmul", torch.addcmul, (z, w, w), {"value": 0.5})


def moved(c: torch.dtype, r: torch.dtype) -> Iterator[Trial]:
    z = torch.randn(24, 32, dtype=c)
    yield Trial("view_as_real", torch.view_as_real, (z,))
    yield Trial("view_as_complex", torch.view_as_complex, (torch.randn(24, 32, 2, dtype=r),))
    yield Trial("conj_physical", torch.conj_physical, (z,))
    yield Trial("cat", torch.cat, ([z, z * 2],))
    yield Trial("permute", torch.permute, (z, (1, 0)))
    yield Trial("roll", torch.roll, (z, 3, 1))
    yield Trial("where", torch.where, (torch.rand(24, 32) < 0.5, z, z * 2))


def sums(c: torch.dtype, r: torch.dtype) -> Iterator[Trial]:
    a, b = torch.randn(24, 64, dtype=c), torch.randn(64, 32, dtype=c)
    yield Trial("sum", torch.sum, (a, 1))
    yield Trial("mean", torch.mean, (a, 0))
    yield Trial("cumsum", torch.cumsum, (a, 1))
    yield Trial("prod", torch.prod, (a[:, :16], 1))
    yield Trial("matmul", torch.matmul, (a, b))
    yield Trial("mm", torch.mm, (a, b))
    yield Trial("bmm", torch.bmm, (a.reshape(2, 12, 64), b.expand(2, 64, 32).contiguous()))
    yield Trial("addmm", torch.addmm, (torch.randn(24, 32, dtype=c), a, b), {"beta": 0.5})
    yield Trial("einsum", torch.einsum, ("ij,jk->ki", a, b))
    yield Trial("linear", F.linear, (a, b.t().contiguous()))


def transforms(c: torch.dtype, r: torch.dtype) -> Iterator[Trial]:
    for n in (8, 37, 60, 64, 127, 360, 512, 1009):
        z, x = torch.randn(6, n, dtype=c), torch.randn(6, n, dtype=r)
        yield Trial("fft", torch.fft.fft, (z,))
        yield Trial("ifft", torch.fft.ifft, (z,))
        yield Trial("rfft", torch.fft.rfft, (x,))
        yield Trial("irfft", torch.fft.irfft, (z[:, :n // 2 + 1].contiguous(), n))
    tone = torch.exp(2j * torch.pi * 5 * torch.arange(256) / 256).to(c)
    yield Trial("fft", torch.fft.fft, (tone,), {}, ("tail", "one element"))
    z, x = torch.randn(24, 36, dtype=c), torch.randn(24, 36, dtype=r)
    for norm in ("ortho", "forward"):
        yield Trial("fft", torch.fft.fft, (z,), {"norm": norm})
    yield Trial("hfft", torch.fft.hfft, (z,))
    yield Trial("ihfft", torch.fft.ihfft, (x,))
    yield Trial("fft2", torch.fft.fft2, (z,))
    yield Trial("ifft2", torch.fft.ifft2, (z,))
    yield Trial("rfft2", torch.fft.rfft2, (x,))
    yield Trial("irfft2", torch.fft.irfft2, (z,))
    yield Trial("fftn", torch.fft.fftn, (torch.randn(5, 6, 12, dtype=c),))
    yield Trial("rfftn", torch.fft.rfftn, (torch.randn(5, 6, 12, dtype=r),))
    yield Trial("irfftn", torch.fft.irfftn, (torch.randn(5, 6, 12, dtype=c),))
    window = torch.hann_window(32, dtype=r)
    yield Trial("stft", torch.stft, (torch.randn(2, 300, dtype=r), 32), {"window": window, "return_complex": True})
    yield Trial("istft", torch.istft, (torch.randn(2, 17, 38, dtype=c), 32), {"window": window})


def trials(c: torch.dtype) -> Iterator[Trial]:
    torch.manual_seed(3)
    r = torch.float32 if c == torch.complex64 else torch.float64
    for group in (elementwise, moved, sums, transforms):
        yield from group(c, r)


def faults(y: torch.Tensor) -> Iterator[Tuple[str, torch.Tensor]]:
    """Wrong ways to get there; none that leaves the result what it was."""
    yield "scale", y * 1.001
    yield "shifted", torch.roll(y, 1, -1)
    tail = y.clone()
    tail[..., -max(1, y.shape[-1] // 8):] = 0
    yield "tail", tail
    yield "normalisation", y * y.shape[-1]
    if y.dim() > 1 and y.shape[-1] > 1 and y.shape[-2] > 1:
        turned = y.transpose(-1, -2)
        yield "transposed", turned.reshape(y.shape)
    if y.is_complex():
        yield "conjugate", torch.conj_physical(y)
        yield "swapped parts", torch.complex(y.imag.contiguous(), y.real.contiguous())
        yield "one part", torch.complex(y.real.contiguous(), torch.zeros_like(y.real))
        yield "turned", y * (0.9999995 + 0.001j)
        one = y.clone()
        flat = one.reshape(-1)
        flat[flat.numel() // 2] *= 1.01
        yield "one element", flat.reshape(y.shape)


class Verdicts(unittest.TestCase):
    def run_trial(self, trial: Trial) -> Tuple[List[Any], torch.Tensor, List[Optional[torch.Tensor]]]:
        """The tensors among the arguments, the result, its gradient and theirs."""
        def fresh(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                able = value.is_floating_point() or value.is_complex()
                return value.detach().clone().requires_grad_(able)
            return [fresh(item) for item in value] if isinstance(value, list) else value

        args = [fresh(arg) for arg in trial.args]
        kwargs = {key: fresh(value) for key, value in trial.kwargs.items()}
        y = trial.function(*args, **kwargs)
        leaves = [t for arg in (*args, *kwargs.values()) for t in (arg if isinstance(arg, list) else [arg])
                  if isinstance(t, torch.Tensor)]
        wanted = [t for t in leaves if t.requires_grad]
        g = torch.randn_like(y.detach())
        grads = torch.autograd.grad(y, wanted, g, allow_unused=True)
        return args, y.detach(), [g, *grads]

    def check(self, c: torch.dtype) -> None:
        counts: Counter = Counter()
        wrong: List[str] = []
        for trial in trials(c):
            args, y, (g, *grads) = self.run_trial(trial)
            plain = tuple(a.detach() if isinstance(a, torch.Tensor) else
                          [t.detach() for t in a] if isinstance(a, list) else a for a in args)
            try:
                right = plumb.judge(y, trial.function, plain, trial.kwargs, grad_outputs=g, got_grads=grads)
            except plumb.Error as error:
                wrong.append(f"{trial.name}: {error}")
                continue
            for part in right.parts:
                counts["right"] += 1
                counts[part.verdict] += part.verdict not in FINE
                if part.verdict not in FINE + ("cheaper arithmetic",):
                    wrong.append(f"{trial.name} {[tuple(t.shape) for t in plain if isinstance(t, torch.Tensor)]} "
                                 f"{part.name}: {part}")
            for fault, bad in faults(y):
                if torch.equal(bad, y) or fault in trial.hidden:
                    continue
                counts["faults"] += 1
                opinion = plumb.judge(bad, trial.function, plain, trial.kwargs)
                if opinion.verdict != "fault":
                    wrong.append(f"{trial.name} {fault}: {opinion}")
            for k, grad in enumerate(grads):
                bad = [1.001 * other if other is grad else other for other in grads]
                counts["faults"] += 1
                opinion = plumb.judge(y, trial.function, plain, trial.kwargs, grad_outputs=g, got_grads=bad)
                if opinion.verdict != "fault":
                    wrong.append(f"{trial.name} gradient {k}: {opinion}")
        print(f"\n{c}: {dict(counts)}", file=sys.stderr)
        # Some kernels divide by multiplying with a rounded reciprocal.
        self.assertLessEqual(counts["cheaper arithmetic"], 2)
        self.assertFalse(wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40]))

    def test_complex64(self) -> None:
        self.check(torch.complex64)

    def test_complex128(self) -> None:
        self.check(torch.complex128)


if __name__ == "__main__":
    unittest.main()
