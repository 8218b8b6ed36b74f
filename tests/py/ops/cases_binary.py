"""Functions of two and three operands, comparisons, bits."""

from typing import Iterator, List

import torch

from ops.harness import TORCH, Case, bools, case, fixed, ints, randn, seed, uniform

NAN, INF = float("nan"), float("inf")
LEFT = [NAN, 1.0, NAN, INF, -INF, INF, 0.0, -0.0, 0.0, 5.0, -5.0, 5.0, -5.0, 2.0]
RIGHT = [1.0, NAN, NAN, INF, INF, 1.0, 0.0, 0.0, -1.0, 3.0, 3.0, -3.0, -3.0, 2.0]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((3, 4), ()), ((), (3, 4)), ((2, 3, 4), (3, 1)),
          ((2, 1, 4), (1, 3, 1)), ((5, 1), (1, 6)), ((0, 3), (3,)), ((), ()), ((2, 3, 1, 5), (4, 1)), ((1,), (7,))]


def arithmetic() -> Iterator[Case]:
    for name in "add sub mul div".split():
        for a, b in SHAPES:
            yield case(f"Torch.{name}", randn(*a), uniform(0.5, 2, *b))
        yield case(f"Torch.{name}", randn(4, 3).t(), uniform(0.5, 2, 3, 4), bfloat16=True)
        yield case(f"Torch.{name}", fixed(LEFT), fixed(RIGHT))
        yield case(f"Torch.{name}", randn(3, 4), 2.5)
        yield case(f"Torch.{name}", randn(3, 4), 3)
        yield case(f"Torch.{name}", ints(-9, 9, 3, 4), 2)
        # Quotients of integers are float32 for torch.
        yield case(f"Torch.{name}", ints(-9, 9, 3, 4), 2.5, rtol=1e-6)
        yield case(f"Torch.{name}", ints(-9, 9, 3, 4, dtype=torch.int32), ints(1, 9, 4), rtol=1e-6)
        yield case(f"Torch.{name}", ints(0, 255, 3, 4, dtype=torch.uint8), ints(1, 99, 4, dtype=torch.uint8), rtol=1e-6)
        yield case(f"Torch.{name}", ints(0, 99, 3, dtype=torch.uint8), ints(-99, -1, 3, dtype=torch.int8), rtol=1e-6)
        yield case(f"Torch.{name}", randn(3, dtype=torch.float16), randn(3, dtype=torch.bfloat16), rtol=1e-2)
        yield case(f"Torch.{name}", randn(3, dtype=torch.float16), fixed(1.25), check_own=False)
        yield case(f"Torch.{name}", randn(3), ints(1, 5, 3))
        yield case(f"Torch.{name}", randn(3, 4), randn(3, 5), refused=True)
    x = randn(5)
    for name in "add sub mul div".split():
        yield case(f"Torch.{name}", x, x)
    for name in "add sub subtract".split():
        if name != "subtract":
            yield case(f"Torch.{name}", randn(3, 4), randn(4), alpha=2.5)
        yield case(f"Tensor.{name}", randn(3, 4), randn(4), alpha=-1)
        yield case(f"Torch.{name}", ints(0, 9, 3), ints(0, 9, 3), alpha=3)
    yield case("Torch.rsub", randn(3, 4), randn(4))
    yield case("Torch.rsub", randn(3, 4), 2, alpha=3)
    yield case("Torch.add", bools(4), bools(4))
    yield case("Torch.mul", bools(4), bools(4))
    yield case("Torch.sub", bools(4), bools(4), refused=True)
    for name in "multiply divide true_divide".split():
        yield case(f"Torch.{name}", randn(3, 4), uniform(0.5, 2, 4))
    for name in "__add__ __sub__ __mul__ __truediv__ __div__ __radd__ __rmul__ __rsub__".split():
        yield case(f"Tensor.{name}", randn(3, 4), uniform(0.5, 2, 4))
        yield case(f"Tensor.{name}", randn(3, 4), 3)
    yield case("Tensor.__rdiv__", uniform(0.5, 2, 3), 2.0)
    yield case("Tensor.__rdiv__", ints(1, 9, 3), 2, rtol=1e-6)
    for name in ("__iadd__ __isub__ __imul__ __idiv__ add_ sub_ mul_ div_ multiply_ divide_ subtract_ "
                 "true_divide_").split():
        if name != "subtract_":
            yield case(f"Tensor.{name}", randn(3, 4), uniform(0.5, 2, 4))
        yield case(f"Tensor.{name}", randn(3, dtype=torch.float16), randn(3), rtol=1e-2, own_rtol=1e-2)
    yield case("Tensor.add_", ints(0, 9, 3, dtype=torch.int32), ints(0, 9, 3))


