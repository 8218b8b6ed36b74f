"""Chains, contractions, einsum, and products that make something larger."""

from typing import Iterator

from ops.harness import Case, case, ints, randn


def chains() -> Iterator[Case]:
    yield case("Torch.chain_matmul", randn(3, 4), randn(4, 2), randn(2, 5), randn(5, 3))
    yield case("Torch.chain_matmul", randn(3, 4))
    yield case("Torch.linalg.multi_dot", [randn(3, 4), randn(4, 2), randn(2, 5)])
    yield case("Torch.linalg.multi_dot", [randn(4), randn(4, 2), randn(2)])
    yield case("Torch.linalg.multi_dot", [randn(4), randn(4, 2), randn(2, 3)])
    yield case("Torch.linalg.multi_dot", [randn(3, 4), randn(4)])
    yield case("Torch.linalg.multi_dot", [randn(3, 4), randn(3, 4)], refused=True)
    for n in (0, 1, 2, 3, 5, 10, -1, -3):
        yield case("Torch.matrix_power", randn(2, 3, 3), n, rtol=1e-9)
    yield case("Torch.linalg.matrix_power", randn(3, 3), 4)
    yield case("Tensor.matrix_power", randn(0, 3, 3), 2)
    yield case("Torch.matrix_power", randn(2, 3), 2, refused=True)


def contractions() -> Iterator[Case]:
    yield case("Torch.linalg.vecdot", randn(3, 4), randn(3, 4))
    yield case("Torch.linalg.vecdot", randn(3, 4), randn(3, 4), dim=0)
    yield case("Torch.linalg.vecdot", randn(2, 1, 4), randn(3, 4))
    yield case("Torch.tensordot", randn(3, 4, 5), randn(4, 5, 6))
    yield case("Torch.tensordot", randn(3, 4), randn(5), dims=0)
    yield case("Torch.tensordot", randn(3, 4, 5), randn(4, 3, 2), dims=([1, 0], [0, 1]))
    yield case("Torch.tensordot", randn(3, 4, 5), randn(5, 2), dims=([-1], [0]))
    yield case("Torch.tensordot", randn(3, 4, 5), randn(3, 4, 5), dims=3)
    yield case("Aten.tensordot", randn(3, 4), randn(2, 4), [1], [1])
    yield case("Torch.tensordot", randn(3, 4), randn(5, 6), dims=1, refused=True)
    yield case("Torch.tensordot", randn(3, 4), randn(4, 6), dims=9, refused=True)
    yield case("Torch.tensordot", randn(3, 3), randn(3, 3), dims=([0, 0], [0, 1]), refused=True)
    yield case("Torch.inner", randn(3, 4), randn(2, 5, 4))
    yield case("Torch.inner", randn(4), randn(4))
    yield case("Torch.inner", randn(), randn(2, 4))
    yield case("Tensor.inner", randn(0, 4), randn(2, 4))
    yield case("Functional.bilinear", randn(5, 3), randn(5, 4), randn(2, 3, 4), randn(2))
    yield case("Functional.bilinear", randn(2, 5, 3), randn(2, 5, 4), randn(2, 3, 4))
    yield case("Torch.bilinear", randn(3), randn(4), randn(2, 3, 4), randn(2))
    yield case("Functional.bilinear", randn(5, 3), randn(4, 4), randn(2, 3, 4), refused=True)


