"""Reading and writing by index: gather, scatter, embedding, x[...]."""

from typing import Any, Iterator

import torch

from ops.harness import Case, bools, case, fixed, ints, randn, seed

INF, NAN = float("inf"), float("nan")


def perm(*shape: int, dim: int = 0) -> torch.Tensor:
    """Indices without duplicates along dim."""
    return torch.argsort(torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))), dim)


def gathers() -> Iterator[Case]:
    yield case("Torch.gather", randn(3, 4), 0, ints(0, 3, 2, 4))
    yield case("Torch.gather", randn(3, 4), 1, ints(0, 4, 3, 6), bfloat16=True)
    yield case("Torch.gather", randn(3, 4), -1, ints(0, 4, 2, 2))
    yield case("Torch.gather", randn(2, 3, 4), 1, ints(0, 3, 2, 1, 3))
    yield case("Torch.gather", randn(), 0, torch.tensor(0))
    yield case("Torch.gather", randn(3), 0, torch.tensor(2))
    yield case("Torch.gather", randn(3, 4), 0, ints(0, 3, 0, 4))
    yield case("Torch.gather", ints(2 ** 60, 2 ** 62, 3, 4), 0, ints(0, 3, 2, 4))
    yield case("Torch.gather", randn(3, 4), 0, ints(0, 3, 2, 5), refused=True)
    yield case("Torch.gather", randn(3, 4), 0, torch.tensor([[3, 0]]), refused=True)
    yield case("Torch.gather", randn(3, 4), 0, torch.tensor([[-1, 0]]), refused=True)
    yield case("Torch.gather", randn(3, 4), 0, randn(2, 4), refused=True)
    yield case("Torch.take", randn(3, 4), torch.tensor([0, -1, 5, 5]))
    yield case("Torch.take", randn(3, 4), ints(-12, 12, 2, 3))
    yield case("Torch.take", randn(3, 4), torch.tensor([12]), refused=True)
    yield case("Torch.take_along_dim", randn(3, 4), ints(0, 4, 3, 2), dim=1)
    yield case("Torch.take_along_dim", randn(3, 4), ints(0, 3, 2, 1), 0)
    yield case("Torch.take_along_dim", randn(3, 4), ints(0, 12, 2, 3))
    yield case("Torch.index_select", randn(3, 4), 0, torch.tensor([2, 0, 2]))
    yield case("Torch.index_select", randn(3, 4), -1, torch.tensor([1], dtype=torch.int32))
    yield case("Torch.index_select", randn(3, 4), 1, torch.tensor(2))
    yield case("Torch.index_select", randn(), 0, torch.tensor([0]))
    yield case("Torch.index_select", randn(3, 4), 1, fixed([], torch.int64))
    yield case("Torch.index_select", randn(3, 4), 0, torch.tensor([3]), refused=True)
    yield case("Torch.index_select", randn(3, 4), 0, torch.tensor([-1]), refused=True)
    yield case("Torch.masked_select", randn(3, 4), bools(3, 4))
    yield case("Torch.masked_select", randn(3, 1), bools(4))
    yield case("Torch.masked_select", randn(), torch.tensor(True))
    yield case("Torch.masked_select", randn(3, 4), bools(2), refused=True)
    yield case("Torch.masked_select", randn(3, 4), randn(3, 4), refused=True)
    for x in (fixed([[0.0, 1.0], [NAN, -0.0]]), ints(0, 2, 3, 4), bools(2, 2, 2), fixed(3.0), fixed(0.0),
              fixed([]), fixed([0.0, 0.0])):
        yield case("Torch.nonzero", x)
        yield case("Torch.nonzero", x, as_tuple=True)
        yield case("Torch.argwhere", x)
    for size in (0, 2, 9):
        yield case("Torch.nonzero_static", fixed([[0.0, 1.0], [2.0, 3.0]]), size=size, fill_value=-7,
                   ref=lambda x, size, fill_value: torch.cat([torch.nonzero(x), torch.full((9, 2), fill_value)])[:size])
    yield case("Torch.nonzero_static", fixed([1.0]), size=-1, refused=True)
    yield case("Functional.one_hot", ints(0, 4, 2, 3))
    yield case("Functional.one_hot", ints(0, 4, 2, 3), 7)
    yield case("Functional.one_hot", torch.tensor(2), num_classes=4)
    yield case("Functional.one_hot", torch.tensor([4]), 3, refused=True)
    yield case("Functional.one_hot", torch.tensor([-1]), 3, refused=True)
    yield case("Functional.one_hot", torch.tensor([2 ** 62]), refused=True)