def division() -> Iterator[Case]:
    a, b = uniform(-9, 9, 6, 7), uniform(0.5, 3, 7)
    for name in "fmod remainder floor_divide".split():
        flat = name == "floor_divide"  # torch refuses its gradient
        yield case(f"Torch.{name}", a.detach() if flat else a, b.detach() if flat else b)
        yield case(f"Torch.{name}", a.detach() if flat else a, -1.5)
        yield case(f"Torch.{name}", fixed(LEFT), fixed(RIGHT))
        yield case(f"Torch.{name}", ints(-20, 20, 30), ints(1, 5, 30))
        yield case(f"Torch.{name}", ints(-20, 20, 30), -3)
        yield case(f"Torch.{name}", ints(-20, 20, 30), ints(-5, 0, 30))
        yield case(f"Torch.{name}", ints(-20, 20, 30), 2.5)
        yield case(f"Torch.{name}", ints(-20, 20, 3), 0, refused=True)
        yield case(f"Tensor.{name}_", uniform(-9, 9, 6, 7).detach(), b.detach())
    for name in "fmod remainder".split():  # torch crashes
        yield case(f"Torch.{name}", fixed([-2 ** 63], torch.int64), -1, ref=lambda x, y: torch.zeros_like(x))
    for mode in (None, "trunc", "floor"):
        yield case("Torch.div", a, b, rounding_mode=mode, differences=mode is None)
        yield case("Torch.div", ints(-20, 20, 30), ints(1, 5, 30), rounding_mode=mode, rtol=1e-6)
        yield case("Torch.div", fixed(LEFT), fixed(RIGHT), rounding_mode=mode)
        yield case("Tensor.div", a, 1.5, rounding_mode=mode, differences=mode is None)
    yield case("Torch.div", a, b, rounding_mode="up", refused=True)
    yield case("Tensor.__floordiv__", ints(-20, 20, 30), 3)
    yield case("Tensor.__mod__", a, 1.75)
    yield case("Tensor.__rmod__", uniform(0.5, 2, 4).detach(), 3.3)
    yield case("Tensor.__imod__", uniform(0.5, 2, 4), 0.3)
    yield case("Torch.remainder", 7, ints(1, 5, 4))


def powers() -> Iterator[Case]:
    for exponent in (2, 3, 0.5, -1, -2, 0, 1, 2.5, -0.5, 1.0, 2.0):
        yield case("Torch.pow", uniform(0.2, 3, 3, 4), exponent)
        yield case("Tensor.__pow__", uniform(0.2, 3, 3, 4), exponent)
    yield case("Torch.pow", uniform(0.2, 3, 3, 4), randn(4))
    yield case("Torch.pow", randn(3, 4), 3)
    yield case("Torch.pow", 2, randn(3, 4))
    yield case("Torch.pow", 2.5, ints(0, 5, 4))
    yield case("Torch.pow", ints(-5, 5, 8), 3)
    yield case("Torch.pow", ints(-5, 5, 8), ints(0, 6, 8))
    yield case("Torch.pow", fixed([1, -1, 2, -1], torch.int64), fixed([-1, -2, -1, -3], torch.int64))
    yield case("Torch.pow", ints(1, 5, 4), -1, refused=True)
    yield case("Torch.pow", ints(1, 5, 4), 0.5, rtol=1e-6)
    yield case("Torch.pow", fixed([0.0, 0.0, -1.0, 2.0], grad=True), fixed([0.0, 2.0, 2.0, 0.0], grad=True),
               differences=False)
    yield case("Tensor.__rpow__", randn(3, 4), 2.5)
    yield case("Tensor.__rpow__", randn(3, 4), fixed([1.5, 2.0, 0.5, 3.0]))
    yield case("Tensor.__rpow__", ints(0, 5, 4), 2)
    yield case("Tensor.pow_", uniform(0.2, 3, 3, 4), 2.5)
    yield case("Tensor.__ipow__", uniform(0.2, 3, 3, 4), 2)
    yield case("Torch.float_power", uniform(0.2, 3, 3, 4), 2.5)
    yield case("Torch.float_power", ints(1, 5, 4), 2)
    yield case("Torch.float_power", 2, ints(1, 5, 4))


