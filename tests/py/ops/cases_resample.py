"""Padding, interpolation, sampling at grids, shuffles of channels and pixels."""

from typing import Iterator

import torch

from ops.harness import Case, case, fixed, ints, randn, seed, uniform

BIG = 2 ** 62


def pads() -> Iterator[Case]:
    yield case("Functional.pad", randn(2, 3), (1, 2), bfloat16=True)
    yield case("Functional.pad", randn(2, 3), [1, 2, 0, 3], "constant", 2.5)
    yield case("Functional.pad", randn(2, 3, 4), (-1, 2, 1, -2), value=-1.0)
    yield case("Functional.pad", randn(2, 3), (-2, -1))
    yield case("Functional.pad", randn(2, 3), ())
    yield case("Functional.pad", randn(0, 3), (1, 1, 2, 2), value=1.5)
    yield case("Functional.pad", ints(0, 9, 2, 3), (1, 1), value=7)
    yield case("Functional.pad", torch.tensor([True, False]), (1, 1), value=1)
    for mode in ("reflect", "replicate", "circular"):
        yield case("Functional.pad", randn(2, 3, 5), (2, 1), mode=mode)
        yield case("Functional.pad", randn(2, 3, 4, 5), (2, 1, 3, 0), mode)
        yield case("Functional.pad", randn(1, 2, 3, 4, 3), (2, 1, 3, 0, 1, 2), mode)
    yield case("Functional.pad", randn(1, 3, 4, 4), (-1, 1, -2, 1), "circular")
    yield case("Functional.pad", randn(2, 3, 6), (2, -3), "circular")
    yield case("Functional.pad", randn(2, 3, 5), (9, 0), "replicate")
    yield case("Functional.pad", randn(3, 5), (2, 1), "replicate")
    yield case("Functional.pad", randn(2, 3, 5), (5, 0), "reflect", refused=True)
    yield case("Functional.pad", randn(2, 3, 5), (6, 0), "circular", refused=True)
    yield case("Functional.pad", randn(2, 3), (1, 2, 3), refused=True)
    yield case("Functional.pad", randn(2), (1, 2, 3, 4), refused=True)
    yield case("Functional.pad", randn(2, 3), (-4, 0), refused=True)
    yield case("Functional.pad", randn(2, 3), (BIG, BIG), refused=True)
    yield case("Functional.pad", randn(2, 3), (1, 1), "mirror", refused=True)
    yield case("Torch.constant_pad_nd", randn(2, 3), (1, 2), 0.5)
    for name in ("reflection", "replication"):
        yield case(f"Aten.{name}_pad1d", randn(2, 3, 5), [2, 1])
        yield case(f"Aten.{name}_pad2d", randn(2, 3, 4, 5), [2, 1, 1, 2])
        yield case(f"Aten.{name}_pad3d", randn(1, 2, 3, 4, 5), [2, 1, 1, 2, 1, 0])
        yield case(f"Aten.{name}_pad1d_backward", randn(2, 3, 8).detach(), randn(2, 3, 5).detach(), [2, 1])
        yield case(f"Aten.{name}_pad2d_backward", randn(1, 2, 6, 8).detach(), randn(1, 2, 3, 5).detach(), [2, 1, 1, 2])


SHAPES = {3: ((2, 3, 5), ((7,), (3,), (5,), (1,), (10,))), 4: ((1, 2, 4, 5), ((7, 3), (2, 9), (4, 5), (1, 1))),
          5: ((1, 2, 3, 4, 2), ((5, 3, 4), (2, 8, 1)))}


