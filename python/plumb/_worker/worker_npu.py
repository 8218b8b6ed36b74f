"""The operators of torch_npu by their formulas, for devices that do not have them.

They compute in the types of the call with what PyTorch has on the device; where the operator itself
keeps more digits inside (softmax, statistics), so does the formula. Parts of worker.py.
"""

import functools
import importlib.util
import inspect
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

EVERYTHING = 1 << 40  # keys to either side
COMPRESSED = 2048
BLOCKED = -10000.0
REPEATED = 8


# -- Activations -------------------------------------------------------------------------------


def fast_gelu(x: Tensor) -> Tensor:
    size = x.abs()
    return x * torch.exp(0.851 * (x - size)) / (1 + torch.exp(-1.702 * size))


def mish(x: Tensor) -> Tensor:
    return x * torch.tanh(F.softplus(x))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


def swiglu(x: Tensor, dim: int = -1) -> Tensor:
    a, b = x.chunk(2, dim)
    return F.silu(a) * b


def geglu(x: Tensor, dim: int = -1, approximate: int = 1,
          activate_left: bool = False) -> Tuple[Tensor, Tensor]:
    a, b = x.chunk(2, dim)
    if activate_left:
        a, b = b, a
    active = gelu(b, "tanh" if approximate else "none")
    return a * active, active


def gelu_mul(x: Tensor, *, approximate: str = "none") -> Tensor:
    a, b = x.chunk(2, -1)
    return gelu(a, approximate) * b


# -- Rotary embedding --------------------------------------------------------------------------


def turned(x: Tensor, mode: Any) -> Tensor:
    if mode in (1, "interleave"):
        return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rotary_mul(x: Tensor, r1: Tensor, r2: Tensor, rotary_mode: Any = "half") -> Tensor:
    return r1 * x + r2 * turned(x, rotary_mode)


def apply_rotary(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: Any = "BSH",
                 rotary_mode: Any = "half") -> Tuple[Tensor, Tensor]:
    return rotary_mul(query, cos, sin, rotary_mode), rotary_mul(key, cos, sin, rotary_mode)


# -- Products and softmax ----------------------------------------------------------------------


def bmm(x: Tensor, mat2: Tensor, output_sizes: Sequence[int] = ()) -> Tensor:
    y = torch.matmul(x, mat2)
    return y.reshape(list(output_sizes)) if output_sizes else y


