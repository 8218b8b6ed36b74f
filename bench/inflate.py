"""How fast libdeflate alone takes the chunks of an HDF5 file apart: what reading them cannot beat."""

from __future__ import annotations

import ctypes
import ctypes.util
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py


def chunks(path: Path) -> list[tuple[bytes, int]]:
    """The compressed bytes of all chunks, and how many they become."""
    found = []
    with h5py.File(path, "r") as file:
        for dataset in file["1"].values():
            size = dataset.dtype.itemsize
            for length in dataset.chunks:
                size *= length
            for i in range(dataset.id.get_num_chunks()):
                where = dataset.id.get_chunk_info(i).chunk_offset
                found.append((dataset.id.read_direct_chunk(where)[1], size))
    return found


def rate(paths: tuple[Path, ...], threads: int) -> float | None:
    """GB/s of the bytes that come out; None without the library."""
    name = ctypes.util.find_library("deflate")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
    work = [one for path in paths for one in chunks(path)]

    def inflate(part: list[tuple[bytes, int]]) -> None:
        state = ctypes.c_void_p(library.libdeflate_alloc_decompressor())
        out = ctypes.create_string_buffer(max(size for _, size in part))
        for data, size in part:
            code = library.libdeflate_zlib_decompress(state, data, ctypes.c_size_t(len(data)), out,
                                                      ctypes.c_size_t(size), None)
            if code:
                raise ValueError(f"libdeflate: code {code}")
        library.libdeflate_free_decompressor(state)

    fastest = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(inflate, [work[i::threads] for i in range(threads)]))
            fastest = min(fastest, time.perf_counter() - start)
    return sum(size for _, size in work) / fastest / 1e9
