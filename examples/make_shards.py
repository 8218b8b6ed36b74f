#!/usr/bin/env python3
"""Makes examples/shards: tensors of a small layer, whole on one rank, in two files with an index, and in parts on four.

On the four ranks qkv.weight is interleaved, proj.weight cut by columns, the sequence in zigzag order, and what
proj gives is a part of a sum. up.weight of rank 1 is wrong, and norm.weight of rank 3 is not what the others have."""

import json
import struct
from pathlib import Path
from typing import Dict

import numpy as np

RANKS, WIDTH, LENGTH = 4, 8, 16
FOLDER = Path(__file__).parent / "shards"


def save(name: str, array: np.ndarray) -> None:
    path = FOLDER / f"{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.ascontiguousarray(array))


def save_indexed(tensors: Dict[str, np.ndarray]) -> None:
    """Two files of safetensors, and the index that says which tensor is in which."""
    folder, where = FOLDER / "indexed", {}
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(2):
        file, head, body = f"model-0000{number + 1}-of-00002.safetensors", {}, b""
        for name in list(tensors)[number::2]:
            data = tensors[name].tobytes()
            head[name] = {"dtype": "F32", "shape": tensors[name].shape, "data_offsets": [len(body), len(body) + len(data)]}
            where[name] = file
            body += data
        text = json.dumps(head).encode()
        (folder / file).write_bytes(struct.pack("<Q", len(text)) + text + body)
    size = sum(array.nbytes for array in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main() -> None:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    whole = {"hidden": normal(2, LENGTH, WIDTH), "norm.weight": normal(WIDTH), "norm.bias": np.zeros(WIDTH, np.float32),
             "qkv.weight": normal(3 * WIDTH, WIDTH), "proj.weight": normal(WIDTH, WIDTH), "proj.output": normal(2, WIDTH),
             "up.weight": normal(3 * WIDTH, WIDTH)}
    terms = normal(RANKS, 2, WIDTH)
    terms[-1] = whole["proj.output"] - terms[:-1].sum(0)
    for name, array in whole.items():
        save(f"one/{name}", array)
    save_indexed(whole)
    for rank in range(RANKS):
        chunks = np.split(whole["hidden"], 2 * RANKS, 1)
        norm = whole["norm.weight"] * (1.25 if rank == 3 else 1)
        up = np.split(whole["up.weight"], RANKS)[rank] * (1.5 if rank == 1 else 1)
        part = {"hidden": np.concatenate([chunks[rank], chunks[-1 - rank]], 1), "norm.weight": norm.astype(np.float32),
                "norm.bias": np.split(whole["norm.bias"], RANKS)[rank],
                "qkv.weight": np.concatenate([np.split(m, RANKS)[rank] for m in np.split(whole["qkv.weight"], 3)]),
                "proj.weight": np.split(whole["proj.weight"], RANKS, 1)[rank], "proj.output": terms[rank],
                "up.weight": up.astype(np.float32)}
        for name, array in part.items():
            save(f"four/rank{rank}/{name}", array)


if __name__ == "__main__":
    main()