def inside(dtype: torch.dtype) -> torch.dtype:
    """In which type sums and exponentials are taken."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def scaled_masked_softmax(x: Tensor, mask: Optional[Tensor] = None, scale: float = 1,
                          fixed_triu_mask: bool = False) -> Tensor:
    z = x * scale
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    if mask is not None:
        z = z.masked_fill(mask != 0, BLOCKED)
    return torch.softmax(z, -1, dtype=inside(x.dtype)).to(x.dtype)


def softmax_cross_entropy(features: Tensor, labels: Tensor) -> Tensor:
    return -(labels * torch.log_softmax(features, -1)).sum(-1)


# -- Normalisation -----------------------------------------------------------------------------


def rms_norm(x: Tensor, gamma: Tensor, epsilon: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    epsilon = 1e-6 if epsilon is None else epsilon
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    wide = x.to(inside(x.dtype))
    r = torch.rsqrt(wide.square().mean(dims, keepdim=True) + epsilon)
    return (wide * r * gamma).to(x.dtype), r.float()


def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor,
                 epsilon: float = 1e-6) -> Tuple[Tensor, Tensor, Tensor]:
    x = x1 + x2
    y, r = rms_norm(x, gamma, epsilon)
    return y, r, x


def layer_norm_eval(x: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor] = None,
                    bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    return F.layer_norm(x, list(normalized_shape), weight, bias, eps)


def group_norm_swish(x: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor],
                     eps: float = 1e-5, swish_scale: float = 1.0) -> Tuple[Tensor, Tensor, Tensor]:
    batch, channels = x.shape[:2]
    y, mean, rstd = torch.native_group_norm(x.contiguous(), weight, bias, batch, channels,
                                            math.prod(x.shape[2:]), num_groups, eps)
    return y * torch.sigmoid(y * swish_scale), mean, rstd


def group_norm_silu(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], group: int,
                    eps: float = 1e-5) -> Tuple[Tensor, Tensor, Tensor]:
    return group_norm_swish(x, group, weight, bias, eps)


# -- Order and movement ------------------------------------------------------------------------


def sort_v2(x: Tensor, dim: int = -1, descending: bool = False,
            out: Optional[Tensor] = None) -> Tensor:
    return torch.sort(x, dim=dim, descending=descending).values


def gating(x: Tensor, finished: Optional[Tensor] = None,
           k: int = 1) -> Tuple[Tensor, Tensor, Tensor]:
    experts = x.shape[-1]
    p = torch.softmax(x, -1, dtype=inside(x.dtype)).to(x.dtype)
    order = torch.argsort(-p.detach(), dim=-1, stable=True)[..., :k]
    rows = order.numel() // k
    index = order
    if finished is not None:
        index = index.masked_fill(finished.reshape(*x.shape[:-1], 1) != 0, experts)
    numbers = torch.arange(rows * k, dtype=torch.int32, device=x.device)
    return p.gather(-1, order), index.int(), numbers.view(k, rows).t().reshape(order.shape)


def extreme(pick: Callable[..., Any]) -> Callable[..., Tuple[Tensor, Tensor]]:
    def run(x: Tensor, dim: int, keepdim: bool = False) -> Tuple[Tensor, Tensor]:
        values, index = pick(x, dim, keepdim)
        return values, index.int()
    return run


def confusion_transpose(x: Tensor, perm: Sequence[int], shape: Sequence[int],
                        transpose_first: bool) -> Tensor:
    if transpose_first:
        return x.permute(list(perm)).reshape(list(shape))
    return x.reshape(list(shape)).permute(list(perm))


def cut(x: Tensor, offsets: Sequence[int], size: Sequence[int]) -> Tensor:
    for dim, (start, length) in enumerate(zip(offsets, size)):
        x = x.narrow(dim, start, x.shape[dim] - start if length < 0 else length)
    return x


# -- Optimizers --------------------------------------------------------------------------------


def adam_state(out: Any, named: Dict[str, Tensor]) -> List[Tensor]:
    return list(out) if out is not None else [named[name] for name in ("var", "m", "v")]


def apply_adam(beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any,
               grad: Tensor, use_locking: Any = None, use_nesterov: Any = None, out: Any = None,
               **state: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    var, m, v = adam_state(out, state)
    m = m + (beta1 - 1) * (m - grad)
    v = v + (beta2 - 1) * (v - grad * grad)
    step = lr * math.sqrt(1 - beta2_power) / (1 - beta1_power)
    way = m * beta1 + (1 - beta1) * grad if use_nesterov else m
    return var - step * way / (epsilon + v.sqrt()), m, v


def apply_adam_w(beta1_power: Any, beta2_power: Any, lr: Any, weight_decay: Any, beta1: Any,
                 beta2: Any, epsilon: Any, grad: Tensor, max_grad_norm: Optional[Tensor] = None,
                 amsgrad: Any = None, maximize: Any = None, out: Any = None,
                 **state: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    var, m, v = adam_state(out, state)
    first, second = ((1 - power) or epsilon for power in (beta1_power * beta1, beta2_power * beta2))
    grad = -grad if maximize else grad
    m = m * beta1 + (1 - beta1) * grad
    v = v * beta2 + (1 - beta2) * grad * grad
    top = torch.maximum(max_grad_norm, v) if amsgrad and max_grad_norm is not None else v
    var = var * (1 - lr * weight_decay)
    return var - lr * m / first / ((top / second).sqrt() + epsilon), m, v


# -- Attention ---------------------------------------------------------------------------------


def by_heads(x: Tensor, layout: str, heads: int) -> Tensor:
    """[B, N, S, D]; of TND [1, N, T, D]."""
    if layout == "BSH":
        return x.unflatten(2, (heads, x.shape[2] // heads)).transpose(1, 2)
    if layout == "SBH":
        return x.unflatten(2, (heads, x.shape[2] // heads)).permute(1, 2, 0, 3)
    if layout == "BSND":
        return x.transpose(1, 2)
    if layout == "TND":
        return x.transpose(0, 1).unsqueeze(0)
    if layout == "BNSD":
        return x
    raise ValueError(f"input_layout {layout!r} is none of BSH, SBH, BSND, BNSD and TND")


def back_to(y: Tensor, layout: str) -> Tensor:
    if layout == "BSH":
        return y.transpose(1, 2).flatten(2)
    if layout == "SBH":
        return y.permute(2, 0, 1, 3).flatten(2)
    if layout == "BSND":
        return y.transpose(1, 2)
    return y.squeeze(0).transpose(0, 1) if layout == "TND" else y


def is_compressed(mask: Tensor) -> bool:
    """The mask that stands for one of any size: true above the diagonal."""
    if mask.shape[-2:] != (COMPRESSED, COMPRESSED) or mask.numel() != COMPRESSED * COMPRESSED:
        return False
    flags = mask.reshape(COMPRESSED, COMPRESSED) != 0
    return bool((flags == torch.ones_like(flags).triu(1)).all())


class Band:
    """Query i sees the keys from i + low to i + high, and what the mask leaves of them."""

    def __init__(self, mask: Optional[Tensor], mode: int, before: int, after: int) -> None:
        self.whole = mask is None or (mode >= 2 and is_compressed(mask))
        self.mode = mode if mask is not None and self.whole else 1
        self.mask = None if self.whole else mask
        self.before, self.after = before, after

    def limits(self, s: int, t: int) -> Tuple[int, int]:
        return {2: (-EVERYTHING, 0), 3: (-EVERYTHING, t - s),
                4: (t - s - self.before, t - s + self.after)}.get(self.mode,
                                                                  (-EVERYTHING, EVERYTHING))

    def blocked(self, s: int, t: int, device: torch.device) -> Optional[Tensor]:
        if self.mask is not None:
            return self.mask != 0
        if self.mode == 1:
            return None
        low, high = self.limits(s, t)
        gap = torch.arange(t, device=device) - torch.arange(s, device=device).unsqueeze(1)
        return (gap < low) | (gap > high)


def attend(q: Tensor, k: Tensor, v: Tensor, scale: float, pse: Optional[Tensor], pse_first: bool,
           band: Band) -> Tuple[Tensor, Tensor, Tensor]:
    """Output, and maximum and sum of each row of scores."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.matmul(q, k.transpose(-1, -2)).to(inside(q.dtype))
    if pse is not None and pse_first:
        scores = scores + pse
    scores = scores * scale
    if pse is not None and not pse_first:
        scores = scores + pse
    blocked = band.blocked(q.shape[2], k.shape[2], q.device)
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full(
        (*scores.shape[:-1], 1), -math.inf)
    weights = torch.exp(scores - top.detach().masked_fill(top == -math.inf, 0))
    total = weights.sum(-1, keepdim=True)
    weights = weights / total.masked_fill(total == 0, 1)
    return torch.matmul(weights.to(v.dtype), v), top.detach(), total.detach()


