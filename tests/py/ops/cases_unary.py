"""Functions of one element, activations and special functions."""

from typing import Iterator

import torch
import torch.nn.functional as F

from ops.harness import TORCH, Case, bools, case, fixed, ints, randn, seed, uniform

NAN, INF = float("nan"), float("inf")
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 3.0, -3.0, 20.0, -20.0, 100.0]

# name: the range of its argument
EVERYWHERE = ("exp2 expm1 sigmoid tanh sin cos atan sinh cosh asinh erf erfc exp abs neg square positive deg2rad "
              "rad2deg sinc i0 special.i0e special.i1 special.i1e special.ndtr special.log_ndtr special.expit "
              "special.erfcx absolute negative arctan arcsinh sgn sign ceil floor trunc fix round frac angle").split()
RANGES = {
    "log": (0.01, 9), "log2": (0.01, 9), "log10": (0.01, 9), "log1p": (-0.9, 9), "sqrt": (0.01, 9),
    "rsqrt": (0.01, 9), "reciprocal": (0.2, 5), "tan": (-1.5, 1.5), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9), "acosh": (1.1, 9), "arccosh": (1.1, 9), "atanh": (-0.9, 0.9),
    "arctanh": (-0.9, 0.9), "erfinv": (-0.95, 0.95), "lgamma": (0.1, 12), "digamma": (0.1, 12),
    "special.ndtri": (0.01, 0.99), "special.entr": (0.01, 3),
}
# Those that torch has no gradient for, and few digits of; test_unary_mpfr.c looks closer.
FLAT = {"special.bessel_j0": (-20, 20), "special.bessel_j1": (-20, 20), "special.bessel_y0": (0.1, 20),
        "special.bessel_y1": (0.1, 20), "special.modified_bessel_i0": (-9, 9), "special.modified_bessel_i1": (-9, 9),
        "special.modified_bessel_k0": (0.01, 20), "special.modified_bessel_k1": (0.01, 20),
        "special.scaled_modified_bessel_k0": (0.01, 50), "special.scaled_modified_bessel_k1": (0.01, 50),
        "special.spherical_bessel_j0": (-20, 20)}
KINKED = {"sgn", "sign", "ceil", "floor", "trunc", "fix", "round", "frac", "angle", "abs", "absolute"}
KEEP_INTEGERS = "abs neg square sign sgn ceil floor trunc round positive".split()


def plain() -> Iterator[Case]:
    for name in EVERYWHERE:
        yield case(f"Torch.{name}", randn(3, 5, scale=2), bfloat16=name not in KINKED, differences=name not in KINKED)
        yield case(f"Torch.{name}", randn(7, 3, scale=0.1).t())
        yield case(f"Torch.{name}", randn(0, 3))
        yield case(f"Torch.{name}", randn())
        if name not in ("angle",):
            yield case(f"Torch.{name}", fixed(EDGES), rtol=1e-10)
    for name, (low, high) in RANGES.items():
        # torch's slope of digamma has nine digits.
        rtol = 1e-9 if name == "digamma" else 1e-11
        yield case(f"Torch.{name}", uniform(low, high, 4, 6), rtol=rtol)
        yield case(f"Torch.{name}", uniform(low, high, 2, 3, 4).permute(2, 0, 1), rtol=rtol)
        yield case(f"Torch.{name}", fixed(EDGES), own_rtol=1e-3, rtol=1e-9)
    for name, (low, high) in FLAT.items():
        yield case(f"Torch.{name}", uniform(low, high, 40).detach(), rtol=1e-4, own_rtol=1e-3)
    for name in KEEP_INTEGERS:
        for dtype in (torch.int32, torch.int64, torch.uint8, torch.int8):
            yield case(f"Torch.{name}", ints(0, 9, 3, 4, dtype=dtype))
        yield case(f"Torch.{name}", ints(-9, 9, 3, 4))
    yield case("Torch.neg", fixed([0, 1, 255], torch.uint8))
    yield case("Torch.abs", fixed([-128, 127], torch.int8))
    yield case("Torch.square", bools(5))
    for name in "exp sigmoid sin erf lgamma sqrt angle deg2rad".split():
        yield case(f"Torch.{name}", ints(1, 9, 3, 4), rtol=1e-6)  # integers are float32 for torch
        yield case(f"Torch.{name}", bools(3, 4), rtol=1e-6)