def scatters() -> Iterator[Case]:
    yield case("Torch.scatter", randn(3, 4), 0, perm(3, 4)[:2], randn(2, 4))
    yield case("Torch.scatter", randn(3, 4), 1, perm(3, 4, dim=1)[:2, :3], randn(2, 3))
    yield case("Torch.scatter", randn(3, 4), 1, perm(3, 4, dim=1)[:2, :3], randn(3, 5), backward=False)
    yield case("Torch.scatter", randn(3, 4), 1, ints(0, 4, 3, 2), 2.5)
    yield case("Torch.scatter", randn(3, 4), 1, ints(0, 4, 3, 2), value=-1)
    yield case("Torch.scatter", ints(0, 9, 5), 0, torch.tensor([1, 1, 3, 1]), ints(0, 99, 4))
    yield case("Torch.scatter", randn(), 0, torch.tensor(0), randn())
    yield case("Tensor.scatter_", randn(3, 4), 1, ints(0, 4, 3, 2), 1.5, reduce="multiply", backward=False)
    yield case("Tensor.scatter_", randn(3, 4), 1, ints(0, 4, 3, 9), randn(3, 9), reduce="add", backward=False)
    yield case("Tensor.scatter_", ints(0, 9, 3, 4), 1, ints(0, 4, 3, 9), ints(0, 9, 3, 9), reduce="multiply")
    yield case("Torch.scatter", randn(3, 4), 0, torch.tensor([[3]]), 1.0, refused=True)
    yield case("Torch.scatter", randn(3, 4), 0, ints(0, 3, 2, 4), randn(1, 4), refused=True)
    yield case("Torch.scatter", randn(3, 4), 0, ints(0, 3, 2, 5), randn(2, 5), refused=True)
    yield case("Torch.scatter", randn(3, 4), 0, ints(0, 3, 2, 4), randn(2, 4, dtype=torch.float64), refused=True)
    yield case("Torch.scatter_add", randn(3, 4), 0, ints(0, 3, 6, 4), randn(6, 4))
    yield case("Torch.scatter_add", randn(3, 4), 1, ints(0, 4, 2, 9), randn(3, 9), backward=False)
    yield case("Torch.scatter_add", randn(3, 4), 1, ints(0, 4, 2, 9), randn(2, 9))
    yield case("Torch.scatter_add", ints(0, 100, 5, dtype=torch.uint8), 0, ints(0, 5, 9),
               ints(0, 255, 9, dtype=torch.uint8))
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            yield case("Torch.scatter_reduce", randn(3, 4), 1, ints(0, 4, 3, 7), randn(3, 7), how, include_self=include)
            yield case("Torch.scatter_reduce", ints(-9, 9, 5), 0, ints(0, 5, 9), ints(-9, 9, 9), how,
                       include_self=include)
            yield case("Torch.scatter_reduce", fixed([1.0, NAN, 2.0, 3.0]), 0, torch.tensor([0, 1, 2, 2]),
                       fixed([NAN, 1.0, 5.0, -INF]), how, include_self=include)
    yield case("Torch.scatter_reduce", fixed([2.0, 0.0, 3.0], grad=True), 0, torch.tensor([0, 0, 1, 2, 2]),
               fixed([0.0, 4.0, 5.0, 0.0, 0.0], grad=True), "prod")
    yield case("Torch.scatter_reduce", randn(3), 0, ints(0, 3, 4), randn(4), "median", refused=True)
    yield case("Torch.index_add", randn(3, 4), 0, torch.tensor([0, 2, 0]), randn(3, 4))
    yield case("Torch.index_add", randn(3, 4), -1, torch.tensor([1]), randn(3, 1), alpha=-2.5)
    yield case("Torch.index_add", ints(0, 9, 3), 0, torch.tensor([0, 0]), ints(0, 9, 2), alpha=3)
    yield case("Torch.index_add", randn(3, 4), 0, torch.tensor([3]), randn(1, 4), refused=True)
    yield case("Torch.index_add", randn(3, 4), 0, torch.tensor([1]), randn(2, 4), refused=True)
    yield case("Torch.index_copy", randn(3, 4), 0, torch.tensor([2, 0]), randn(2, 4))
    yield case("Torch.index_copy", ints(0, 9, 3), 0, torch.tensor([2, 2]), ints(0, 9, 2))
    yield case("Torch.index_copy", randn(3, 4), 0, torch.tensor([-1]), randn(1, 4), refused=True)
    yield case("Torch.index_fill", randn(3, 4), 1, torch.tensor([0, -1]), 2.5)
    yield case("Torch.index_fill", randn(3, 4), 1, torch.tensor([0, 2]), randn())
    yield case("Torch.index_fill", ints(0, 9, 3, 4), 0, torch.tensor([0]), 7)
    yield case("Torch.index_fill", randn(3, 4), 0, torch.tensor([-4]), 7.0, refused=True)
    for how in ("prod", "mean", "amax", "amin"):
        yield case("Torch.index_reduce", randn(3, 4), 0, torch.tensor([0, 2, 0]), randn(3, 4), how)
        yield case("Torch.index_reduce", randn(3, 4), 0, torch.tensor([0, 2, 0]), randn(3, 4), how, include_self=False)
    for x, mask in ((randn(3, 4), bools(3, 4)), (randn(3, 4), bools(4)), (randn(4), bools(3, 4)),
                    (randn(), torch.tensor(True)), (randn(0, 3), bools(0, 3))):
        yield case("Torch.masked_fill", x, mask, -1e4)
        yield case("Torch.masked_fill", x, mask, randn())
    yield case("Tensor.masked_fill_", randn(3, 4), bools(3, 4), float("-inf"), bfloat16=True, differences=False)
    yield case("Torch.masked_fill", ints(0, 9, 3, 4), bools(3, 4), 5)
    yield case("Torch.masked_fill", bools(3, 4), bools(3, 4), True)
    yield case("Torch.masked_fill", randn(3), bools(3), randn(2), refused=True)
    yield case("Torch.masked_fill", randn(3), bools(4), 0.0, refused=True)
    yield case("Torch.masked_scatter", randn(3, 4), bools(3, 4), randn(12))
    yield case("Torch.masked_scatter", randn(3, 4), bools(4), randn(5, 4))
    yield case("Torch.masked_scatter", ints(0, 9, 3), torch.tensor([True, False, True]), ints(0, 9, 2))
    yield case("Torch.masked_scatter", randn(3), torch.tensor([True, False, True]), randn(1), refused=True)
    yield case("Tensor.put_", randn(3, 4), torch.tensor([0, -1, 5]), randn(3))
    yield case("Tensor.put_", randn(3, 4), torch.tensor([[0, 0]]), randn(2), accumulate=True)
    yield case("Tensor.put_", randn(3, 4), torch.tensor([12]), randn(1), refused=True)
    yield case("Tensor.put_", randn(3, 4), torch.tensor([1]), randn(2), refused=True)
    yield case("Tensor.copy_", randn(3, 4), randn(4))
    yield case("Tensor.copy_", ints(0, 9, 3), fixed([1.7, -1.7, 2.5]))
    yield case("Tensor.copy_", randn(3), randn(3, 4), refused=True)
    yield case("Tensor.fill_", randn(3, 4), 2.5)
    yield case("Tensor.fill_", randn(3, 4), randn())
    yield case("Tensor.fill_", ints(0, 9, 3), 2 ** 62 + 1)
    yield case("Tensor.fill_", randn(3), randn(2), refused=True)
    yield case("Tensor.zero_", randn(3, 4))
    yield case("Tensor.fill_diagonal_", randn(3, 4), 2.5)
    yield case("Tensor.fill_diagonal_", randn(3, 3, 3), 1)
    yield case("Tensor.fill_diagonal_", randn(7, 3), 1, wrap=True)
    yield case("Tensor.fill_diagonal_", randn(8, 3), 1, True)
    yield case("Tensor.fill_diagonal_", randn(4, 3), 1, True)
    yield case("Tensor.fill_diagonal_", randn(2, 3, 3), 1, refused=True)