def flash(q: Tensor, k: Tensor, v: Tensor, scale: float, band: Band) -> Optional[Tensor]:
    """The same by flash_attn, where it is installed and can do it."""
    if (q.device.type != "cuda" or q.dtype not in (torch.float16, torch.bfloat16)
            or band.mask is not None or importlib.util.find_spec("flash_attn") is None):
        return None
    from flash_attn import flash_attn_func
    s, t = q.shape[2], k.shape[2]
    low, high = band.limits(s, t)
    # Its windows count from the lower right corner, where -1 is no limit.
    window = tuple(-1 if size >= EVERYTHING - s - t else size for size in (t - s - low,
                                                                           high - (t - s)))
    if min(window) < -1:
        return None
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return flash_attn_func(q, k, v, softmax_scale=scale, window_size=window).transpose(1, 2)


def spans(ends: Optional[Sequence[int]], total: int) -> List[Tuple[int, int]]:
    if not ends:
        raise ValueError("layout TND needs actual_seq_qlen and actual_seq_kvlen")
    found, at = [], 0
    for end in ends:
        end = int(end) or at
        if not at <= end <= total:
            raise ValueError(f"a sequence from {at} to {end} of {total}")
        found.append((at, end))
        at = end
    return found


def fusion_attention(query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str,
                     pse: Optional[Tensor] = None, padding_mask: Optional[Tensor] = None,
                     atten_mask: Optional[Tensor] = None, scale: Optional[float] = None,
                     keep_prob: float = 1.0, pre_tockens: int = 2147483647,
                     next_tockens: int = 2147483647, inner_precise: int = 0, prefix: Any = None,
                     actual_seq_qlen: Any = None, actual_seq_kvlen: Any = None,
                     sparse_mode: int = 0, pse_type: int = 1,
                     **_: Any) -> Tuple[Tensor, Tensor, Tensor]:
    if keep_prob != 1:
        raise ValueError(f"with keep_prob {keep_prob} the result is random")
    if padding_mask is not None or prefix:
        raise ValueError("padding_mask and prefix are not known")
    q = by_heads(query, input_layout, head_num)
    size = q.shape[-1]
    fewer = key.shape[2] // size if input_layout in ("BSH", "SBH") else head_num
    k, v = by_heads(key, input_layout, fewer), by_heads(value, input_layout, fewer)
    band = Band(atten_mask, sparse_mode, pre_tockens, next_tockens)
    factor = 1.0 if scale is None else scale

    def one(q: Tensor, k: Tensor, v: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        quick = flash(q, k, v, factor, band) if pse is None else None
        if quick is None:
            return attend(q, k, v, factor, pse, pse_type == 1, band)
        with torch.no_grad():  # it does not tell the statistics
            _, top, total = attend(q, k, v, factor, None, False, band)
        return quick, top, total

    if input_layout == "TND":
        pieces = [one(q[:, :, a:b], k[:, :, c:d], v[:, :, c:d])
                  for (a, b), (c, d) in zip(spans(actual_seq_qlen, q.shape[2]),
                                            spans(actual_seq_kvlen, k.shape[2]))]
        y, top, total = (torch.cat(part, 2) for part in zip(*pieces))
        top, total = (x.squeeze(0).transpose(0, 1) for x in (top, total))
    else:
        y, top, total = one(q, k, v)
    top, total = (x.expand(*x.shape[:-1], REPEATED).float() for x in (top, total))
    return back_to(y, input_layout), top, total


FORMULAS: Dict[str, Callable[..., Any]] = {
    "fast_gelu": fast_gelu,
    "npu_add_rms_norm": add_rms_norm,
    "npu_apply_adam": apply_adam,
    "npu_apply_adam_w": apply_adam_w,
    "npu_apply_rotary_pos_emb": apply_rotary,
    "npu_bmmV2": bmm,
    "npu_broadcast": lambda x, size: x.broadcast_to(list(size)),
    "npu_confusion_transpose": confusion_transpose,
    "npu_dtype_cast": lambda x, dtype: x.to(dtype),
    "npu_fast_gelu": fast_gelu,
    "npu_format_cast": lambda x, acl_format=None: x.clone(),
    "npu_fusion_attention": fusion_attention,
    "npu_geglu": geglu,
    "npu_gelu": gelu,
    "npu_gelu_mul": gelu_mul,
    "npu_group_norm_silu": group_norm_silu,
    "npu_group_norm_swish": group_norm_swish,
    "npu_layer_norm_eval": layer_norm_eval,
    "npu_linear": F.linear,
    "npu_max": extreme(torch.max),
    "npu_min": extreme(torch.min),
    "npu_mish": mish,
    "npu_moe_gating_top_k_softmax": gating,
    "npu_reshape": lambda x, shape, can_refresh=False: x.reshape(list(shape)),
    "npu_rms_norm": rms_norm,
    "npu_rotary_mul": rotary_mul,
    "npu_rotary_position_embedding": rotary_mul,
    "npu_scaled_masked_softmax": scaled_masked_softmax,
    "npu_silu": F.silu,
    "npu_silu_": F.silu,
    "npu_slice": cut,
    "npu_softmax_cross_entropy_with_logits": softmax_cross_entropy,
    "npu_sort_v2": sort_v2,
    "npu_swiglu": swiglu,
    "npu_transpose": lambda x, perm, require_contiguous=True: x.permute(list(perm)),
}

# What dumps call an argument, where the formulas have one word for it.
OTHER_NAMES = {"self": ("x", "features", "input"), "input": ("x", "features"), "cos": ("r1",),
               "sin": ("r2",), "mode": ("rotary_mode",), "gamma": ("weight",), "beta": ("bias",),
               "pre_tokens": ("pre_tockens",), "next_tokens": ("next_tockens",)}


def find(name: str) -> Optional[Callable[..., Any]]:
    """The formula of an operator, whatever its arguments are called; None when there is none."""
    formula = FORMULAS.get(name)
    if formula is None or formula is F.linear:
        return formula
    known = inspect.signature(formula).parameters

    @functools.wraps(formula)
    def run(*args: Any, **kwargs: Any) -> Any:
        for word in list(kwargs):
            if word not in known:
                meant = [other for other in OTHER_NAMES.get(word, ()) if other in known]
                kwargs[meant[0] if meant else word] = kwargs.pop(word)
        return formula(*args, **kwargs)
    return run
