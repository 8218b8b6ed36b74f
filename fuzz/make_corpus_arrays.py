#!/usr/bin/env python3
"""Writes the seeds of the json, npy, safetensors and index fuzz targets into corpus/ beside this file."""

import json
import struct
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format

CORPUS = Path(__file__).resolve().parent / "corpus"


def put(target: str, name: str, data: bytes) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def make_json() -> None:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.5e-3,
              "Min": float("-inf"), "Mean": float("nan"), "requires_grad": True, "md5": None}
    dump = {"task": "statistics", "level": "L1", "data": {"Functional.relu.0.forward": {
        "input_args": [tensor], "input_kwargs": {}, "output": [tensor]}}}
    put("json", "dump", json.dumps(dump).encode())
    put("json", "indented", json.dumps(dump, indent=4).encode())
    put("json", "escapes", json.dumps('é\n"\\/😀\u0000').encode())
    put("json", "half-pair", b'"\\ud83d"')
    put("json", "numbers", b"[0,-0,1e400,1E-5,9223372036854775807,-9223372036854775809,0.1]")
    put("json", "deep", b"[" * 600)
    put("json", "cut", b'{"a":[1,{"b')


def make_npy() -> None:
    arrays = {
        "f4-c": np.arange(6, dtype="<f4").reshape(2, 3),
        "f8-fortran": np.asfortranarray(np.arange(6, dtype="<f8").reshape(2, 3)),
        "i2-big-endian": np.arange(4, dtype=">i2"),
        "c16-scalar": np.array(1 + 2j),
        "bool-empty": np.zeros((0, 3), dtype=bool),
        "text": np.array(["a", "bc"]),
        "structure": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8", (2,))]),
        "time": np.array(["2020-01-01"], dtype="M8[D]"),
        "raw": np.zeros(2, dtype="V2"),
        "object": np.array([None], dtype=object),
    }
    for name, array in arrays.items():
        stream = BytesIO()
        np.save(stream, array, allow_pickle=True)
        put("npy", name, stream.getvalue())
    for version in (2, 0), (3, 0):
        stream = BytesIO()
        npy_format.write_array(stream, arrays["f4-c"], version=version)
        put("npy", f"version-{version[0]}", stream.getvalue())
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,)}"
    put("npy", "huge", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)


def safetensors(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def make_safetensors() -> None:
    data = bytes(range(64))
    sizes = {"BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
             "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "F8_E4M3": 8, "F8_E5M2": 8,
             "F8_E8M0": 8, "F4": 4, "C64": 64}
    header, end = {}, 0
    for name, bits in sizes.items():
        begin, end = end, end + (bits + 7) // 8
        header[name] = entry(name, [1], begin, end)
    put("safetensors", "types", safetensors(header, bytes(range(end))))
    put("safetensors", "two", safetensors(
        {"__metadata__": {"format": "pt"}, "b": entry("BF16", [2, 2], 4, 12),
         "a": entry("F32", [], 0, 4), "e": entry("I64", [0], 12, 12)}, data[:12]))
    put("safetensors", "overlap", safetensors(
        {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 3, 7)}, data[:8]))
    put("safetensors", "unknown", safetensors({"a": entry("Q7", [4], 0, 4)}, data[:4]))
    put("safetensors", "huge", safetensors({"a": entry("F32", [2**60], 0, 2**62)}, data[:4]))
    put("safetensors", "twice", safetensors(
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', data[:2]))
    put("safetensors", "length", struct.pack("<Q", 2**63) + b"{}")


def make_index() -> None:
    file = safetensors({"a": entry("F32", [2], 0, 8), "b": entry("U8", [4], 8, 12)}, bytes(range(12)))

    def index(name: str, text: bytes) -> None:
        put("index", name, struct.pack(">H", len(text)) + text + file)

    index("right", b'{"metadata": {"total_size": 12}, "weight_map": {"a": "a.safetensors", "b": "a.safetensors"}}')
    index("lies", b'{"weight_map": {"a": "a.safetensors", "c": "a.safetensors", "b": "b.safetensors"}}')
    index("out", b'{"weight_map": {"a": "../a.safetensors", "b": "/a.safetensors", "c": "x/../..", "d": ""}}')
    index("twice", b'{"weight_map": {"a": "a.safetensors", "a": "no"}, "weight_map": {"a": "no", "b": 1}}')
    index("itself", b'{"weight_map": {"a": "model.safetensors.index.json", "b": {"weight_map": {}}, "": null}}')
    index("bytes", b'{"weight_map": {"\xff\\u0000\\n": "a.safetensors\\u0000", "\\ud800": "a"}}')


make_json()
make_npy()
make_safetensors()
make_index()
