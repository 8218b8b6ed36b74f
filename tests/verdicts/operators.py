"""The operators of the planted suite: inputs, plumb's name, and right implementations of each.

A right implementation computes in float32 (float64 for float64) in some order and rounds once at the
end, or is PyTorch's own kernel for the type. Everything is made from a seed.
"""

import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


class Case(NamedTuple):
    op: str                      # plumb's name
    inputs: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    run: Callable[..., Any]      # PyTorch's function of inputs and kwargs
    variants: Dict[str, Callable[..., Tensor]]  # other right ways, of inputs in float32 or float64
    sums: bool                   # one output adds up many terms


def work_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def raised(values: Any, dtype: torch.dtype) -> Any:
    if isinstance(values, Tensor) and values.is_floating_point():
        return values.detach().to(work_type(dtype))
    if isinstance(values, (list, tuple)):
        return type(values)(raised(value, dtype) for value in values)
    return values


# -- Sums in other orders --------------------------------------------------------------------------


def sequential(a: Tensor, b: Tensor) -> Tensor:
    """A product that adds one term after the other."""
    out = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=a.dtype)
    for k in range(a.shape[-1]):
        out = out + a[..., k:k + 1] * b[..., k:k + 1, :]
    return out


def blocked(a: Tensor, b: Tensor, size: int = 16) -> Tensor:
    out = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=a.dtype)
    for k in range(0, a.shape[-1], size):
        out = out + torch.matmul(a[..., k:k + size], b[..., k:k + size, :])
    return out


def backwards(a: Tensor, b: Tensor) -> Tensor:
    return sequential(a.flip(-1), b.flip(-2))


def add_up(x: Tensor, dim: int = -1) -> Tensor:
    x = x.movedim(dim, 0)
    out = torch.zeros_like(x[0])
    for part in x:
        out = out + part
    return out


def pairwise(x: Tensor, dim: int = -1) -> Tensor:
    x = x.movedim(dim, 0)
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        rest = x[2 * half:]
        x = torch.cat([x[:half] + x[half:2 * half], rest])
    return x[0]


def softmax_by(total: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, dim: int) -> Tensor:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        return e / total(e, dim).unsqueeze(dim)
    return run


def log_softmax_by(total: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, dim: int) -> Tensor:
        x = x - x.amax(dim, keepdim=True)
        return x - torch.log(total(torch.exp(x), dim).unsqueeze(dim))
    return run


