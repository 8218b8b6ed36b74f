"""A small transformer block and a convolution, and passes that rewrite them, rightly and wrongly."""

import copy
import math
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import nn

D, WIDE, LENGTH, BATCH = 32, 64, 12, 4


def first(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.relu(F.linear(x, m.w0, m.b0))


def qkv(m: Any, x: torch.Tensor) -> Any:
    return F.linear(x, m.wq, m.bq), F.linear(x, m.wk, m.bk), F.linear(x, m.wv, m.bv)


def attend(m: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(q, k.transpose(-1, -2)) * (1 / math.sqrt(D))
    return torch.matmul(torch.softmax(scores, -1), v)


def join(m: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y) + m.shift


def norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (D,), m.gamma, m.beta, 1e-5)


def up(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, m.w1, m.b1)


def act(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


def down(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, m.w2)


def gate(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.silu(x)


def tail(m: Any, x: torch.Tensor) -> torch.Tensor:
    return (x * m.c1) * m.c2


def last(m: Any, x: torch.Tensor) -> torch.Tensor:
    return x.mean(1)


PARTS: Dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    first, qkv, attend, join, norm, up, act, down, gate, tail, last)}


class Block(nn.Module):
    """Each part can be put in the place of another."""

    def __init__(self, **parts: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(5)

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-1]))

        for name in ("w0", "wq", "wk", "wv"):
            setattr(self, name, weight(D, D))
        for name in ("b0", "bq", "bk", "bv"):
            setattr(self, name, nn.Parameter(torch.randn(D) / 4))
        self.w1, self.b1 = weight(WIDE, D), nn.Parameter(torch.randn(WIDE) / 4)
        self.w2 = nn.Parameter(torch.randn(WIDE, D) / 8)
        self.gamma = nn.Parameter(1 + torch.randn(D) / 4)
        self.beta = nn.Parameter(torch.randn(D) / 4)
        self.register_buffer("shift", torch.randn(D) / 4)
        self.register_buffer("c1", 1 + torch.rand(D))
        self.register_buffer("c2", 1 + torch.rand(D))
        self.parts = {**PARTS, **parts}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = self.parts
        x = p["first"](self, x)
        x = p["norm"](self, p["join"](self, x, p["attend"](self, *p["qkv"](self, x))))
        x = x + p["down"](self, p["act"](self, p["up"](self, x)))
        return p["last"](self, p["tail"](self, p["gate"](self, x)))


def changed(**parts: Callable[..., Any]) -> Callable[[nn.Module], nn.Module]:
    """A pass that replaces parts; the parameters stay."""
    def rewrite(module: nn.Module) -> nn.Module:
        twin = copy.deepcopy(module)
        twin.parts = {**twin.parts, **parts}
        return twin
    return rewrite


def folded(round_to: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[nn.Module], nn.Module]:
    """c1 and c2 become one constant."""
    def rewrite(module: nn.Module) -> nn.Module:
        twin = copy.deepcopy(module)
        both = round_to(twin.c1.double() * twin.c2.double()).to(twin.c1.dtype)
        del twin.c1, twin.c2
        twin.register_buffer("c12", both)
        twin.parts = {**twin.parts, "tail": lambda m, x: x * m.c12}
        return twin
    return rewrite


def merged(module: nn.Module) -> nn.Module:
    """Three products become one."""
    def three(m: Any, x: torch.Tensor) -> Any:
        y = F.linear(x, torch.cat([m.wq, m.wk, m.wv]), torch.cat([m.bq, m.bk, m.bv]))
        return y[..., :D], y[..., D:2 * D], y[..., 2 * D:]

    return changed(qkv=three)(module)


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8, eps=1e-3)
        self.bn.running_mean.uniform_(-0.1, 0.1)
        self.bn.running_var.uniform_(0.01, 0.1)
        nn.init.uniform_(self.bn.weight, 0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.conv(x)))


def fold_bn(eps: float, mean: float = 1.0) -> Callable[[nn.Module], nn.Module]:
    def rewrite(module: nn.Module) -> nn.Module:
        conv, bn = copy.deepcopy(module.conv), module.bn
        scale = bn.weight.double() * torch.rsqrt(bn.running_var.double() + eps)
        weight = conv.weight.double() * scale.reshape(-1, 1, 1, 1)
        bias = (conv.bias.double() - mean * bn.running_mean.double()) * scale + bn.bias.double()
        with torch.no_grad():
            conv.weight.copy_(weight)
            conv.bias.copy_(bias)
        twin = copy.deepcopy(module)
        twin.conv, twin.bn = conv, nn.Identity()
        return twin
    return rewrite


# -- Right ways ------------------------------------------------------------------------------------

