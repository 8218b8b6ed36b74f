import ast
import csv
import ctypes
import hashlib
import io
import json
import math
import os
import pickle
import pickletools
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import pytest
import torch


# -- Files of tensors --------------------------------------------------------------------------

# Tensors come from a dump that somebody else may have made, and a pickle can name any function of
# any module. This reader looks up none: what a file names stands for a few words of our own, and
# everything else is refused. torch.load is not used, with weights_only or without.


class Stored(NamedTuple):
    """A storage: what it holds, the member of the archive, how many elements."""

    dtype: torch.dtype
    key: str
    count: int


class Placed(NamedTuple):
    """A tensor: a part of a storage."""

    storage: Stored
    offset: int
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    dtype: Optional[torch.dtype]


def placed(storage: Stored, offset: int, shape: Any, stride: Any, grad: Any = None, hooks: Any = None,
           dtype: Any = None, *rest: Any) -> Placed:
    return Placed(storage, offset, shape, stride, dtype if isinstance(dtype, torch.dtype) else None)


def parameter(data: Placed, *rest: Any) -> Placed:
    return data


STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
            "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
            "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
            "BoolStorage": "bool", "ComplexDoubleStorage": "complex128",
            "ComplexFloatStorage": "complex64", "UntypedStorage": "uint8"}
MEANINGS = {("torch._utils", "_rebuild_tensor_v2"): placed, ("torch._utils", "_rebuild_tensor_v3"): placed,
            ("torch._utils", "_rebuild_parameter"): parameter, ("collections", "OrderedDict"): dict}


# All that torch.save says of a tensor is said with these; they are few, and make nothing large.
STEPS = {"PROTO", "FRAME", "GLOBAL", "STACK_GLOBAL", "MARK", "STOP", "REDUCE", "BINPERSID", "BINPUT",
         "LONG_BINPUT", "PUT", "MEMOIZE", "BINGET", "LONG_BINGET", "GET", "UNICODE", "BINUNICODE",
         "SHORT_BINUNICODE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "NONE", "NEWTRUE",
         "NEWFALSE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE", "EMPTY_DICT", "EMPTY_LIST"}
MOST_WORDS = 1 << 16  # bytes


def looked_through(words: bytes) -> bytes:
    """The pickle, which takes no other steps, and names no place that it does not need."""
    for step, argument, _ in pickletools.genops(words):
        if step.name not in STEPS:
            raise Refused("it has the step %s, which no tensor needs" % step.name)
        if step.name.endswith("PUT") and argument >= MOST_WORDS:
            raise Refused("it remembers too much")
    return words


class Words(pickle.Unpickler):
    """Reads what a file says of its tensor."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in MEANINGS:
            return MEANINGS[module, name]
        if module in ("torch", "torch.storage") and name in STORAGES:
            return getattr(torch, STORAGES[name])
        if module == "torch" and isinstance(vars(torch).get(name), torch.dtype):
            return vars(torch)[name]
        raise Refused("it names %s.%s, which no tensor needs" % (module, name))

    def persistent_load(self, key: Any) -> Stored:
        kind, dtype, member, _, count = key
        if kind != "storage" or not isinstance(dtype, torch.dtype) or not isinstance(member, str):
            raise Refused("it has a storage of an unknown kind")
        return Stored(dtype, member, int(count))


NUMPY = {"<f8": torch.float64, "<f4": torch.float32, "<f2": torch.float16, "<i8": torch.int64,
         "<i4": torch.int32, "<i2": torch.int16, "|i1": torch.int8, "|u1": torch.uint8,
         "|b1": torch.bool, "<c8": torch.complex64, "<c16": torch.complex128}


def read_npy(path: str) -> torch.Tensor:
    """The array of a .npy file, in C order and of a type that PyTorch has."""
    with open(path, "rb") as stream:
        start = stream.read(8)
        if start[:6] != b"\x93NUMPY":
            raise Refused("it is no .npy file")
        size = int.from_bytes(stream.read(2 if start[6] == 1 else 4), "little")
        if size > MOST_WORDS:
            raise Refused("it says too much of its array")
        said = ast.literal_eval(stream.read(size).decode("latin-1"))
        if said["fortran_order"] or said["descr"] not in NUMPY:
            raise Refused("it holds an array of another kind")
        shape = tuple(int(n) for n in said["shape"])
        data = bytearray(stream.read())
        dtype = NUMPY[said["descr"]]
        if len(data) != math.prod(shape) * torch.empty(0, dtype=dtype).element_size():
            raise Refused("the size of its data is wrong")
        flat = torch.frombuffer(data, dtype=torch.uint8).view(dtype) if data else torch.zeros(0, dtype=dtype)
        return flat.reshape(shape)


def read_tensor(path: str) -> torch.Tensor:
    """The tensor of a file that torch.save or numpy.save wrote. Refused when it is anything else."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Refused("it is a link, or no file")
        if path.endswith(".npy"):
            return read_npy(path)
        with zipfile.ZipFile(path) as archive:
            [words] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if archive.getinfo(words).file_size > MOST_WORDS:
                raise Refused("it says too much of its tensor")
            said = Words(io.BytesIO(looked_through(archive.read(words)))).load()
            if not isinstance(said, Placed):
                raise Refused("it holds no single tensor")
            member = archive.getinfo("%s/data/%s" % (words[:-len("/data.pkl")], said.storage.key))
            dtype = said.dtype or said.storage.dtype
            bytes_of_one = torch.empty(0, dtype=dtype).element_size()
            if member.file_size % bytes_of_one or member.file_size > os.path.getsize(path):
                raise Refused("the size of its storage is wrong")
            flat = torch.zeros(0, dtype=dtype)
            if member.file_size:
                flat = torch.frombuffer(bytearray(archive.read(member)), dtype=torch.uint8).view(dtype)
            return flat.as_strided(said.shape, said.stride, said.offset).clone()
    except Refused as refused:
        raise Refused("%s: %s" % (path, refused))
    except Exception as error:  # of zipfile, pickle and torch: whatever damage they meet
        raise Refused("%s cannot be read as a tensor: %s" % (path, error))