def functions() -> Iterator[Case]:
    for name in "maximum minimum fmax fmin atan2 arctan2 hypot logaddexp logaddexp2 copysign xlogy".split():
        for a, b in SHAPES:
            yield case(f"Torch.{name}", uniform(0.5, 3, *a), uniform(0.5, 3, *b))
        if name not in ("xlogy",):
            yield case(f"Torch.{name}", randn(9), randn(9), rtol=1e-10)
        yield case(f"Torch.{name}", fixed(LEFT), fixed(RIGHT))
    for name in "maximum minimum fmax fmin".split():
        # PyTorch 2.14 shares the gradient of fmax and fmin between equals, and gives a number none beside NaN.
        yield case(f"Torch.{name}", fixed([1.0, 2.0, NAN], grad=True), fixed([1.0, 3.0, 1.0], grad=True),
                   differences=False, backward=TORCH < (2, 7) or name in ("maximum", "minimum"))
        yield case(f"Torch.{name}", ints(-9, 9, 9), ints(-9, 9, 9))
        yield case(f"Torch.{name}", bools(9), bools(9))
        yield case(f"Torch.{name}", ints(-9, 9, 9), randn(9).detach())
    yield case("Torch.atan2", fixed([0.0, 0.0], grad=True), fixed([0.0, -1.0], grad=True), differences=False,
               backward=TORCH < (2, 7))  # NaN before, 0 since
    yield case("Torch.logaddexp", fixed([500.0, -500.0]), fixed([499.0, -501.0]))
    yield case("Torch.copysign", randn(9), -2.0)
    yield case("Torch.copysign", ints(-5, 5, 5), ints(-5, 5, 5))
    yield case("Torch.xlogy", 2.0, uniform(0.5, 2, 4))
    yield case("Torch.xlogy", uniform(0.5, 2, 4), 3)
    yield case("Torch.heaviside", randn(9).detach(), randn(9).detach())
    yield case("Torch.heaviside", fixed([0.0, -0.0, NAN, 1.0]), fixed([7.0, 8.0, 9.0, 10.0]))
    yield case("Torch.heaviside", ints(-2, 2, 9), ints(-2, 9, 9))
    for dtype in (torch.float32, torch.float64):
        x = fixed([0.0, 1.0, 1.0, -1.0, 3.5, INF, NAN, 2.0, 1e-40], dtype)
        yield case("Torch.nextafter", x, fixed([1.0, 2.0, 0.0, -5.0, 3.5, 0.0, 1.0, NAN, 0.0], dtype),
                   values=dtype == torch.float64)
    yield case("Torch.ldexp", randn(5), ints(-3, 3, 5))
    yield case("Torch.ldexp", ints(1, 5, 5), ints(-3, 3, 5))
    yield case("Torch.gcd", ints(-30, 30, 20), ints(-30, 30, 20))
    yield case("Torch.lcm", ints(-30, 30, 20), ints(-30, 30, 20))
    yield case("Torch.gcd", ints(0, 30, 2, 10, dtype=torch.int32), ints(0, 30, 10, dtype=torch.int32))
    yield case("Torch.gcd", randn(3), randn(3), refused=True)
    for name in "atan2_ hypot_ copysign_ xlogy_".split():
        yield case(f"Tensor.{name}", uniform(0.5, 3, 4), uniform(0.5, 3, 4))


