"""The attention kernels of PyTorch 2 and of flash-attn, and flex attention, against the formula in float64."""

import math
from typing import Any, Iterator, Optional, Tuple

import torch

from ops.harness import Case, bools, case, fixed, randn, uniform

INF = float("inf")


def attend(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Optional[float] = None,
           softcap: float = 0.0, window: Tuple[int, int] = (-1, -1), slopes: Any = None, from_end: bool = False,
           unseen: float = 0.0) -> Any:
    """Of [B, N, S, D]: the output, and the logarithms of the sums."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    score = q @ k.transpose(-1, -2) * scale
    if softcap:
        score = softcap * torch.tanh(score / softcap)
    s, t = score.shape[-2:]
    away = torch.arange(t) - torch.arange(s)[:, None] - (t - s if from_end else 0)
    if slopes is not None:
        score = score - slopes.reshape(-1, q.shape[-3], 1, 1) * away.abs()
    seen = torch.ones(s, t, dtype=torch.bool)
    if causal:
        seen = seen & (away <= 0)
    if window[0] >= 0:
        seen = seen & (away >= -window[0])
    if window[1] >= 0:
        seen = seen & (away <= window[1])
    score = score.masked_fill(~seen, -INF)
    if mask is not None:
        score = score.masked_fill(~mask, -INF) if mask.dtype == torch.bool else score + mask
    blind = (score == -INF).all(-1, keepdim=True)
    weights = torch.softmax(score.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    lse = torch.logsumexp(score.masked_fill(blind, 0.0), -1).masked_fill(blind.squeeze(-1), unseen)
    lse = lse if q.dtype == torch.float64 else lse.float()
    return weights @ v, lse.detach()


def for_cpu(q: Any, k: Any, v: Any, dropout_p: float = 0.0, is_causal: bool = False, attn_mask: Any = None,
            scale: Any = None) -> Any:
    return attend(q, k, v, attn_mask, is_causal, scale)


def flash(q: Any, k: Any, v: Any, dropout_p: float = 0.0, is_causal: bool = False, debug: bool = False,
          scale: Any = None) -> Any:
    return attend(q, k, v, None, is_causal, scale, unseen=INF)


def efficient(q: Any, k: Any, v: Any, bias: Any, wanted: bool, dropout_p: float = 0.0, is_causal: bool = False,
              scale: Any = None) -> Any:
    y, lse = attend(q, k, v, bias, is_causal, scale, unseen=-INF)
    padded = torch.full((*lse.shape[:2], -(-lse.shape[2] // 32) * 32 if wanted else 0), INF, dtype=lse.dtype)
    if wanted:
        padded[..., :lse.shape[2]] = lse
    return y, padded


def cudnn(q: Any, k: Any, v: Any, bias: Any, wanted: bool, dropout_p: float = 0.0, is_causal: bool = False,
          debug: bool = False, scale: Any = None) -> Any:
    y, lse = attend(q, k, v, bias, is_causal, scale, unseen=-INF)
    return y, lse[..., None]


def math_form(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
              dropout_mask: Any = None, scale: Any = None) -> Any:
    score = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        score = score.masked_fill(~torch.ones(score.shape[-2:], dtype=torch.bool).tril(), -INF)
    if attn_mask is not None:
        score = score + attn_mask  # bool too: what sees nothing has been made -inf before this operator
    blind = (score == -INF).all(-1, keepdim=True)
    weights = torch.softmax(score.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    return weights @ v, weights


def forward() -> Iterator[Case]:
    q, k, v = randn(2, 4, 5, 8), randn(2, 2, 6, 8), randn(2, 2, 6, 3)
    blind = bools(5, 6)
    blind[1] = False
    low = "Aten._scaled_dot_product_"
    for mask in (None, blind, randn(2, 1, 5, 6).detach(), randn(5, 6)):
        yield case(f"{low}flash_attention_for_cpu", q, k, v, attn_mask=mask, ref=for_cpu, bfloat16=mask is None)
        yield case(f"{low}fused_attention_overrideable", q, k, v, mask,
                   ref=lambda *a, **n: attend(*a, unseen=INF, **n))
        for wanted in (False, True):
            yield case(f"{low}efficient_attention", q, k, v, mask, wanted, ref=efficient, differences=wanted)
        yield case(f"{low}cudnn_attention", q, k, v, mask, True, ref=cudnn)
        yield case(f"{low}attention_math", q, randn(2, 4, 6, 8), randn(2, 4, 6, 3), mask, ref=math_form)
        yield case(f"{low}attention_math", q, randn(2, 4, 6, 8), randn(2, 4, 6, 3), mask, ref=math_form, grad_output=1)
    for causal in (False, True):
        yield case(f"{low}flash_attention", q, k, v, 0.0, causal, ref=flash, bfloat16=True)
        yield case(f"{low}flash_attention", q, k, v, 0.0, causal, scale=0.2, ref=flash)
        yield case(f"{low}flash_attention_for_cpu", q, k, v, 0.0, causal, ref=for_cpu)
    yield case(f"{low}flash_attention", randn(1, 1, 40, 8), randn(1, 1, 9000, 8), randn(1, 1, 9000, 4), 0.0, True,
               ref=flash, differences=False)
    yield case(f"{low}flash_attention", q, k, v, 0.5, refused=True)
    yield case(f"{low}efficient_attention", q, k, v, bools(4, 6), True, refused=True)


def grads(kept: int, **settings: Any) -> Any:
    """Gradients as results: by out and logsumexp, as kernels compute them."""
    def ref(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, mask: Any = None, scale: Any = None) -> Any:
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        groups = q.shape[1] // k.shape[1]
        wide_k, wide_v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        score = q @ wide_k.transpose(-1, -2) * scale
        s, t = score.shape[-2:]
        away = torch.arange(t) - torch.arange(s)[:, None] - (t - s if settings.get("from_end") else 0)
        if settings.get("causal"):
            score = score.masked_fill(away > 0, -INF)
        if settings.get("left", -1) >= 0:
            score = score.masked_fill(away < -settings["left"], -INF)
        if mask is not None:
            score = score.masked_fill(~mask, -INF) if mask.dtype == torch.bool else score + mask
        p = torch.exp(score - lse.reshape(*lse.shape[:2], -1)[:, :, :q.shape[2], None])
        dscore = p * (g @ wide_v.transpose(-1, -2) - (g * out).sum(-1, keepdim=True))
        found = [dscore @ wide_k * scale, dscore.transpose(-1, -2) @ q * scale, p.transpose(-1, -2) @ g]
        found = [found[0], *(x.reshape(x.shape[0], k.shape[1], groups, *x.shape[2:]).sum(2) for x in found[1:])]
        if kept == 4:
            found.append(dscore.sum_to_size(mask.shape) if mask is not None and mask.is_floating_point() else None)
        return found
    return ref


def backward() -> Iterator[Case]:
    q, k, v, g = (x.detach() for x in (randn(2, 4, 5, 8), randn(2, 2, 6, 8), randn(2, 2, 6, 3), randn(2, 4, 5, 3)))
    low = "Aten._scaled_dot_product_"
    for causal in (False, True):
        for mask in (None, randn(2, 1, 5, 6).detach()):
            out, lse = attend(q, k, v, mask, causal)
            # What an operator is given counts, also where it is not what its forward gives.
            for given in (out, out + 0.1 * randn(*out.shape).detach()):
                yield case(f"{low}flash_attention_for_cpu_backward", g, q, k, v, given, lse, 0.0, causal, attn_mask=mask,
                           ref=lambda g, q, k, v, o, l, p, c, attn_mask: grads(3, causal=c)(g, q, k, v, o, l, attn_mask))
            if mask is None:
                yield case(f"{low}flash_attention_backward", g, q, k, v, out, lse, None, None, 5, 6, 0.0, causal, None,
                           None, scale=0.3, ref=lambda g, q, k, v, o, l, *a, scale: grads(3, causal=a[5])(
                               g, q, k, v, o, l, None, scale))
            yield case(f"{low}cudnn_attention_backward", g, q, k, v, out, lse[..., None], None, None, mask, None, None, 5,
                       6, 0.0, causal, ref=lambda g, q, k, v, o, l, a, b, m, *r: grads(3, causal=r[5])(
                           g, q, k, v, o, l, m))
            padded = torch.nn.functional.pad(lse, (0, 27), value=INF)
            yield case(f"{low}efficient_attention_backward", g, q, k, v, mask, out, padded, None, None, 0.0,
                       [True, True, True, True], causal, ref=lambda g, q, k, v, m, o, l, *r: grads(4, causal=r[4])(
                           g, q, k, v, o, l, m))
            yield case(f"{low}fused_attention_overrideable_backward", g, q, k, v, mask, [1, 1, 1, 1], out, lse, None,
                       None, 5, 6, 0.0, causal, ref=lambda g, q, k, v, m, w, o, l, *r: grads(4, causal=r[5])(
                           g, q, k, v, o, l, m))
    yield case(f"{low}flash_attention_for_cpu_backward", g, q, k, v, out[:1], lse, 0.0, False, refused=True)
    yield case(f"{low}flash_attention_for_cpu_backward", g, q, k, v, out, lse[..., :4], 0.0, False, refused=True)
    yield case(f"{low}flash_attention_for_cpu_backward", g, q, k, v, out, lse, 0.1, False, refused=True)


def turned(function: Any) -> Any:
    """From [B, S, N, D] and back."""
    def ref(q: Any, k: Any, v: Any, *args: Any, **named: Any) -> Any:
        y, lse = function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), *args, **named)
        return y.transpose(1, 2), lse
    return ref


def package(q: Any, k: Any, v: Any, dropout_p: float = 0.0, softmax_scale: Any = None, causal: bool = False,
            window_size: Any = (-1, -1), softcap: float = 0.0, alibi_slopes: Any = None) -> Any:
    return turned(attend)(q, k, v, None, causal, softmax_scale, softcap, tuple(window_size), alibi_slopes, True)[0]


def varied(q: Any, k: Any, v: Any, q_ends: Any, k_ends: Any, max_q: int, max_k: int, **named: Any) -> Any:
    parts = [package(q[None, a:b], k[None, c:d], v[None, c:d], **named)[0]
             for a, b, c, d in zip(q_ends, q_ends[1:], k_ends, k_ends[1:])]
    return torch.cat(parts)


def low_flash(q: Any, k: Any, v: Any, q_ends: Any, k_ends: Any, max_q: int, max_k: int, p: float, causal: bool,
              debug: bool, window_size_left: int = -1, window_size_right: int = -1, scale: Any = None,
              alibi_slopes: Any = None) -> Any:
    how = dict(causal=causal, scale=scale, window=(window_size_left, window_size_right), slopes=alibi_slopes,
               from_end=True, unseen=INF)
    if q_ends is None:
        return turned(attend)(q, k, v, **how)
    found = [turned(attend)(q[None, a:b], k[None, c:d], v[None, c:d], **how)
             for a, b, c, d in zip(q_ends, q_ends[1:], k_ends, k_ends[1:])]
    return torch.cat([y[0] for y, _ in found]), torch.cat([lse[0] for _, lse in found], 1)


def low_back(g: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *args: Any, window_size_left: int = -1) -> Any:
    found = grads(3, causal=args[5], from_end=True, left=window_size_left)(
        *(x.transpose(1, 2) for x in (g, q, k, v, out)), lse)
    return [x.transpose(1, 2) for x in found]


def low_efficient(q: Any, k: Any, v: Any, bias: Any, a: Any, b: Any, c: Any, d: Any, p: float, kind: int,
                  lse: bool = False, scale: Any = None, window_size: Any = None) -> Any:
    return turned(attend)(q, k, v, bias, kind != 0, scale, from_end=kind == 2,
                          window=(-1 if window_size is None else window_size - 1, -1))[:1]


def flashes() -> Iterator[Case]:
    q, k, v = randn(2, 5, 4, 8), randn(2, 7, 2, 8), randn(2, 7, 2, 8)
    for named in ({}, {"causal": True}, {"causal": True, "softmax_scale": 0.2}, {"window_size": (2, 1)},
                  {"window_size": (2, -1), "causal": True}, {"softcap": 0.8}, {"softcap": 1.5, "causal": True},
                  {"alibi_slopes": uniform(0.1, 1, 4).detach()},
                  {"alibi_slopes": uniform(0.1, 1, 2, 4).detach(), "causal": True}):
        yield case("FlashAttn.flash_attn_func", q, k, v, ref=package, bfloat16=not named, **named)
    yield case("FlashAttn.flash_attn_func", randn(2, 7, 4, 8), k[:, :5], v[:, :5], causal=True, ref=package)
    tq, tk, tv = randn(9, 4, 8), randn(11, 2, 8), randn(11, 2, 8)
    q_ends, k_ends = fixed([0, 3, 3, 9], torch.int32), fixed([0, 4, 6, 11], torch.int32)
    for named in ({}, {"causal": True}, {"window_size": (2, 0)}):
        yield case("FlashAttn.flash_attn_varlen_func", tq, tk, tv, q_ends, k_ends, 6, 5, ref=varied, **named)
    yield case("FlashAttn.flash_attn_varlen_func", tq, tk, tv, q_ends, k_ends[:-1], 6, 5, refused=True)
    yield case("FlashAttn.flash_attn_varlen_func", tq, tk, tv, q_ends + 1, k_ends, 6, 5, refused=True)
    for causal in (False, True):
        yield case("Aten._flash_attention_forward", q, k, v, None, None, 5, 7, 0.0, causal, False, ref=low_flash)
        yield case("Aten._flash_attention_forward", q, k, v, None, None, 5, 7, 0.0, causal, False, window_size_left=2,
                   window_size_right=0, ref=low_flash)
        yield case("Aten._flash_attention_forward", tq, tk, tv, q_ends, k_ends, 6, 5, 0.0, causal, False,
                   alibi_slopes=uniform(0.1, 1, 4).detach(), ref=low_flash)
        plain = [x.detach() for x in (q, k, v)]
        for left in (-1, 2):
            out, lse = turned(attend)(*plain, causal=causal, from_end=True, window=(left, -1))
            yield case("Aten._flash_attention_backward", randn(2, 5, 4, 8).detach(), *plain, out, lse, None, None, 5, 7,
                       0.0, causal, None, None, window_size_left=left, ref=low_back)
    for kind in (0, 1, 2):
        yield case("Aten._efficient_attention_forward", q, k, v, None, None, None, None, None, 0.0, kind,
                   ref=low_efficient)
    yield case("Aten._efficient_attention_forward", q, k, v, randn(2, 4, 5, 7), None, None, None, None, 0.0, 0,
               ref=low_efficient)
    yield case("Aten._efficient_attention_forward", q, k, v, None, None, None, None, None, 0.0, 2, window_size=3,
               ref=low_efficient)
    yield case("Aten._efficient_attention_forward", q, k, v, None, None, None, None, None, 0.0, 3, refused=True)


def flexible(q: Any, k: Any, v: Any, score_mod: Any = None, block_mask: Any = None, scale: Any = None,
             enable_gqa: bool = False, return_lse: bool = False, bias: Any = None, softcap: float = 0.0) -> Any:
    if bias is not None and block_mask is not None:
        bias = bias.masked_fill(~block_mask, -INF)
    y, lse = attend(q, k, v, block_mask if bias is None else bias, scale=scale, softcap=softcap, unseen=-INF)
    return (y, lse) if return_lse else y


def flex() -> Iterator[Case]:
    q, k, v = randn(2, 4, 5, 8), randn(2, 2, 6, 8), randn(2, 2, 6, 3)
    mask = bools(2, 1, 5, 6)
    mask[0, 0, 2] = False
    for block in (None, mask):
        for named in ({}, {"bias": randn(4, 5, 6)}, {"softcap": 1.2}, {"softcap": 1.2, "bias": randn(1, 4, 5, 6)},
                      {"scale": 0.1, "return_lse": True}):
            yield case("FlexAttention.flex_attention", q, k, v, None, block, enable_gqa=True, ref=flexible, **named)
    yield case("FlexAttention.flex_attention", q, k, v, "a function", refused=True)
    yield case("FlexAttention.flex_attention", q, k, v, softcap=-1.0, refused=True)


def cases() -> Iterator[Case]:
    yield from forward()
    yield from backward()
    yield from flashes()
    yield from flex()
