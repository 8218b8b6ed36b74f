"""The operators of the planted suite: inputs, plumb's name, and right implementations of each.

A right implementation computes in float32 (float64 for float64) in some order and rounds once at the
end, or is PyTorch's own kernel for the type. Everything is made from a seed.
"""

import math
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

import gradients
from kinds import Kind
from orders import TOTALS, Product, Total, add_up, pairwise, plain, products, sequential

Tensor = torch.Tensor
Run = Callable[..., Tensor]

RANGES = ("normal", "wide", "positive", "offset")


class Case(NamedTuple):
    op: str                      # plumb's name
    inputs: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    run: Callable[..., Any]      # PyTorch's function of inputs and kwargs
    variants: Dict[str, Run]     # other right ways, of inputs in float32 or float64
    family: str
    gradients: Dict[str, Callable[..., Tuple[Optional[Tensor], ...]]]  # by hand: of g and the inputs


def raised(values: Any, kind: Kind) -> Any:
    """Arguments as right arithmetic takes them in: float32, or float64."""
    if isinstance(values, Tensor) and values.is_floating_point():
        return values.detach().to(kind.work)
    if isinstance(values, (list, tuple)):
        return type(values)(raised(value, kind) for value in values)
    return values


# -- Compositions ----------------------------------------------------------------------------------


def softmax_by(total: Total) -> Run:
    def run(x: Tensor, dim: int) -> Tensor:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        return e / total(e, dim).unsqueeze(dim)
    return run


def softmax_online(x: Tensor, dim: int) -> Tensor:
    """One pass with the running maximum, and a multiplication in place of the division."""
    most = torch.full_like(x.select(dim, 0), -math.inf)
    total = torch.zeros_like(most)
    for part in x.unbind(dim):
        now = torch.maximum(most, part)
        total = total * torch.exp(most - now) + torch.exp(part - now)
        most = now
    return torch.exp(x - most.unsqueeze(dim)) * (1 / total).unsqueeze(dim)


def log_softmax_by(total: Total) -> Run:
    def run(x: Tensor, dim: int) -> Tensor:
        x = x - x.amax(dim, keepdim=True)
        return x - torch.log(total(torch.exp(x), dim).unsqueeze(dim))
    return run


def logsumexp_by(total: Total) -> Run:
    def run(x: Tensor, dim: int) -> Tensor:
        most = x.amax(dim, keepdim=True)
        return most.squeeze(dim) + torch.log(total(torch.exp(x - most), dim))
    return run


def layer_norm_by(total: Total, one_pass: bool = False) -> Run:
    def run(x: Tensor, shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor],
            eps: float = 1e-5) -> Tensor:
        n = x.shape[-1]
        mean = total(x, -1).unsqueeze(-1) / n
        if one_pass:
            var = total(x * x, -1).unsqueeze(-1) / n - mean * mean
        else:
            var = total((x - mean) * (x - mean), -1).unsqueeze(-1) / n
        return (x - mean) * torch.rsqrt(var + eps) * weight + bias
    return run


def layer_norm_folded(x: Tensor, shape: List[int], weight: Tensor, bias: Tensor,
                      eps: float = 1e-5) -> Tensor:
    """As fused kernels do it: x times a scale plus a shift, both of the row."""
    mean = x.mean(-1, keepdim=True)
    scale = 1 / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + eps)
    return (x * scale - mean * scale) * weight + bias


def welford(x: Tensor, dim: int = -1) -> Tuple[Tensor, Tensor]:
    """Mean and sum of squares, one number after the other."""
    mean = torch.zeros_like(x.select(dim, 0))
    squares = torch.zeros_like(mean)
    for count, part in enumerate(x.unbind(dim), 1):
        step = part - mean
        mean = mean + step / count
        squares = squares + step * (part - mean)
    return mean, squares


def layer_norm_welford(x: Tensor, shape: List[int], weight: Tensor, bias: Tensor,
                       eps: float = 1e-5) -> Tensor:
    mean, squares = welford(x)
    factor = torch.rsqrt(squares / x.shape[-1] + eps).unsqueeze(-1)
    return (x - mean.unsqueeze(-1)) * factor * weight + bias


def rms_norm_by(total: Total) -> Run:
    def run(x: Tensor, shape: List[int], weight: Tensor, eps: float = 1e-6) -> Tensor:
        mean = total(x * x, -1).unsqueeze(-1) / x.shape[-1]
        return x * torch.rsqrt(mean + eps) * weight
    return run