def three() -> Iterator[Case]:
    for name in "addcmul addcdiv".split():
        yield case(f"Torch.{name}", randn(3, 4), randn(3, 4), uniform(0.5, 2, 3, 4))
        yield case(f"Torch.{name}", randn(3, 4), randn(3, 1), uniform(0.5, 2, 4), value=0.3)
        yield case(f"Tensor.{name}_", randn(3, 4), randn(3, 4), uniform(0.5, 2, 3, 4), value=-2)
    yield case("Torch.addcmul", ints(0, 9, 4), ints(0, 9, 4), ints(0, 9, 4), value=2)
    yield case("Torch.addcmul", ints(0, 9, 4), ints(0, 9, 4), ints(0, 9, 4), value=-1.9)
    yield case("Torch.addcmul", fixed([1, 2, 3]).long(), fixed([4, 5, 6]).long(), fixed([7, 8, 9]).long(), value=2.7)
    for weight in (0.0, 0.3, 0.5, 0.8, 1.0, -2.0, 3.0):
        yield case("Torch.lerp", randn(3, 4), randn(3, 4), weight)
    yield case("Torch.lerp", randn(3, 4), randn(3, 4), uniform(0, 1, 3, 4))
    yield case("Torch.lerp", randn(3, 4), randn(4), uniform(0, 1, 3, 1))
    yield case("Tensor.lerp_", randn(3, 4), randn(3, 4), 0.25)
    for name in "clamp clip".split():
        yield case(f"Torch.{name}", randn(4, 5), -0.5, 0.7, bfloat16=True)
        yield case(f"Torch.{name}", randn(4, 5), min=-0.5)
        yield case(f"Torch.{name}", randn(4, 5), max=0.5)
        yield case(f"Torch.{name}", randn(4, 5), 1.0, -1.0)
        yield case(f"Torch.{name}", ints(-9, 9, 9), -2, 3)
        yield case(f"Torch.{name}", ints(-9, 9, 9), -2.5, 3)
        yield case(f"Torch.{name}", randn(4, 5), randn(5), randn(4, 1))
        yield case(f"Torch.{name}", randn(4, 5), max=randn(5))
        yield case(f"Torch.{name}", randn(4, 5), refused=True)
        yield case(f"Tensor.{name}_", randn(4, 5), -0.5, 0.7)
    yield case("Torch.clamp", fixed([-1.0, 0.0, 1.0, NAN, INF, -INF], grad=True), -1.0, 1.0, differences=False,
               backward=TORCH < (2, 7))  # at a limit 1 before, 0 since
    yield case("Torch.clamp", fixed([1.0, 2.0]), NAN, 3.0)
    yield case("Torch.clamp_min", randn(4, 5), 0.1)
    yield case("Torch.clamp_max", randn(4, 5), 0.1)
    yield case("Torch.clamp_min", randn(4, 5), randn(5))
    yield case("Tensor.clamp_max_", randn(4, 5), randn(5))
    for a, b in SHAPES:
        yield case("Torch.where", bools(3, 4) if a == b == (3, 4) else bools(1), randn(*a), randn(*b))
    yield case("Torch.where", bools(2, 1), randn(3), randn(4, 1, 1))
    yield case("Torch.where", bools(3), randn(3), 2.5)
    yield case("Torch.where", bools(3), 1, 2.5)
    yield case("Torch.where", bools(3), randn(3), ints(0, 5, 3))
    yield case("Torch.where", bools(3), ints(0, 5, 3), ints(0, 5, 3, dtype=torch.int32))
    yield case("Torch.where", bools(3, 4))
    yield case("Torch.where", fixed(True, torch.bool))
    yield case("Torch.where", ints(0, 2, 2, 3, 4))
    yield case("Tensor.where", randn(3, 4), bools(3, 4), randn(4))
    yield case("Torch.nan_to_num", fixed([NAN, INF, -INF, 1.0], grad=True), 0.5, 2.0, -2.0, differences=False)
    yield case("Torch.nan_to_num", fixed([NAN, INF, -INF, 1.0], torch.float64))
    yield case("Torch.nan_to_num", fixed([NAN, INF, -INF, 1.0]), check_own=True, values=False)
    yield case("Torch.nan_to_num", ints(0, 5, 3))


