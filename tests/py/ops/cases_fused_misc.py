"""Small operators of torch_npu, against formulas in PyTorch."""

from typing import Any, Iterator

import torch
import torch.nn.functional as F

from ops.harness import Case, case, fixed, ints, randn


def pad(x: torch.Tensor, paddings: Any) -> torch.Tensor:
    pairs = [paddings[2 * d:2 * d + 2] for d in range(x.dim())]
    return F.pad(x, [p for pair in reversed(pairs) for p in pair])


def one_hot(x: torch.Tensor, axis: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0) -> torch.Tensor:
    hit = x.unsqueeze(-1) == torch.arange(depth)
    return torch.where(hit, torch.tensor(float(on_value)), torch.tensor(float(off_value)))


def scatter_nd(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[tuple(indices.unbind(-1))] = updates
    return y


def moves() -> Iterator[Case]:
    yield case("NPU.npu_pad", randn(2, 3), [1, 0, 2, 1], ref=pad)
    yield case("NPU.npu_pad", randn(2, 3, 4), [0, 0, 1, 1, 0, 3], ref=pad)
    yield case("NPU.npu_pad", ints(0, 9, 4), [1, 1], ref=pad)
    yield case("NPU.npu_pad", randn(2, 3), [1, 0], refused=True)
    yield case("NPU.npu_pad", randn(2, 3), [1, 0, -1, 0], refused=True)
    yield case("NPU.npu_one_hot", ints(0, 5, 4, dtype=torch.int32), depth=5, ref=one_hot)
    yield case("NPU.npu_one_hot", ints(-1, 5, 2, 3), -1, 4, 0.5, -2, ref=one_hot)
    yield case("NPU.npu_one_hot", ints(0, 5, 4), 0, 5, refused=True)
    yield case("NPU.one_", randn(2, 3).detach(), ref=torch.ones_like)
    yield case("NPU.npu_scatter_nd_update", randn(4, 3), ints(0, 4, 1, 1), randn(1, 3), ref=scatter_nd)
    yield case("NPU.npu_scatter_nd_update_", randn(4, 3, 2), fixed([[0, 1], [3, 2]], torch.int32), randn(2, 2),
               ref=lambda x, i, u: scatter_nd(x, i.long(), u))
    yield case("NPU.npu_scatter_nd_update", randn(4, 3), fixed([[0, 1], [3, 2]], torch.int64), randn(2), ref=scatter_nd)
    yield case("NPU.npu_scatter_nd_update", randn(4, 3), ints(4, 6, 2, 1), randn(2, 3), refused=True)
    yield case("NPU.npu_scatter_nd_update", randn(4, 3), ints(0, 4, 2, 1), randn(2, 2), refused=True)
    yield case("NPU.npu_gather_sparse_index", randn(5, 3), ints(0, 5, 2, 4), ref=lambda x, i: x[i])
    yield case("NPU.npu_gather_sparse_index", randn(5), ints(0, 5, 4), ref=lambda x, i: x[i])
    yield case("NPU.npu_gather_sparse_index", randn(5, 3), ints(5, 6, 2), refused=True)


def signs() -> Iterator[Case]:
    values = fixed([5.0, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])
    yield case("NPU.npu_sign_bits_pack", values, 2, ref=lambda x, n: torch.tensor([[159], [15]], dtype=torch.uint8))
    yield case("NPU.npu_sign_bits_pack", values, 3, refused=True)
    packed = fixed([159, 15], torch.uint8)
    want = torch.tensor([[1.0, 1, 1, 1, 1, -1, -1, 1], [1, 1, 1, 1, -1, -1, -1, -1]])
    yield case("NPU.npu_sign_bits_unpack", packed, 0, 2, ref=lambda x, d, n: want)
    yield case("NPU.npu_sign_bits_unpack", packed, 1, 1, ref=lambda x, d, n: want.reshape(1, 16).half())
    yield case("NPU.npu_sign_bits_unpack", packed, 0, 3, refused=True)


def ffn(x: Any, w1: Any, w2: Any, activation: str, bias1: Any = None, bias2: Any = None) -> torch.Tensor:
    act = {"relu": torch.relu, "silu": F.silu, "fastgelu": lambda v: v * torch.sigmoid(1.702 * v)}[activation]
    y = act(x @ w1 + (0 if bias1 is None else bias1)) @ w2
    return y if bias2 is None else y + bias2


def products() -> Iterator[Case]:
    for name in ("npu_conv2d", "npu_convolution"):
        yield case(f"NPU.{name}", randn(2, 4, 6, 5), randn(6, 2, 3, 2), randn(6), [2, 1], [1, 0], [1, 2], 2,
                   ref=F.conv2d)
    yield case("NPU.npu_conv3d", randn(1, 2, 4, 3, 4), randn(3, 2, 2, 2, 2), None, [1, 1, 2], [0, 1, 0], [1, 1, 1], 1,
               ref=F.conv3d)
    for name in ("npu_conv_transpose2d", "npu_convolution_transpose"):
        yield case(f"NPU.{name}", randn(2, 4, 3, 3), randn(4, 3, 3, 2), randn(6), [1, 0], [1, 0], [2, 1], [1, 1], 2,
                   ref=lambda x, w, b, p, op, s, d, g: F.conv_transpose2d(x, w, b, s, p, op, g, d))
    yield case("NPU.npu_transpose_batchmatmul", randn(3, 2, 4), randn(3, 4, 5),
               ref=lambda a, b: (a @ b).permute(1, 0, 2))
    yield case("NPU.npu_transpose_batchmatmul", randn(2, 3, 4), randn(3, 5, 4), perm_x1=[1, 0, 2], perm_x2=[0, 2, 1],
               perm_y=[0, 1, 2], ref=lambda a, b, **_: a.permute(1, 0, 2) @ b.permute(0, 2, 1))
    yield case("NPU.npu_transpose_batchmatmul", randn(3, 2, 4), randn(3, 4, 5), perm_y=[0, 0, 1], refused=True)
    for activation in ("relu", "silu", "fastgelu"):
        yield case("NPU.npu_ffn", randn(3, 4), randn(4, 6), randn(6, 5), activation, ref=ffn)
        yield case("NPU.npu_ffn", randn(3, 4), randn(4, 6), randn(6, 5), activation, bias1=randn(6), bias2=randn(5),
                   ref=ffn)
    yield case("NPU.npu_ffn", randn(3, 4), randn(4, 6), randn(6, 5), "tanh", refused=True)


def cases() -> Iterator[Case]:
    for part in (moves, signs, products):
        yield from part()
