"""Sketches and hashes of all versions as docs/FORMATS.md has them, by other means than plumb's."""

import math
from typing import List, Tuple

import numpy as np

Shape = Tuple[int, ...]
Sketch = Tuple[int, np.ndarray, List[np.ndarray]]


def split_mix(index: np.ndarray) -> np.ndarray:
    """Outputs of SplitMix64 from seed 0."""
    with np.errstate(over="ignore"):
        word = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return word ^ word >> np.uint64(31)


def signs_and_places(count: int) -> Tuple[np.ndarray, np.ndarray]:
    """Of each number, version 4."""
    index = np.arange(count, dtype=np.uint64)
    tile, lane = index // np.uint64(64), index % np.uint64(64)
    signs = np.where(split_mix(tile) >> lane & np.uint64(1), -1.0, 1.0)
    places = split_mix(np.uint64(1 << 63) + tile // np.uint64(8)) >> np.uint64(8) * (tile % np.uint64(8))
    return signs, (places % np.uint64(256) ^ lane).astype(np.int64)


def second_places(count: int) -> Tuple[np.ndarray, np.ndarray]:
    """Of each number, version 2; places before they are taken modulo 256."""
    index = np.arange(count, dtype=np.uint64)
    lane = index % np.uint64(16)
    word = split_mix(index // np.uint64(16))
    signs = np.where(word >> (lane + np.uint64(8)) & np.uint64(1), -1.0, 1.0)
    return signs, (word % np.uint64(256) + lane).astype(np.int64)


def divided(shape: Shape, version: int = 4) -> List[Tuple[int, int]]:
    """The axes of blocks, and the lengths of these."""
    found, inner = [], 1
    for axis in reversed(range(len(shape))):
        blocks = min(16, max(1, shape[axis] * inner // 64))
        length = -(-shape[axis] // min(blocks, shape[axis]))
        if version == 4 and inner == 1 and shape[axis] % 64 == 0:
            length = -(-length // 64) * 64
        if length < shape[axis]:
            found.append((axis, length))
        inner *= shape[axis]
    return found[:6][::-1]


def wide_sketch(numbers: np.ndarray, shape: Shape, version: int = 4) -> Sketch:
    """The exponent, the sums and those of the blocks of each axis, divided by it, as float32: of less than a chunk."""
    signs, places = signs_and_places(numbers.size) if version == 4 else second_places(numbers.size)
    fold = 2 if version == 4 else 4
    sums = np.zeros(256)
    np.add.at(sums, places % 256, signs * numbers)
    blocks = []
    for axis, length in divided(shape, version):
        at = np.indices(shape)[axis].ravel() // length
        table = np.zeros((at.max() + 1, fold))
        np.add.at(table, (at, places % fold), signs * numbers)
        blocks.append(table)
    exponent = math.frexp(max(np.abs(table).max() for table in (sums, *blocks)))[1]
    sums, *blocks = (np.ldexp(table, -exponent).astype(np.float32) for table in (sums, *blocks))
    return exponent, sums, blocks


def first_sketch(numbers: np.ndarray) -> Tuple[int, np.ndarray]:
    """Version 1, which has no blocks."""
    index = np.arange(numbers.size, dtype=np.uint64)
    field = split_mix(index // np.uint64(4)) >> np.uint64(16) * (index % np.uint64(4))
    signed = np.where(field & np.uint64(256), -1.0, 1.0) * numbers
    sums = np.array([math.fsum(signed[field & np.uint64(255) == k]) for k in range(256)])
    exponent = math.frexp(np.abs(sums).max())[1]
    return exponent, np.ldexp(sums, -exponent)


def codes_of(values: np.ndarray, bits: int) -> Tuple[int, np.ndarray]:
    """The power of two by which they are divided, and the multiples of 2^-bits that they are then."""
    exponent = math.frexp(np.abs(values).max())[1]
    codes = np.rint(np.ldexp(values.astype(np.float64), bits - exponent))
    return (exponent, codes) if np.abs(codes).max() < 2 ** bits else \
        (exponent + 1, np.rint(np.ldexp(values.astype(np.float64), bits - exponent - 1)))


def packed(data: int, widths: List[int]) -> np.ndarray:
    """Signed integers of so many bits, the lowest first."""
    codes = []
    for width in widths:
        code = data & (1 << width) - 1
        codes.append(code - (code >> width - 1 << width))
        data >>= width
    return np.array(codes)


def murmur3(data: bytes, seed: int) -> Tuple[int, int]:
    """MurmurHash3_x64_128."""
    mask, c1, c2 = (1 << 64) - 1, 0x87c37b91114253d5, 0x4cf5ad432745937f

    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & mask

    def scramble(x: int) -> int:
        x = (x ^ x >> 33) * 0xff51afd7ed558ccd & mask
        x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53 & mask
        return x ^ x >> 33

    a = b = seed
    for at in range(0, len(data), 16):
        block = data[at:at + 16]
        first, second = (int.from_bytes(part, "little") for part in (block[:8], block[8:]))
        a ^= rotate(first * c1 & mask, 31) * c2 & mask
        if len(block) == 16:
            a = ((rotate(a, 27) + b) * 5 + 0x52dce729) & mask
        b ^= rotate(second * c2 & mask, 33) * c1 & mask
        if len(block) == 16:
            b = ((rotate(b, 31) + a) * 5 + 0x38495ab5) & mask
    a, b = a ^ len(data), b ^ len(data)
    a = (a + b) & mask
    b = (b + a) & mask
    a, b = scramble(a), scramble(b)
    a = (a + b) & mask
    return a, (b + a) & mask


def content_hash(data: bytes) -> str:
    pieces = [murmur3(data[at:at + 4096], at // 4096) for at in range(0, len(data), 4096)]
    return "".join(f"{sum(half) % (1 << 64):016x}" for half in zip(*pieces))
