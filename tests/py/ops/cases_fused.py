"""The fused operators of torch_npu, against formulas in PyTorch."""

import math
from typing import Any, Iterator, Optional, Tuple

import torch
import torch.nn.functional as F

from ops.harness import Case, bools, case, fixed, ints, randn, uniform

NAN, INF = math.nan, math.inf
Pair = Tuple[torch.Tensor, torch.Tensor]


def statistic(x: torch.Tensor) -> torch.Tensor:
    """A result that is float32 whatever the input, and has no gradient."""
    return x.detach() if x.dtype == torch.float64 else x.detach().float()


# ---- Activations -----------------------------------------------------------------------------------


def fast_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.exp(0.851 * (x - x.abs())) / (1 + torch.exp(-1.702 * x.abs()))


def swiglu(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    a, b = x.chunk(2, dim)
    return a * torch.sigmoid(a) * b


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    return F.gelu(x, approximate=approximate)


def geglu(x: torch.Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> Pair:
    a, b = x.chunk(2, dim)
    active = gelu(a if activate_left else b, "tanh" if approximate else "none")
    return active * (b if activate_left else a), active


def gelu_mul(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return gelu(a, approximate) * b


def activations() -> Iterator[Case]:
    special = fixed([0.0, -0.0, 1e-30, -1e-30, 20.0, -20.0, 300.0, -300.0], grad=True)
    for name, ref in (("npu_fast_gelu", fast_gelu), ("fast_gelu", fast_gelu), ("npu_mish", F.mish),
                      ("npu_silu", F.silu), ("npu_gelu", gelu)):
        for shape in ((5, 3), (), (0, 2), (2, 3, 4)):
            yield case(f"NPU.{name}", randn(*shape), ref=ref, bfloat16=shape == (5, 3))
        yield case(f"NPU.{name}", randn(4, 3).t(), ref=ref)
        yield case(f"NPU.{name}", special, ref=ref, differences=False)
    yield case("NPU.npu_silu_", randn(3), ref=F.silu)
    yield case("NPU.npu_gelu", randn(3, 4), approximate="tanh", ref=gelu)
    yield case("NPU.npu_gelu", randn(3, 4), approximate="sigmoid", ref=gelu, refused=True)
    for dim in (-1, 0, 1):
        yield case("NPU.npu_swiglu", randn(4, 2, 6), dim, ref=swiglu)
        for approximate in (0, 1):
            for output in (0, 1):
                yield case("NPU.npu_geglu", randn(4, 2, 6), dim, approximate, ref=geglu, grad_output=output)
    yield case("NPU.npu_swiglu", randn(3, 8), ref=swiglu, bfloat16=True)
    yield case("NPU.npu_swiglu", randn(3, 0), dim=-1, ref=swiglu)
    yield case("NPU.npu_swiglu", fixed([[-100.0, 3.0], [100.0, 2.0]], grad=True), ref=swiglu)
    yield case("NPU.npu_geglu", randn(3, 8), activate_left=True, ref=geglu)
    for how in ("none", "tanh"):
        yield case("NPU.npu_gelu_mul", randn(3, 8), approximate=how, ref=gelu_mul)
    for args in ((randn(3, 5),), (randn(3, 4), 2), (fixed(1.0),)):
        yield case("NPU.npu_swiglu", *args, ref=swiglu, refused=True)


# ---- Normalisation ---------------------------------------------------------------------------------


def rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> Pair:
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    r = 1 / torch.sqrt((x * x).mean(dims, keepdim=True) + epsilon)
    return x * r * gamma, statistic(r)


def add_rms_norm(a: torch.Tensor, b: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> Any:
    x = a + b
    return (*rms_norm(x, gamma, epsilon), x)


def layer_norm_eval(x: torch.Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return F.layer_norm(x, shape, weight, bias, eps)


def group_norm(x: torch.Tensor, weight: Any, bias: Any, group: int, eps: float, swish: float) -> Any:
    rows = x.reshape(x.shape[0], group, -1)
    y = F.group_norm(x, group, weight, bias, eps)
    mean, var = rows.mean(-1), rows.var(-1, unbiased=False)
    return y * torch.sigmoid(swish * y), mean.detach(), (1 / torch.sqrt(var + eps)).detach()


def norms() -> Iterator[Case]:
    for shape, gamma in (((3, 4), (4,)), ((2, 3, 8), (8,)), ((2, 3, 4), (3, 4)), ((5,), (5,)), ((0, 4), (4,))):
        yield case("NPU.npu_rms_norm", randn(*shape), randn(*gamma), ref=rms_norm)
    yield case("NPU.npu_rms_norm", randn(3, 64), randn(64), epsilon=1e-3, ref=rms_norm)
    yield case("NPU.npu_rms_norm", randn(3, 64), randn(64), 0.1, ref=rms_norm, bfloat16=False)
    yield case("NPU.npu_rms_norm", randn(3, 4), randn(3), ref=rms_norm, refused=True)
    yield case("NPU.npu_rms_norm", ints(0, 3, 3, 4), randn(4), ref=rms_norm, refused=True)
    for output in (0, 2):
        yield case("NPU.npu_add_rms_norm", randn(3, 4), randn(3, 4), randn(4), ref=add_rms_norm, grad_output=output)
    yield case("NPU.npu_add_rms_norm", randn(2, 3, 4), randn(2, 3, 4), randn(4), 1e-2, ref=add_rms_norm)
    yield case("NPU.npu_layer_norm_eval", randn(3, 6), [6], ref=layer_norm_eval)
    yield case("NPU.npu_layer_norm_eval", randn(3, 6), [6], weight=randn(6), bias=randn(6), ref=layer_norm_eval)
    yield case("NPU.npu_layer_norm_eval", randn(2, 3, 4), [3, 4], randn(3, 4), randn(3, 4), 0.1, ref=layer_norm_eval)
    yield case("NPU.npu_layer_norm_eval", randn(2, 3), [3], randn(3), eps=0.5, ref=layer_norm_eval)
    yield case("NPU.npu_layer_norm_eval", randn(3, 6), [5], ref=layer_norm_eval, refused=True)
    yield case("NPU.npu_layer_norm_eval", randn(3, 6), [6], randn(5), ref=layer_norm_eval, refused=True)

    def silu(x: Any, weight: Any, bias: Any, group: int, eps: float = 1e-5) -> Any:
        return group_norm(x, weight, bias, group, eps, 1.0)

    def swish(x: Any, num_groups: int, weight: Any, bias: Any, eps: float = 1e-5, swish_scale: float = 1.0) -> Any:
        return group_norm(x, weight, bias, num_groups, eps, swish_scale)

    for shape, group in (((2, 6, 3, 2), 3), ((2, 4), 2), ((1, 4, 5), 1), ((2, 6, 2, 2, 2), 6)):
        c = shape[1]
        yield case("NPU.npu_group_norm_silu", randn(*shape), randn(c), randn(c), group, 1e-5, ref=silu)
        yield case("NPU.npu_group_norm_swish", randn(*shape), group, randn(c), randn(c), 1e-3, 1.7, ref=swish)
    yield case("NPU.npu_group_norm_silu", randn(2, 6, 3), None, None, group=2, ref=silu)
    yield case("NPU.npu_group_norm_silu", randn(2, 6, 3), None, None, 4, ref=silu, refused=True)
    yield case("NPU.npu_group_norm_silu", randn(2, 6, 3), None, None, 0, ref=silu, refused=True)


# ---- Rotary embedding ------------------------------------------------------------------------------


def turn(x: torch.Tensor, mode: Any) -> torch.Tensor:
    if mode in ("half", 0):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)


def rotary_mul(x: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, rotary_mode: Any = "half") -> torch.Tensor:
    return r1 * x + r2 * turn(x, rotary_mode)


def apply_rotary(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, layout: Any = "BSH",
                 rotary_mode: str = "half") -> Pair:
    return rotary_mul(q, cos, sin, rotary_mode), rotary_mul(k, cos, sin, rotary_mode)


def rotary() -> Iterator[Case]:
    for r in ((1, 3, 1, 4), (1, 1, 2, 4), (2, 1, 1, 4), (2, 3, 2, 4)):
        yield case("NPU.npu_rotary_mul", randn(2, 3, 2, 4), randn(*r), randn(*r), ref=rotary_mul, bfloat16=True)
        yield case("NPU.npu_rotary_mul", randn(2, 3, 2, 4), randn(*r), randn(*r), rotary_mode="interleave",
                   ref=rotary_mul)
    for mode in (0, 1):
        yield case("NPU.npu_rotary_position_embedding", randn(2, 3, 1, 6), randn(1, 3, 1, 6), randn(1, 3, 1, 6), mode,
                   ref=rotary_mul)
    yield case("NPU.npu_rotary_mul", randn(2, 4, 3).transpose(1, 2), randn(1, 3, 4), randn(1, 3, 4), ref=rotary_mul)
    yield case("NPU.npu_rotary_mul", randn(2, 3), randn(2, 3), randn(2, 3), ref=rotary_mul, refused=True)
    yield case("NPU.npu_rotary_mul", randn(2, 4), randn(2, 4), randn(2, 4), "quarter", ref=rotary_mul, refused=True)
    for output in (0, 1):
        yield case("NPU.npu_apply_rotary_pos_emb", randn(2, 3, 2, 4), randn(2, 3, 1, 4), randn(2, 3, 1, 4),
                   randn(2, 3, 1, 4), ref=apply_rotary, grad_output=output)


# ---- Products and softmax --------------------------------------------------------------------------


def masked_softmax(x: torch.Tensor, mask: torch.Tensor, scale: float = 1.0, fixed_triu_mask: bool = False) -> Any:
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax((x * scale).masked_fill(mask.bool(), -10000.0), -1)


def products() -> Iterator[Case]:
    yield case("NPU.npu_linear", randn(3, 4), randn(5, 4), randn(5), ref=F.linear, bfloat16=True)
    yield case("NPU.npu_linear", randn(2, 3, 4), randn(5, 4), ref=F.linear)
    yield case("NPU.npu_linear", randn(3, 4), randn(5, 4), bias=None, ref=F.linear)
    yield case("NPU.npu_linear", randn(3, 4), randn(5, 3), ref=F.linear, refused=True)
    yield case("NPU.npu_linear", randn(3, 4), randn(4), ref=F.linear, refused=True)
    yield case("NPU.npu_bmmV2", randn(2, 3, 4), randn(2, 4, 5), [], ref=lambda a, b, s: torch.bmm(a, b))
    yield case("NPU.npu_bmmV2", randn(2, 3, 4), randn(2, 4, 5), [2, 15], ref=lambda a, b, s: torch.bmm(a, b).view(s))
    yield case("NPU.npu_bmmV2", randn(2, 3, 4), randn(2, 4, 5), [2, 14], refused=True, ref=lambda a, b, s: a)
    name = "NPU.npu_scaled_masked_softmax"
    for mask in ((2, 3, 4, 4), (2, 1, 4, 4), (1, 1, 4, 4)):
        yield case(name, randn(2, 3, 4, 4), bools(*mask), 0.5, False, ref=masked_softmax, bfloat16=True)
    yield case(name, randn(2, 3, 4, 4), bools(2, 1, 4, 4), 1.0, True, ref=masked_softmax)
    yield case(name, randn(2, 3, 4, 6), bools(2, 1, 4, 6), 3.0, fixed_triu_mask=True, ref=masked_softmax)
    yield case(name, randn(2, 2, 3), ints(0, 2, 2, 2, 3, dtype=torch.uint8), ref=masked_softmax)
    yield case(name, randn(2, 3), torch.ones(2, 3, dtype=torch.bool), ref=masked_softmax)
    yield case(name, randn(2, 3), bools(2, 4), ref=masked_softmax, refused=True)
    yield case(name, randn(3), bools(3), 1.0, True, ref=masked_softmax, refused=True)
    yield case("NPU.npu_softmax_cross_entropy_with_logits", randn(3, 5), uniform(0, 1, 3, 5),
               ref=lambda x, y: -(y * torch.log_softmax(x, -1)).sum(-1))


# ---- Order and movement ----------------------------------------------------------------------------


def sort_v2(x: torch.Tensor, dim: int = -1, descending: bool = False, out: Any = None) -> torch.Tensor:
    return torch.sort(x, dim, descending)[0]


def gating(x: torch.Tensor, finished: Optional[torch.Tensor] = None, k: int = 1) -> Any:
    p = torch.softmax(x, -1)
    index = torch.argsort(-p, dim=-1, stable=True)[..., :k]
    y = p.gather(-1, index)
    if finished is not None:
        index = torch.where(finished.unsqueeze(-1), x.shape[-1], index)
    rows = x.numel() // x.shape[-1]
    order = torch.arange(rows * k).reshape(k, rows).t().reshape(y.shape)
    return y, index.int(), order.int()


def confusion(x: torch.Tensor, perm: Any, shape: Any, transpose_first: bool) -> torch.Tensor:
    return x.permute(perm).reshape(shape) if transpose_first else x.reshape(shape).permute(perm)


def moves() -> Iterator[Case]:
    for dim in (-1, 0, 1):
        for descending in (False, True):
            yield case("NPU.npu_sort_v2", randn(4, 6, 2), dim=dim, descending=descending, ref=sort_v2)
    yield case("NPU.npu_sort_v2", ints(0, 5, 4, 6), ref=sort_v2)
    yield case("NPU.npu_sort_v2", fixed([2.0, NAN, -INF, 1.0, INF]), ref=sort_v2)
    yield case("NPU.npu_sort_v2", randn(3), 1, ref=sort_v2, refused=True)
    name = "NPU.npu_moe_gating_top_k_softmax"
    yield case(name, randn(5, 4), None, 2, ref=gating)
    yield case(name, randn(5, 4), bools(5), 3, ref=gating)
    yield case(name, randn(2, 3, 7), bools(2, 3), k=7, ref=gating)
    yield case(name, randn(2, 6), ref=gating)
    yield case(name, fixed([[1.0, 1.0, 1.0], [2.0, 3.0, 3.0]]), k=2, ref=gating)
    for args in ((randn(5, 4), None, 5), (randn(5, 4), None, 0), (randn(5, 4), bools(4), 1), (randn(4), None, 1)):
        yield case(name, *args, ref=gating, refused=True)
    for which in ("max", "min"):
        for dim, keep in ((0, False), (-1, True)):
            yield case(f"NPU.npu_{which}", randn(3, 4), dim, keep,
                       ref=lambda x, d, k, w=which: [t if t.is_floating_point() else t.int()
                                                     for t in getattr(torch, w)(x, d, k)])
    yield case("NPU.npu_confusion_transpose", randn(2, 3, 4), [0, 2, 1], [2, 12], True, ref=confusion)
    yield case("NPU.npu_confusion_transpose", randn(2, 12), [0, 2, 1], [2, 3, 4], False, ref=confusion)
    yield case("NPU.npu_confusion_transpose", randn(2, 12), [0, -1, 1], [2, -1, 4], False, ref=confusion)
    for args in (([0, 1, 1], [2, 12], True), ([0, 2, 1], [2, 11], True), ([0, 2, 1], [-1, -1], True),
                 ([0, 2], [24], True), ([0, 2, 1], [2 ** 62, 2 ** 62], True), ([0, 3, 1], [24], True)):
        yield case("NPU.npu_confusion_transpose", randn(2, 3, 4), *args, ref=confusion, refused=True)
    yield case("NPU.npu_transpose", randn(2, 3, 4), [2, 0, 1], ref=lambda x, p: x.permute(p))
    yield case("NPU.npu_reshape", randn(2, 3, 4), [4, -1], ref=lambda x, s: x.reshape(s))
    yield case("NPU.npu_broadcast", randn(3, 1), [2, 3, 4], ref=lambda x, s: x.expand(s))
    yield case("NPU.npu_broadcast", randn(3, 2), [3, 4], refused=True, ref=lambda x, s: x)
    yield case("NPU.npu_slice", randn(4, 5), [1, 2], [2, 3], ref=lambda x, o, s: x[1:3, 2:5])
    yield case("NPU.npu_slice", randn(4, 5), [1, 2], [2, 4], refused=True, ref=lambda x, o, s: x)
    yield case("NPU.npu_slice", randn(4, 5), [-1, 2], [2, 3], refused=True, ref=lambda x, o, s: x)
    yield case("NPU.npu_slice", randn(4, 5), [1], [2], refused=True, ref=lambda x, o, s: x)
    yield case("NPU.npu_dtype_cast", ints(0, 9, 3), torch.float32, ref=lambda x, d: x.to(d), check_own=False)
    yield case("NPU.npu_dtype_cast", randn(3), torch.int32, ref=lambda x, d: x.to(d))
    yield case("NPU.npu_format_cast", randn(3, 2), 29, ref=lambda x, f: x)


# ---- Attention -------------------------------------------------------------------------------------


def to_heads(x: torch.Tensor, layout: str, heads: int) -> torch.Tensor:
    if layout == "BSH":
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)
    if layout == "SBH":
        return x.reshape(*x.shape[:2], heads, -1).permute(1, 2, 0, 3)
    return x.transpose(1, 2) if layout == "BSND" else x


def from_heads(y: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "BSH":
        return y.transpose(1, 2).flatten(2)
    if layout == "SBH":
        return y.permute(2, 0, 1, 3).flatten(2)
    return y.transpose(1, 2) if layout == "BSND" else y


def band(s: int, t: int, low: int, high: int) -> torch.Tensor:
    i, j = torch.arange(s).unsqueeze(1), torch.arange(t)
    return (j < i + low) | (j > i + high)


def core(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any, pse: Any, scale: float) -> Any:
    k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    score = q @ k.transpose(-1, -2)
    score = (score if pse is None else score + pse) * scale
    if mask is not None:
        score = score.masked_fill(mask.bool(), -INF)
    top = score.max(-1, keepdim=True)[0].detach()
    e = torch.where(top == -INF, torch.zeros_like(score), torch.exp(score - top))
    total = e.sum(-1, keepdim=True)
    y = (e / torch.where(total == 0, torch.ones_like(total), total)) @ v
    return y, statistic(top).expand(*top.shape[:-1], 8), statistic(total).expand(*top.shape[:-1], 8)


COMPRESSED = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def mode_mask(mode: int, s: int, t: int, pre: int, after: int) -> torch.Tensor:
    return {2: band(s, t, -s, 0), 3: band(s, t, -s - t, t - s), 4: band(s, t, t - s - pre, t - s + after)}[mode]


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, head_num: int, input_layout: str,
              pse: Any = None, padding_mask: Any = None, atten_mask: Any = None, scale: float = 1.0,
              pre_tockens: int = 2147483647, next_tockens: int = 2147483647, sparse_mode: int = 0,
              actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None, **_: Any) -> Any:
    packed = atten_mask is not None and atten_mask.shape[-1] == 2048 and sparse_mode >= 2

    def mask_for(s: int, t: int) -> Any:
        return mode_mask(sparse_mode, s, t, pre_tockens, next_tockens) if packed else atten_mask

    if input_layout == "TND":
        parts, q0, k0 = [], 0, 0
        for q1, k1 in zip(actual_seq_qlen, actual_seq_kvlen):
            if q1:
                mask = mask_for(q1 - q0, k1 - k0)
                mask = mask if mask is None else mask[:q1 - q0, :k1 - k0]
                parts.append(core(query[q0:q1].transpose(0, 1), key[k0:k1].transpose(0, 1),
                                  value[k0:k1].transpose(0, 1), mask, None, scale))
                q0, k0 = q1, k1
        outputs = [torch.cat([p.transpose(0, 1) for p in column]) for column in zip(*parts)]
        rest = query.shape[0] - q0
        return [torch.cat([y, torch.zeros(rest, *y.shape[1:], dtype=y.dtype)]) for y in outputs]
    size = to_heads(query, input_layout, head_num).shape[-1]
    fewer = key.shape[-1] // size
    q, k, v = (to_heads(x, input_layout, n) for x, n in ((query, head_num), (key, fewer), (value, fewer)))
    y, top, total = core(q, k, v, mask_for(q.shape[-2], k.shape[-2]), pse, scale)
    return from_heads(y, input_layout), top, total


def attend(*args: Any, **kwargs: Any) -> Case:
    return case("NPU.npu_fusion_attention", *args, ref=attention, **kwargs)


SHAPES = {"BSH": lambda b, s, n, d: (b, s, n * d), "SBH": lambda b, s, n, d: (s, b, n * d),
          "BSND": lambda b, s, n, d: (b, s, n, d), "BNSD": lambda b, s, n, d: (b, n, s, d)}


def attentions() -> Iterator[Case]:
    def qkv(layout: str, kv_heads: int = 4, s: int = 5, t: int = 6) -> Any:
        shape = SHAPES[layout]
        return randn(*shape(2, s, 4, 3)), randn(*shape(2, t, kv_heads, 3)), randn(*shape(2, t, kv_heads, 3))

    for layout in SHAPES:
        for heads in (4, 2, 1):
            yield attend(*qkv(layout, heads), 4, layout, scale=0.5)
        for mode in (2, 3, 4):
            yield attend(*qkv(layout), 4, layout, scale=0.5, sparse_mode=mode, atten_mask=COMPRESSED, pre_tockens=2,
                         next_tockens=1, differences=False)
    for mode in (2, 3, 4):
        yield attend(*qkv("BNSD", 2, 6, 4), head_num=4, input_layout="BNSD", sparse_mode=mode,
                     atten_mask=COMPRESSED, pre_tockens=3, next_tockens=0)
    yield attend(*qkv("BNSD"), 4, "BNSD")
    yield attend(*qkv("BNSD"), head_num=4, input_layout="BNSD", scale=0.3)
    yield attend(*qkv("BNSD"), 4, input_layout="BNSD", sparse_mode=0, pre_tockens=1, next_tockens=0)
    for shape in ((5, 6), (1, 1, 5, 6), (2, 1, 5, 6), (2, 4, 5, 6)):
        for mode in (0, 1):
            yield attend(*qkv("BNSD"), 4, "BNSD", atten_mask=bools(*shape), scale=0.7, sparse_mode=mode)
    yield attend(*qkv("BNSD"), 4, "BNSD", atten_mask=torch.ones(5, 6, dtype=torch.bool))
    yield attend(*qkv("BSH"), 4, "BSH", atten_mask=ints(0, 2, 5, 6, dtype=torch.uint8))
    for shape in ((2, 4, 5, 6), (1, 4, 5, 6), (2, 4, 1, 6)):
        yield attend(*qkv("BNSD", 2), 4, "BNSD", randn(*shape), scale=0.4)
        yield attend(*qkv("SBH"), 4, "SBH", pse=randn(*shape), atten_mask=bools(5, 6), scale=0.4)
    q, k, v = (x.detach() for x in qkv("BNSD"))
    yield attend(q, k, v, 4, "BNSD", pse=randn(2, 4, 5, 6), scale=2.0)
    yield attend(randn(1, 2, 200, 4), randn(1, 1, 3000, 4), randn(1, 1, 3000, 5), 2, "BNSD", scale=0.5, sparse_mode=3,
                 atten_mask=COMPRESSED, differences=False)
    for lengths in (([3, 7], [4, 9]), ([2, 5, 7], [1, 4, 9]), ([7], [9]), ([3, 0], [4, 0])):
        tnd = randn(7, 4, 3), randn(9, 2, 3), randn(9, 2, 5)
        yield attend(*tnd, 4, "TND", actual_seq_qlen=lengths[0], actual_seq_kvlen=lengths[1], scale=0.6)
        yield attend(*tnd, 4, "TND", actual_seq_qlen=lengths[0], actual_seq_kvlen=lengths[1], scale=0.6,
                     atten_mask=COMPRESSED, sparse_mode=3, differences=False)
    yield attend(randn(7, 4, 3), randn(9, 4, 3), randn(9, 4, 3), 4, "TND", actual_seq_qlen=[4, 7],
                 actual_seq_kvlen=[6, 9], atten_mask=bools(4, 6))
    for args, kwargs in (((4, "BDSN"), {}), ((3, "BNSD"), {}), ((4, "BSH"), {}), ((4, "BNSD"), {"sparse_mode": 5}),
                         ((4, "BNSD"), {"sparse_mode": -1}), ((4, "BNSD"), {"keep_prob": 0.9}),
                         ((4, "BNSD"), {"atten_mask": bools(5, 5)}), ((4, "BNSD"), {"pse": randn(2, 3, 5, 6)}),
                         ((4, "BNSD"), {"padding_mask": bools(5, 6)}), ((4, "BNSD"), {"prefix": [1, 2]}),
                         ((4, "BNSD"), {"pse": randn(2, 4, 5, 6), "pse_type": 2})):
        yield attend(*qkv("BNSD"), *args, **kwargs, refused=True)
    for kwargs in ({}, {"actual_seq_qlen": [3, 8], "actual_seq_kvlen": [4, 9]},
                   {"actual_seq_qlen": [5, 3], "actual_seq_kvlen": [4, 9]},
                   {"actual_seq_qlen": [3], "actual_seq_kvlen": [4, 9]},
                   {"actual_seq_qlen": [-3, 7], "actual_seq_kvlen": [4, 9]}):
        yield attend(randn(7, 4, 3), randn(9, 4, 3), randn(9, 4, 3), 4, "TND", **kwargs, refused=True)
    yield attend(randn(2, 5, 12), randn(2, 6, 12), randn(2, 6, 12), 5, "BSH", refused=True)
    yield attend(randn(2, 5, 12), randn(2, 6, 12), randn(2, 6, 12), 0, "BSH", refused=True)
    yield attend(randn(2, 4, 5, 3), randn(2, 3, 6, 3), randn(2, 3, 6, 3), 4, "BNSD", refused=True)
    yield attend(randn(2, 4, 5, 3), randn(3, 4, 6, 3), randn(3, 4, 6, 3), 4, "BNSD", refused=True)


def cases() -> Iterator[Case]:
    for part in (activations, norms, rotary, products, moves, attentions):
        yield from part()
