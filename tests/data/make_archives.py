"""Writes the archives that the tests of .npz and .pt read, and the seeds of their fuzz targets.

Needs numpy and torch 1.13 or later; run it anywhere, it writes next to itself.
"""

import argparse
import collections
import io
import pathlib
import pickle
import struct
import zipfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).parent
NPZ = HERE / "npz"
PT = HERE / "pt"
CORPUS = HERE.parent.parent / "fuzz" / "corpus"


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def pack(path: pathlib.Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    """A ZIP archive without timestamps."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, data)


def zip64(members: dict[str, bytes]) -> bytes:
    """An archive that says everything in 64 bits, as those beyond 4 GB must."""
    data, directory = b"", b""
    for name, body in members.items():
        crc, text = zipfile.crc32(body), name.encode()
        extra = struct.pack("<HHQQQ", 1, 24, len(body), len(body), len(data))
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 33, crc,
                                 0xFFFFFFFF, 0xFFFFFFFF, len(text), len(extra), 0, 0, 0, 0,
                                 0xFFFFFFFF) + text + extra
        data += struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 33, crc, 0xFFFFFFFF,
                            0xFFFFFFFF, len(text), 20)
        data += text + struct.pack("<HHQQ", 1, 16, len(body), len(body)) + body
    at = len(data) + len(directory)
    end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, len(members), len(members),
                      len(directory), len(data))
    end += struct.pack("<IIQI", 0x07064B50, 0, at, 1)
    end += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data + directory + end


def make_npz() -> None:
    arrays = {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
        "scalar": np.array(-7, dtype=np.int64),
        "fortran": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        "big": np.arange(4).astype(">i2") - 2,
        "sub/empty": np.zeros((0, 5), np.float16),
    }
    np.savez(NPZ / "plain.npz", **arrays)
    np.savez_compressed(NPZ / "deflated.npz", long=(np.arange(50000) % 7).astype(np.float32),
                        **arrays)
    good = npy(arrays["weight"])
    pack(NPZ / "mixed.npz", {
        "a.npy": good,
        "readme.txt": b"not an array",
        "object.npy": npy(np.array([{}, None], dtype=object)),
        "short.npy": good[:-1],
        "long.npy": good + b"\0",
        "noise.npy": b"noise",
        "z.npy": npy(np.array([1, 2, 3], np.uint8)),
    })
    (NPZ / "zip64.npz").write_bytes(zip64({"a.npy": good, "b.npy": npy(arrays["scalar"])}))
    pack(NPZ / "empty.npz", {})


class Asm:
    """Pickles written by hand, for what this torch cannot write and what nobody should."""

    @staticmethod
    def glob(module: str, name: str) -> bytes:
        return f"c{module}\n{name}\n".encode()

    @staticmethod
    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()

    @staticmethod
    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    @classmethod
    def ints(cls, *values: int) -> bytes:
        return b"(" + b"".join(map(cls.number, values)) + b"t"

    @classmethod
    def storage(cls, kind: tuple[str, str], key: str, count: int) -> bytes:
        return (b"(" + cls.text("storage") + cls.glob(*kind) + cls.text(key) + cls.text("cpu") +
                cls.number(count) + b"tQ")

    @classmethod
    def v2(cls, storage: bytes, offset: int, shape: tuple, stride: tuple,
           metadata: bytes = b"") -> bytes:
        return (cls.glob("torch._utils", "_rebuild_tensor_v2") + b"(" + storage +
                cls.number(offset) + cls.ints(*shape) + cls.ints(*stride) + b"\x89" +
                cls.glob("collections", "OrderedDict") + b")R" + metadata + b"tR")

    @classmethod
    def v3(cls, storage: bytes, shape: tuple, stride: tuple, dtype: str) -> bytes:
        return (cls.glob("torch._utils", "_rebuild_tensor_v3") + b"(" + storage + cls.number(0) +
                cls.ints(*shape) + cls.ints(*stride) + b"\x89" +
                cls.glob("collections", "OrderedDict") + b")R" + cls.glob("torch", dtype) + b"tR")

    @classmethod
    def dict(cls, **values: bytes) -> bytes:
        return b"}(" + b"".join(cls.text(k) + v for k, v in values.items()) + b"u"


def pickled(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


FLOAT = ("torch", "FloatStorage")
UNTYPED = ("torch.storage", "UntypedStorage")


def make_pt_by_torch() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    ramp = torch.arange(12, dtype=torch.float32).reshape(3, 4)

    torch.save(model.state_dict(), PT / "state.pt")
    torch.save(optimizer.state_dict(), PT / "optimizer.pt", pickle_protocol=4)
    torch.save(ramp, PT / "lone.pt")
    torch.save({"base": ramp, "t": ramp.t(), "row": ramp[1], "step": ramp[:, ::2],
                "wide": torch.tensor([5.0]).expand(2, 3), "param": torch.nn.Parameter(ramp[2]),
                "frozen": torch.nn.Parameter(ramp[0], requires_grad=False)}, PT / "views.pt")
    torch.save({str(t).split(".")[1]: torch.tensor([0, 1, 3]).to(t) for t in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
        torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)},
        PT / "dtypes.pt")
    torch.save({
        "epoch": 3, "loss": 0.25, "name": "run", "none": None, "big": 1 << 80,
        "args": argparse.Namespace(lr=0.1, size=torch.Size([2, 3])),
        "device": torch.device("cpu"), "dtype": torch.float16,
        "holder": argparse.Namespace(kept=ramp[0].clone()),
        "nested": [(torch.tensor(1), {7: torch.tensor([2.0])}),
                   collections.OrderedDict(x=torch.tensor(3.5, dtype=torch.float64))],
        "storage": ramp[:1].clone().storage(),
    }, PT / "checkpoint.pt")
    torch.save({"quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 1, torch.quint8),
                "sparse": torch.eye(2).to_sparse(), "dense": torch.ones(2)}, PT / "others.pt")
    torch.save(model, PT / "module.pt", pickle_protocol=5)
    torch.save(argparse.Namespace(lr=0.1), PT / "opaque.pt")
    torch.save({"epoch": 1}, PT / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), str(PT / "script.pt"))


def make_pt_by_hand() -> None:
    ramp = struct.pack("<6f", *range(6))
    tensor = Asm.v2(Asm.storage(FLOAT, "0", 6), 0, (2, 3), (3, 1))

    def write(name: str, body: bytes, storages: dict[str, bytes], method: int = zipfile.ZIP_STORED,
              **more: bytes) -> None:
        members = {f"{name}/data.pkl": pickled(body)}
        members |= {f"{name}/{key}": data for key, data in more.items()}
        members |= {f"{name}/data/{key}": data for key, data in storages.items()}
        pack(PT / f"{name}.pt", members | {f"{name}/version": b"3\n"}, method)

    write("evil", Asm.glob("os", "system") + b"(" + Asm.text("echo pwned") + b"tR", {})
    write("evil_inside", Asm.dict(w=tensor, x=Asm.glob("builtins", "eval") + b"(" +
                                  Asm.text("1") + b"tR"), {"0": ramp})
    write("deflated", Asm.dict(w=tensor, z=Asm.v2(Asm.storage(FLOAT, "1", 4096), 5, (8,), (2,))),
          {"0": ramp, "1": struct.pack("<4096f", *range(4096))}, zipfile.ZIP_DEFLATED,
          byteorder=b"little")
    write("bigendian", Asm.dict(w=tensor), {"0": struct.pack(">6f", *range(6))}, byteorder=b"big")
    write("v3", Asm.dict(
        e4m3fn=Asm.v3(Asm.storage(UNTYPED, "0", 4), (4,), (1,), "float8_e4m3fn"),
        e5m2=Asm.v3(Asm.storage(UNTYPED, "0", 4), (2, 2), (1, 2), "float8_e5m2"),
        e4m3fnuz=Asm.v3(Asm.storage(UNTYPED, "0", 4), (4,), (1,), "float8_e4m3fnuz"),
        e5m2fnuz=Asm.v3(Asm.storage(UNTYPED, "0", 4), (4,), (1,), "float8_e5m2fnuz"),
        u16=Asm.v3(Asm.storage(UNTYPED, "0", 4), (2,), (1,), "uint16"),
        u32=Asm.v3(Asm.storage(UNTYPED, "0", 4), (1,), (1,), "uint32"),
        u64=Asm.v3(Asm.storage(UNTYPED, "1", 8), (), (), "uint64"),
        odd=Asm.v3(Asm.storage(UNTYPED, "0", 4), (4,), (1,), "qint8")),
        {"0": b"\x38\x40\xb8\x01", "1": b"\xff" * 8})
    write("lies", Asm.dict(
        count=Asm.v2(Asm.storage(FLOAT, "0", 7), 0, (2, 3), (3, 1)),
        reach=Asm.v2(Asm.storage(FLOAT, "0", 6), 1, (2, 3), (3, 1)),
        huge=Asm.v2(Asm.storage(FLOAT, "0", 6), 0, (1 << 30, 1 << 30), (0, 0)),
        overflow=Asm.v2(Asm.storage(FLOAT, "0", 6), 0, (1 << 30, 1 << 30, 1 << 30), (0, 0, 0)),
        missing=Asm.v2(Asm.storage(FLOAT, "9", 6), 0, (6,), (1,)),
        strides=Asm.v2(Asm.storage(FLOAT, "0", 6), 0, (6,), (1, 1)),
        negative=Asm.v2(Asm.storage(FLOAT, "0", 6), -1, (6,), (1,)),
        good=tensor), {"0": ramp})
    # What torch 2 writes for views whose work it puts off, and an array of numpy.
    array = (Asm.glob("numpy.core.multiarray", "_reconstruct") + b"(" +
             Asm.glob("numpy", "ndarray") + Asm.ints(0) + Asm.text("b") + b"tR")
    lazy = {"conj": Asm.dict(conj=b"\x88"), "neg": Asm.dict(conj=b"\x89", neg=b"\x88"),
            "plain": Asm.dict(conj=b"\x89")}
    write("lazy", Asm.dict(array=array, **{
        name: Asm.v2(Asm.storage(FLOAT, "0", 6), 0, (2, 3), (3, 1), marks)
        for name, marks in lazy.items()}), {"0": ramp})
    # A list in itself, and lists that double at each of 30 levels: a naive walk never ends.
    write("cycle", b"]q\x00h\x00a(" + tensor + b"e", {"0": ramp})
    write("bomb", b"]q\x00" + b"".join(
        b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(30)) +
        b"".join(b"\x86" for _ in range(30)), {})
    (PT / "plain.pkl").write_bytes(pickle.dumps({"a": 1}, 4))


def make_corpus() -> None:
    for name in ("npz", "pt", "pickle"):
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
    small = npy(np.array([1.5], np.float32))
    pack(CORPUS / "npz" / "stored.npz", {"a.npy": small})
    pack(CORPUS / "npz" / "deflated.npz", {"a.npy": small}, zipfile.ZIP_DEFLATED)
    (CORPUS / "npz" / "zip64.npz").write_bytes(zip64({"a.npy": small}))
    tensor = Asm.v2(Asm.storage(FLOAT, "0", 2), 0, (2,), (1,))
    untyped = Asm.v3(Asm.storage(UNTYPED, "0", 8), (1,), (1,), "float64")
    parameter = Asm.glob("torch._utils", "_rebuild_parameter") + b"(" + tensor + b"\x88}tR"
    seeds = {"v2": Asm.dict(w=tensor), "v3": b"]" + untyped + b"a", "parameter": parameter}
    for name, body in seeds.items():
        pack(CORPUS / "pt" / f"{name}.pt", {"a/data.pkl": pickled(body), "a/data/0": b"\0" * 8})
        (CORPUS / "pickle" / f"{name}.pkl").write_bytes(pickled(body))
    pack(CORPUS / "pt" / "deflated.pt",
         {"a/data.pkl": pickled(seeds["v2"]), "a/byteorder": b"big", "a/data/0": b"\0" * 8},
         zipfile.ZIP_DEFLATED)
    rich = [None, True, 1, 300, 70000, 1 << 40, -(1 << 70), 1.5, "s", b"b", (1, 2), {"k": {1, 2}},
            frozenset([3]), bytearray(b"x"), argparse.Namespace(a=collections.OrderedDict(b=1))]
    for protocol in range(2, 6):
        (CORPUS / "pickle" / f"rich{protocol}.pkl").write_bytes(pickle.dumps(rich, protocol))


if __name__ == "__main__":
    for folder in (NPZ, PT):
        folder.mkdir(exist_ok=True)
    make_npz()
    make_pt_by_torch()
    make_pt_by_hand()
    make_corpus()
