"""What plumb-mpi is tested on: dumps of several ranks with their tensors, and some of it damaged.

    mpi_case.py FOLDER [RANKS [CALLS [NUMBERS]]]   makes FOLDER/npu and FOLDER/gpu
"""

import array
import json
import random
import struct
import sys
from pathlib import Path
from typing import Any, Dict, List

FAULT = 3  # of the calls of rank 1 of npu: its result is wrong


def save_npy(path: Path, values: "array.array[float]", shape: List[int]) -> None:
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values.tobytes())


class Rank:
    """One rank folder: calls of relu, each on the result of the one before plus noise."""

    def __init__(self, folder: Path, seed: int, error: float, fault: int = -1) -> None:
        self.folder, self.error, self.fault = folder, error, fault
        self.rng = random.Random(seed)
        self.noise = random.Random(seed + 1)
        self.data: Dict[str, Any] = {}
        (folder / "dump_tensor_data").mkdir(parents=True)

    def put(self, place: str, values: "array.array[float]", shape: List[int]) -> Dict[str, Any]:
        save_npy(self.folder / "dump_tensor_data" / f"{place}.npy", values, shape)
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": max(values),
                "Min": min(values), "Mean": sum(values) / len(values), "Norm": sum(v * v for v in values) ** 0.5,
                "requires_grad": False, "data_name": f"{place}.npy"}

    def call(self, number: int, count: int) -> None:
        name = f"Functional.relu.{number}.forward"
        x = array.array("f", (self.rng.gauss(0, 1) for _ in range(count)))
        if self.error:
            x = array.array("f", (v * (1 + self.error * self.noise.gauss(0, 1)) for v in x))
        y = array.array("f", (max(v, 0.0) for v in x))
        if number == self.fault:
            y[0] = 17.0
        self.data[name] = {"input_args": [self.put(f"{name}.input.0", x, [count])],
                           "input_kwargs": {"inplace": {"type": "bool", "value": False}},
                           "output": [self.put(f"{name}.output.0", y, [count])]}

    def save(self) -> None:
        head = {"task": "tensor", "level": "L1", "framework": "pytorch",
                "dump_data_dir": str(self.folder / "dump_tensor_data")}
        (self.folder / "dump.json").write_text(json.dumps({**head, "data": self.data}), "utf-8")


def make(folder: Path, ranks: int = 3, calls: int = 6, numbers: int = 400, steps: int = 1) -> None:
    for side, error in (("npu", 1e-4), ("gpu", 0.0)):
        for step in range(steps):
            for rank in range(ranks):
                one = Rank(folder / side / f"step{step}" / f"rank{rank}", 1000 * step + rank, error,
                           FAULT if side == "npu" and rank == 1 else -1)
                for number in range(calls):
                    one.call(number, numbers + 7 * number)
                one.save()


def damage(folder: Path) -> None:
    """A file that ends early, one that is none, one that is gone, another shape."""
    data = folder / "npu" / "step0" / "rank0" / "dump_tensor_data"
    cut = data / "Functional.relu.0.forward.input.0.npy"
    cut.write_bytes(cut.read_bytes()[:300])
    (data / "Functional.relu.1.forward.input.0.npy").write_bytes(b"not a file of numbers")
    (data / "Functional.relu.2.forward.output.0.npy").unlink()
    save_npy(data / "Functional.relu.4.forward.output.0.npy", array.array("f", [1.0] * 6), [2, 3])


if __name__ == "__main__":
    make(Path(sys.argv[1]), *map(int, sys.argv[2:]))