def interpolations() -> Iterator[Case]:
    for rank, linear in ((3, "linear"), (4, "bilinear"), (5, "trilinear")):
        shape, sizes = SHAPES[rank]
        modes = ["nearest", "nearest-exact", "area", linear] + (["bicubic"] if rank == 4 else [])
        for mode in modes:
            aligned = (False, True) if mode in ("linear", "bilinear", "trilinear", "bicubic") else (None,)
            for align in aligned:
                for size in sizes:
                    yield case("Functional.interpolate", randn(*shape), size=size, mode=mode, align_corners=align)
                for scale in (2, 1.7, 0.5, 0.73, (0.6, 1.3, 1.6)[:rank - 2]):
                    yield case("Functional.interpolate", randn(*shape), scale_factor=scale, mode=mode,
                               align_corners=align)
                yield case("Functional.interpolate", randn(*shape), scale_factor=1.7, mode=mode, align_corners=align,
                           recompute_scale_factor=True)
    # Nearest places are decided in float: many sizes, so that the edges are met.
    for size in range(1, 40, 3):
        for to in (1, 3, 7, 10, 13, 29, 64):
            yield case("Functional.interpolate", randn(1, 1, size).detach(), size=to, mode="nearest")
            yield case("Functional.interpolate", randn(1, 1, size).detach(), size=to, mode="nearest-exact")
    yield case("Functional.interpolate", randn(1, 2, 3, 3), 5)
    yield case("Functional.interpolate", ints(0, 255, 1, 2, 3, 3, dtype=torch.uint8), 5)
    yield case("Functional.interpolate", randn(1, 2, 4, 4), 5, mode="bilinear", bfloat16=True)
    yield case("Functional.upsample", randn(1, 2, 3), scale_factor=2)
    yield case("Functional.upsample", randn(1, 2, 3, 3), (5, 4), mode="bilinear", align_corners=True)
    yield case("Functional.upsample_nearest", randn(1, 2, 3, 3), scale_factor=2)
    yield case("Functional.upsample_bilinear", randn(1, 2, 3, 3), (5, 4))
    for args, kwargs in (((5,), dict(scale_factor=2)), ((), {}), ((-1,), {}), ((0,), {}), ((2 ** 50,), {}),
                         ((), dict(scale_factor=float("nan"))), ((), dict(scale_factor=1e30)),
                         ((5,), dict(mode="bilinear")), ((5,), dict(mode="cubic")), (((1, 2, 3),), {}),
                         ((5,), dict(align_corners=True))):
        yield case("Functional.interpolate", randn(1, 2, 3), *args, refused=True, **kwargs)
    yield case("Functional.interpolate", randn(2, 3), 5, refused=True)
    yield case("Aten.upsample_nearest1d", randn(1, 2, 3), [5])
    yield case("Aten.upsample_nearest2d", randn(1, 2, 3, 3), [5, 4])
    yield case("Aten.upsample_nearest2d", randn(1, 2, 3, 3), None, [2.0, 1.5])
    yield case("Aten.upsample_nearest3d", randn(1, 2, 3, 3, 2), [5, 4, 4])
    yield case("Aten._upsample_nearest_exact2d", randn(1, 2, 3, 3), [5, 4])
    yield case("Aten.upsample_linear1d", randn(1, 2, 3), [5], False)
    yield case("Aten.upsample_bilinear2d", randn(1, 2, 3, 3), [5, 4], True)
    yield case("Aten.upsample_bilinear2d", randn(1, 2, 3, 3), None, False, [2.0, 1.5])
    yield case("Aten.upsample_bicubic2d", randn(1, 2, 3, 3), [5, 4], False)
    yield case("Aten.upsample_trilinear3d", randn(1, 2, 3, 3, 2), [5, 4, 4], False)
    yield case("Aten.upsample_nearest2d_backward", randn(1, 2, 5, 4).detach(), [5, 4], [1, 2, 3, 3])
    yield case("Aten.upsample_nearest1d_backward", randn(1, 2, 5).detach(), [5], [1, 2, 3])


