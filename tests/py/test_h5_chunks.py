"""Chunks of HDF5 files in many layouts: every element comes from where h5py finds it."""

import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
FILTERS = ({}, {"shuffle": True}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True},
           {"compression": "gzip", "fletcher32": True})


def write(file: h5py.File, name: str, draw: random.Random) -> None:
    """A dataset of any shape, with chunks that cover rows, blocks or more than there is; of some
    only a part is ever written."""
    shape = [draw.randint(1, 9) for _ in range(draw.randint(1, 4))]
    chunks = [draw.choice((1, length, max(1, length // 2), draw.randint(1, length))) for length in shape]
    dtype = draw.choice(("f4", "f8", "i2", "u1"))
    data = file.create_dataset(name, shape, dtype, chunks=tuple(chunks), **draw.choice(FILTERS))
    part = draw.choice((Ellipsis, Ellipsis, slice(0, max(1, shape[0] // 2))))
    data[part] = np.random.default_rng(draw.randrange(1 << 30)).integers(1, 100, data[part].shape)


def said(target: Path, golden: Path) -> str:
    """The closing line. The standard fails what is further away than 0.01."""
    words = [BUILD / "plumb", "compare", target, golden, "--standard", "xray", "--format", "csv"]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stderr


class Chunks(unittest.TestCase):
    def test_any_layout(self) -> None:
        draw = random.Random(5)
        with tempfile.TemporaryDirectory() as folder:
            packed, plain = Path(folder, "packed.h5"), Path(folder, "plain.npz")
            with h5py.File(packed, "w") as file:
                for i in range(400):
                    write(file, f"t{i:03}", draw)
                arrays = {name: data[()] for name, data in file.items()}
            np.savez(plain, **arrays)
            self.assertIn("400 compared: 400 pass, 0 fail; 0 unmatched", said(packed, plain))
            spoiled = {name: np.where(array > 50, array + 1, array) for name, array in arrays.items()}
            np.savez(plain, **spoiled)
            differ = sum((spoiled[name] != array).any() for name, array in arrays.items())
            self.assertIn(f"400 compared: {400 - differ} pass, {differ} fail", said(packed, plain))


if __name__ == "__main__":
    unittest.main()
