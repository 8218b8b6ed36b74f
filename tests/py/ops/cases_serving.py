"""Fused forms of vLLM, Megatron, Transformers and flash-attn, against the formula."""

import math
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F

from ops.harness import Case, case, ints, randn, uniform


def tanh_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gated(function: Callable[..., Any], second: bool = False) -> Callable[..., Any]:
    def ref(*args: Any) -> Any:
        a, b = args[-1].chunk(2, -1)
        return a * function(b) if second else function(a) * b
    return ref


def activations() -> Iterator[Case]:
    x, out = randn(3, 4, 10), torch.zeros(3, 4, 5)
    for name, ref in (("silu_and_mul", gated(F.silu)), ("mul_and_silu", gated(F.silu, True)),
                      ("gelu_and_mul", gated(F.gelu)), ("gelu_tanh_and_mul", gated(tanh_gelu))):
        yield case(f"_C.{name}", out, x, ref=ref)
        yield case(f"_C.{name}", x, ref=ref, bfloat16=True)
        yield case(f"_C.{name}", randn(3, 5), refused=True)
    yield case("Torch._C::silu_and_mul", out, x, ref=gated(F.silu))
    yield case("_C.fatrelu_and_mul", out, x, 0.3, ref=lambda o, x, t: torch.where(
        x[..., :5] > t, x[..., :5], torch.zeros((), dtype=x.dtype)) * x[..., 5:])

    def oai(out: Any, x: Any, alpha: float = 1.702, limit: float = 7.0) -> Any:
        gate, up = x[..., ::2].clamp(max=limit), x[..., 1::2].clamp(-limit, limit)
        return (up + 1) * gate * torch.sigmoid(alpha * gate)
    yield case("_C.swigluoai_and_mul", out, x, ref=oai)
    yield case("_C.swigluoai_and_mul", out, x, 1.5, 0.8, ref=oai)
    for name, one in (("gelu_new", tanh_gelu), ("gelu_fast", tanh_gelu),
                      ("gelu_quick", lambda x: x * torch.sigmoid(1.702 * x))):
        yield case(f"_C.{name}", x, ref=one)
        yield case(f"_C.{name}", torch.zeros(3, 4, 10), x, ref=lambda out, x, f=one: f(x))
    yield case("Megatron.swiglu", x, ref=gated(F.silu))
    yield case("Megatron.bias_swiglu", x, randn(10), ref=lambda y, b: gated(F.silu)(y + b))
    yield case("Megatron.bias_swiglu_impl", x, None, ref=lambda y, b: gated(F.silu)(y))
    yield case("Megatron.weighted_swiglu", x, randn(3, 4, 1), ref=lambda y, w: gated(F.silu)(y) * w)
    yield case("Megatron.geglu", x, ref=gated(tanh_gelu))
    yield case("Megatron.bias_geglu", randn(10), x, ref=lambda b, y: gated(tanh_gelu)(y + b))
    yield case("Megatron.bias_gelu", randn(10), x, ref=lambda b, y: tanh_gelu(y + b))
    yield case("Megatron.scaled_upper_triang_masked_softmax", randn(2, 5, 5), 0.3, ref=lambda x, s: torch.softmax(
        (x * s).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -math.inf), -1))


def rms(x: Any, weight: Any, eps: float) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def norms() -> Iterator[Case]:
    x, w = randn(3, 4, 8), randn(8)
    yield case("_C.rms_norm", torch.zeros(3, 4, 8), x, w, 1e-5, ref=lambda o, x, w, e: rms(x, w, e), bfloat16=True)
    yield case("_C.rms_norm", torch.zeros(3, 4, 8), x, randn(7), 1e-5, refused=True)
    for output in (0, 1):
        yield case("_C.fused_add_rms_norm", x, randn(3, 4, 8), w, 1e-6, grad_output=output,
                   ref=lambda x, r, w, e: (rms(x + r, w, e), x + r))


def turn(x: Any, cos: Any, sin: Any, neighbours: bool = False) -> Any:
    if neighbours:
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        turned = torch.cat([-b, a], -1)
    return x * cos + turned * sin


def whole(half: Any, neighbours: bool) -> Any:
    return half.repeat_interleave(2, -1) if neighbours else torch.cat([half, half], -1)


def part(x: Any, cos: Any, sin: Any, neighbours: bool) -> Any:
    n = cos.shape[-1]
    return torch.cat([turn(x[..., :n], cos, sin, neighbours), x[..., n:]], -1)


def embedded(positions: Any, q: Any, k: Any, size: int, table: Any, neox: bool = True) -> Any:
    cos, sin = (whole(h[positions.flatten()], not neox)[:, None] for h in table.chunk(2, -1))

    def one(x: Any) -> Any:
        return part(x.reshape(positions.numel(), -1, size), cos, sin, not neox).reshape(x.shape)
    return [one(q)] if k is None else [one(q), one(k)]


def rotary() -> Iterator[Case]:
    positions, table = ints(0, 20, 7), uniform(-1, 1, 20, 6).detach()
    for neox in (True, False):
        for q, k in ((randn(7, 24), randn(7, 16)), (randn(7, 3, 8), randn(7, 2, 8)), (randn(7, 24), None)):
            yield case("_C.rotary_embedding", positions, q, k, 8, table, neox, ref=embedded)
    yield case("_C.rotary_embedding", ints(0, 20, 2, 3), randn(2, 3, 16), randn(2, 3, 8), 8, table, ref=embedded,
               grad_output=1)
    yield case("_C.rotary_embedding", positions + 20, randn(7, 24), randn(7, 16), 8, table, True, refused=True)
    yield case("_C.rotary_embedding", positions, randn(7, 25), randn(7, 16), 8, table, True, refused=True)
    q, k, cos, sin = randn(2, 4, 5, 8), randn(2, 2, 5, 8), randn(2, 5, 8), randn(2, 5, 8)
    for output in (0, 1):
        yield case("Transformers.apply_rotary_pos_emb", q, k, cos, sin, grad_output=output, bfloat16=True,
                   ref=lambda q, k, c, s: (turn(q, c[:, None], s[:, None]), turn(k, c[:, None], s[:, None])))
    yield case("Transformers.apply_rotary_pos_emb", randn(2, 5, 4, 8), randn(2, 5, 2, 8), cos, sin, unsqueeze_dim=2,
               ref=lambda q, k, c, s, unsqueeze_dim: (turn(q, c[:, :, None], s[:, :, None]),
                                                      turn(k, c[:, :, None], s[:, :, None])))
    angles = uniform(-3, 3, 5, 1, 1, 6).detach()
    for neighbours in (False, True):
        yield case("Megatron._apply_rotary_pos_emb_bshd", randn(5, 2, 3, 8), angles, neighbours, mscale=1.1,
                   ref=lambda t, f, n, mscale: part(t, torch.cos(f) * mscale, torch.sin(f) * mscale, n))
        yield case("FlashAttn.apply_rotary_emb", randn(2, 5, 3, 8), uniform(-1, 1, 6, 3).detach(),
                   uniform(-1, 1, 6, 3).detach(), neighbours, ref=lambda x, c, s, n: part(
                       x, whole(c[:5], n)[:, None], whole(s[:5], n)[:, None], n))
    yield case("FlashAttn.apply_rotary_emb", randn(2, 5, 3, 8), randn(4, 3), randn(4, 3), refused=True)


def cases() -> Iterator[Case]:
    yield from activations()
    yield from norms()
    yield from rotary()