def grids() -> Iterator[Case]:
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                yield case("Functional.grid_sample", randn(2, 3, 4, 5), uniform(-1.9, 1.9, 2, 3, 2, 2), mode, padding,
                           align)
                if mode != "bicubic":
                    yield case("Functional.grid_sample", randn(1, 2, 3, 4, 5), uniform(-2.3, 2.3, 1, 2, 3, 2, 3), mode,
                               padding, align)
    yield case("Functional.grid_sample", randn(1, 2, 1, 1), uniform(-2, 2, 1, 3, 2, 2), padding_mode="reflection",
               align_corners=True)
    yield case("Functional.grid_sample", randn(1, 2, 3, 3), uniform(-2, 2, 1, 0, 2, 2), align_corners=False)
    yield case("Functional.grid_sample", randn(1, 2, 3, 3), fixed([[[[1e30, 0.0], [-1e30, 0.0]]]]))
    yield case("Functional.grid_sample", randn(1, 2, 3, 3), randn(2, 2, 2, 2), refused=True)
    yield case("Functional.grid_sample", randn(1, 2, 3, 3), randn(1, 2, 2, 3), refused=True)
    yield case("Functional.grid_sample", randn(1, 2, 0, 3), randn(1, 2, 2, 2), refused=True)
    yield case("Functional.grid_sample", randn(1, 2, 3, 3, 3), randn(1, 2, 2, 2, 3), "bicubic", refused=True)
    yield case("Torch.grid_sampler", randn(2, 3, 4, 5), uniform(-1.5, 1.5, 2, 3, 2, 2), 0, 1, False)
    yield case("Torch.grid_sampler_3d", randn(1, 2, 3, 4, 5), uniform(-1.5, 1.5, 1, 2, 3, 2, 3), 0, 0, True)
    yield case("Aten.grid_sampler_2d_backward", randn(2, 3, 3, 2).detach(), randn(2, 3, 4, 5).detach(),
               uniform(-1.5, 1.5, 2, 3, 2, 2).detach(), 0, 0, False, [True, True])
    yield case("Aten.grid_sampler_3d_backward", randn(1, 2, 1, 3, 2).detach(), randn(1, 2, 2, 4, 5).detach(),
               uniform(-1.5, 1.5, 1, 1, 3, 2, 3).detach(), 0, 1, True, [True, True])
    for align in (False, True):
        yield case("Functional.affine_grid", randn(2, 2, 3), (2, 3, 4, 5), align)
        yield case("Functional.affine_grid", randn(2, 3, 4), (2, 3, 2, 4, 5), align_corners=align)
        yield case("Functional.affine_grid", randn(1, 2, 3), (1, 3, 1, 5), align)
    yield case("Torch.affine_grid_generator", randn(2, 2, 3), (2, 3, 4, 5), True)
    yield case("Functional.affine_grid", randn(2, 2, 3), (3, 3, 4, 5), False, refused=True)
    yield case("Functional.affine_grid", randn(1, 2, 3), (1, 1, BIG, BIG), False, refused=True)


def shuffles() -> Iterator[Case]:
    yield case("Functional.pixel_shuffle", randn(2, 8, 3, 4), 2)
    yield case("Functional.pixel_shuffle", randn(9, 1, 2), 3)
    yield case("Functional.pixel_shuffle", randn(2, 2, 4, 2, 2), 2)
    yield case("Functional.pixel_shuffle", randn(2, 6, 3, 4), 2, refused=True)
    yield case("Functional.pixel_shuffle", randn(2, 8, 3, 4), 0, refused=True)
    yield case("Functional.pixel_unshuffle", randn(2, 2, 6, 4), 2)
    yield case("Functional.pixel_unshuffle", ints(0, 9, 1, 3, 6), 3)
    yield case("Functional.pixel_unshuffle", randn(2, 2, 5, 4), 2, refused=True)
    yield case("Torch.channel_shuffle", randn(2, 6, 3, 2).detach(), 3)
    yield case("Torch.channel_shuffle", randn(1, 4, 2, 2).detach(), 2)
    yield case("Torch.channel_shuffle", randn(1, 5, 2, 2), 2, refused=True)


def cases() -> Iterator[Case]:
    seed("resample")
    for part in (pads, interpolations, grids, shuffles):
        yield from part()
