"""Models that are small and real: what they call, language and vision models of any size call too."""

import math
from typing import Callable, Dict

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """As GPT-2 does it: one projection for query, key and value, and a causal mask."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.heads, self.drop = heads, drop
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(width // self.heads)
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        weights = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        weights = F.dropout(weights, p=0.0, training=self.training)
        y = torch.matmul(weights, v).transpose(1, 2).contiguous().view(batch, length, width)
        return F.dropout(self.out(y), p=self.drop, training=self.training)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, drop)
        self.up, self.down, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.dropout(self.down(F.gelu(self.up(self.second(x)))))


class Gpt(nn.Module):
    def __init__(self, words: int = 50, width: int = 32, heads: int = 4, length: int = 12, drop: float = 0.1) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, drop) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-100)


class RotaryBlock(nn.Module):
    """As LLaMA does it: rotary positions, a norm by root mean square, a gated feed-forward part."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)
        self.first, self.second = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    @staticmethod
    def norm(x: Tensor, weight: Tensor) -> Tensor:
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    @staticmethod
    def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        rates = 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size))
        angles = torch.outer(torch.arange(length).float(), rates)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().type_as(x), angles.sin().type_as(x)
        h = self.norm(x, self.first)
        q, k, v = (layer(h).reshape(batch, length, self.heads, self.size).permute(0, 2, 1, 3)
                   for layer in (self.q, self.k, self.v))
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k).mul(self.size ** -0.5)
        mask = torch.full((length, length), torch.finfo(x.dtype).min, dtype=x.dtype).triu_(1)
        weights = torch.softmax(scores + mask, dim=-1, dtype=torch.float32).type_as(x)
        y = torch.bmm(weights.flatten(0, 1), v.reshape(-1, length, self.size))
        y = y.unflatten(0, (batch, self.heads)).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        h = self.norm(x, self.second)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Rotary(nn.Module):
    def __init__(self, words: int = 40, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.block, self.head = RotaryBlock(width, heads), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        losses = F.log_softmax(self.head(self.block(self.words(tokens))), dim=-1)
        picked = losses.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        kept = (targets >= 0).type_as(picked)
        return -(picked * kept).sum() / kept.sum()


class Bottleneck(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.side = None
        if stride != 1 or inner != outer:
            self.side = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.two(self.relu(self.bn1(self.one(x)))))
        y += x if self.side is None else self.side(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.relu, self.pool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        self.layers = nn.Sequential(Bottleneck(8, 8, 1), Bottleneck(8, 16, 2))
        self.mean, self.head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, classes)

    def forward(self, pictures: Tensor, classes: Tensor) -> Tensor:
        x = F.interpolate(pictures, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.layers(self.pool(self.relu(self.bn(self.stem(x)))))
        x = self.head(torch.flatten(self.mean(x), 1))
        return F.cross_entropy(x, classes, label_smoothing=0.1)


Step = Callable[[], None]


def words(model: nn.Module) -> Step:
    """Forward and backward of a language model on a few words, some of which do not count."""
    tokens = torch.randint(1, 40, (2, 13))
    targets = tokens[:, 1:].contiguous()
    targets[0, :2] = -100
    return lambda: model(tokens[:, :-1], targets).backward()


def pictures(model: nn.Module) -> Step:
    """Training, then evaluation."""
    dtype = next(model.parameters()).dtype
    some, classes = torch.randn(4, 3, 16, 16).to(dtype), torch.randint(0, 10, (4,))

    def step() -> None:
        model.train()
        model(some, classes).backward()
        model.eval()
        model(some, classes).backward()
    return step


MODELS: Dict[str, Callable[[torch.dtype], Step]] = {
    "gpt": lambda dtype: words(Gpt().to(dtype)),
    "rotary": lambda dtype: words(Rotary().to(dtype)),
    "resnet": lambda dtype: pictures(ResNet().to(dtype)),
}
