"""Patterns of faults: each is planted into several operators, types and shapes, and must be named; right
results have none. Prints how many were named."""

import os
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_case  # noqa: E402,F401  (puts the package under test into the path)

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import plumb  # noqa: E402

Tensor = torch.Tensor
F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16


def normal(*shape: int, seed: int = 1, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale + shift


class Call(NamedTuple):
    """A call in a type, and its right result."""
    name: str
    run: Callable[..., Tensor]
    inputs: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    dtype: torch.dtype

    def at(self, dtype: torch.dtype, *inputs: Any, **kwargs: Any) -> Any:
        """PyTorch's result for (other) arguments, computed in that type."""
        used = [value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
                for value in inputs or self.inputs]
        return self.run(*used, **{**self.kwargs, **kwargs})

    def right(self, *inputs: Any, **kwargs: Any) -> Tensor:
        """In float32, or float64, and rounded once."""
        return self.at(F64 if self.dtype == F64 else F32, *inputs, **kwargs).to(self.dtype)

    def wide(self) -> Tensor:
        return self.at(F64)

    def judge(self, got: Tensor) -> Any:
        return plumb.judge(got, self.name, self.inputs, self.kwargs)


def call(name: str, run: Callable[..., Tensor], dtype: torch.dtype, *inputs: Any, **kwargs: Any) -> Call:
    stored = tuple(value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
                   for value in inputs)
    return Call(name, run, stored, kwargs, dtype)


# -- Calls -----------------------------------------------------------------------------------------


def product(dtype: torch.dtype, m: int = 64, k: int = 96, n: int = 80) -> Call:
    return call("mm", torch.mm, dtype, normal(m, k), normal(k, n, seed=2))


def batched(dtype: torch.dtype) -> Call:
    return call("bmm", torch.bmm, dtype, normal(3, 40, 24), normal(3, 24, 64, seed=2))


def linear(dtype: torch.dtype) -> Call:
    return call("linear", F.linear, dtype, normal(48, 64), normal(40, 64, seed=2, scale=0.2),
                normal(40, seed=3))


def convolution(dtype: torch.dtype) -> Call:
    return call("conv2d", F.conv2d, dtype, normal(2, 8, 16, 16), normal(12, 8, 3, 3, seed=2, scale=0.2),
                normal(12, seed=3), padding=1)


def softmax(dtype: torch.dtype) -> Call:
    return call("softmax", F.softmax, dtype, normal(32, 48, scale=2), dim=-1)


def layer_norm(dtype: torch.dtype, scale: float = 1.0) -> Call:
    return call("layer_norm", F.layer_norm, dtype, normal(64, 128, scale=scale), [128],
                normal(128, seed=2, scale=0.2, shift=1), normal(128, seed=3))


def group_norm(dtype: torch.dtype, scale: float = 1.0) -> Call:
    return call("group_norm", F.group_norm, dtype, normal(4, 8, 64, scale=scale), 4,
                normal(8, seed=2, scale=0.2, shift=1), normal(8, seed=3))


def batch_norm(dtype: torch.dtype, scale: float = 1.0) -> Call:
    def run(x: Tensor, training: bool = True, eps: float = 1e-5) -> Tensor:
        return F.batch_norm(x, None, None, training=training, eps=eps)
    return Call("batch_norm", run, (normal(64, 16, 8, scale=scale).to(dtype),),
                {"training": True}, dtype)


def gelu(dtype: torch.dtype, **kwargs: Any) -> Call:
    return call("gelu", F.gelu, dtype, normal(48, 64), **kwargs)


def exp(dtype: torch.dtype) -> Call:
    return call("exp", torch.exp, dtype, normal(4, 24, 48))


def images(dtype: torch.dtype) -> Call:
    return call("relu", torch.relu, dtype, normal(2, 3, 64, 64, shift=3))


# -- Patterns --------------------------------------------------------------------------------------

Plant = Tuple[Call, Tensor, str]  # the call, its wrong result, what the pattern must say


def changed(right: Tensor, index: Any, value: Any) -> Tensor:
    out = right.clone()
    out[index] = value(out[index].double()).to(right.dtype) if callable(value) else value
    return out


def each(calls: Sequence[Call], index: Any, value: Any, says: str) -> Iterator[Plant]:
    for one in calls:
        yield one, changed(one.right(), index, value), says


ALL = Ellipsis


def scaled() -> Iterator[Plant]:
    for one in (product(F32), softmax(F16), exp(F64), convolution(F32)):
        yield one, (one.wide() * 1.003).to(one.dtype), "scaled by 1.003"
    for one in (gelu(BF16), product(BF16)):
        yield one, (one.wide() * 1.01).to(one.dtype), "scaled by 1.0"


def shifted() -> Iterator[Plant]:
    for one in (product(F32), layer_norm(F64), exp(F16), gelu(BF16)):
        yield one, (one.wide() + 0.25).to(one.dtype), "off by 0.2"


def signs() -> Iterator[Plant]:
    yield from each((product(F32), linear(BF16), layer_norm(F16)), (slice(8, 16), slice(0, 32)),
                    lambda x: -x, "are of the other sign")
    for one in (gelu(F32), product(F64)):
        yield one, one.right().abs(), "should be negative"


def zeros() -> Iterator[Plant]:
    yield from each((product(F32), softmax(BF16), linear(F16)), 5, 0, "in row 5 are zero")
    yield from each((product(F64), softmax(F32), linear(BF16)), (ALL, 7), 0, "in column 7 are zero")
    yield from each((product(F32), layer_norm(BF16), softmax(F64)), (slice(3, 9), slice(5, 11)), 0,
                    "rows 3 to 8, columns 5 to 10 are zero")
    yield from each((product(F32), layer_norm(BF16), softmax(F64)), (ALL, slice(1, None, 4)), 0,
                    "every 4th column from 1 are zero")


def tiles() -> Iterator[Plant]:
    yield from each((product(F32), linear(BF16), softmax(F16)), (slice(16, 32), slice(8, 16)), 0,
                    "in rows 16 to 31, columns 8 to 15 are zero (a tile of 16 x 8)")
    yield from each((product(F64, 256, 24, 512), product(BF16, 256, 24, 512)),
                    (slice(128, 256), slice(256, 512)), lambda x: x * 1.5,
                    "in rows 128 to 255, columns 256 to 511 are scaled by 1.5 (a tile of 128 x 256)")
    yield from each((images(F32), images(BF16), images(F16)), (1, 2, slice(32, 64), slice(0, 8)), 0,
                    "in [1, 2, 32:64, 0:8] are zero (a tile of 32 x 8)")
    yield from each((batched(F32), batched(F16)), (ALL, slice(8, 16), slice(32, 48)), 0,
                    "in [:, 8:16, 32:48] are zero (a tile of 8 x 16)")


def tails() -> Iterator[Plant]:
    yield from each((product(F32), product(BF16), product(F64)), (ALL, slice(64, None)), 0,
                    "in columns 64 to 79 are zero (behind the last full tile of 64)")
    yield from each((linear(F32), linear(F16)), (slice(32, None),), lambda x: x * 2,
                    "in rows 32 to 47 are scaled by 2 (behind the last full tile of 32)")


def moved() -> Iterator[Plant]:
    for one in (product(F32), softmax(BF16), batched(F16)):
        right = one.right()
        yield one, right.roll(1, 0), "rolled by 1 along axis 0"
        yield one, right.roll(-2, -1), "rolled by -2 along the last dimension"
        yield one, right.flip(-1), "reversed along the last dimension"
        yield one, right.flip(0), "reversed along axis 0"
        yield one, right.transpose(-1, -2).reshape(right.shape), "transposed: the last two"
        order = torch.randperm(right.shape[-2], generator=torch.Generator().manual_seed(4))
        yield one, right.index_select(right.dim() - 2, order), f"permuted along axis {right.dim() - 2}"
        half = right.shape[-1] // 2
        yield one, right.roll(half, -1), "the two halves of the last dimension are exchanged"
        yield one, right[..., torch.arange(right.shape[-1]) ^ 1], "neighbours are exchanged"
        yield one, changed(right, (ALL, 3, slice(None)), right[..., 2, :]), "of other places"
    for one in (images(F32), images(F16), exp(F32)):
        right = one.right()
        yield one, right.roll(5, 1) if right.dim() == 3 else right.roll(1, 1), "along axis 1"
        yield one, right.transpose(0, 1).reshape(right.shape), "axes 0 and 1 are exchanged"
        axis = right.dim() - 2
        yield one, right.roll(right.shape[axis] // 2, axis), f"the two halves of axis {axis} are exchanged"


def others() -> Iterator[Plant]:
    for dtype in (F32, BF16):
        yield (one := gelu(dtype)), one.inputs[0], "equal to the argument input"
        yield (one := layer_norm(dtype)), one.inputs[0], "equal to the argument input"
        one = call("add", torch.add, dtype, normal(16, 24), normal(16, 24, seed=2))
        yield one, one.inputs[1], "equal to the argument other"


def rounded() -> Iterator[Plant]:
    rows = (slice(16, 32),)
    for one, narrow in ((product(F32), BF16), (layer_norm(F32), F16), (product(F64), F32),
                        (softmax(F32), BF16)):
        yield one, changed(one.right(), rows, lambda x: x.to(narrow).double()), \
            f"are rounded to {str(narrow).split('.')[1]}"


def truncated(x: Tensor) -> Tensor:
    """Toward zero, to bfloat16."""
    return (x.float().view(torch.int32) & ~0xFFFF).view(F32)


def cut() -> Iterator[Plant]:
    for one in (product(F32), layer_norm(F32), linear(F32)):
        yield one, changed(one.right(), (slice(16, 32),), lambda x: truncated(x).double()), \
            "are truncated to bfloat16"


def flushed() -> Iterator[Plant]:
    for one in (product(F32), layer_norm(BF16), gelu(F64)):
        right = one.right()
        yield one, torch.where(right.abs() < 0.1, torch.zeros_like(right), right), "are flushed"


def saturated() -> Iterator[Plant]:
    for one, limit, says in ((product(F32), 10, "cut off at -10 and 10"), (exp(BF16), 2, "cut off at 2"),
                             (layer_norm(F64), 1.5, "cut off at -1.5 and 1.5")):
        yield one, one.right().clamp(-limit, limit), says
    for dtype in (F32, F64, BF16):
        one = call("mul", torch.mul, dtype, normal(32, 32, scale=300), normal(32, 32, seed=2))
        yield one, one.right().clamp(-448, 448), "the largest number of float8_e4m3fn"


def missing_terms() -> Iterator[Plant]:
    def short(x: Tensor, n: int, axis: int = -1) -> Tensor:
        keep = torch.ones(x.shape[axis], dtype=x.dtype)
        keep[-n:] = 0
        return x * (keep if axis == -1 else keep[:, None, None])

    for one, n in ((product(F32), 1), (product(BF16), 32), (batched(F16), 5), (linear(F32), 11),
                   (product(F64), 2)):
        yield one, one.right(short(one.inputs[0], n), *one.inputs[1:]), f"as without the last {n} of"
    one = convolution(F32)
    yield one, one.right(short(one.inputs[0], 2, 1), *one.inputs[1:]), "as without the last 2 of 8 terms"
    for one in (product(F32), product(BF16), product(F64), linear(F32)):
        x = one.inputs[0].clone()
        x[:, 10] = x[:, 33] = 0  # not at the end: only their rank tells
        yield one, one.right(x, *one.inputs[1:]), "of the error is a matrix of rank 2"
    for dtype in (F32, F64):
        one = layer_norm(dtype)
        x, shape, w, b = (value.to(dtype) if isinstance(value, Tensor) else value for value in one.inputs)
        part = x[:, :-16]
        var = ((part - part.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True)
        got = (x - part.mean(-1, keepdim=True)) * torch.rsqrt(var + 1e-5) * w + b
        yield one, got.to(dtype), "as if the sums left out the last 16 of 128"
        one = call("scaled_dot_product_attention", _attention, dtype, normal(2, 16, 8),
                   normal(2, 24, 8, seed=2), normal(2, 24, 8, seed=3))
        q, k, v = one.inputs
        yield one, one.right(q, k[:, :-1], v[:, :-1]), "as without the last 1 of 24 keys"


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def axes() -> Iterator[Plant]:
    for one in (softmax(F32), softmax(BF16), call("log_softmax", F.log_softmax, F16, normal(24, 32), dim=1),
                call("cumsum", torch.cumsum, F64, normal(24, 32), dim=1),
                call("mean", torch.mean, F32, normal(24, 24), dim=1)):
        yield one, one.right(dim=0), "over the wrong axis, 0 instead of 1"


def constants() -> Iterator[Plant]:
    for one, eps in ((layer_norm(F32, 0.05), 1e-6), (layer_norm(BF16, 0.05), 1e-3),
                     (group_norm(F32, 0.05), 1e-4), (layer_norm(F64, 0.05), 0.0),
                     (batch_norm(F32, 0.05), 1e-3)):
        yield one, one.right(eps=eps), f"as if eps were {eps:g}"
    for one, now in ((gelu(F32), "tanh"), (gelu(F64), "tanh"), (gelu(F32, approximate="tanh"), "none")):
        yield one, one.right(approximate=now), f"as if approximate were '{now}'"
    for dtype in (F32, F64, BF16):
        one = call("var", torch.var, dtype, normal(64, 24), dim=-1)
        yield one, one.right(unbiased=False), "as if unbiased were False"
    for one, n in ((layer_norm(F32), 128), (layer_norm(BF16), 128), (group_norm(F32), 128)):
        bias = one.inputs[3].float()
        bias = bias[:, None] if one.name == "group_norm" else bias
        bare = one.at(F32, *one.inputs[:3], None)
        yield one, (bare * ((n - 1) / n) ** 0.5 + bias).to(one.dtype), "as with an unbiased variance"
    for dtype in (F32, F64):
        one = call("leaky_relu", F.leaky_relu, dtype, normal(32, 48))
        yield one, one.right(negative_slope=0.2), "as if negative_slope were 0.2 (it is 0.01)"
        one = call("scaled_dot_product_attention", _attention, dtype, normal(2, 16, 8),
                   normal(2, 24, 8, seed=2), normal(2, 24, 8, seed=3))
        yield one, one.right(one.inputs[0] * 1.02, *one.inputs[1:]), "as if query were scaled by 1.02"


def positions() -> Iterator[Plant]:
    for one in (convolution(F32), convolution(BF16)):
        yield one, one.right(one.inputs[0].roll(1, -1), *one.inputs[1:]), "off by one"
    for dtype in (F32, BF16):
        one = call("cumsum", torch.cumsum, dtype, normal(24, 32), dim=1)
        right = one.right()
        yield one, torch.cat([torch.zeros_like(right[:, :1]), right[:, :-1]], 1), "off by one"
        one = call("avg_pool2d", F.avg_pool2d, dtype, normal(2, 3, 16, 16), 2)
        yield one, one.right(one.inputs[0].roll(1, -1), 2), "off by one"
        index = torch.arange(20) * 3
        one = call("torch.nn.functional.embedding", F.embedding, dtype, index, normal(64, 16))
        yield one, one.right(index + 1, one.inputs[1]), "off by one: as if input were larger by 1"
        one = call("triu", torch.triu, dtype, normal(24, 24), 0)
        yield one, one.right(one.inputs[0], 1), "as if diagonal were 1 (it is 0)"


def no_bias() -> Iterator[Plant]:
    for one in (linear(F32), linear(BF16), linear(F64), convolution(F32), convolution(F16)):
        yield one, one.right(*one.inputs[:2], None), "as without bias"
    for one in (layer_norm(F32), layer_norm(BF16)):
        yield one, one.right(*one.inputs[:3], None), "as without bias"


def overflow() -> Iterator[Plant]:
    for dtype, run in ((F32, torch.mul), (F64, torch.mul), (BF16, torch.mul)):
        one = call("mul", run, dtype, normal(32, 32, scale=6e4), normal(32, 32, seed=2))
        got = one.right()
        yield one, torch.where(got.abs() > 65504, got / 0, got), "beyond 65504, the largest number of float16"
    for dtype in (torch.int64, torch.int32):
        x, y = (torch.randint(-3000, 3000, (24, 32), generator=torch.Generator().manual_seed(seed),
                              dtype=dtype) for seed in (1, 2))
        one = Call("mul", torch.mul, (x, y), {}, dtype)
        yield one, (x * y).to(torch.int16).to(dtype), "wrapped around in 16 bits"
        yield one, (x * y).clamp(-32768, 32767), "saturated: cut off at the end of 16 bits"
        yield one, (x * y).to(torch.uint8).to(dtype), "wrapped around in unsigned 8 bits"


def masked() -> Iterator[Plant]:
    for dtype in (F32, F16, BF16):
        mask = torch.zeros(16, 24)
        mask[3] = mask[9] = float("-inf")
        q, k, v = normal(2, 16, 8), normal(2, 24, 8, seed=2), normal(2, 24, 8, seed=3)
        one = call("scaled_dot_product_attention", lambda q, k, v, m: _attention(q, k, v), dtype, q, k, v,
                   mask)
        kept = torch.nan_to_num(torch.softmax(q @ k.transpose(-1, -2) / 8 ** 0.5 + mask, -1)) @ v
        got = torch.where((mask[:, :1] < 0).expand_as(kept), torch.full_like(kept, float("nan")), kept)
        yield one, got.to(dtype), "in 4 rows, of which attn_mask leaves nothing"


PATTERNS: Dict[str, Callable[[], Iterator[Plant]]] = {
    "scaled": scaled, "shifted": shifted, "of another sign": signs, "zero": zeros, "tile": tiles,
    "tail": tails, "moved": moved, "another tensor": others, "rounded on the way": rounded,
    "truncated": cut, "flushed to zero": flushed, "saturated": saturated,
    "last terms missing": missing_terms, "wrong axis": axes, "constants of the formula": constants,
    "off by one": positions, "bias missing": no_bias, "overflow": overflow, "masked row": masked,
}


class Patterns(unittest.TestCase):
    def test_named(self) -> None:
        """At least 95 of 100, and each kind at least three times in four."""
        named: Dict[str, List[bool]] = {}
        wrong = []
        for kind, plants in PATTERNS.items():
            for one, got, says in plants():
                opinion = one.judge(got)
                fine = says in opinion.pattern and opinion.verdict == "fault"
                named.setdefault(kind, []).append(fine)
                if not fine:
                    wrong.append(f"{kind}, {one.name}, {one.dtype}: not '{says}' but {opinion}")
        every = [fine for found in named.values() for fine in found]
        print(f"patterns: {sum(every)} of {len(every)} named right, {len(PATTERNS)} kinds")
        self.assertGreaterEqual(sum(every), 0.95 * len(every), "\n".join(wrong))
        for kind, found in named.items():
            self.assertGreaterEqual(len(found), 3, kind)
            self.assertGreaterEqual(sum(found), 0.75 * len(found), "\n".join(wrong))

    def test_right_results_have_none(self) -> None:
        for make in (product, batched, linear, convolution, softmax, layer_norm, group_norm, gelu, exp,
                     images):
            for dtype in (F32, F64, BF16, F16):
                one = make(dtype)
                opinion = one.judge(one.right())
                self.assertIn(opinion.verdict, ("same", "rounding"), f"{one.name} {dtype}: {opinion}")
                self.assertEqual(opinion.pattern, "")

    def test_another_output(self) -> None:
        """The second result in place of the first."""
        for dtype in (F32, F64, BF16):
            x = normal(24, 40).to(dtype)
            var, mean = torch.var_mean(x.double(), -1)
            opinion = plumb.judge((mean.to(dtype), mean.to(dtype)), "var_mean", (x, -1))
            self.assertEqual(opinion.verdict, "fault")
            self.assertIn("equal to output 1 of the reference", opinion.parts[0].pattern)
            self.assertEqual(opinion.parts[1].pattern, "")

    def test_no_simple_pattern(self) -> None:
        """Noise is not made into a story."""
        for one in (product(F32), layer_norm(BF16), gelu(F64)):
            right = one.right()
            noise = normal(*right.shape, seed=9, scale=0.3)
            opinion = one.judge((right.double() + noise).to(one.dtype))
            self.assertEqual((opinion.verdict, opinion.pattern), ("fault", ""), str(opinion))
            self.assertIn("no simple pattern", opinion.why)


if __name__ == "__main__":
    unittest.main()
