"""Dropout where nothing is random; test_op_dropout.py looks at the rest."""

from typing import Iterator

import torch

from ops.harness import Case, bools, case, ints, randn, seed

IMAGES = {"dropout1d": 3, "dropout2d": 4, "dropout3d": 5}


def cases() -> Iterator[Case]:
    seed("dropout")
    for name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"):
        rank = IMAGES.get(name, 4)
        x = randn(*(2, 3, 2, 2, 2)[:rank])
        yield case(f"Functional.{name}", x, 0.3, False)
        yield case(f"Functional.{name}", x, p=0.0, training=True)
        yield case(f"Functional.{name}", x, 1.0, True)
        yield case(f"Functional.{name}", x, 1.5, refused=True)
        yield case(f"Functional.{name}", x, -0.1, refused=True)
        yield case(f"Functional.{name}", x, float("nan"), refused=True)
        if name in ("dropout1d", "dropout3d"):
            yield case(f"Functional.{name}", randn(*(3, 2, 2, 2)[:rank - 1]), 0.0)
    yield case("Functional.dropout", randn(0, 3), 0.5)
    yield case("Functional.dropout", ints(0, 9, 3), 0.5, refused=True)
    for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
        yield case(f"Torch.{name}", randn(2, 3, 2), 0.5, False)
    yield case("Torch.native_dropout", randn(2, 3), 0.3, False)
    yield case("Aten.native_dropout_backward", randn(2, 3).detach(), bools(2, 3), 2.0)