def in_place() -> Iterator[Case]:
    for name in ("abs absolute exp exp2 expm1 sqrt rsqrt log1p sin cos tanh sigmoid neg negative square reciprocal "
                 "floor ceil round trunc fix frac sgn sign erf erfc sinc i0 lgamma digamma deg2rad rad2deg relu "
                 "arctan sinh cosh").split():
        yield case(f"Tensor.{name}_", uniform(0.1, 0.9, 3, 4), rtol=1e-9 if name == "digamma" else 1e-11)
    for name in "exp sigmoid relu tanh reciprocal".split():
        yield case(f"Tensor.{name}", uniform(0.1, 0.9, 3, 4))
        yield case(f"Aten.{name}", uniform(0.1, 0.9, 3, 4))


def others() -> Iterator[Case]:
    for decimals in (0, 1, 3, -1, -2):
        yield case("Torch.round", randn(4, 5, scale=300), decimals=decimals, differences=False)
    yield case("Torch.round", fixed([0.5, 1.5, 2.5, -0.5, -1.5]))
    yield case("Torch.frexp", randn(4, 5, scale=30))
    yield case("Torch.frexp", fixed([0.0, 1.0, -8.0, 0.75]))
    yield case("Torch.frexp", ints(0, 5, 3), refused=True)
    for eps in (None, 0.1):
        yield case("Torch.logit", uniform(0.02, 0.98, 4, 5), eps)
        yield case("Torch.logit", uniform(0.02, 0.98, 4, 5), eps=eps)
    yield case("Torch.logit", fixed([0.0, 1.0, 0.5, 0.25, 1e-6, -0.1, 1.2]))
    yield case("Torch.special.logit", uniform(0.02, 0.98, 5), 0.2)
    for n in (0, 1, 2, 5):
        yield case("Torch.polygamma", n, uniform(0.2, 6, 4, 5), rtol=1e-9, own_rtol=1e-3)
        yield case("Tensor.polygamma", uniform(0.2, 6, 4, 5), n, rtol=1e-9, own_rtol=1e-3)
    yield case("Torch.polygamma", 1, fixed([-0.5, -1.25, -3.75]), rtol=1e-9)
    yield case("Torch.polygamma", -1, randn(3), refused=True)
    yield case("Torch.digamma", fixed([-0.5, -1.25, -3.75, -2.0, 0.0, -0.0]), rtol=1e-9)
    yield case("Torch.lgamma", fixed([-0.5, -1.25, -3.75, -2.0, 1.0, 2.0, 1e-5, 3000.0]), rtol=1e-9)
    for p in (1, 2, 4):
        yield case("Torch.mvlgamma", uniform(2, 6, 4, 5), p, rtol=1e-9)
    yield case("Torch.mvlgamma", uniform(0, 1, 4), 5, refused=True)
    for name in ("igamma", "igammac", "special.gammainc", "special.gammaincc"):
        a, x = uniform(0.3, 9, 4, 5).detach(), uniform(0.1, 12, 4, 5)
        yield case(f"Torch.{name}", a, x, rtol=1e-9)
        yield case(f"Torch.{name}", uniform(150, 400, 9).detach(), uniform(150, 400, 9), rtol=1e-8, own_rtol=1e-3)
        yield case(f"Torch.{name}", fixed([0.0, 1.0, 0.0, 2.0, -1.0, INF]), fixed([1.0, 0.0, 0.0, INF, 1.0, 1.0]))
    yield case("Torch.special.zeta", uniform(1.5, 9, 4, 5).detach(), uniform(0.3, 9, 4, 5).detach(), rtol=1e-9)
    yield case("Torch.special.zeta", fixed([1e12, 1e12, 1e12]), fixed([2.5, 0.5, 1.0]))  # terms that are nothing
    yield case("Torch.special.xlog1py", uniform(0.1, 2, 4, 5), uniform(0.1, 2, 5))
    yield case("Torch.conj_physical", randn(3))
    yield case("Torch.real", randn(3))
    yield case("Torch.erfinv", fixed([0.0, 1.0, -1.0, 1.5, 1e-7, 0.999999, -0.3]), rtol=1e-9)