def einsum() -> Iterator[Case]:
    two = [("ij,jk->ik", (3, 4), (4, 5)), ("ij,kj->ik", (3, 4), (5, 4)), ("ij,jk", (3, 4), (4, 5)),
           ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,ij->ij", (3, 4), (3, 4)), ("ij,ij->", (3, 4), (3, 4)),
           ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
           ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)), ("bhij,bhjd->bihd", (2, 3, 4, 6), (2, 3, 6, 5)),
           ("ab,cd->", (2, 3), (4, 5)), ("ij,j->i", (3, 4), (4,)), ("ij,ji->", (3, 4), (4, 3)),
           ("...i,i->...", (2, 3, 4), (4,)), ("i...,i...->...", (4, 2, 3), (4, 2, 3)), ("ii,i->i", (3, 3), (3,)),
           ("iij,jk->ik", (3, 3, 4), (4, 2)), ("ij, jk -> ik", (3, 4), (4, 5)), ("ij,jk->ik", (0, 4), (4, 5)),
           ("ij,jk->ik", (3, 0), (0, 5)), ("Ab,bC", (2, 3), (3, 4)), ("bA,Cb", (2, 3), (4, 2)),
           ("ij,kl->ijkl", (2, 3), (4, 5)), ("ij,jk->ik", (3, 1), (4, 5)), ("ij,ij->i", (3, 4), (3, 1)),
           ("...,...", (3, 1), (4,)), ("...ab,...->...", (2, 3, 4), (2,))]
    for equation, a, b in two:
        yield case("Torch.einsum", equation, randn(*a), randn(*b))
    one = [("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->ji", (3, 4)), ("ij->", (3, 4)), ("ij->j", (3, 4)),
           ("...ii->...i", (2, 3, 3)), ("ijk->kij", (2, 3, 4)), ("i->i", (3,)), ("->", ()), ("...", (2, 3)),
           ("...i->i...", (2, 3, 4)), ("ba", (2, 3)), ("iijj->ij", (2, 2, 3, 3)), ("...j->...", (2, 3))]
    for equation, a in one:
        yield case("Torch.einsum", equation, randn(*a))
    yield case("Torch.einsum", "ij,jk,kl->il", randn(2, 3), randn(3, 4), randn(4, 5))
    yield case("Torch.einsum", "bn,anm,bm->ba", randn(2, 5), randn(3, 5, 4), randn(2, 4))
    yield case("Torch.einsum", "i,i,i->i", randn(4), randn(4), randn(4))
    yield case("Torch.einsum", "ij,jk->ik", [randn(3, 4), randn(4, 5)])
    yield case("Torch.einsum", randn(3, 4), [0, 1], randn(4, 5), [1, 2], [0, 2])
    yield case("Torch.einsum", randn(3, 4), [0, 1], randn(4, 5), [1, 2])
    yield case("Torch.einsum", randn(2, 3, 4), [..., 0, 1], randn(4, 5), [1, 2], [..., 2, 0])
    yield case("Torch.einsum", "ij,jk->ik", ints(-5, 5, 3, 4), ints(-5, 5, 4, 2))
    for bad in ("ij,jk->iz", "ij", "ij,jk,kl", "i-j,jk", "ij,jk->ii", "ijk,jk->i", "i.,jk", "ij,jk->i,k", "->->"):
        yield case("Torch.einsum", bad, randn(3, 4), randn(4, 5), refused=True)
    yield case("Torch.einsum", "ij,jk->ik", randn(3, 4), randn(5, 5), refused=True)


def larger() -> Iterator[Case]:
    for a, b in [((2, 3), (4, 5)), ((2,), (3, 2)), ((), (2, 3)), ((2, 1, 3), (2, 2)), ((0, 2), (3, 3))]:
        yield case("Torch.kron", randn(*a), randn(*b))
    yield case("Tensor.kron", ints(-3, 3, 2, 2), ints(-3, 3, 2, 2))
    yield case("Torch.block_diag", randn(2, 3), randn(), randn(2), randn(3, 1))
    yield case("Torch.block_diag", randn(2, 3))
    yield case("Torch.block_diag", randn(2, 0), randn(1, 2))
    yield case("Torch.block_diag", randn(2, 2, 2), refused=True)
    yield case("Torch.cross", randn(4, 3), randn(4, 3), differences=True)
    yield case("Torch.cross", randn(3, 4), randn(3, 4), 0)
    yield case("Torch.cross", randn(4, 3, 5), randn(4, 3, 5))
    yield case("Tensor.cross", randn(4, 3), randn(4, 3), dim=-1)
    yield case("Torch.linalg.cross", randn(4, 3), randn(1, 3))
    yield case("Torch.linalg.cross", randn(3, 4), randn(3, 4), dim=0)
    yield case("Torch.cross", ints(-9, 9, 2, 3), ints(-9, 9, 2, 3), 1)
    yield case("Torch.cross", randn(4, 4), randn(4, 4), refused=True)


def cases() -> Iterator[Case]:
    yield from chains()
    yield from contractions()
    yield from einsum()
    yield from larger()
