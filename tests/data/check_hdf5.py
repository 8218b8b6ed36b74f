"""Checks with h5py the file that tests/format/test_hdf5_write.c writes.

usage: check_hdf5.py FILE"""

import sys

import h5py
import numpy as np

BITS = np.array([(i * 37 + 11) % 256 for i in range(96)], "u1")
BITS[:6] &= 1
STORED = {
    "bool": "?", "bfloat16": "<u2", "complex64": "<c8", "complex128": "<c16", "hifloat8": "u1",
    **{f"int{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    **{f"float{8 * n}": f"<f{n}" for n in (2, 4, 8)},
}

with h5py.File(sys.argv[1]) as f:
    assert f.attrs["globalrank"] == 5 and f.attrs["localrank"] == 2
    for name in ("/", "7"):  # tracked and indexed
        plist = h5py.h5g.open(f.id, name.encode()).get_create_plist()
        assert plist.get_link_creation_order() == 3
    assert set(f) == {"6", "7"}
    for step, order in (("7", "<"), ("6", ">")):
        for name, d in f[step].items():
            dtype = np.dtype(STORED.get(name, "u1")).newbyteorder(order)
            assert d.dtype == dtype, (name, d.dtype, dtype)
            prefix = "" if name == "hifloat8" else "torch."
            assert d.attrs["dtype"] == prefix + name and type(d.attrs["dtype"]) is str
            assert d.shape == (2, 3) and d.chunks is None
            assert d[()].tobytes() == BITS[: 6 * dtype.itemsize].tobytes(), name