def activations() -> Iterator[Case]:
    # Away from kinks for the differences; at the kinks as well.
    kinks = fixed([0.0, -0.0, 3.0, -3.0, 6.0, 1.0, -1.0, 0.5, -0.5, 20.0, 25.0, -25.0], grad=True)
    calls = {
        "relu": [()], "relu6": [()], "elu": [(), (0.5,)], "selu": [()], "celu": [(), (0.7,), (2.0,)],
        "leaky_relu": [(), (0.2,)], "rrelu": [(), (0.1, 0.4)], "logsigmoid": [()], "gelu": [()],
        "hardshrink": [(), (0.3,)],
        "tanhshrink": [()], "softsign": [()], "softplus": [(), (2,), (0.5, 1.0)], "softshrink": [(), (0.2,)],
        "hardsigmoid": [()], "hardswish": [()], "silu": [()], "mish": [()], "hardtanh": [(), (-0.5, 0.8)],
        "threshold": [(0.1, 7.0)], "tanh": [()], "sigmoid": [()],
    }
    for name, arguments in calls.items():
        # torch takes 1/6 and 1/alpha in float32 here.
        rtol = 1e-8 if name in ("hardsigmoid", "celu") else 1e-11
        for given in arguments:
            yield case(f"Functional.{name}", randn(3, 5, scale=2), *given, bfloat16=True, rtol=rtol)
            yield case(f"Functional.{name}", randn(5, 3, scale=4).t(), *given, rtol=rtol)
            # The gradient of hardswish at 3 and -3 is another in each PyTorch.
            yield case(f"Functional.{name}", kinks, *given, differences=False, rtol=rtol,
                       backward=TORCH < (2, 0) or name != "hardswish")
        yield case(f"Functional.{name}", randn(0), *arguments[0])
        yield case(f"Functional.{name}", randn(), *arguments[0], rtol=rtol)
    yield case("Functional.gelu", randn(4, 5, scale=3), approximate="tanh")
    yield case("Functional.gelu", randn(4, 5, scale=3), approximate="none")
    yield case("Functional.gelu", randn(4), approximate="tan", refused=True)
    yield case("Functional.leaky_relu", randn(4), negative_slope=0.3, inplace=False)
    yield case("Functional.elu", randn(4), alpha=0.3, inplace=False)
    yield case("Functional.hardtanh", randn(4), min_val=-0.3, max_val=0.4)
    upper_wins = {"ref": lambda x, low, high: torch.clamp(x, low, high)}  # PyTorch 2 refuses such limits
    yield case("Functional.hardtanh", randn(4), 0.5, -0.5, **upper_wins)
    yield case("Functional.hardtanh", ints(-3, 3, 6), -1, 1, check_own=False)
    yield case("Functional.hardtanh", randn(6), 0.5, -0.5, **upper_wins)
    yield case("Functional.hardtanh", ints(-3, 4, 9), -1.5, 2.7)
    if TORCH < (2, 0):
        yield case("Functional.hardtanh", ints(-3, 4, 9), 0.5, -0.5)
    yield case("Functional.hardtanh", fixed([-3, -1, 0, 2]).long(), -1.6, 1.2, check_own=False)
    yield case("Functional.celu", randn(4), 0.0, refused=True)
    yield case("Functional.softshrink", randn(4), -1.0, refused=True)
    for name in "relu_ elu_ selu_ celu_ leaky_relu_ rrelu_ hardtanh_".split():
        yield case(f"Functional.{name}", randn(3, 4))
    yield case("Functional.threshold_", randn(3, 4), 0.2, -1.0)
    for name in "selu celu relu rrelu".split():
        yield case(f"Torch.{name}", randn(3, 4))
    yield case("Torch.threshold", randn(3, 4), 0.2, -1.0)
    yield case("Torch.relu", ints(-4, 4, 5))
    for name in ("elu hardswish hardsigmoid hardtanh silu mish gelu leaky_relu relu6 softplus softshrink "
                 "hardshrink").split():
        yield case(f"Aten.{name}", randn(3, 4), rtol=1e-8 if name == "hardsigmoid" else 1e-11)
    yield case("Aten.elu", randn(3, 4), 0.5, 1.2, 0.7)
    for dim in (-1, 0, 1):
        yield case("Functional.glu", randn(4, 6, 2), dim)
    yield case("Functional.glu", randn(3, 5), refused=True)
    yield case("Functional.prelu", randn(2, 3, 4), randn(3))
    yield case("Functional.prelu", randn(2, 3, 4), randn(1))
    yield case("Functional.prelu", randn(5), randn(1))
    yield case("Torch.prelu", randn(2, 3), randn(3))
    yield case("Tensor.prelu", randn(2, 3), randn(3))
    yield case("Functional.prelu", randn(2, 3), randn(4), refused=True)
    yield case("Torch._add_relu", randn(3, 4), randn(3, 4), ref=lambda a, b: F.relu(a + b))
    yield case("Torch._add_relu", randn(3, 4), randn(3, 4), alpha=2, ref=lambda a, b, alpha: F.relu(a + alpha * b))


