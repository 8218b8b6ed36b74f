"""Recurrent layers and cells."""

from typing import Any, Iterator, List

import torch
from torch.nn.utils.rnn import pack_padded_sequence

from ops.harness import Case, case, randn

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def weights(kind: str, layers: int, directions: int, features: int, size: int, biases: bool, projected: int = 0
            ) -> List[torch.Tensor]:
    out: List[torch.Tensor] = []
    rows, width = GATES[kind] * size, projected or size
    for layer in range(layers):
        for _ in range(directions):
            out += [randn(rows, features if layer == 0 else width * directions, scale=0.5), randn(rows, width,
                                                                                                  scale=0.5)]
            out += [randn(rows), randn(rows)] if biases else []
            out += [randn(projected, size)] if projected else []
    return out


def state(kind: str, count: int, batch: int, size: int, projected: int = 0) -> Any:
    h = randn(count, batch, projected or size)
    return [h, randn(count, batch, size)] if kind == "lstm" else h


def layers() -> Iterator[Case]:
    for kind in GATES:
        for count, both, biases, first in ((1, False, True, False), (2, False, True, True), (1, True, False, False),
                                           (2, True, True, False)):
            shape = (2, 4, 3) if first else (4, 2, 3)
            directions = 2 if both else 1
            for output in range(3 if kind == "lstm" else 2) if count == 2 else (0,):
                yield case(f"Torch.{kind}", randn(*shape), state(kind, count * directions, 2, 5),
                           weights(kind, count, directions, 3, 5, biases), biases, count, 0.0, True, both, first,
                           grad_output=output, differences=kind != "rnn_relu")  # relu's kink may lie within a step
        packed = pack_padded_sequence(randn(5, 3, 4).detach(), torch.tensor([5, 3, 2]))
        for both in (False, True):
            directions = 2 if both else 1
            yield case(f"Torch.{kind}", packed.data.clone().requires_grad_(True), packed.batch_sizes,
                       state(kind, 2 * directions, 3, 5), weights(kind, 2, directions, 4, 5, True), True, 2, 0.0, False,
                       both, differences=kind != "rnn_relu")
        yield case(f"VF.{kind}", randn(4, 2, 3), state(kind, 1, 2, 5), weights(kind, 1, 1, 3, 5, True), True, 1, 0.5,
                   True, False, False, ref=getattr(torch._VF, kind))
        yield case(f"Torch.{kind}", randn(4, 2, 3), state(kind, 2, 2, 5), weights(kind, 2, 1, 3, 5, True), True, 2, 0.5,
                   True, False, False, refused=True)
        yield case(f"Torch.{kind}", randn(4, 2, 3), state(kind, 1, 2, 5), weights(kind, 1, 1, 4, 5, True), True, 1, 0.0,
                   True, False, False, refused=True)
        yield case(f"Torch.{kind}", randn(4, 2, 3), state(kind, 2, 2, 5), weights(kind, 1, 1, 3, 5, True), True, 1, 0.0,
                   True, False, False, refused=True)
        yield case(f"Torch.{kind}", randn(0, 2, 3), state(kind, 1, 2, 5), weights(kind, 1, 1, 3, 5, True), True, 1, 0.0,
                   True, False, False, refused=True)
        yield case(f"Torch.{kind}", randn(6, 3), torch.tensor([2, 5]), state(kind, 1, 2, 5),
                   weights(kind, 1, 1, 3, 5, True), True, 1, 0.0, True, False, refused=True)
    for output in (0, 1, 2):
        yield case("Torch.lstm", randn(4, 2, 3), state("lstm", 2, 2, 5, 4), weights("lstm", 1, 2, 3, 5, True, 4), True,
                   1, 0.0, False, True, False, grad_output=output)


def cells() -> Iterator[Case]:
    for kind, gates in GATES.items():
        for biases in (True, False):
            w = [randn(gates * 5, 3), randn(gates * 5, 5)] + ([randn(gates * 5), randn(gates * 5)] if biases else [])
            h = [randn(2, 5), randn(2, 5)] if kind == "lstm" else randn(2, 5)
            for output in (0, 1) if kind == "lstm" else (0,):
                yield case(f"Torch.{kind}_cell", randn(2, 3), h, *w, grad_output=output)
        yield case(f"Torch.{kind}_cell", randn(2, 3), h, randn(gates * 5, 4), randn(gates * 5, 5), refused=True)
        yield case(f"Torch.{kind}_cell", randn(2, 3), h, randn(gates * 5, 3), randn(gates * 4, 5), refused=True)


def cases() -> Iterator[Case]:
    yield from layers()
    yield from cells()