def questions() -> Iterator[Case]:
    for name in "eq ne lt le gt ge not_equal less less_equal greater greater_equal".split():
        yield case(f"Torch.{name}", fixed(LEFT), fixed(RIGHT))
        yield case(f"Torch.{name}", randn(3, 4).detach(), randn(4).detach())
        yield case(f"Torch.{name}", ints(0, 3, 3, 4), ints(0, 3, 3, 1, dtype=torch.int32))
        yield case(f"Torch.{name}", ints(0, 3, 9), 1)
        yield case(f"Torch.{name}", ints(0, 3, 9), 1.5)
        yield case(f"Torch.{name}", ints(0, 3, 9), uniform(0, 3, 9).detach())
        yield case(f"Torch.{name}", bools(9), True)
        yield case(f"Tensor.{name}_", ints(0, 3, 9).float(), 1.0)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            tenths = (torch.arange(9) / 10).to(dtype)
            yield case(f"Torch.{name}", tenths, 0.3, ref=lambda x, y, f=getattr(torch, name), t=dtype: f(x.to(t), y))
            yield case(f"Torch.{name}", tenths, fixed(0.3),
                       ref=lambda x, y, f=getattr(torch, name), t=dtype: f(x.to(t), y.to(t)))
    for name in "__eq__ __ne__ __lt__ __le__ __gt__ __ge__".split():
        yield case(f"Tensor.{name}", ints(0, 3, 9), 1)
    for name in "isnan isinf isfinite isposinf isneginf signbit isreal logical_not".split():
        yield case(f"Torch.{name}", fixed(LEFT))
        yield case(f"Torch.{name}", ints(-2, 2, 9))
        yield case(f"Torch.{name}", bools(4, 3).t())
    for name in "logical_and logical_or logical_xor".split():
        yield case(f"Torch.{name}", fixed(LEFT), fixed(RIGHT))
        yield case(f"Torch.{name}", ints(0, 2, 3, 4), bools(4))
        yield case(f"Tensor.{name}_", ints(0, 2, 3, 4), bools(4))
    a = randn(6).detach()
    yield case("Torch.isclose", a, a * (1 + 1e-6))
    yield case("Torch.isclose", a, a + 1e-3)
    yield case("Torch.isclose", fixed(LEFT), fixed(RIGHT), equal_nan=True)
    yield case("Torch.isclose", ints(0, 3, 9), ints(0, 3, 9))
    yield case("Torch.allclose", a, a)
    yield case("Torch.allclose", a, a + 1)
    yield case("Torch.equal", a, a.clone())
    yield case("Torch.equal", a, a[:3])
    yield case("Torch.equal", ints(0, 3, 3), ints(5, 9, 3))


def bit_operators() -> Iterator[Case]:
    for name in "and or xor".split():
        for dtype in (torch.int32, torch.int64, torch.uint8, torch.int8):
            yield case(f"Torch.bitwise_{name}", ints(0, 100, 3, 4, dtype=dtype), ints(0, 100, 4, dtype=dtype))
        yield case(f"Torch.bitwise_{name}", ints(-99, 99, 3, 4), 12)
        yield case(f"Torch.bitwise_{name}", bools(3, 4), bools(4))
        yield case(f"Tensor.__{name}__", ints(-99, 99, 9), 6)
        yield case(f"Tensor.__i{name}__", ints(-99, 99, 9), 6)
        yield case(f"Tensor.bitwise_{name}_", ints(-99, 99, 9), ints(-99, 99, 9))
        yield case(f"Torch.bitwise_{name}", randn(3), randn(3), refused=True)
    for name in "left right".split():
        yield case(f"Torch.bitwise_{name}_shift", ints(-99, 99, 9), ints(0, 5, 9))
        yield case(f"Torch.bitwise_{name}_shift", ints(0, 99, 9, dtype=torch.uint8), 2)
        yield case(f"Tensor.__{name[0]}shift__", ints(-99, 99, 9), 3)
        yield case(f"Tensor.__i{name[0]}shift__", ints(-99, 99, 9), 3)
    yield case("Tensor.__ror__", ints(-99, 99, 9), 3)
    yield case("Tensor.__rxor__", ints(-99, 99, 9), 3)
    for dtype in (torch.int32, torch.uint8, torch.int8, torch.int64):
        yield case("Torch.bitwise_not", ints(0, 100, 5, dtype=dtype))
    yield case("Torch.bitwise_not", bools(5))
    yield case("Tensor.bitwise_not_", ints(0, 100, 5))
    yield case("Torch.bitwise_not", randn(3), refused=True)