def backwards() -> Iterator[Case]:
    """Backward operators that have names of their own."""
    g, x = randn(3, 4).detach(), randn(3, 4, scale=2).detach()
    for name in "silu mish hardswish hardsigmoid gelu".split():
        yield case(f"Aten.{name}_backward", g, x, rtol=1e-7)
    yield case("Aten.gelu_backward", g, x, approximate="tanh")
    yield case("Aten.sigmoid_backward", g, torch.sigmoid(x))
    yield case("Aten.tanh_backward", g, torch.tanh(x))
    yield case("Aten.threshold_backward", g, x, 0.3)
    yield case("Aten.hardtanh_backward", g, x, -0.5, 0.7)
    yield case("Aten.leaky_relu_backward", g, x, 0.2, False)
    yield case("Aten.softplus_backward", g, x, 2.0, 1.5)
    yield case("Aten.hardshrink_backward", g, x, 0.4)
    yield case("Aten.softshrink_backward", g, x, 0.4)
    yield case("Aten.elu_backward", g, 0.7, 1.1, 0.9, False, x)
    yield case("Aten.elu_backward", g, 0.7, 1.1, 0.9, True, torch.ops.aten.elu(x, 0.7, 1.1, 0.9))
    yield case("Aten.logit_backward", g, torch.sigmoid(x), None)
    yield case("Aten.logit_backward", g, torch.sigmoid(x), 0.1)
    yield case("Aten.glu_backward", g, randn(3, 8).detach(), 1)
    yield case("Aten.log_sigmoid_backward", g, x, fixed([]), ref=lambda g, x, b: g * torch.sigmoid(-x))
    yield case("Aten.log_sigmoid_forward", x, ref=lambda x: (F.logsigmoid(x), x.new_empty(0)))
    yield case("Aten.prelu_backward", g, x, randn(4).detach(), check_own=False,  # of PyTorch 1
               ref=lambda g, x, w: (torch.where(x > 0, g, g * w), torch.where(x > 0, 0 * g, g * x).sum(0)))
    for weight in (randn(4), randn(1), randn(1, 4)):  # of PyTorch 2, whose weights are broadcast
        yield case("Aten._prelu_kernel_backward", g, x, weight.detach(),
                   ref=lambda g, x, w: (torch.where(x > 0, g, g * w), torch.where(x > 0, 0 * g, g * x)))
    yield case("Aten.rrelu_with_noise", x, x, ref=lambda x, noise: F.rrelu(x))
    yield case("Aten.rrelu_with_noise_backward", g, x, x, 0.1, 0.3, False, False)
    yield case("Aten.silu_backward", g, randn(2).detach(), refused=True)
    yield case("Aten.silu_backward", g, ints(0, 3, 3, 4), refused=True)


def cases() -> Iterator[Case]:
    seed("unary")
    yield from plain()
    yield from in_place()
    yield from others()
    yield from activations()
    yield from backwards()
