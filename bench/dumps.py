"""Test sets as the capture tools leave them: trees of dump.json, and GE dumps with their FX twins.

The layouts are described in docs/FORMATS.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable, Iterator

import numpy as np
import torch

from sets import make_both, remove, tensors

RANK = "worldsize1_global_rank0"
NODE = "relu_{0}-aten.relu.default"  # what FX calls an operator
GE_TIME = 1740800000000000  # microseconds
FLOAT, ND = 1, 2  # data_type and format of a GE file
CALL_ROWS = 4  # tensors of a call in a dump.json of statistics

Pair = tuple[torch.Tensor, torch.Tensor]


def pairs(side: str, count: int) -> Iterator[Pair]:
    """The tensors of a side by two: the input of an operator and its output."""
    values = (tensor for _, tensor in tensors(side, count, torch.float32))
    return zip(values, values)


# -- GE against FX ---------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def ge_tensor(tensor: torch.Tensor, size: int, original_shape: int) -> bytes:
    """OpInput and OpOutput, which differ in the numbers of some fields."""
    shape = block(1, b"".join(map(varint, tensor.shape)))
    return (
        number(1, FLOAT)
        + number(2, ND)
        + block(3, shape)
        + number(size, tensor.numel() * tensor.element_size())
        + block(original_shape, shape)
    )


def write_ge_file(path: Path, name: str, values: Pair) -> None:
    header = (
        block(1, b"2.0")
        + number(2, GE_TIME)
        + block(3, ge_tensor(values[1], size=6, original_shape=7))
        + block(4, ge_tensor(values[0], size=5, original_shape=6))
        + block(6, name.encode())
    )
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for tensor in values:
            tensor.numpy().tofile(file)


def graph_text(operators: int) -> str:
    lines = ['name: "graph_1"']
    for i in range(operators):
        lines += [
            "op {",
            f'  name: "Relu_{i}"',
            '  type: "Relu"',
            f'  input: "{f"Relu_{i - 1}" if i else "arg0_1"}:0"',
            "  output_desc {",
            '    name: "y"',
            "    attr {",
            '      key: "_fx_tensor_name"',
            "      value {",
            f'        s: "{NODE.format(i)}.OUTPUT.0"',
            "      }",
            "    }",
            "  }",
            "}",
        ]
    return "\n".join(lines) + "\n"


def write_ge(path: Path, values: Iterator[Pair]) -> None:
    folder = path / RANK / "20250301000000" / "0" / "graph_1" / "1" / "0"
    folder.mkdir(parents=True)
    operators = 0
    for i, pair in enumerate(values):
        write_ge_file(folder / f"Relu.Relu_{i}.{i + 1}.1.{GE_TIME + i}", f"Relu_{i}", pair)
        operators = i + 1
    graph = path / "dynamo_original_graph_1_rank_0_pid_1_ts_1.txt"
    graph.write_text(graph_text(operators))


def write_fx(path: Path, values: Iterator[Pair]) -> None:
    folder = path / RANK / "graph_1" / "0"
    folder.mkdir(parents=True)
    for i, pair in enumerate(values):
        for part, tensor in zip(("INPUT", "OUTPUT"), pair):
            np.save(folder / f"{NODE.format(i)}.{part}.0.{GE_TIME + i}.npy", tensor.numpy())


def ge_fx(folder: Path, count: int) -> tuple[Path, Path]:
    writers = {"target": write_ge, "golden": write_fx}

    def write(path: Path, side: str) -> None:
        writers[side](path, pairs(side, count))

    return make_both(folder, f"{count}-ge-fx", write)


# -- Trees of dump.json ----------------------------------------------------------------------------


def leaf(statistics: tuple[float, ...], shape: tuple[int, ...], data_name: str | None) -> dict:
    entry = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape)}
    entry |= dict(zip(("Max", "Min", "Mean", "Norm"), statistics))
    entry["requires_grad"] = False
    return entry | ({"data_name": data_name} if data_name else {})


def tree(task: str, data: dict) -> dict:
    return {"task": task, "level": "L1", "framework": "pytorch", "dump_data_dir": "", "data": data}


def write_tree(path: Path, values: Iterator[Pair]) -> None:
    payloads = path / "dump_tensor_data"
    payloads.mkdir(parents=True)
    data = {}
    for i, pair in enumerate(values):
        name = f"Functional.relu.{i}.forward"
        leaves = []
        for part, tensor in zip(("input", "output"), pair):
            file = f"{name}.{part}.0.pt"
            torch.save(tensor, payloads / file)
            statistics = (tensor.max(), tensor.min(), tensor.mean(), tensor.norm())
            leaves.append(leaf(tuple(map(float, statistics)), tuple(tensor.shape), file))
        data[name] = {"input_args": leaves[:1], "input_kwargs": {}, "output": leaves[1:]}
    (path / "dump.json").write_text(json.dumps(tree("tensor", data), indent=1))


def dump_tree(folder: Path, count: int) -> tuple[Path, Path]:
    def write(path: Path, side: str) -> None:
        write_tree(path, pairs(side, count))

    return make_both(folder, f"{count}-tree", write)


def statistics_calls(side: str) -> Iterator[str]:
    """The text of one call after the other, without end: four tensors each."""
    tensor = json.dumps(leaf((0.0, 1.0, 2.0, 3.0), (8, 512, 4096), None), indent=1)
    for i, key in enumerate(("Max", "Min", "Mean", "Norm")):
        tensor = tensor.replace(f'"{key}": {i}.0', f'"{key}": %r')
    tensor = "    " + tensor.replace("\n", "\n    ")
    inputs = ",\n".join([tensor] * (CALL_ROWS - 1))
    call = (
        '  "Functional.linear.%d.forward": {\n   "input_args": [\n' + inputs + "\n   ],\n"
        '   "input_kwargs": {},\n   "output": [\n' + tensor + "\n   ]\n  }"
    )
    random = np.random.default_rng(1)
    scale = 1.001 if side == "target" else 1.0
    done = 0
    while True:
        # float32, as statistics are recorded: that makes long numbers
        values = (scale * random.standard_normal((1024, 4 * CALL_ROWS))).astype(np.float32)
        for row in values.tolist():
            yield call % (done, *row)
            done += 1


def write_statistics(path: Path, side: str, enough: Callable[[int, int], bool]) -> None:
    """A dump.json of as many calls as it takes until their rows and bytes are enough."""
    path.mkdir()
    head, tail = json.dumps(tree("statistics", {}), indent=1).rsplit("{}", 1)
    with (path / "dump.json").open("w") as file:
        written = file.write(head + "{\n")
        for made, call in enumerate(statistics_calls(side)):
            if enough(made * CALL_ROWS, written):
                break
            written += file.write((",\n" if made else "") + call)
        file.write("\n }" + tail + "\n")


def statistics_pair(folder: Path, rows: int) -> tuple[Path, Path]:
    def write(path: Path, side: str) -> None:
        write_statistics(path, side, lambda made, _: made >= rows)

    return make_both(folder, f"{rows}-rows", write)


def large_json(folder: Path, size: int) -> Path:
    """A folder with a dump.json of about so many bytes."""
    path = folder / f"large-{size}"
    if not path.exists():
        part = folder / "unfinished"
        remove(part)
        write_statistics(part, "golden", lambda _, written: written >= size)
        part.rename(path)
    return path
