"""Distributed checkpoints of PyTorch: .metadata and the files that it leads to, whole, damaged and hostile.

The pickles are made with classes of the right names, since PyTorch 1.13 writes another form; with PyTorch 2.6 and
later one test has torch write the checkpoint itself."""

import io
import os
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).parent))
from capture_case import PLUMB  # noqa: E402

import torch  # noqa: E402

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
NAMES = ("Metadata", "MetadataIndex", "TensorStorageMetadata", "ChunkStorageMetadata", "BytesStorageMetadata",
         "_StorageInfo")


class Plain:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def classes() -> Dict[str, Any]:
    return {name: type(name, (Plain,), {"__module__": "planted.checkpoint"}) for name in NAMES}


def write(folder: Path, tensors: Dict[str, Tuple[torch.Tensor, List[Tuple[int, ...]], List[torch.Tensor]]],
          **changes: Any) -> None:
    """A checkpoint of chunks at offsets, as many files as the most chunks."""
    made = classes()
    module = types.ModuleType("planted.checkpoint")
    module.__dict__.update(made)
    sys.modules["planted"], sys.modules["planted.checkpoint"] = types.ModuleType("planted"), module
    folder.mkdir(exist_ok=True)
    files: Dict[str, bytes] = {}
    storage, state = {}, {}
    for name, (whole, offsets, chunks) in tensors.items():
        state[name] = made["TensorStorageMetadata"](size=whole.shape, properties=None, chunks=[])
        for number, (offset, chunk) in enumerate(zip(offsets, chunks)):
            stream = io.BytesIO()
            torch.save(chunk.clone(), stream)
            path = f"__{number}_0.distcp"
            begin = len(files.get(path, b""))
            files[path] = files.get(path, b"") + stream.getvalue()
            info = {"relative_path": path, "offset": begin, "length": len(stream.getvalue()), **changes}
            index = made["MetadataIndex"](fqn=name, offset=torch.Size(offset), index=number)
            storage[index] = made["_StorageInfo"](**info)
    state["step"] = made["BytesStorageMetadata"]()
    for path, data in files.items():
        (folder / path).write_bytes(data)
    with open(folder / ".metadata", "wb") as file:
        pickle.dump(made["Metadata"](state_dict_metadata=state, planner_data={"a": ("a",)}, storage_data=storage), file)


def cut(whole: torch.Tensor, rows: List[int], columns: List[int]) -> Tuple[Any, List[Tuple[int, ...]], List[Any]]:
    offsets, chunks, row = [], [], 0
    for height in rows:
        column = 0
        for width in columns:
            offsets.append((row, column))
            chunks.append(whole[row:row + height, column:column + width])
            column += width
        row += height
    return whole, offsets, chunks


class DistcpTest(unittest.TestCase):
    def setUp(self) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="plumb-distcp-")
        self.addCleanup(self.place.cleanup)
        self.root = Path(self.place.name)
        torch.manual_seed(0)
        self.weights = {"layers.0.weight": torch.randn(10, 7), "layers.0.bias": torch.randn(6, 4).to(torch.bfloat16),
                        "count": torch.arange(12).reshape(3, 4)}

    def plumb(self, *words: str) -> Tuple[int, str]:
        done = subprocess.run([str(PLUMB), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=self.root)
        return done.returncode, done.stdout

    def whole(self) -> None:
        torch.save(self.weights, self.root / "whole.pt")

    def checkpoint(self, **changes: Any) -> None:
        write(self.root / "parts", {
            "layers.0.weight": cut(self.weights["layers.0.weight"], [3, 3, 3, 1], [7]),
            "layers.0.bias": cut(self.weights["layers.0.bias"], [2, 4], [3, 1]),
            "count": cut(self.weights["count"], [3], [4])}, **changes)

    def test_whole(self) -> None:
        self.whole()
        self.checkpoint()
        code, text = self.plumb("compare", "parts", "whole.pt", "--standard", "allclose", "--set", "rtol=0")
        self.assertIn("3 compared: 3 pass, 0 fail; 0 unmatched", text)
        self.assertEqual(0, code)
        self.assertIn("distcp, 3 tensors", self.plumb("info", "parts")[1])

    def test_a_difference_is_seen(self) -> None:
        self.whole()
        self.weights["layers.0.weight"][9, 6] += 1
        self.checkpoint()
        code, text = self.plumb("compare", "parts", "whole.pt", "--standard", "allclose")
        self.assertIn("2 pass, 1 fail", text)
        self.assertEqual(1, code)

    def test_lost_chunks(self) -> None:
        """A file that is gone costs the tensors that have a chunk there."""
        self.whole()
        self.checkpoint()
        (self.root / "parts" / "__1_0.distcp").unlink()
        code, text = self.plumb("compare", "parts", "whole.pt")
        self.assertIn("1 compared: 1 pass, 0 fail; 0 unmatched, 2 not comparable", text)
        self.assertEqual(1, code)

    def test_overlap(self) -> None:
        whole, offsets, chunks = cut(self.weights["count"].float(), [1, 1, 1], [4])
        offsets[2] = offsets[1]
        write(self.root / "parts", {"x": (whole, offsets, chunks)})
        self.assertIn("its 3 chunks do not make up the tensor", self.plumb("compare", "parts", "parts")[1])

    def test_hostile(self) -> None:
        for changes in ({"relative_path": "../whole.pt"}, {"relative_path": "/etc/passwd"}, {"relative_path": ".metadata"},
                        {"offset": 2 ** 62}, {"length": 2 ** 62}, {"offset": -1}, {"length": 0}, {"offset": "x"},
                        {"relative_path": 5}):
            self.checkpoint(**changes)
            code, text = self.plumb("compare", "parts", "parts")
            self.assertIn("0 compared", text, changes)
            self.assertEqual(1, code, changes)

    def test_damaged_pickle(self) -> None:
        self.checkpoint()
        path = self.root / "parts" / ".metadata"
        data = path.read_bytes()
        for size in range(0, len(data), 7):
            path.write_bytes(data[:size])
            code, text = self.plumb("info", "parts")
            self.assertEqual(2, code, (size, text))
            self.assertEqual(1, len(text.splitlines()), text)
        for at in range(0, len(data), 5):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1:])
            self.assertIn(self.plumb("info", "parts")[0], (0, 1, 2), at)

    def test_code_is_not_run(self) -> None:
        (self.root / "parts").mkdir()
        (self.root / "parts" / ".metadata").write_bytes(b"\x80\x04cos\nsystem\n(X\x0a\x00\x00\x00touch aliceR.")
        code, _ = self.plumb("info", "parts")
        self.assertEqual(2, code)
        self.assertFalse((self.root / "alice").exists())

    @unittest.skipIf(VERSION < (2, 6), "PyTorch 1.13 writes another form")
    def test_by_torch(self) -> None:
        import torch.distributed.checkpoint as dcp
        self.whole()
        dcp.save(dict(self.weights), checkpoint_id=str(self.root / "parts"))  # without other processes
        code, text = self.plumb("compare", "parts", "whole.pt", "--standard", "allclose", "--set", "rtol=0")
        self.assertIn("3 compared: 3 pass, 0 fail; 0 unmatched", text)
        self.assertEqual(0, code)


if __name__ == "__main__":
    unittest.main()
