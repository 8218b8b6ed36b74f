"""Products of groups, and of numbers of few bits with their scales, against the formula."""

from typing import Any, Iterator, List

import torch

from ops.harness import Case, case, fixed, ints, randn, uniform


def grouped(a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    if out_dtype is not None and a.dtype != torch.float64:
        a, b = a.to(out_dtype), b.to(out_dtype)
    if a.dim() == 3 and b.dim() == 3:
        return a @ b
    ends: List[int] = [0, *offs.tolist()]
    pairs = list(zip(ends, ends[1:]))
    if b.dim() == 3:
        return torch.cat([a[x:y] @ b[k] for k, (x, y) in enumerate(pairs)])
    if a.dim() == 3:
        return torch.cat([a[k] @ b[:, x:y] for k, (x, y) in enumerate(pairs)], 1)
    return torch.stack([a[:, x:y] @ b[x:y] for x, y in pairs])


def groups() -> Iterator[Case]:
    ends = fixed([3, 3, 8], torch.int32)
    for a, b, offs in ((randn(8, 6), randn(3, 6, 5), ends), (randn(3, 4, 6), randn(6, 8), ends),
                       (randn(4, 8), randn(8, 5), ends), (randn(3, 4, 6), randn(3, 6, 5), None)):
        for name in ("Aten._grouped_mm", "Functional.grouped_mm"):
            yield case(name, a, b, offs=offs, ref=grouped, bfloat16=True)
    yield case("transformers.grouped_mm_fallback", randn(8, 6), randn(3, 6, 5), ends, ref=grouped)
    yield case("Torch.transformers::grouped_mm_fallback", randn(8, 6), randn(3, 6, 5), ends, ref=grouped)
    yield case("Aten._grouped_mm", randn(8, 6, dtype=torch.bfloat16), randn(3, 6, 5, dtype=torch.bfloat16), ends,
               out_dtype=torch.float32, ref=grouped)
    for bad in (fixed([3, 2, 8], torch.int32), fixed([3, 3, 7], torch.int32), fixed([3, 3, 9], torch.int32),
                fixed([3, 8], torch.int32), None):
        yield case("Aten._grouped_mm", randn(8, 6), randn(3, 6, 5), bad, refused=True)


def blocks(scale: Any, x: Any) -> Any:
    """Scales in the shape of the matrix."""
    if scale.numel() == 1:
        return scale.reshape(())
    out = scale.double() if x.dtype == torch.float64 else scale
    for dim in (0, 1):
        each = x.shape[dim] // scale.shape[dim] if x.shape[dim] % scale.shape[dim] == 0 else 128
        out = out.repeat_interleave(each, dim).narrow(dim, 0, x.shape[dim])
    return out


def scaled(a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, out_dtype: Any = None, **_: Any) -> Any:
    wide = a.dtype if a.dtype == torch.float64 else torch.float32
    # The raised reference is given float64 for the type of the result as well.
    y = (a.to(wide) * blocks(scale_a, a)) @ (b.to(wide) * blocks(scale_b, b))
    y = y if bias is None else y + bias.to(wide)
    return y.to(out_dtype or a.dtype)


def scaled_grouped(a: Any, b: Any, scale_a: Any, scale_b: Any, offs: Any = None, out_dtype: Any = None) -> Any:
    wide = a.dtype if a.dtype == torch.float64 else torch.float32
    left = a.to(wide) * scale_a.to(wide)[..., None]
    right = b.to(wide) * scale_b.to(wide)[:, None, :]
    y = grouped(left, right, offs)
    return y if wide == torch.float64 else y.to(out_dtype)


def scales() -> Iterator[Case]:
    """8-bit floats are not a type of every PyTorch: what they hold stands for them here."""
    a, b = randn(6, 4).detach(), randn(4, 5).detach()
    for sa, sb in ((fixed(0.5), fixed(2.0)), (uniform(0.5, 2, 6, 1).detach(), uniform(0.5, 2, 1, 5).detach()),
                   (uniform(0.5, 2, 6, 2).detach(), uniform(0.5, 2, 2, 5).detach())):
        yield case("Aten._scaled_mm", a, b, sa, sb, out_dtype=torch.bfloat16, ref=scaled, own_rtol=1e-2)
        yield case("Aten._scaled_mm", a, b, sa, sb, randn(5).detach(), ref=scaled)
        yield case("Aten._scaled_mm_v2", a, b, [sa], [0], [0], [sb], [0], [0], None, torch.float32,
                   ref=lambda a, b, x, p, q, y, r, s, bias, d: scaled(a, b, x[0], y[0], bias, torch.float64 if
                                                                     a.dtype == torch.float64 else d))
    wide = randn(130, 260).detach()
    yield case("Aten._scaled_mm", randn(2, 130).detach(), wide, uniform(0.5, 2, 2, 2).detach(),
               uniform(0.5, 2, 2, 3).detach(), ref=scaled)
    yield case("Aten._scaled_mm", a, b, uniform(0.5, 2, 4, 1).detach(), fixed(1.0), refused=True)
    yield case("Aten._scaled_mm", a, b, fixed(1.0), fixed(1.0), None, fixed(2.0), refused=True)
    yield case("Aten._scaled_mm", a, b, fixed(1.0, torch.bfloat16), fixed(1.0), refused=True)
    yield case("Aten._scaled_mm_v2", a, b, [sa], [0], [1], [sb], [0], [0], refused=True)
    yield case("Aten._scaled_mm_v2", a, b, [sa, sa], [0], [0], [sb], [0], [0], refused=True)
    ends = fixed([2, 6], torch.int32)
    yield case("Aten._scaled_grouped_mm", a, randn(2, 4, 5).detach(), uniform(0.5, 2, 6).detach(),
               uniform(0.5, 2, 2, 5).detach(), ends, out_dtype=torch.bfloat16, ref=scaled_grouped, own_rtol=1e-2)
    yield case("Aten._scaled_grouped_mm", randn(2, 3, 4).detach(), randn(2, 4, 5).detach(),
               uniform(0.5, 2, 2, 3).detach(), uniform(0.5, 2, 2, 5).detach(), out_dtype=torch.bfloat16,
               ref=scaled_grouped, own_rtol=1e-2)
    yield case("Aten._scaled_grouped_mm_v2", a, randn(2, 4, 5).detach(), [uniform(0.5, 2, 6).detach()], [1], [0],
               [uniform(0.5, 2, 2, 5).detach()], [1], [0], ends, None, torch.bfloat16, own_rtol=1e-2,
               ref=lambda a, b, x, p, q, y, r, s, offs, bias, d: scaled_grouped(a, b, x[0], y[0], offs, d))
    yield case("Aten._scaled_grouped_mm", a, b, fixed(1.0), fixed(1.0), ends, refused=True)


def int8(x: Any, w: Any, scale: Any) -> Any:
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    return ((x.to(wide) @ w.to(wide).T) * scale.to(wide)).to(x.dtype)


def int4(x: Any, codes: Any, group: int, pairs: Any) -> Any:
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    scale, zero = (pairs[..., k].to(wide).T.repeat_interleave(group, 1) for k in (0, 1))
    return (x.to(wide) @ ((codes.to(wide) - 8) * scale + zero).T).to(x.dtype)


def dynamic(x: Any, packed: Any, block: int, k: int, n: int) -> Any:
    wide = x.dtype if x.dtype == torch.float64 else torch.float32
    packed, x = packed.to(wide), x.to(wide)
    bytes_ = packed[:n * k // 2].long()
    codes = torch.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(n, k) - 8
    scale = packed[n * k // 2:n * k // 2 + n * k // block].reshape(n, -1).repeat_interleave(block, 1)
    low, high = x.amin(1, True).clamp(max=0), x.amax(1, True).clamp(min=0)
    size = (high - low) / 255
    zero = (-128 - low / size).round().clamp(-128, 127)
    x = ((x / size + zero).round().clamp(-128, 127) - zero) * size
    y = x @ (codes * scale).T
    return y + packed[-n:] if packed.numel() > n * k // 2 + n * k // block else y


def weights() -> Iterator[Case]:
    yield case("Aten._weight_int8pack_mm", randn(3, 8), ints(-128, 128, 5, 8, dtype=torch.int8), uniform(0.1, 1, 5),
               ref=int8, bfloat16=True)
    yield case("Aten._weight_int8pack_mm", randn(3, 8), ints(0, 9, 5, 8), uniform(0.1, 1, 5), refused=True)
    codes = ints(0, 16, 6, 8, dtype=torch.int32)
    for name in ("_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"):
        yield case(f"Aten.{name}", randn(3, 8), codes, 4, uniform(0.1, 1, 2, 6, 2).detach(), ref=int4, bfloat16=True)
    yield case("Aten._weight_int4pack_mm_for_cpu", randn(3, 8), ints(16, 255, 6, 4, dtype=torch.uint8), 4,
               uniform(0.1, 1, 2, 6, 2).detach(), refused=True)
    for bias in (False, True):
        for block in (8, 4):
            parts = [ints(0, 256, 5 * 4).float(), uniform(0.01, 0.1, 5 * 8 // block).detach()]
            yield case("Aten._dyn_quant_matmul_4bit", randn(3, 8).detach(), torch.cat(
                parts + ([randn(5).detach()] if bias else [])), block, 8, 5, ref=dynamic)
    yield case("Aten._dyn_quant_matmul_4bit", randn(3, 8).detach(), uniform(0, 9, 17).detach(), 4, 8, 5, refused=True)


def cases() -> Iterator[Case]:
    yield from groups()
    yield from scales()
    yield from weights()
