#!/usr/bin/env python3
"""Makes xray/gpu.h5 and xray/xpu.h5: two dumps whose summary and comparison look like those that
people know from the torch_xray page.

Names, order, Min, Max, Mean and Std are those of the page to all printed digits (the Std of row 5,
whole numbers, to six), and so is Max Err. The tensors are much smaller than the page's, so RMSE,
IsClose and GtNum only have their character: a rounding of float16 here and there.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from h5py import h5f, h5g, h5p

CONV = "patch_embed.proj.Conv3d.0."
POS = "pos_embed.Embedding.0."
ROTARY = "rotary_pos_emb.Qwen2_5_VisionRotaryEmbedding.0."
NORM1 = "blocks.0.norm1.LayerNorm.0."
QKV = "blocks.0.attn.qkv.QKVParallelLinear.0."
PROJ = "blocks.0.attn.proj.RowParallelLinear.0."
NORM2 = "blocks.0.norm2.LayerNorm.1."
FC1 = "blocks.0.mlp.linear_fc1.ColumnParallelLinear.0."
GELU = "blocks.0.mlp.act_fn.GELU.0."

# Name, Min, Max, Mean, Std, Max Err, share of other elements that are one rounding off.
ROWS: list[tuple[str, float, float, float, float, float, float]] = [
    (CONV + "forward_params.weight", -0.0776367, 0.0795898, 6.8e-06, 0.0072608, 0, 0),
    (CONV + "forward_params.bias", -3.046875, 2.953125, 0.0113748, 0.3257138, 0, 0),
    (CONV + "forward_input.0", -0.7490234, 0.7021484, 0.3302804, 0.2339017, 0, 0),
    (CONV + "forward_output.0", -4.0078125, 5.1210938, 0.0147052, 0.3815643, 2**-9, 0.01),
    (POS + "forward_params.weight", -13.8125, 20.25, 0.0010043, 0.2428094, 0, 0),
    (POS + "forward_input.0", 0.0, 2303.0, 1153.9191895, 714.59436, 0, 0),
    (POS + "forward_output.0", -13.8125, 20.25, 0.0007552, 0.2643428, 0, 0),
    (ROTARY + "forward_output.0", 0.0, 25.0, 1.7337022, 3.9271674, 0, 0),
    (NORM1 + "forward_params.weight", -0.5351562, 3.140625, 0.4660275, 0.7907906, 0, 0),
    (NORM1 + "forward_params.bias", -2.359375, 2.921875, 0.0013793, 0.1879374, 0, 0),
    (NORM1 + "forward_input.0", -15.65625, 20.21875, 0.0155256, 0.4382802, 2**-8, 0.01),
    (NORM1 + "forward_output.0", -6.1640625, 6.7460938, 0.0006746, 0.2708515, 2**-7, 0.01),
    (QKV + "forward_params.bias", -6.125, 6.1875, -0.0292423, 0.8602651, 0, 0),
    (QKV + "forward_input.0", -6.1640625, 6.7460938, 0.0006746, 0.2708515, 2**-7, 0.01),
    (QKV + "forward_output.0", -6.5859375, 7.6171875, -0.0125549, 1.0678084, 2**-8, 0.13),
    (PROJ + "forward_params.bias", -3.578125, 3.203125, -0.0043617, 0.4846557, 0, 0),
    (PROJ + "forward_input.0", -1.9130859, 1.4375, 0.0005577, 0.0947055, 5 * 2**-12, 0.17),
    (PROJ + "forward_output.0", -9.109375, 7.3867188, -0.0034284, 0.4465481, 2**-8, 0.17),
    (NORM2 + "forward_params.weight", -0.1376953, 14.5625, 1.9166113, 3.017405, 0, 0),
    (NORM2 + "forward_params.bias", -1.6328125, 3.84375, 0.0062865, 0.2443586, 0, 0),
    (NORM2 + "forward_input.0", -8.5859375, 11.109375, 0.0120974, 0.4243064, 2**-8, 0.1),
    (NORM2 + "forward_output.0", -12.015625, 14.265625, -0.0012364, 0.4973041, 2**-6, 0.13),
    (FC1 + "forward_params.bias", -9.4375, 0.7304688, -2.4200516, 1.6754951, 0, 0),
    (FC1 + "forward_input.0", -12.015625, 14.265625, -0.0012364, 0.4973041, 2**-6, 0.13),
    (FC1 + "forward_output.0", -12.59375, 13.0625, -2.1465943, 1.8433502, 2**-7, 0.16),
    (GELU + "forward_input.0", -12.59375, 13.0625, -2.1465943, 1.8433502, 2**-7, 0.16),
    # The page does not summarise its last row.
    (GELU + "forward_output.0", -0.1699219, 13.0625, 0.0418243, 0.4218018, 2**-8, 0.12),
]


FINE, PAIRS = 8, 8  # values set aside to correct the sum, and pairs for the sum of squares


def half(x: float | np.ndarray) -> np.ndarray:
    return np.float64(np.float16(x))


def toward_zero(x: float) -> float:
    rounded = np.float16(x)
    if abs(float(rounded)) > abs(x):
        rounded = np.nextafter(rounded, np.float16(0))
    return float(rounded)


def make_halves(low: float, high: float, mean: float, std: float) -> np.ndarray:
    """float16 values with exactly these extremes, and this mean and deviation to about 1e-8.

    Most values take one of 33 levels, so that the file compresses; their centre and width are moved
    until the sums are nearly there. A few small values then bring the sum to what it must be, and
    pairs c + t, c - t, which leave the sum alone, the sum of squares.
    """
    low, high = half(low), half(high)
    need = 2.5 * (low**2 + high**2) / std**2
    count = max(256, 1 << int(np.ceil(np.log2(need))))
    total, squares = count * mean, (count - 1) * std**2 + count * mean**2
    middle = 1.0 if high > 8 * -low else 0.0
    reach = min(middle - low, high - middle)
    extra = 0.05 * min(1.0, high) if low == 0 else 0.0  # what the small values are to add
    spare = 2 * PAIRS * (reach * 0.4) ** 2  # and the pairs, to the squares
    spare = min(spare, 0.02 * squares)

    shape = levels(low, high, mean, std, count - 2 - FINE - 2 * PAIRS)
    centre, width = mean, std
    for _ in range(500):
        x = half(np.clip(centre + width * shape, low, high))
        rest = total - x.sum() - low - high - 2 * PAIRS * middle
        short = squares - (x**2).sum() - low**2 - high**2 - 2 * PAIRS * middle**2
        if 0.5 * spare < short < 1.5 * spare and abs(rest - extra) < 0.05:
            break
        centre += (rest - extra) / x.size
        width *= np.sqrt(1 + (short - spare) / squares)

    small = np.zeros(FINE)
    for i in range(FINE):
        small[i] = toward_zero(np.clip(rest, low, high))
        rest -= small[i]
    short -= (small**2).sum()
    twins = np.full(2 * PAIRS, middle)
    for i in range(0, 2 * PAIRS, 2):
        t = toward_zero(middle + min(reach, np.sqrt(short / 2))) - middle
        twins[i : i + 2] += (t, -t)
        short -= 2 * t**2
    return np.concatenate([[low, high], twins, small, x]).astype(np.float16)


def levels(low: float, high: float, mean: float, std: float, count: int) -> np.ndarray:
    """Values of mean 0 and deviation 1: even, or leaning away from an extreme that is near."""
    u = np.linspace(-2.2, 2.2, 33)
    near = min(mean - low, high - mean) / std
    if near < 2:
        u = np.exp(u * np.sqrt(np.log(1 + near**-2)))
        if high - mean < mean - low:
            u = -u
    x = np.resize(u, count)
    return (x - x.mean()) / x.std()


def make_positions() -> np.ndarray:
    """int64 from 0 to 2303 whose mean prints as the page's; 4096 of them make that possible."""
    x = np.rint((1151.5 + 1248.853 * np.linspace(-1, 1, 4096)).clip(0, 2303))
    for i in range(1024, 3072):
        x[i] += np.sign(4096 * 1153.919189453125 - x.sum()) * 6
    x[2048] += 4096 * 1153.919189453125 - x.sum()
    return x.astype(np.int64)


