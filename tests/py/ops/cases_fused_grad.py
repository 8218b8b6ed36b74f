"""Losses and gradients that torch_npu has as operators, against PyTorch's autograd."""

from typing import Any, Iterator

import torch
import torch.nn.functional as F

from ops.cases_fused import COMPRESSED, attention, rms_norm, statistic
from ops.harness import Case, bools, case, ints, randn, uniform


def cross_entropy(x: torch.Tensor, target: torch.Tensor, weight: Any = None, **kwargs: Any) -> Any:
    empty = torch.zeros(0)
    return F.cross_entropy(x, target, weight, **kwargs), F.log_softmax(x, 1), empty, empty


def cross_entropy_backward(grad: torch.Tensor, logp: torch.Tensor, target: torch.Tensor, weight: Any = None,
                           grad_zloss: Any = None, lse_for_zloss: Any = None, **kwargs: Any) -> torch.Tensor:
    x = logp.detach().requires_grad_()
    return torch.autograd.grad(F.cross_entropy(x, target, weight, **kwargs), x, grad)[0]


def losses() -> Iterator[Case]:
    target = ints(0, 5, 6)
    for reduction in ("mean", "sum", "none"):
        for weight in (None, uniform(0.5, 2, 5).detach()):
            for smoothing in (0.0, 0.2):
                kwargs = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": 3}
                for output in (0, 1):
                    yield case("NPU.npu_cross_entropy_loss", randn(6, 5), target, weight, ref=cross_entropy,
                               grad_output=output, **kwargs)
                grad = randn(6).detach() if reduction == "none" else randn().detach()
                yield case("NPU.npu_cross_entropy_loss_backward", grad, F.log_softmax(randn(6, 5), 1).detach(), target,
                           weight, ref=cross_entropy_backward, rtol=1e-6, **kwargs)
    # Not a logarithm of probabilities, as random values of a dump are: the formula holds as it stands.
    yield case("NPU.npu_cross_entropy_loss_backward", randn().detach(), randn(6, 5).detach(), target,
               ref=lambda g, x, t: g / 6 * (torch.exp(x) - F.one_hot(t, 5)))
    yield case("NPU.npu_cross_entropy_loss", randn(6, 5), target, return_zloss=True, refused=True)
    yield case("NPU.npu_cross_entropy_loss", randn(6, 5), target, lse_square_scale_for_zloss=0.1, refused=True)
    yield case("NPU.npu_cross_entropy_loss", randn(6, 5, 2), ints(0, 5, 6, 2), refused=True)
    yield case("NPU.npu_cross_entropy_loss", randn(6, 5), ints(5, 6, 6), refused=True)


def rms_backward(grad: torch.Tensor, x: torch.Tensor, gamma: torch.Tensor, rstd: torch.Tensor) -> Any:
    r = rstd.reshape(rstd.shape + (1,) * (x.dim() - rstd.dim()))
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    rows = list(range(x.dim() - gamma.dim()))
    mean = (grad * x * gamma * r).mean(dims, keepdim=True)
    dgamma = (x * grad * r).sum(rows) if rows else x * grad * r
    return (grad * gamma - x * r * mean) * r, statistic(dgamma)


def norms() -> Iterator[Case]:
    for shape, gamma in (((3, 4), (4,)), ((2, 3, 8), (8,)), ((2, 3, 4), (3, 4)), ((5,), (5,)), ((0, 4), (4,))):
        x, g, w = randn(*shape).detach(), randn(*shape).detach(), randn(*gamma).detach()
        yield case("NPU.npu_rms_norm_backward", g, x, w, rms_norm(x, w)[1], ref=rms_backward)
    x, w = randn(3, 4).detach(), randn(4).detach()
    r = rms_norm(x, w)[1]
    for args in ((x, x, w, r[:2]), (x[:2], x, w, r), (x, x, w[:3], r)):
        yield case("NPU.npu_rms_norm_backward", *args, refused=True)


def attention_grad(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dy: torch.Tensor, head_num: int,
                   input_layout: str, pse: Any = None, scale_value: float = 1.0, **kwargs: Any) -> Any:
    inputs = [t.detach().requires_grad_() for t in (query, key, value)]
    pse = pse if pse is None else pse.detach().requires_grad_()
    y = attention(*inputs, head_num, input_layout, pse=pse, scale=scale_value, **kwargs)[0]
    wanted = inputs if pse is None else inputs + [pse]
    grads = list(torch.autograd.grad(y, wanted, dy))
    return grads if pse is not None else grads + [torch.zeros(0, dtype=query.dtype)]


def attentions() -> Iterator[Case]:
    def fix(*shape: int) -> torch.Tensor:
        return randn(*shape).detach()

    name = "NPU.npu_fusion_attention_grad"
    for layout, q, kv in (("BNSD", (2, 4, 5, 3), (2, 2, 6, 3)), ("BSH", (2, 5, 12), (2, 6, 6)),
                          ("SBH", (5, 2, 12), (6, 2, 12)), ("BSND", (2, 5, 4, 3), (2, 6, 1, 3))):
        yield case(name, fix(*q), fix(*kv), fix(*kv), fix(*q), 4, layout, scale_value=0.5, ref=attention_grad)
    q, kv = (2, 4, 5, 3), (2, 2, 6, 3)
    yield case(name, fix(*q), fix(*kv), fix(*kv), fix(*q), 4, "BNSD", pse=fix(2, 4, 5, 6), scale_value=0.5,
               atten_mask=bools(5, 6), ref=attention_grad)
    yield case(name, fix(*q), fix(*kv), fix(*kv), fix(*q), 4, "BNSD", atten_mask=COMPRESSED, sparse_mode=3,
               ref=attention_grad)
    yield case(name, fix(7, 4, 3), fix(9, 2, 3), fix(9, 2, 3), fix(7, 4, 3), 4, "TND", actual_seq_qlen=[3, 7],
               actual_seq_kvlen=[4, 9], ref=attention_grad)
    yield case(name, fix(*q), fix(*kv), fix(*kv), fix(2, 4, 5, 2), 4, "BNSD", refused=True)
    yield case(name, fix(*q), fix(*kv), fix(*kv), fix(*q), 4, "BNSD", keep_prob=0.5, refused=True)


def cases() -> Iterator[Case]:
    for part in (losses, norms, attentions):
        yield from part()