def layer_norm_by(total: Callable[..., Tensor], one_pass: bool = False) -> Callable[..., Tensor]:
    def run(x: Tensor, shape: List[int], weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        n = x.shape[-1]
        mean = total(x, -1).unsqueeze(-1) / n
        if one_pass:
            var = total(x * x, -1).unsqueeze(-1) / n - mean * mean
        else:
            var = total((x - mean) * (x - mean), -1).unsqueeze(-1) / n
        return (x - mean) * torch.rsqrt(var + eps) * weight + bias
    return run


def rms_norm_by(total: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, shape: List[int], weight: Tensor, eps: float = 1e-6) -> Tensor:
        mean = total(x * x, -1).unsqueeze(-1) / x.shape[-1]
        return x * torch.rsqrt(mean + eps) * weight
    return run


def attention_by(product: Callable[..., Tensor], total: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = product(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        return product(softmax_by(total)(scores, -1), v)
    return run


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys in blocks, with the running maximum."""
    scale = 1 / math.sqrt(q.shape[-1])
    most = torch.full((*q.shape[:-1], 1), -math.inf, dtype=q.dtype)
    total = torch.zeros_like(most)
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for first in range(0, k.shape[-2], 16):
        scores = torch.matmul(q * scale, k[..., first:first + 16, :].transpose(-1, -2))
        now = torch.maximum(most, scores.amax(-1, keepdim=True))
        factor, weights = torch.exp(most - now), torch.exp(scores - now)
        total = total * factor + weights.sum(-1, keepdim=True)
        out = out * factor + torch.matmul(weights, v[..., first:first + 16, :])
        most = now
    return out / total


def conv2d_by(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(x: Tensor, weight: Tensor, bias: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
        columns = F.unfold(x, weight.shape[2:], padding=padding, stride=stride)
        out = product(weight.flatten(1).expand(x.shape[0], -1, -1), columns)
        size = (x.shape[2] + 2 * padding - weight.shape[2]) // stride + 1
        return (out + bias[:, None]).reshape(x.shape[0], weight.shape[0], size, -1)
    return run


def rms_norm(x: Tensor, shape: List[int], weight: Tensor, eps: float = 1e-6) -> Tensor:
    return rms_norm_by(lambda v, d: v.sum(d))(raised(x, x.dtype), shape, raised(weight, x.dtype),
                                              eps).to(x.dtype)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    wide = [raised(t, q.dtype) for t in (q, k, v)]
    return attention_by(torch.matmul, lambda x, d: x.sum(d))(*wide).to(q.dtype)


# -- The list --------------------------------------------------------------------------------------


def cases(dtype: torch.dtype, large: bool, seed: int) -> Iterator[Tuple[str, Case]]:
    g = torch.Generator().manual_seed(seed)
    m, k, n = (96, 320, 80) if large else (8, 24, 12)
    b = 3 if large else 2

    def normal(*shape: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
        return (torch.randn(*shape, generator=g) * scale + shift).to(dtype)

    def uniform(*shape: int, low: float, high: float) -> Tensor:
        return (torch.rand(*shape, generator=g) * (high - low) + low).to(dtype)

    def case(name: str, op: str, inputs: Tuple[Any, ...], run: Callable[..., Any],
             variants: Optional[Dict[str, Callable[..., Tensor]]] = None, sums: bool = False,
             **kwargs: Any) -> Tuple[str, Case]:
        return name, Case(op, inputs, kwargs, run, variants or {}, sums)

    orders = {"sequential": sequential, "blocked": blocked, "backwards": backwards}
    totals = {"sequential": add_up, "pairwise": pairwise}

    yield case("mm", "mm", (normal(m, k), normal(k, n)), torch.mm, orders, True)
    yield case("mm positive", "mm", (uniform(m, k, low=0, high=1), uniform(k, n, low=0, high=1)),
               torch.mm, orders, True)
    yield case("bmm", "bmm", (normal(b, m, k), normal(b, k, n)), torch.bmm, orders, True)
    yield case("linear", "linear", (normal(m, k), normal(n, k, scale=0.1), normal(n)), F.linear,
               {name: (lambda f: lambda x, w, c: f(x, w.t()) + c)(f) for name, f in orders.items()},
               True)
    yield case("addmm", "addmm", (normal(m, n), normal(m, k), normal(k, n)), torch.addmm,
               {name: (lambda f: lambda c, x, w: c + f(x, w))(f) for name, f in orders.items()}, True)
    yield case("conv2d", "conv2d", (normal(b, 8, 14 if large else 6, 14 if large else 6),
                                    normal(12, 8, 3, 3, scale=0.2), normal(12)),
               F.conv2d, {name: conv2d_by(f) for name, f in orders.items()}, True, padding=1)
    yield case("softmax", "softmax", (normal(m, k, scale=3),), F.softmax,
               {name: softmax_by(f) for name, f in totals.items()}, True, dim=-1)
    yield case("log_softmax", "log_softmax", (normal(m, k, scale=3),), F.log_softmax,
               {name: log_softmax_by(f) for name, f in totals.items()}, True, dim=-1)
    yield case("layer_norm", "layer_norm", (normal(m, k, shift=0.5), [k], normal(k, shift=1, scale=0.2),
                                            normal(k)), F.layer_norm,
               {**{name: layer_norm_by(f) for name, f in totals.items()},
                "one pass": layer_norm_by(pairwise, True)}, True)
    yield case("rms_norm", "rms_norm", (normal(m, k), [k], normal(k, shift=1, scale=0.2)), rms_norm,
               {name: rms_norm_by(f) for name, f in totals.items()}, True, eps=1e-6)
    yield case("group_norm", "group_norm", (normal(b, 8, k), 4, normal(8, shift=1, scale=0.2), normal(8)),
               F.group_norm, {}, True)
    yield case("attention", "scaled_dot_product_attention",
               (normal(b, 2, 32 if large else 8, 16), normal(b, 2, 48 if large else 8, 16),
                normal(b, 2, 48 if large else 8, 16)), attention,
               {"sequential": attention_by(sequential, add_up), "flash": flash}, True)
    yield case("sum", "sum", (normal(m, k),), torch.sum,
               {name: f for name, f in totals.items()}, True, dim=-1)
    yield case("mean", "mean", (uniform(m, k, low=0, high=2),), torch.mean,
               {name: (lambda f: lambda x, dim: f(x, dim) / x.shape[dim])(f)
                for name, f in totals.items()}, True, dim=-1)
    yield case("var", "var", (normal(m, k, shift=1),), torch.var,
               {name: (lambda f: lambda x, dim: f((x - (f(x, dim) / x.shape[dim]).unsqueeze(dim)) ** 2,
                                                  dim) / (x.shape[dim] - 1))(f)
                for name, f in totals.items()}, True, dim=-1)
    yield case("logsumexp", "logsumexp", (normal(m, k, scale=2),), torch.logsumexp, {}, True, dim=-1)
    yield case("cumsum", "cumsum", (normal(m, k),), torch.cumsum, {}, True, dim=-1)
    yield case("norm", "linalg.norm", (normal(m, k),), torch.linalg.norm, {}, True, dim=-1)
    yield case("avg_pool2d", "avg_pool2d", (normal(b, 4, 16, 16), 4), F.avg_pool2d, {}, True)
    yield case("mse_loss", "mse_loss", (normal(m, k), normal(m, k)), F.mse_loss, {}, False,
               reduction="none")
    x = normal(m, k, scale=2)
    yield case("gelu", "gelu", (x,), F.gelu,
               {"erf": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))})
    yield case("gelu tanh", "gelu", (x,), F.gelu,
               {"steps": lambda x, approximate: 0.5 * x * (1 + torch.tanh(
                   math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}, approximate="tanh")
    yield case("silu", "silu", (x,), F.silu, {"steps": lambda x: x / (1 + torch.exp(-x))})
    yield case("sigmoid", "sigmoid", (x,), torch.sigmoid, {"steps": lambda x: 1 / (1 + torch.exp(-x))})
    yield case("tanh", "tanh", (x,), torch.tanh)
    yield case("exp", "exp", (x,), torch.exp)
    yield case("softplus", "softplus", (x,), F.softplus)
    yield case("log", "log", (uniform(m, k, low=0.01, high=8),), torch.log)
    yield case("sqrt", "sqrt", (uniform(m, k, low=0.01, high=8),), torch.sqrt)
    yield case("rsqrt", "rsqrt", (uniform(m, k, low=0.01, high=8),), torch.rsqrt,
               {"divided": lambda x: 1 / torch.sqrt(x)})
    yield case("sin", "sin", (x,), torch.sin)
    yield case("pow", "pow", (uniform(m, k, low=0.1, high=4), 1.7), torch.pow)
    yield case("add", "add", (normal(m, k), normal(m, k)), torch.add)
    yield case("mul", "mul", (normal(m, k), normal(m, k)), torch.mul)
    yield case("div", "div", (normal(m, k), uniform(m, k, low=0.5, high=3)), torch.div,
               {"reciprocal": lambda a, b: a * (1 / b)})
    yield case("addcmul", "addcmul", (normal(m, k), normal(m, k), normal(m, k)), torch.addcmul, {},
               value=0.5)
    yield case("lerp", "lerp", (normal(m, k), normal(m, k), 0.3), torch.lerp)