def disturb(golden: np.ndarray, worst: float, share: float) -> np.ndarray:
    """The other device: one element off by exactly `worst`, some of the others by one rounding."""
    target = golden.copy()
    if worst == 0:
        return target
    step = max(2, round(1 / share))
    some = target[2::step]
    target[2::step] = np.where(
        np.abs(np.spacing(some)) < worst, some + np.spacing(some), some
    )
    exact = (golden + np.float16(worst)).astype(np.float64) - golden.astype(np.float64) == worst
    exact &= golden < golden.max() - 2 * worst
    index = int(np.argmax(np.where(exact, np.abs(golden.astype(np.float64)), -1)))
    target[index] = golden[index] + np.float16(worst)
    return target


def create(path: Path) -> tuple[h5py.File, h5py.Group]:
    """A dump with the group of step 1, in creation order and without times of day."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lists = [h5p.create(kind) for kind in (h5p.FILE_CREATE, h5p.GROUP_CREATE)]
    for properties in lists:
        properties.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        properties.set_obj_track_times(False)
    file = h5py.File(h5f.create(bytes(path), h5f.ACC_TRUNC, fcpl=lists[0]))
    file.attrs["globalrank"] = 0
    file.attrs["localrank"] = 0
    return file, h5py.Group(h5g.create(file.id, b"1", gcpl=lists[1]))


def main() -> None:
    folder = Path(__file__).resolve().parent / "xray"
    (gpu, golden), (xpu, target) = create(folder / "gpu.h5"), create(folder / "xpu.h5")
    with gpu, xpu:
        for name, low, high, mean, std, worst, share in ROWS:
            if name == POS + "forward_input.0":
                data = make_positions()
            else:
                data = make_halves(low, high, mean, std)
            for group, values in ((golden, data), (target, disturb(data, worst, share))):
                dataset = group.create_dataset(name, data=values, compression="gzip")
                dataset.attrs["dtype"] = "torch." + values.dtype.name


if __name__ == "__main__":
    main()
