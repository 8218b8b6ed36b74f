"""Writes dumps as TorchAir leaves them: GE files, graph texts and FX files."""

import struct
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

TYPES = {"float32": 1, "float16": 2, "int8": 3, "uint8": 4, "int16": 5, "uint16": 6, "int32": 7,
         "int64": 8, "uint32": 9, "uint64": 10, "bool": 11, "float64": 12, "complex64": 16}
TIME = 1740800000000000


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def shape(field: int, dims: Sequence[int]) -> bytes:
    packed = b"".join(varint(dim) for dim in dims)
    return message(field, message(1, packed) if packed else b"")


class Tensor:
    """A tensor of a GE file; type, format and original shape may be anything."""

    def __init__(self, array: np.ndarray, type_: Optional[int] = None, format_: int = 2,
                 original: Optional[Sequence[int]] = None, dims: Optional[Sequence[int]] = None):
        self.data = np.ascontiguousarray(array).tobytes()
        self.type = TYPES[str(array.dtype)] if type_ is None else type_
        self.format = format_
        self.dims = array.shape if dims is None else dims
        self.original = self.dims if original is None else original

    def header(self, output: bool) -> bytes:
        return (number(1, self.type) + number(2, self.format) + shape(3, self.dims)
                + number(6 if output else 5, len(self.data))
                + shape(7 if output else 6, self.original))


def ge_bytes(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> bytes:
    inputs, outputs = list(inputs), list(outputs)
    header = message(1, b"2.0") + number(2, TIME)
    header += b"".join(message(3, tensor.header(True)) for tensor in outputs)
    header += b"".join(message(4, tensor.header(False)) for tensor in inputs)
    return (struct.pack("<Q", len(header)) + header
            + b"".join(tensor.data for tensor in inputs + outputs))


class Op:
    """An operator of the graph: inputs are names of others, fx the names of its outputs."""

    def __init__(self, name: str, inputs: Sequence[str] = (), fx: Sequence[Optional[str]] = ()):
        self.name, self.inputs, self.fx = name, inputs, fx

    def text(self) -> str:
        lines = ["op {", f'  name: "{self.name}"', '  type: "T"']
        lines += [f'  input: "{source}:0"' for source in self.inputs]
        for name in self.fx or [None]:
            lines += ["  output_desc {", '    name: "y"']
            if name:
                lines += ["    attr {", '      key: "_fx_tensor_name"', "      value {",
                          f'        s: "{name}"', "      }", "    }"]
            lines += ["  }"]
        return "\n".join(lines + ["}"]) + "\n"


def write_graph(root: Path, ops: Sequence[Op], graph: int = 1, rank: int = 0) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"dynamo_original_graph_{graph}_rank_{rank}_pid_1_ts_2.txt"
    path.write_text(f'name: "graph_{graph}"\n' + "".join(op.text() for op in ops))
    return path


def ge_folder(root: Path, token: int = 0, graph: int = 1, rank: Optional[int] = 0) -> Path:
    if rank is not None:
        root = root / f"worldsize1_global_rank{rank}"
    folder = root / "20250301120002" / "0" / f"graph_{graph}" / str(graph) / str(token)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fx_folder(root: Path, token: int = 0, graph: int = 1, rank: Optional[int] = 0) -> Path:
    folder = root / f"worldsize1_global_rank{rank}" / f"graph_{graph}" / str(token)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_fx(folder: Path, key: str, inputs: Sequence[np.ndarray],
             outputs: Sequence[np.ndarray]) -> List[Path]:
    paths = []
    for word, arrays in (("INPUT", inputs), ("OUTPUT", outputs)):
        for i, array in enumerate(arrays):
            paths.append(folder / f"{key}.{word}.{i}.20250301120000000274.npy")
            np.save(paths[-1], array)
    return paths


def write_ge(folder: Path, kind: str, name: str, order: int, inputs: Iterable[Tensor],
             outputs: Iterable[Tensor], file: Optional[str] = None) -> Path:
    path = folder / (file or f"{kind}.{name}.{order}.6.{TIME + order}")
    path.write_bytes(ge_bytes(inputs, outputs))
    return path


Arrays = Dict[str, Tuple[List[np.ndarray], List[np.ndarray]]]
