"""A small GPT that tests and benchmarks share: causal attention spelled out, pre-norm blocks."""

import math
from dataclasses import dataclass
from typing import Callable, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class Config:
    width: int = 32
    layers: int = 2
    heads: int = 4
    vocab: int = 64
    context: int = 16
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        self.drop = nn.Dropout(config.dropout)
        mask = torch.ones(config.context, config.context).tril().bool()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        shape = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(shape[-1])
        scores = scores.masked_fill(~self.mask[:tokens, :tokens], float("-inf"))
        weights = self.drop(F.softmax(scores, dim=-1))
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, width))


class MLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.fc = nn.Linear(config.width, 4 * config.width)
        self.act = nn.GELU()
        self.proj = nn.Linear(4 * config.width, config.width)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.proj(self.act(self.fc(x))))


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Token numbers to logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Predict each next token."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def make(config: Config, seed: int = 0, dtype: torch.dtype = torch.float32,
         batch: int = 2) -> Tuple[GPT, Tensor]:
    """The model, and token numbers for it; the same for the same seed."""
    torch.manual_seed(seed)
    model = GPT(config).to(dtype)
    return model, torch.randint(config.vocab, (batch, config.context))


def train(model: nn.Module, ids: Tensor, optimiser: torch.optim.Optimizer,
          objective: Callable[[nn.Module, Tensor], Tensor] = loss) -> Tensor:
    """One step."""
    optimiser.zero_grad()
    value = objective(model, ids)
    value.backward()
    optimiser.step()
    return value.detach()