def embeddings() -> Iterator[Case]:
    yield case("Functional.embedding", ints(0, 5, 2, 3), randn(5, 4), bfloat16=True)
    yield case("Functional.embedding", ints(0, 5, 6, dtype=torch.int32), randn(5, 4))
    yield case("Functional.embedding", torch.tensor(2), randn(5, 4))
    yield case("Functional.embedding", ints(0, 5, 0), randn(5, 4))
    yield case("Functional.embedding", torch.tensor([1, 4, 1, 0]), randn(5, 4), padding_idx=1, differences=False)
    yield case("Functional.embedding", torch.tensor([1, 4, 1, 0]), randn(5, 4), -1, differences=False)
    yield case("Functional.embedding", torch.tensor([1, 4, 1, 0]), randn(5, 4), scale_grad_by_freq=True,
               differences=False)
    # PyTorch cuts the table in place, which a leaf does not allow.
    for norm in (2.0, 1.0, INF, 3.0):
        yield case("Functional.embedding", torch.tensor([1, 4, 1, 0]), randn(5, 4).detach(), max_norm=1.0,
                   norm_type=norm)
    yield case("Torch.embedding", randn(5, 4), ints(0, 5, 2, 3))
    yield case("Torch.embedding", randn(5, 4), torch.tensor([4, 1]), -1)
    yield case("Torch.embedding", randn(5, 4), torch.tensor([4, 1]), 1, differences=False)
    yield case("Functional.embedding", torch.tensor([5]), randn(5, 4), refused=True)
    yield case("Functional.embedding", torch.tensor([-1]), randn(5, 4), refused=True)
    yield case("Functional.embedding", torch.tensor([1.0]), randn(5, 4), refused=True)
    yield case("Torch.embedding_renorm_", randn(5, 4).detach(), torch.tensor([1, 3]), 1.0, 2.0)
    yield case("Aten.embedding_dense_backward", randn(4, 3).detach(), torch.tensor([1, 4, 1, 0]), 5, -1, False)
    yield case("Aten.embedding_dense_backward", randn(4, 3).detach(), torch.tensor([1, 4, 1, 0]), 5, 4, True)
    for mode in ("sum", "mean", "max"):
        yield case("Functional.embedding_bag", ints(0, 5, 2, 3), randn(5, 4), mode=mode)
        yield case("Functional.embedding_bag", ints(0, 5, 7), randn(5, 4), torch.tensor([0, 2, 2, 5]), mode=mode)
        yield case("Functional.embedding_bag", ints(0, 5, 7), randn(5, 4), torch.tensor([0, 3, 7]), mode=mode,
                   include_last_offset=True)
        yield case("Functional.embedding_bag", torch.tensor([1, 2, 2, 0]), randn(5, 4), torch.tensor([0, 2]), mode=mode,
                   padding_idx=2, differences=False)
    yield case("Functional.embedding_bag", ints(0, 5, 2, 3), randn(5, 4), mode="sum", per_sample_weights=randn(2, 3))
    yield case("Functional.embedding_bag", ints(0, 5, 4), randn(5, 4), torch.tensor([0, 1]), mode="sum",
               per_sample_weights=randn(4))
    # PyTorch looks up the frequency of the wrong row unless all are equal.
    yield case("Functional.embedding_bag", torch.tensor([1, 2, 2, 1]), randn(5, 4), torch.tensor([0, 2]), mode="sum",
               scale_grad_by_freq=True, differences=False)
    for mode in (0, 1, 2):
        yield case("Torch.embedding_bag", randn(5, 4), ints(0, 5, 6), torch.tensor([0, 2]), False, mode,
                   check_own=mode > 0)
    yield case("Functional.embedding_bag", ints(0, 5, 4), randn(5, 4), refused=True)
    yield case("Functional.embedding_bag", ints(0, 5, 4), randn(5, 4), torch.tensor([1, 2]), refused=True)
    yield case("Functional.embedding_bag", ints(0, 5, 4), randn(5, 4), torch.tensor([0, 9]), refused=True)
    yield case("Functional.embedding_bag", ints(0, 5, 4), randn(5, 4), torch.tensor([0, 3, 2]), refused=True)


