"""Makes the HDF5 fixtures in tests/data/hdf5. Needs h5py and numpy.

usage: make_hdf5.py DIR"""

import sys
from pathlib import Path

import h5py
import numpy as np

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)


def ramp(*shape, dtype="f4"):
    return np.arange(int(np.prod(shape)), dtype="f8").reshape(shape).astype(dtype)


def module_dump():
    """The layout of a module dump: creation order, dtype attributes, ranks on the root."""
    with h5py.File(out / "module.h5", "w", track_order=True) as f:
        f.attrs["globalrank"] = 3
        f.attrs["localrank"] = 1
        for step in (2, 10, 1):
            g = f.create_group(str(step), track_order=True)
            for i, name in enumerate(("proj.Linear.0.forward_params.weight",
                                      "proj.Linear.0.forward_input.0",
                                      "attn.Attention.0.forward_output.0")):
                d = g.create_dataset(name, data=ramp(2, 3) + 100 * step + 10 * i)
                d.attrs["dtype"] = "torch.float32"


def types():
    with h5py.File(out / "types.h5", "w", track_order=True) as f:
        for name in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
            f["le_" + name] = ramp(3, dtype="<" + name)
        for name in ("u2", "i4", "i8", "f2", "f4", "f8", "c8"):
            f["be_" + name] = ramp(3, dtype=">" + name)
        f["bool"] = np.array([True, False, True])

        def as_bits(name, bits, dtype):
            f[name] = bits
            f[name].attrs["dtype"] = dtype

        as_bits("bf16", np.array([0x3F80, 0xC000, 0x4040], "u2"), "torch.bfloat16")
        as_bits("e4m3", np.array([0x38, 0xC0, 0x44], "u1"), np.bytes_("torch.float8_e4m3fn"))
        as_bits("e5m2", np.array([0x3C, 0xC0, 0x42], "u1"), "torch.float8_e5m2")
        as_bits("bool_as_u1", np.array([1, 0, 1], "u1"), "torch.bool")
        as_bits("widened", ramp(3), "torch.bfloat16")
        as_bits("odd_name", ramp(3), "<f4")
        as_bits("contradicts", ramp(3), "torch.int32")
        as_bits("bytes_of_bf16", ramp(6, dtype="u1"), "torch.bfloat16")
        as_bits("narrowed", ramp(3, dtype="i4"), "torch.int64")
        bf16 = h5py.h5t.IEEE_F32LE.copy()
        bf16.set_fields(15, 7, 8, 0, 7)
        bf16.set_size(2)
        bf16.set_ebias(127)
        space = h5py.h5s.create_simple((3,))
        d = h5py.h5d.create(f.id, b"native_bf16", bf16, space)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0x3F80, 0xC000, 0x4040], "u2").view("V2"),
                mtype=bf16)