def lists() -> Iterator[Case]:
    """Lists of tensors, element by element. torch has gradients for them since 2.0."""
    def some(grad: bool = False) -> List[torch.Tensor]:
        made = [uniform(0.5, 2, 3), uniform(0.5, 2, 2, 2), uniform(0.5, 2)]
        return made if grad else [t.detach() for t in made]

    for name in "abs neg exp log sqrt tanh sigmoid reciprocal".split():
        yield case(f"Torch._foreach_{name}", some())
        yield case(f"Torch._foreach_{name}", some(True), grad_output=1,
                   ref=lambda xs, f=getattr(torch, name): [f(x) for x in xs])
    yield case("Torch._foreach_sign", some(), ref=lambda xs: [torch.sign(x) for x in xs])
    yield case("Torch._foreach_mul", some(True), some(True), grad_output=2,
               ref=lambda xs, ys: [x * y for x, y in zip(xs, ys)])
    for name in "add sub mul div maximum minimum".split():
        yield case(f"Torch._foreach_{name}", some(), some())
        if name not in ("maximum", "minimum"):
            yield case(f"Torch._foreach_{name}", some(), 2.5)
            yield case(f"Torch._foreach_{name}", some(), [1.5, 2.5, 3.5])
    yield case("Torch._foreach_add", some(), some(), alpha=3)
    yield case("Torch._foreach_add", some(), some()[:2], refused=True)
    yield case("Torch._foreach_pow", some(True), 2.0, ref=lambda xs, p: [x ** p for x in xs])
    for name in "addcmul addcdiv".split():
        yield case(f"Torch._foreach_{name}", some(), some(), some(), 0.5)
        yield case(f"Torch._foreach_{name}", some(), some(), some(), [0.5, 1.5, 2.5])
    yield case("Torch._foreach_lerp_", some(True), some(True), 0.25,
               ref=lambda xs, ys, w: [torch.lerp(x, y, w) for x, y in zip(xs, ys)])
    yield case("Torch._foreach_copy_", some(True), some(True), ref=lambda xs, ys: [y * 1 for y in ys])
    small = [uniform(-0.9, 0.9, 3), uniform(-0.9, 0.9, 2, 2)]
    for name in "acos asin atan cosh erf erfc expm1 lgamma log10 log1p log2 sin cos sinh tan rsqrt".split():
        yield case(f"Torch._foreach_{name}", small if name in ("acos", "asin") else some(True), grad_output=1,
                   ref=lambda xs, f=getattr(torch, name): [f(x) for x in xs])
    for name in "ceil floor frac round trunc".split():
        yield case(f"Torch._foreach_{name}_", [5 * x.detach() for x in small],
                   ref=lambda xs, f=getattr(torch, name): [f(x) for x in xs])
    for name, function in (("clamp_min", torch.maximum), ("clamp_max", torch.minimum)):
        yield case(f"Torch._foreach_{name}", some(True), 1.2, grad_output=1, ref=lambda xs, m, f=function: [
            f(x, torch.tensor(m, dtype=x.dtype)) for x in xs])
        yield case(f"Torch._foreach_{name}_", some(), some(), ref=lambda xs, ys, f=function: list(map(f, xs, ys)))
    yield case("Torch._foreach_max", some(True), grad_output=1, ref=lambda xs: [x.max() for x in xs])
    yield case("Torch._foreach_clone", some(True), grad_output=1, ref=lambda xs: [x.clone() for x in xs])
    yield case("Torch._foreach_mm", [randn(2, 3), randn(4, 2)], [randn(3, 5), randn(2, 2)], grad_output=1,
               ref=lambda xs, ys: [x @ y for x, y in zip(xs, ys)])
    for order in (2, 1, 3):
        yield case("Torch._foreach_powsum", small, order, grad_output=1,
                   ref=lambda xs, p: [(x.abs() ** p).sum() for x in xs])
    yield case("Torch._foreach_pow", 2.5, some(True), grad_output=2, ref=lambda b, xs: [b ** x for x in xs])


def reversed_operands() -> Iterator[Case]:
    yield case("Tensor.__rfloordiv__", ints(1, 9, 3, 4), 7)
    yield case("Tensor.__rfloordiv__", uniform(0.5, 2, 5), 3.25, backward=False)
    yield case("Tensor.__rlshift__", ints(0, 9, 6), 3)
    yield case("Tensor.__rrshift__", ints(0, 9, 6), 1000)


def cases() -> Iterator[Case]:
    seed("binary")
    yield from arithmetic()
    yield from division()
    yield from powers()
    yield from functions()
    yield from three()
    yield from questions()
    yield from bit_operators()
    yield from lists()
    yield from reversed_operands()
