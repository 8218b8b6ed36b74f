"""Scaled dot-product attention and multi_head_attention_forward."""

import math
from typing import Any, Iterator

import torch

from ops.harness import Case, bools, case, randn

SDPA = "Functional.scaled_dot_product_attention"


def formula(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """PyTorch's documentation of it, with zeros where a query sees nothing."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if enable_gqa:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], -3)
    score = q @ k.transpose(-1, -2) * scale
    if is_causal:
        attn_mask = torch.ones(score.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        score = score.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        score = score + attn_mask
    blind = (score == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(score.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    return weights @ v


def sdpa(*args: Any, **kwargs: Any) -> Case:
    return case(SDPA, *args, ref=formula, **kwargs)


def attention() -> Iterator[Case]:
    for lead in ((2, 3), (3,), (), (2, 1, 3)):
        q, k, v = randn(*lead, 5, 4), randn(*lead, 6, 4), randn(*lead, 6, 7)
        yield sdpa(q, k, v, bfloat16=True)
        yield sdpa(q, k, v, is_causal=True)
        yield sdpa(q, k, v, scale=0.3)
        yield sdpa(q, k, v, randn(5, 6).detach())
        yield sdpa(q, k, v, attn_mask=bools(*lead, 5, 6))
        yield sdpa(q, k, v, randn(5, 6))
    q, k, v = randn(2, 4, 5, 4), randn(2, 2, 6, 4), randn(2, 2, 6, 3)
    yield sdpa(q, k, v, enable_gqa=True)
    yield sdpa(q, k, v, enable_gqa=True, attn_mask=randn(2, 1, 5, 6))
    yield sdpa(randn(2, 3, 5, 4), randn(1, 3, 6, 4), randn(3, 6, 4))
    yield sdpa(randn(2, 3, 5, 4), randn(2, 3, 6, 4), randn(2, 3, 6, 4), bools(2, 1, 1, 6))
    yield sdpa(randn(2, 3, 5, 4), randn(2, 3, 6, 4), randn(2, 3, 6, 4), torch.zeros(5, 6, dtype=torch.bool))
    yield sdpa(randn(2, 3, 0, 4), randn(2, 3, 6, 4), randn(2, 3, 6, 4))
    yield sdpa(randn(0, 3, 5, 4), randn(0, 3, 6, 4), randn(0, 3, 6, 4))
    yield sdpa(randn(1, 1, 40, 8), randn(1, 1, 9000, 8), randn(1, 1, 9000, 4), is_causal=True, differences=False)
    yield sdpa(randn(2, 5, 3, 4).transpose(1, 2), randn(2, 6, 3, 4).transpose(1, 2), randn(2, 3, 6, 4))
    yield sdpa(randn(2, 5, 4), randn(2, 6, 3), randn(2, 6, 4), refused=True)
    yield sdpa(randn(2, 5, 4), randn(2, 6, 4), randn(2, 5, 4), refused=True)
    yield sdpa(randn(2, 5, 4), randn(2, 6, 4), randn(2, 6, 4), bools(4, 6), refused=True)
    yield sdpa(randn(2, 5, 4), randn(2, 6, 4), randn(2, 6, 4), bools(5, 6), 0.0, True, refused=True)
    yield sdpa(randn(2, 5, 4), randn(2, 6, 4), randn(2, 6, 4), None, 0.5, refused=True)


def multihead() -> Iterator[Case]:
    name, e, h = "Functional.multi_head_attention_forward", 6, 2

    def weights(bias: bool = True):
        return (randn(3 * e, e), randn(3 * e) if bias else None)

    def out():
        return (randn(e, e), randn(e))

    q, k, v = randn(4, 3, e), randn(5, 3, e), randn(5, 3, e)
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.0, *out())
    yield case(name, q, q, q, e, h, *weights(), None, None, False, 0.1, *out(), training=False)
    yield case(name, q, k, v, e, h, *weights(False), None, None, False, 0.0, *out(), need_weights=False)
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.0, *out(), average_attn_weights=False)
    yield case(name, q, k, v, e, h, *weights(), randn(1, 1, e), randn(1, 1, e), True, 0.0, *out(),
               attn_mask=torch.ones(4, 5, dtype=torch.bool).triu(2))
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.0, *out(),
               key_padding_mask=torch.tensor([[False] * 4 + [True]] * 3), attn_mask=randn(4, 5).detach() > 2)
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.0, *out(), attn_mask=randn(3 * h, 4, 5).detach())
    yield case(name, q, randn(5, 3, 4), randn(5, 3, 7), e, h, None, randn(3 * e), None, None, False, 0.0, *out(),
               use_separate_proj_weight=True, q_proj_weight=randn(e, e), k_proj_weight=randn(e, 4),
               v_proj_weight=randn(e, 7))
    yield case(name, randn(4, e), randn(5, e), randn(5, e), e, h, *weights(), None, None, False, 0.0, *out())
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.0, *out(), static_k=randn(3 * h, 7, e // h),
               static_v=randn(3 * h, 7, e // h))
    yield case(name, q, k, v, e, 4, *weights(), None, None, False, 0.0, *out(), refused=True)
    yield case(name, q, k, v, e, h, *weights(), None, None, False, 0.5, *out(), training=True, refused=True)


def cases() -> Iterator[Case]:
    yield from attention()
    yield from multihead()