INDICES = [
    1, -1, (0, -2), slice(1, None), slice(None, None, 2), (slice(None), 1), (Ellipsis, 0), (Ellipsis, None, 1),
    None, (None, slice(0, 2), None), (), (slice(-2, None), slice(1, 100, 2)), True, False, (0, True),
    torch.tensor(1), torch.tensor([0, 2, 2]), torch.tensor([[0, -1], [1, 1]]), (slice(None), torch.tensor([3, 0])),
    (torch.tensor([0, 1]), torch.tensor([3, -1])), (torch.tensor([0, 1]), slice(None), torch.tensor([1, 0])),
    (Ellipsis, torch.tensor([1, 0])), (torch.tensor([[0], [1]]), torch.tensor([0, 1, 2])),
    (0, slice(None), torch.tensor([1, 1])), (None, torch.tensor([1]), 2), (torch.tensor([1]), None, torch.tensor([2])),
    torch.tensor([True, False, True]), (slice(None), torch.tensor([True, False, True, True])),
    torch.tensor([[True, False, True, False], [False] * 4, [True, True, False, False]]),
    (Ellipsis, torch.tensor([True, False])), [0, 2, 1, 0], ([0, 2], slice(1, 3)), ([[0, 2], [1, 1]],),
    (torch.tensor([True, False, True]), torch.tensor([0, 3])), torch.tensor([1, 0, 1], dtype=torch.uint8),
    (slice(5, 2), 0), fixed([], torch.int64), torch.tensor([False, False, False]),
]