def group_norm_by(total: Total) -> Run:
    def run(x: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        part = x.reshape(x.shape[0], groups, -1)
        mean = total(part, -1).unsqueeze(-1) / part.shape[-1]
        var = total((part - mean) ** 2, -1).unsqueeze(-1) / part.shape[-1]
        normed = ((part - mean) / torch.sqrt(var + eps)).reshape(x.shape)
        return normed * weight[:, None] + bias[:, None]
    return run


def attention_by(product: Product, total: Total) -> Run:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = product(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        return product(softmax_by(total)(scores, -1), v)
    return run


def flash(size: int) -> Run:
    """Keys in blocks, with the running maximum."""
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = 1 / math.sqrt(q.shape[-1])
        most = torch.full((*q.shape[:-1], 1), -math.inf, dtype=q.dtype)
        total = torch.zeros_like(most)
        out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
        for first in range(0, k.shape[-2], size):
            scores = torch.matmul(q * scale, k[..., first:first + size, :].transpose(-1, -2))
            now = torch.maximum(most, scores.amax(-1, keepdim=True))
            factor, weights = torch.exp(most - now), torch.exp(scores - now)
            total = total * factor + weights.sum(-1, keepdim=True)
            out = out * factor + torch.matmul(weights, v[..., first:first + size, :])
            most = now
        return out / total
    return run


def conv2d_by(product: Product) -> Run:
    def run(x: Tensor, weight: Tensor, bias: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
        columns = F.unfold(x, weight.shape[2:], padding=padding, stride=stride)
        out = product(weight.flatten(1).expand(x.shape[0], -1, -1), columns)
        size = (x.shape[2] + 2 * padding - weight.shape[2]) // stride + 1
        return (out + bias[:, None]).reshape(x.shape[0], weight.shape[0], size, -1)
    return run


def rms_norm(x: Tensor, shape: List[int], weight: Tensor, eps: float = 1e-6) -> Tensor:
    return rms_norm_by(plain)(_wide(x), shape, _wide(weight), eps).to(x.dtype)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention_by(torch.matmul, plain)(_wide(q), _wide(k), _wide(v)).to(q.dtype)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def var_by(total: Total) -> Run:
    def run(x: Tensor, dim: int) -> Tensor:
        mean = (total(x, dim) / x.shape[dim]).unsqueeze(dim)
        return total((x - mean) ** 2, dim) / (x.shape[dim] - 1)
    return run


def scan(x: Tensor, dim: int) -> Tensor:
    """A running sum in steps of 1, 2, 4, ... as parallel hardware does it."""
    x, step = x.movedim(dim, 0), 1
    while step < x.shape[0]:
        x = torch.cat([x[:step], x[step:] + x[:-step]])
        step *= 2
    return x.movedim(0, dim)


def pool_by(total: Total) -> Run:
    def run(x: Tensor, size: int) -> Tensor:
        windows = x.unfold(2, size, size).unfold(3, size, size).flatten(-2)
        return total(windows, -1) / (size * size)
    return run


# -- Values ----------------------------------------------------------------------------------------


class Values:
    """Random tensors of a type: normal, over many octaves, without a sign, or far from zero."""

    def __init__(self, kind: Kind, seed: int, spread: str) -> None:
        self.kind, self.spread = kind, spread
        self.generator = torch.Generator().manual_seed(seed)
        # No wider than sums of products can hold.
        self.octaves = 3 if kind.eight else 5 if kind.name == "float16" else 10
        self.shift = 2.0 if kind.eight else 16.0

    def normal(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
        x = torch.randn(*shape, generator=self.generator)
        if self.spread == "wide":
            x = torch.sign(x) * self._octaves(*shape)
        elif self.spread == "positive":
            x = x.abs()
        elif self.spread == "offset":
            x = x + self.shift
        return self.kind.store(x * scale + shift)

    def uniform(self, *shape: int, low: float, high: float) -> Tensor:
        if self.spread == "wide":
            return self.kind.store(self._octaves(*shape))
        x = torch.rand(*shape, generator=self.generator) * (high - low) + low
        return self.kind.store(x + self.shift if self.spread == "offset" else x)

    def _octaves(self, *shape: int) -> Tensor:
        return 2 ** ((torch.rand(*shape, generator=self.generator) * 2 - 1) * self.octaves)


def gradient_of(shape: Tuple[int, ...], kind: Kind, seed: int) -> Tensor:
    """A gradient of an output."""
    return Values(kind, 1000 + seed, "normal").normal(*shape)


# -- The list --------------------------------------------------------------------------------------


def cases(kind: Kind, large: bool, seed: int, spread: str = "normal") -> Iterator[Tuple[str, Case]]:
    values = Values(kind, seed, spread)
    yield from _products(kind, values, large)
    yield from _rows(values, large)
    yield from _sums(values, large)
    yield from _functions(values, large)


def _case(name: str, family: str, op: str, inputs: Tuple[Any, ...], run: Callable[..., Any],
          variants: Optional[Dict[str, Run]] = None,
          backward: Optional[Dict[str, Callable[..., Any]]] = None, **kwargs: Any) -> Tuple[str, Case]:
    return name, Case(op, inputs, kwargs, run, variants or {}, family, backward or {})


def _shape(large: bool) -> Tuple[int, int, int, int]:
    """Rows, terms, columns, and the size of a batch."""
    return (96, 320, 80, 3) if large else (8, 24, 12, 2)


def _products(kind: Kind, values: Values, large: bool) -> Iterator[Tuple[str, Case]]:
    normal, uniform = values.normal, values.uniform
    m, k, n, b = _shape(large)
    size, keys, queries = (14, 48, 32) if large else (6, 8, 8)
    orders = products(kind.work)
    of_product = {name: gradients.product(f) for name, f in orders.items()}

    def each(make: Callable[[Product], Run]) -> Dict[str, Run]:
        return {name: make(f) for name, f in orders.items()}

    yield _case("mm", "product", "mm", (normal(m, k), normal(k, n)), torch.mm, orders, of_product)
    yield _case("mm positive", "product", "mm",
                (uniform(m, k, low=0, high=1), uniform(k, n, low=0, high=1)), torch.mm, orders,
                of_product)
    yield _case("bmm", "product", "bmm", (normal(b, m, k), normal(b, k, n)), torch.bmm, orders,
                of_product)
    yield _case("linear", "product", "linear", (normal(m, k), normal(n, k, scale=0.1), normal(n)),
                F.linear, {**each(lambda f: lambda x, w, c: f(x, w.t()) + c),
                           "bias first": lambda x, w, c: torch.addmm(c, x, w.t())},
                {name: gradients.linear(f, TOTALS.get(name, plain)) for name, f in orders.items()})
    yield _case("addmm", "product", "addmm", (normal(m, n), normal(m, k), normal(k, n)), torch.addmm,
                each(lambda f: lambda c, x, w: c + f(x, w)),
                {name: gradients.addmm(f) for name, f in orders.items()})
    yield _case("conv2d", "product", "conv2d", (normal(b, 8, size, size),
                                                normal(12, 8, 3, 3, scale=0.2), normal(12)),
                F.conv2d, each(conv2d_by), padding=1)
    yield _case("attention", "attention", "scaled_dot_product_attention",
                (normal(b, 2, queries, 16), normal(b, 2, keys, 16), normal(b, 2, keys, 16)), attention,
                {"sequential": attention_by(sequential, add_up),
                 "pairwise": attention_by(orders["pairwise"], pairwise),
                 "flash of 4": flash(4), "flash of 16": flash(16)},
                {"flash": gradients.flash_attention})


def _rows(values: Values, large: bool) -> Iterator[Tuple[str, Case]]:
    normal = values.normal
    m, k, _, b = _shape(large)
    yield _case("softmax", "softmax", "softmax", (normal(m, k, scale=3),), F.softmax,
                {**{name: softmax_by(f) for name, f in TOTALS.items()}, "online": softmax_online},
                {name: gradients.softmax(f) for name, f in TOTALS.items()}, dim=-1)
    yield _case("log_softmax", "softmax", "log_softmax", (normal(m, k, scale=3),), F.log_softmax,
                {name: log_softmax_by(f) for name, f in TOTALS.items()},
                {name: gradients.log_softmax(f) for name, f in TOTALS.items()}, dim=-1)
    yield _case("logsumexp", "softmax", "logsumexp", (normal(m, k, scale=2),), torch.logsumexp,
                {name: logsumexp_by(f) for name, f in TOTALS.items()}, dim=-1)
    yield _case("layer_norm", "norm", "layer_norm",
                (normal(m, k, shift=0.5), [k], normal(k, shift=1, scale=0.2), normal(k)), F.layer_norm,
                {**{name: layer_norm_by(f) for name, f in TOTALS.items()},
                 "one pass": layer_norm_by(pairwise, True), "folded": layer_norm_folded,
                 "Welford": layer_norm_welford},
                {name: gradients.layer_norm(f) for name, f in TOTALS.items()})
    yield _case("rms_norm", "norm", "rms_norm", (normal(m, k), [k], normal(k, shift=1, scale=0.2)),
                rms_norm, {name: rms_norm_by(f) for name, f in TOTALS.items()},
                {name: gradients.rms_norm(f) for name, f in TOTALS.items()}, eps=1e-6)
    yield _case("group_norm", "norm", "group_norm",
                (normal(b, 8, k), 4, normal(8, shift=1, scale=0.2), normal(8)), F.group_norm,
                {name: group_norm_by(f) for name, f in TOTALS.items()})


def _sums(values: Values, large: bool) -> Iterator[Tuple[str, Case]]:
    normal, uniform = values.normal, values.uniform
    m, k, _, b = _shape(large)

    def each(make: Callable[[Total], Run]) -> Dict[str, Run]:
        return {name: make(f) for name, f in TOTALS.items()}

    yield _case("sum", "sum", "sum", (normal(m, k),), torch.sum, dict(TOTALS), dim=-1)
    yield _case("mean", "sum", "mean", (uniform(m, k, low=0, high=2),), torch.mean,
                each(lambda f: lambda x, dim: f(x, dim) / x.shape[dim]), {"reciprocal": gradients.mean},
                dim=-1)
    yield _case("var", "sum", "var", (normal(m, k, shift=1),), torch.var,
                {**each(var_by), "Welford": lambda x, dim: welford(x, dim)[1] / (x.shape[dim] - 1)},
                dim=-1)
    yield _case("cumsum", "sum", "cumsum", (normal(m, k),), torch.cumsum, {"scan": scan}, dim=-1)
    yield _case("norm", "sum", "linalg.norm", (normal(m, k),), torch.linalg.norm,
                each(lambda f: lambda x, dim: torch.sqrt(f(x * x, dim))), dim=-1)
    yield _case("avg_pool2d", "sum", "avg_pool2d", (normal(b, 4, 16, 16), 4), F.avg_pool2d,
                each(pool_by))


def _functions(values: Values, large: bool) -> Iterator[Tuple[str, Case]]:
    normal, uniform = values.normal, values.uniform
    m, k, _, _ = _shape(large)
    x = normal(m, k, scale=2)
    yield _case("gelu", "function", "gelu", (x,), F.gelu,
                {"erf": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))})
    yield _case("gelu tanh", "function", "gelu", (x,), F.gelu,
                {"steps": lambda x, approximate: 0.5 * x * (1 + torch.tanh(
                    math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}, approximate="tanh")
    yield _case("silu", "function", "silu", (x,), F.silu, {"steps": lambda x: x / (1 + torch.exp(-x))},
                {"by hand": gradients.silu})
    yield _case("sigmoid", "function", "sigmoid", (x,), torch.sigmoid,
                {"steps": lambda x: 1 / (1 + torch.exp(-x))}, {"by hand": gradients.sigmoid})
    yield _case("tanh", "function", "tanh", (x,), torch.tanh, {}, {"by hand": gradients.tanh})
    yield _case("exp", "function", "exp", (x,), torch.exp)
    yield _case("softplus", "function", "softplus", (x,), F.softplus)
    for name, f in (("log", torch.log), ("sqrt", torch.sqrt)):
        yield _case(name, "function", name, (uniform(m, k, low=0.01, high=8),), f)
    yield _case("rsqrt", "function", "rsqrt", (uniform(m, k, low=0.01, high=8),), torch.rsqrt,
                {"divided": lambda x: 1 / torch.sqrt(x)})
    yield _case("sin", "function", "sin", (x,), torch.sin)
    yield _case("pow", "function", "pow", (uniform(m, k, low=0.1, high=4), 1.7), torch.pow)
    yield _case("mse_loss", "arithmetic", "mse_loss", (normal(m, k), normal(m, k)), F.mse_loss,
                reduction="none")
    yield _case("add", "arithmetic", "add", (normal(m, k), normal(m, k)), torch.add)
    yield _case("mul", "arithmetic", "mul", (normal(m, k), normal(m, k)), torch.mul)
    yield _case("div", "arithmetic", "div", (normal(m, k), uniform(m, k, low=0.5, high=3)), torch.div,
                {"reciprocal": lambda a, b: a * (1 / b)})
    yield _case("addcmul", "arithmetic", "addcmul", (normal(m, k), normal(m, k), normal(m, k)),
                torch.addcmul,
                {"steps": lambda a, b, c, value: a + value * b * c,
                 "other steps": lambda a, b, c, value: a + value * (b * c),
                 "FMA": lambda a, b, c, value: (a.double() + (value * b).double() * c.double()).to(
                     a.dtype)}, value=0.5)
    yield _case("lerp", "arithmetic", "lerp", (normal(m, k), normal(m, k), 0.3), torch.lerp,
                {"two products": lambda a, b, t: (1 - t) * a + t * b})
