"""Checkpoints with an index (model.safetensors.index.json): whole, in other parts, damaged and hostile.

Counts at the end: indexes that lie must be found out, and those that do not must not be blamed."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

PLUMB = Path(os.environ["PLUMB_BUILD"]) / "plumb"
INDEX = "model.safetensors.index.json"


def save(path: Path, tensors: Dict[str, np.ndarray]) -> None:
    head: Dict[str, Any] = {}
    body = b""
    for name, array in tensors.items():
        data = np.ascontiguousarray(array, np.float32).tobytes()
        head[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def model() -> Dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    made = {f"layers.{i}.{part}.weight": random.normal(size=(8, 8)) for i in range(3) for part in ("up", "down")}
    made["norm.weight"] = random.normal(size=8)
    return made


class Said(NamedTuple):
    code: int
    out: str
    err: str


def plumb(*words: Any) -> Said:
    ran = subprocess.run([str(PLUMB), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return Said(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


class IndexTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="plumb-index-")
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def write(self, name: str, files: int = 2, tensors: Optional[Dict[str, np.ndarray]] = None) -> Tuple[Path, Dict[str, str]]:
        """A sharded checkpoint, and its weight_map."""
        tensors = model() if tensors is None else tensors
        names = list(tensors)
        where: Dict[str, str] = {}
        for k in range(files):
            own = names[k * len(names) // files:(k + 1) * len(names) // files]
            file = f"model-{k + 1:05}-of-{files:05}.safetensors"
            save(self.root / name / file, {one: tensors[one] for one in own})
            where.update({one: file for one in own})
        self.index(self.root / name, where)
        return self.root / name, where

    def index(self, folder: Path, where: Any, name: str = INDEX) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}, indent=2))

    def rows(self, *words: Any) -> Tuple[List[Dict[str, Any]], Said]:
        said = plumb("compare", *words, "--format", "json")
        self.assertIn(said.code, (0, 1), said.err)
        return json.loads(said.out)["rows"], said

    def failing(self, *words: Any) -> Dict[str, str]:
        return {row["API Name"]: row["Err_message"] for row in self.rows(*words)[0] if row["Result"] != "PASS"}

    # ---- Right ones ---------------------------------------------------------------------------------

    def test_cut_otherwise(self) -> None:
        """Names are those of the model, into however many files it was cut; and nothing is said."""
        two, _ = self.write("two")
        three, _ = self.write("three", 3)
        save(self.root / "one.safetensors", model())
        for other in (three, self.root / "one.safetensors", two / INDEX):
            rows, said = self.rows(two, other)
            self.assertEqual([name for name in model()], [row["API Name"] for row in rows])
            self.assertEqual({"PASS"}, {row["Result"] for row in rows})
            self.assertNotIn("warning", said.err)
        self.assertIn("two: index, 7 tensors", plumb("info", two).out)
        self.assertNotIn("other file", plumb("info", two).out)

    def test_against_ranks(self) -> None:
        """Parts of ranks, in folders and in files, against an index; a fault in one of them is that rank's."""
        whole, _ = self.write("whole")
        for form in ("rank{}/model.safetensors", "rank{}.safetensors", "rank_{}/weights.safetensors"):
            for fault in (None, 1):
                place = self.root / f"{form[:5]}{len(form)}{fault}"
                for rank in range(2):
                    part = {name: array if array.ndim == 1 else np.split(array, 2, "down" in name)[rank]
                            for name, array in model().items()}
                    if rank == fault:
                        part["layers.1.up.weight"] = part["layers.1.up.weight"] * 1.5
                    save(place / form.format(rank), part)
                rows, _ = self.rows(place, whole, "--shards")
                bad = [row for row in rows if row["Result"] != "PASS"]
                self.assertEqual(["layers.1.up.weight"] if fault else [], [row["API Name"] for row in bad], form)
                for row in bad:
                    self.assertIn("the error is in the part of rank 1", row["Layout"])
                self.assertEqual(7, len(rows))

    def test_below(self) -> None:
        """A folder of several models, each with its own index."""
        for side in ("a", "b"):
            for part in ("encoder", "decoder"):
                self.write(f"{side}/{part}", 2 if side == "a" else 3)
        rows, said = self.rows(self.root / "a", self.root / "b")
        self.assertEqual({"PASS"}, {row["Result"] for row in rows})
        self.assertEqual(14, len(rows))
        self.assertIn("encoder.norm.weight", [row["API Name"] for row in rows])
        self.assertEqual("", said.err.replace(said.err.splitlines()[-1] if said.err else "", "").strip())

    def test_ranks_with_indexes(self) -> None:
        for rank in range(2):
            part = {name: array if array.ndim == 1 else np.split(array, 2)[rank] for name, array in model().items()}
            self.write(f"parts/rank{rank}", 2, part)
        whole, _ = self.write("whole", 3)
        self.assertEqual({}, self.failing(self.root / "parts", whole, "--shards"))

    def test_cache(self) -> None:
        """A snapshot of Hugging Face's cache is made of links to the blobs beside; other links lead out."""
        folder, where = self.write("made")
        snapshot, blobs = self.root / "models--a--b/snapshots/0123", self.root / "models--a--b/blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        for number, file in enumerate(sorted(folder.iterdir())):
            os.rename(file, blobs / f"{number:040x}")
            (snapshot / file.name).symlink_to(f"../../blobs/{number:040x}")
        good, _ = self.write("good", 3)
        self.assertEqual({}, self.failing(snapshot, good))
        gone = "model-00002-of-00002.safetensors"
        os.rename((snapshot / gone).resolve(), self.root / "elsewhere")
        for way in ("../../../elsewhere", str(self.root / "elsewhere"), "../../blobs/../../elsewhere"):
            (snapshot / gone).unlink()
            (snapshot / gone).symlink_to(way)
            bad = self.failing(snapshot, good)
            self.assertEqual({name for name, file in where.items() if file == gone}, set(bad))
            self.assertIn("the link leads nowhere, or out of this folder", "".join(bad.values()))
        blobs.rename(self.root / "blobs")
        blobs.symlink_to(self.root / "blobs")
        self.assertEqual(1, plumb("info", snapshot).code)

    def test_condensed(self) -> None:
        """Files that were condensed are still those that the index names."""
        two, _ = self.write("two")
        before = plumb("summary", two, "--format", "csv").out
        self.assertEqual(0, plumb("condense", two).code)
        said = plumb("info", two)
        self.assertIn("index, 7 tensors", said.out)
        self.assertNotIn("warning", said.err)
        self.assertEqual(len(before.splitlines()), len(plumb("summary", two, "--format", "csv").out.splitlines()))

    # ---- Indexes and files that do not agree ------------------------------------------------------------

    def test_missing_file(self) -> None:
        folder, where = self.write("model")
        good, _ = self.write("good")
        gone = "model-00002-of-00002.safetensors"
        (folder / gone).unlink()
        bad = self.failing(folder, good)
        self.assertEqual({name for name, file in where.items() if file == gone}, set(bad))
        for why in bad.values():
            self.assertIn(f"{gone}, and that file is not in this folder", why)

    def test_damaged_file(self) -> None:
        folder, where = self.write("model")
        good, _ = self.write("good")
        gone = "model-00002-of-00002.safetensors"
        (folder / gone).write_bytes(b"nothing of the kind")
        bad = self.failing(folder, good)
        self.assertEqual({name for name, file in where.items() if file == gone}, set(bad))

    def test_wrong_file(self) -> None:
        folder, where = self.write("model")
        good, _ = self.write("good")
        where["norm.weight"] = "model-00001-of-00002.safetensors"
        self.index(folder, where)
        bad = self.failing(folder, good)
        self.assertEqual(["norm.weight"], list(bad))
        self.assertIn("does not have it; model-00002-of-00002.safetensors has a tensor of this name", bad["norm.weight"])

    def test_nowhere(self) -> None:
        folder, where = self.write("model")
        good, _ = self.write("good")
        where["lost.weight"] = "model-00001-of-00002.safetensors"
        self.index(folder, where)
        said = plumb("info", folder)
        self.assertIn("7 tensors", said.out)
        self.assertIn("1 unreadable", said.out)
        self.assertIn("lost.weight", said.out)
        self.assertIn("lost.weight", self.failing(folder, good))

    def test_copy_elsewhere(self) -> None:
        """An older copy in another file: the one that the index means is compared."""
        folder, where = self.write("model")
        good, _ = self.write("good")
        first = {name: array for name, array in model().items() if where[name].startswith("model-00001")}
        save(folder / "model-00001-of-00002.safetensors", {**first, "norm.weight": np.zeros(8)})
        rows, said = self.rows(folder, good)
        self.assertEqual({"PASS"}, {row["Result"] for row in rows})
        self.assertEqual(7, len(rows))
        self.assertIn("a tensor that another file has too: norm.weight in model-00001-of-00002.safetensors", said.err)

    def test_not_in_the_index(self) -> None:
        folder, where = self.write("model")
        del where["norm.weight"]
        self.index(folder, where)
        said = plumb("info", folder)
        self.assertIn("7 tensors", said.out)
        self.assertIn("a tensor that it does not name: norm.weight in model-00002", said.err)

    def test_stranger(self) -> None:
        """Files beside a model, as in repositories that have it twice; and files that are no tensors."""
        folder, _ = self.write("model")
        save(folder / "consolidated.safetensors", {"tok.weight": np.ones(4)})
        save(folder / "original" / "consolidated.00.safetensors", {"tok.weight": np.ones(4)})
        (folder / "config.json").write_text("{}")
        said = plumb("info", folder)
        self.assertIn("7 tensors", said.out)
        self.assertIn("1 other file", said.out)
        self.assertIn("2 files of tensors that it does not name, the first consolidated.safetensors", said.err)

    def test_two_indexes(self) -> None:
        folder, _ = self.write("model")
        save(folder / "pytorch_model.bin", {"old.weight": np.ones(4)})
        self.index(folder, {"old.weight": "pytorch_model.bin"}, "pytorch_model.bin.index.json")
        self.index(folder, {"old.weight": "pytorch_model.bin"}, "a.bin.index.json")
        said = plumb("info", folder)
        self.assertIn("7 tensors", said.out)
        for other in ("pytorch_model.bin.index.json", "a.bin.index.json"):
            self.assertIn(f"{other}: not used, since this folder has {INDEX}", said.err)
        said = plumb("info", folder / "pytorch_model.bin.index.json")
        self.assertIn("index, 1 tensor,", said.out)
        self.assertIn("old.weight", said.out)
        self.assertIn("2 files of tensors that it does not name", said.err)

    def test_twice(self) -> None:
        folder, where = self.write("model")
        good, _ = self.write("good")
        text = json.dumps({"weight_map": where})
        (folder / INDEX).write_text(text.replace('"norm.weight"', '"norm.weight": "no.safetensors", "norm.weight"'))
        rows, said = self.rows(folder, good)
        self.assertEqual({"PASS"}, {row["Result"] for row in rows})
        self.assertIn("a tensor that it names twice: norm.weight; the last counts", said.err)

    # ---- Hostile --------------------------------------------------------------------------------------

    def test_ways_out(self) -> None:
        folder, where = self.write("model")
        save(self.root / "secret.safetensors", {"norm.weight": np.ones(8)})
        (folder / "link.safetensors").symlink_to(self.root / "secret.safetensors")
        (folder / "sub").mkdir()
        ways = ["../secret.safetensors", str(self.root / "secret.safetensors"), "sub/../../secret.safetensors",
                "link.safetensors", "..", "/", "", ".", INDEX, "sub", "a\0b", "x" * 5000, "\x1b[31m", "/dev/zero"]
        for way in ways:
            self.index(folder, {**where, "norm.weight": way})
            said = plumb("info", folder, "--format", "json")
            rows = {row["Name"]: row for row in json.loads(said.out)["rows"]}
            self.assertEqual(7, len(rows), way)
            self.assertEqual(1, said.code, way)
            self.assertNotIn("[8]", json.dumps(rows["norm.weight"]), way)
            self.assertNotIn("\x1b", said.out + said.err)

    def test_values_that_are_no_files(self) -> None:
        folder, where = self.write("model")
        for value in (None, 1, ["a"], {"a": {"b": []}}, True):
            self.index(folder, {**where, "norm.weight": value})
            said = plumb("info", folder)
            self.assertEqual(1, said.code)
            self.assertIn("does not say in which file it is", said.out)

    def test_no_index(self) -> None:
        """What cannot be read is warned of, and the files are opened as without it."""
        folder, where = self.write("model")
        good = json.dumps({"weight_map": where}).encode()
        texts = [b"", b"{", good[:-1], good + b"x", good.replace(b"{", b"[", 1), b"\xff\xfe{}", b"[" * 100000,
                 b'{"weight_map": ' + b'{"a": ' * 100000, b'{"weight_map": {"\\ud800": "a"}}', b"\0" * 100]
        for text in texts:
            (folder / INDEX).write_bytes(text)
            said = plumb("info", folder)
            self.assertEqual(0, said.code, text[:40])
            self.assertIn("folder, 7 tensors", said.out, text[:40])
            self.assertIn(f"{INDEX}: this index is not used:", said.err, text[:40])
            self.assertEqual(2, plumb("info", folder / INDEX).code)
        for text in (b"{}", b"[]", b"3", b'{"weight_map": []}', b'{"weight_map": null}', b'{"other": {"weight_map": {}}}'):
            (folder / INDEX).write_bytes(text)
            said = plumb("info", folder)
            self.assertIn("folder, 7 tensors", said.out)
            self.assertIn("no weight_map", plumb("info", folder / INDEX).err)

    def test_every_cut(self) -> None:
        """An index that ends anywhere."""
        folder, where = self.write("model")
        text = json.dumps({"weight_map": where}).encode()
        for end in range(0, len(text), 7):
            (folder / INDEX).write_bytes(text[:end])
            self.assertIn("7 tensors", plumb("info", folder).out)

    def test_names_that_are_no_text(self) -> None:
        folder, where = self.write("model")
        raw = json.dumps({"weight_map": {**where, "QQ": "no.safetensors"}}).encode()
        (folder / INDEX).write_bytes(raw.replace(b"QQ", b"\xff\xfe\x1b").replace(b"\x1b", b"\\u001b"))
        said = plumb("info", folder)
        self.assertEqual(1, said.code)
        self.assertIn("7 tensors", said.out)
        self.assertIn("1 unreadable", said.out)
        self.assertNotIn("\x1b", said.out)

    def test_huge(self) -> None:
        """300,000 tensors that are not there: a row each, in seconds."""
        folder, where = self.write("model")
        self.index(folder, {**where, **{f"t{i}": f"f{i % 50000}.safetensors" for i in range(300000)}})
        said = plumb("info", folder, "--format", "csv")
        self.assertEqual(300000 + 7 + 1, said.out.count("\n"))

    def test_empty(self) -> None:
        folder, _ = self.write("model")
        self.index(folder, {})
        said = plumb("info", folder)
        self.assertIn("folder, 7 tensors", said.out)
        self.assertIn("this index is not used: it names no tensor", said.err)

    def test_index_of_itself(self) -> None:
        """A circle: the index names itself, or a folder above has one too."""
        folder, where = self.write("model/inner")
        self.index(folder, {**where, "me": INDEX})
        self.index(self.root / "model", {"norm.weight": f"inner/{where['norm.weight']}", "me": f"inner/{INDEX}"})
        said = plumb("info", self.root / "model")
        self.assertIn("not used, since a folder above has", said.err)
        self.assertIn("a file of tensors that it does not name: inner/model-00001", said.err)
        self.assertIn("norm.weight", said.out)


if __name__ == "__main__":
    unittest.main()