def items() -> Iterator[Case]:
    def put(x: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
        byte = isinstance(index, torch.Tensor) and index.dtype == torch.uint8  # PyTorch 2 refuses to write there
        x[index.bool() if byte else index] = value
        return x

    for index in INDICES:
        index = tuple(index) if isinstance(index, tuple) else index
        yield case("Tensor.__getitem__", randn(3, 4, 2), index)
        yield case("Tensor.__setitem__", randn(3, 4, 2), index, 1.5, ref=put)
        part = randn(3, 4, 2)[index]
        distinct = not (part.numel() and len(set(torch.arange(24).reshape(3, 4, 2)[index].flatten().tolist()))
                        < part.numel())
        yield case("Tensor.__setitem__", randn(3, 4, 2), index, randn(*part.shape), ref=put, backward=distinct,
                   values=distinct)
        yield case("Tensor.__getitem__", ints(0, 2 ** 62, 3, 4, 2), index)
    yield case("Tensor.__setitem__", randn(3, 4), 0, randn(1, 1, 4), ref=put)
    yield case("Tensor.__setitem__", randn(3, 4), slice(0, 2), randn(4), ref=put)
    yield case("Tensor.__setitem__", randn(3, 4), bools(3, 4), randn(), ref=put)
    yield case("Tensor.__getitem__", randn(), ())
    yield case("Tensor.__getitem__", randn(), None)
    yield case("Tensor.__getitem__", randn(4, 3).t(), (slice(1, None), 2))
    for index in (3, -4, (0, 0, 0, None, 0), (Ellipsis, Ellipsis), torch.tensor([3]), torch.tensor([True, False]),
                  slice(None, None, -1), torch.tensor([0.5]), (torch.tensor([0, 1]), torch.tensor([0, 1, 2])),
                  ([[0, 1], [1]],), "text"):
        yield case("Tensor.__getitem__", randn(3, 4, 2), index, refused=True)
    yield case("Tensor.__setitem__", randn(3, 4), 0, randn(3), refused=True)
    i, j = torch.tensor([0, 2]), torch.tensor([1, 3])
    yield case("Aten.index", randn(3, 4, 2), [i, j])
    yield case("Aten.index", randn(3, 4, 2), [None, i, None])
    yield case("Aten.index", randn(3, 4, 2), [i, None, torch.tensor([0, 1])])
    yield case("Aten.index", randn(3, 4), [bools(3, 4)])
    yield case("Torch.index_put", randn(3, 4), (i, j), randn(2))
    yield case("Torch.index_put", randn(3, 4), (i,), randn(4))
    yield case("Torch.index_put", randn(3, 4), (torch.tensor([0, 0]), torch.tensor([1, 1])), randn(2), accumulate=True)
    yield case("Tensor.index_put_", randn(3, 4), [bools(3, 4)], randn())
    yield case("Tensor.index_put_", ints(0, 9, 3, 4), (i, j), ints(0, 9, 2), True)
    yield case("Torch.index_put", randn(3, 4), (torch.tensor([3]),), randn(4), refused=True)


def cases() -> Iterator[Case]:
    seed("index")
    for part in (gathers, scatters, embeddings, items):
        yield from part()