def by_blocks(m: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """As flash attention does: in two blocks of keys, with a running maximum, in float32."""
    q32, k32, v32 = q.float(), k.float(), v.float()
    half = LENGTH // 2
    a = torch.matmul(q32, k32[:, :half].transpose(-1, -2)) * (1 / math.sqrt(D))
    b = torch.matmul(q32, k32[:, half:].transpose(-1, -2)) * (1 / math.sqrt(D))
    most = torch.maximum(a.amax(-1, True), b.amax(-1, True))
    ea, eb = torch.exp(a - most), torch.exp(b - most)
    total = ea.sum(-1, True) + eb.sum(-1, True)
    mixed = torch.matmul(ea, v32[:, :half]) + torch.matmul(eb, v32[:, half:])
    return (mixed / total).to(v.dtype)


def norm_in_steps(m: Any, x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    off = wide - wide.mean(-1, True)
    wide = off * torch.rsqrt((off * off).mean(-1, True) + 1e-5)
    return (wide * m.gamma.float() + m.beta.float()).to(x.dtype)


Pass = Callable[[nn.Module], nn.Module]


def right_passes() -> List[Tuple[str, Pass]]:
    return [
        ("nothing", changed()),
        ("reassociated sum", changed(join=lambda m, x, y: x + (y + m.shift))),
        ("linear as addmm", changed(first=lambda m, x: torch.relu(torch.addmm(
            m.b0, x.reshape(-1, D), m.w0.t()).reshape(BATCH, LENGTH, D)))),
        ("constants folded", folded(lambda c: c)),
        ("constants folded in float32", folded(lambda c: c.float())),
        ("product split by columns", changed(down=lambda m, x: torch.cat(
            [torch.matmul(x, m.w2[:, :D // 2]), torch.matmul(x, m.w2[:, D // 2:])], -1))),
        ("product split by terms", changed(down=lambda m, x: torch.matmul(
            x[..., :WIDE // 2], m.w2[:WIDE // 2]) + torch.matmul(
                x[..., WIDE // 2:], m.w2[WIDE // 2:]))),
        ("attention in blocks", changed(attend=by_blocks)),
        ("scaled before the product", changed(attend=lambda m, q, k, v: torch.matmul(torch.softmax(
            torch.matmul(q * (1 / math.sqrt(D)), k.transpose(-1, -2)), -1), v))),
        ("divided instead of multiplied", changed(attend=lambda m, q, k, v: torch.matmul(
            torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(D), -1), v))),
        ("norm in steps", changed(norm=norm_in_steps)),
        ("silu in steps", changed(gate=lambda m, x: x * torch.sigmoid(x))),
        ("gelu in steps in float32", changed(act=lambda m, x: (0.5 * x.float() * (1 + torch.erf(
            x.float() * math.sqrt(0.5)))).to(x.dtype))),
        ("one product for three", merged),
        ("transposed twice", changed(up=lambda m, x: torch.matmul(
            m.w1, x.transpose(-1, -2)).transpose(-1, -2) + m.b1)),
        ("mean as a sum", changed(last=lambda m, x: x.sum(1) / LENGTH)),
        ("common subexpressions", changed(gate=lambda m, x: (F.silu(x) + F.silu(x)) * 0.5)),
    ]


# -- Wrong ones ------------------------------------------------------------------------------------

def coarse(bits: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def cut(c: torch.Tensor) -> torch.Tensor:
        fraction, exponent = torch.frexp(c)
        return torch.ldexp(torch.round(fraction * 2 ** bits) / 2 ** bits, exponent)
    return cut


def attention(scale: float = 1 / math.sqrt(D), dim: int = -1) -> Callable[..., torch.Tensor]:
    return lambda m, q, k, v: torch.matmul(
        torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * scale, dim), v)


def wrong_passes(dtype: torch.dtype) -> List[Tuple[str, Pass]]:
    # What is kept in bfloat16 anyway is folded into fewer bits there.
    bits = 8 if dtype is torch.float32 else 4
    return [
        ("relu became sigmoid", changed(first=lambda m, x: torch.sigmoid(F.linear(x, m.w0, m.b0)))),
        ("another eps", changed(norm=lambda m, x: F.layer_norm(x, (D,), m.gamma, m.beta, 1e-3))),
        ("eps left out", changed(norm=lambda m, x: F.layer_norm(x, (D,), m.gamma, m.beta, 0.0))),
        ("scaled by 1.001", changed(tail=lambda m, x: (x * m.c1) * m.c2 * 1.001)),
        ("scaled by 1.0005", changed(down=lambda m, x: torch.matmul(x, m.w2) * 1.0005)),
        ("no bias", changed(up=lambda m, x: F.linear(x, m.w1))),
        ("softmax over the wrong axis", changed(attend=attention(dim=-2))),
        ("not transposed", changed(first=lambda m, x: torch.relu(torch.matmul(x, m.w0) + m.b0))),
        ("constants in few bits", folded(coarse(bits))),
        ("slice off by one", changed(down=lambda m, x: torch.matmul(x[..., :-1], m.w2[:-1]))),
        ("operands swapped", changed(attend=lambda m, q, k, v: attend(m, k, q, v))),
        ("no residual", changed(join=lambda m, x, y: y + m.shift)),
        ("gelu by tanh", changed(act=lambda m, x: F.gelu(x, approximate="tanh"))),
        ("another scale of scores", changed(attend=attention(1 / math.sqrt(D + 1)))),
        ("sum divided by one less", changed(last=lambda m, x: x.sum(1) / (LENGTH - 1))),
        ("unbiased variance", changed(norm=lambda m, x: (x - x.mean(-1, True)) * torch.rsqrt(
            x.var(-1, unbiased=True, keepdim=True) + 1e-5) * m.gamma + m.beta)),
        ("one row shifted", changed(last=lambda m, x: torch.roll(x.mean(1), 1, 0))),
    ]


def cheap_passes() -> List[Tuple[str, Pass]]:
    """Of float32: steps in 16 bits that nobody asked for."""
    return [
        ("product in bfloat16", changed(down=lambda m, x: torch.matmul(
            x.bfloat16(), m.w2.bfloat16()).float())),
        ("activation in float16", changed(
            act=lambda m, x: F.gelu(x.half().float()).half().float())),
    ]


def block(dtype: torch.dtype) -> Tuple[nn.Module, torch.Tensor]:
    module = Block().to(dtype).eval()
    torch.manual_seed(7)
    return module, torch.randn(BATCH, LENGTH, D).to(dtype)


def conv(dtype: torch.dtype) -> Tuple[nn.Module, torch.Tensor]:
    module = Conv().to(dtype).eval()
    torch.manual_seed(8)
    return module, torch.randn(2, 3, 10, 10).to(dtype)