def unsupported():
    with h5py.File(out / "unsupported.h5", "w", track_order=True) as f:
        f["before"] = ramp(2)
        f["text"] = "hello"
        f["fixed_text"] = np.array([b"ab", b"c"])
        f["structure"] = np.zeros(2, [("x", "f4"), ("y", "i4")])
        f["opaque"] = np.void(b"\1\2\3\4")
        f["reference"] = f["before"].ref
        f["array"] = np.zeros(2, [("a", "f4", (3,))])
        f["ragged"] = np.array([np.zeros(1, "i4"), np.zeros(2, "i4")], dtype=h5py.vlen_dtype("i4"))
        layout = h5py.VirtualLayout((2,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (2,))
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("external", (2,), "f4", external=[("/etc/passwd", 0, 8)])
        f.create_dataset("packed", data=ramp(100), compression="lzf")  # h5py has it, libhdf5 not
        f["after"] = ramp(2)


def layouts(name="layouts.h5", libver="earliest"):
    with h5py.File(out / name, "w", track_order=True, libver=libver) as f:
        f.create_dataset("contiguous", data=ramp(4, 5))
        f.create_dataset("chunked", data=ramp(7, 5), chunks=(3, 2))
        f.create_dataset("deflate", data=ramp(7, 5), chunks=(3, 2), compression="gzip")
        f.create_dataset("shuffle", data=ramp(7, 5), chunks=(3, 2), shuffle=True)
        f.create_dataset("both", data=ramp(3, 4, 5, dtype="f8"), chunks=(2, 3, 4),
                         compression="gzip", shuffle=True)
        f.create_dataset("both_big", data=ramp(9, dtype=">i2"), chunks=(4,), compression="gzip",
                         shuffle=True)
        f.create_dataset("checksum", data=ramp(7, 5), chunks=(3, 2), fletcher32=True)
        f.create_dataset("growing", data=ramp(5), chunks=(8,), maxshape=(None,))
        sparse = f.create_dataset("sparse", (10,), "f4", chunks=(4,))
        sparse[5] = 1
        filled = f.create_dataset("filled", (10,), "f4", chunks=(4,), fillvalue=7)
        filled[5] = 1
        f.create_dataset("never", (2, 3), "f4")
        f.create_dataset("never_filled", (2, 3), "i4", fillvalue=-2)
        f["scalar"] = np.float64(2.5)
        f["empty"] = np.zeros((3, 0, 2), "f4")
        f["null"] = h5py.Empty("f4")
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        d = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4,)),
                            plist)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, ramp(4))


def layouts_latest():
    """The same with the newer ways to find chunks: a single one, arrays, an implicit index."""
    layouts("layouts_latest.h5", "latest")


def nested():
    """Groups in groups, circles, aliases, and names that lead out of the file."""
    with h5py.File(out / "nested.h5", "w") as f:  # no creation order: by name
        f["b/deep/er/w"] = ramp(2)
        f["a/x"] = ramp(3)
        f["1/y"] = ramp(4)
        f["b/deep/circle"] = f["b"]
        f["same"] = f["a/x"]
        f["soft"] = h5py.SoftLink("/a/x")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["outside"] = h5py.ExternalLink("module.h5", "/1")
        f["by_way_of_outside"] = h5py.SoftLink("/outside/proj.Linear.0.forward_input.0")


def promises():
    with h5py.File(out / "huge.h5", "w", libver="latest") as f:
        f.create_dataset("never", (1 << 30, 1 << 30), "f4")
        f.create_dataset("sparse", (1 << 20, 1 << 20), "f8", chunks=(16, 16), compression="gzip")
        f.create_dataset("overflow", (1 << 40, 1 << 23), "u1", chunks=(16, 16))


def tiny():
    with h5py.File(out / "tiny.h5", "w", libver="latest") as f:
        f.create_dataset("x", data=ramp(6), chunks=(4,), compression="gzip", shuffle=True)
        f["y"] = ramp(4, dtype="i2")


def plain():
    """What plumb lists itself: groups of names, and headers of both versions."""
    with h5py.File(out / "plain_names.h5", "w") as f:
        f.attrs["globalrank"] = 3
        for k, kind in enumerate(("i1", "<u2", "<f8", "<f2", ">i8", ">f4", "<u4", "<i4", "<i2", "<f4")):
            f[f"g{k % 2}/d{k}"] = ramp(k, dtype=kind)
        f["one"] = np.float32(3)
        f["one"].attrs["dtype"] = np.bytes_("torch.float32  ")
        f["one"].attrs["path_call"] = 7
        f.create_group("empty")
    with h5py.File(out / "plain_order.h5", "w", track_order=True) as f:
        for name in ("b", "a", "c"):
            d = f.create_dataset(name, data=ramp(2, 3), track_order=True)
            d.attrs["dtype"] = "torch.float32"
            d.attrs["other"] = ramp(5)


for make in (plain, module_dump, types, unsupported, layouts, layouts_latest, nested, promises, tiny):
    make()
