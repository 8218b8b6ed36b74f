"""Gradients by hand: the formulas of backward kernels, with sums in an order of choice.

Each function takes the gradient of the output and the inputs of the call, and returns a gradient for
each input that is a tensor, in their order.
"""

import math
from typing import Any, Callable, List, Tuple

import torch

from orders import Product, Total

Tensor = torch.Tensor
Gradients = Callable[..., Tuple[Tensor, ...]]


def product(order: Product) -> Gradients:
    def run(g: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, ...]:
        return order(g, b.transpose(-1, -2)), order(a.transpose(-1, -2), g)
    return run


def linear(order: Product, total: Total) -> Gradients:
    def run(g: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tuple[Tensor, ...]:
        return order(g, weight), order(g.t(), x), total(g, 0)
    return run


def addmm(order: Product) -> Gradients:
    def run(g: Tensor, c: Tensor, a: Tensor, b: Tensor) -> Tuple[Tensor, ...]:
        return (g, *product(order)(g, a, b))
    return run


def softmax(total: Total) -> Gradients:
    def run(g: Tensor, x: Tensor, dim: int) -> Tuple[Tensor, ...]:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        y = e / total(e, dim).unsqueeze(dim)
        return (y * (g - total(g * y, dim).unsqueeze(dim)),)
    return run


def log_softmax(total: Total) -> Gradients:
    def run(g: Tensor, x: Tensor, dim: int) -> Tuple[Tensor, ...]:
        e = torch.exp(x - x.amax(dim, keepdim=True))
        return (g - e / total(e, dim).unsqueeze(dim) * total(g, dim).unsqueeze(dim),)
    return run


def layer_norm(total: Total) -> Gradients:
    def run(g: Tensor, x: Tensor, shape: List[int], weight: Tensor, bias: Tensor,
            eps: float = 1e-5) -> Tuple[Tensor, ...]:
        def mean(values: Tensor) -> Tensor:
            return total(values, -1).unsqueeze(-1) / x.shape[-1]
        far = x - mean(x)
        factor = torch.rsqrt(mean(far * far) + eps)
        normed, part = far * factor, g * weight
        along = factor * (part - mean(part) - normed * mean(part * normed))
        return along, total(g * normed, 0), total(g, 0)
    return run


def rms_norm(total: Total) -> Gradients:
    def run(g: Tensor, x: Tensor, shape: List[int], weight: Tensor, eps: float = 1e-6,
            ) -> Tuple[Tensor, ...]:
        def mean(values: Tensor) -> Tensor:
            return total(values, -1).unsqueeze(-1) / x.shape[-1]
        factor = torch.rsqrt(mean(x * x) + eps)
        normed, part = x * factor, g * weight
        return factor * (part - normed * mean(part * normed)), total(g * normed, 0)
    return run


def flash_attention(g: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tuple[Tensor, ...]:
    """The weights are computed again, and the row sums come from the output."""
    scale = 1 / math.sqrt(q.shape[-1])
    scores = torch.matmul(q * scale, k.transpose(-1, -2))
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    row = (g * torch.matmul(weights, v)).sum(-1, keepdim=True)
    inner = weights * (torch.matmul(g, v.transpose(-1, -2)) - row)
    return (torch.matmul(inner, k) * scale, torch.matmul(inner.transpose(-1, -2), q) * scale,
            torch.matmul(weights.transpose(-1, -2), g))


def mean(g: Tensor, x: Tensor, dim: int) -> Tuple[Tensor, ...]:
    """Times the reciprocal of the count, which is rounded."""
    share = torch.tensor(1 / x.shape[dim], dtype=x.dtype)
    return ((g * share).unsqueeze(dim).expand_as(x).contiguous(),)


def sigmoid(g: Tensor, x: Tensor) -> Tuple[Tensor, ...]:
    y = torch.sigmoid(x)
    return (g * (y * (1 - y)),)


def silu(g: Tensor, x: Tensor) -> Tuple[Tensor, ...]:
    y = torch.sigmoid(x)
    return (g * (y * (1 + x * (1 - y))),)


def tanh(g: Tensor, x: Tensor) -> Tuple[Tensor, ...]:
    y = torch.tanh(x)
    return (g * (1 - y * y),)


# -- By autograd -----------------------------------------------------------------------------------


def leaves(inputs: Any) -> List[Tensor]:
    """The tensors among the arguments that can have a gradient, in order."""
    return [value for value in inputs if isinstance(value, Tensor) and value.is_floating_point()]


def through(run: Callable[..., Tensor], g: Tensor, inputs: Any, kwargs: Any) -> Tuple[Tensor, ...]:
    """What autograd makes of this way to compute the call; zeros where it finds no way back."""
    own = [value.detach().clone().requires_grad_() if isinstance(value, Tensor) and
           value.is_floating_point() else value for value in inputs]
    wanted = leaves(own)
    found = torch.autograd.grad(run(*own, **kwargs), wanted, g, allow_unused=True)
    return tuple(torch.zeros_like(leaf) if grad is None else grad.detach()
                 for leaf, grad in zip(wanted, found))
