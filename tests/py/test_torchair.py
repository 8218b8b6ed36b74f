"""TorchAir dumps under plumb's own rules: nothing is dropped, and damage costs its own row only."""

import os
import subprocess
import unittest
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np

import ge_dump
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph
from torchair_case import PLUMB, TorchairCase, values


class Torchair(TorchairCase):
    def simple(self, count: int = 4) -> List[Tuple[Path, List[Path]]]:
        """A graph of operators that each add their inputs, and both dumps of it."""
        write_graph(self.ge, [Op(f"Add{i}", ["x", "y"], [f"add_{i}-aten.add.OUTPUT.0"])
                              for i in range(count)])
        files = []
        for i in range(count):
            a, b = values(2 * i, 3, 4), values(2 * i + 1, 3, 4)
            ge = write_ge(ge_folder(self.ge), "Add", f"Add{i}", i, [Tensor(a), Tensor(b)],
                          [Tensor(a + b)])
            files.append((ge, write_fx(fx_folder(self.fx), f"add_{i}-aten.add", [a, b], [a + b])))
        return files

    def check_damage(self, before: List[Dict[str, str]], damaged: str, words: str) -> None:
        """All but one operator as before, and that one has a row that says why."""
        old, new = self.by_name(before), self.by_name(self.compare())
        bad = [row for name in new for row in new[name] if words in row["Err_message"]]
        self.assertTrue(bad, f"no row says '{words}'")
        self.assertTrue(all(row["Result"] == "FAIL" for row in bad))
        for name in old:
            if name != damaged:
                self.assertEqual(old[name], new[name])
        self.assertEqual(self.code, 1)

    def test_all_agree(self) -> None:
        self.simple()
        rows = self.compare()
        self.assertEqual(len(rows), 12)
        self.assertEqual(self.code, 0)
        self.assertTrue(all(row["Result"] == "PASS" and row["Cosine"] == "1" for row in rows))
        self.assertTrue(rows[0]["file"].startswith("compare_result_rank0_"))
        self.assertIn("Add.Add0.0.6.", rows[0]["Data Name"])
        self.assertEqual([(row["Token"], row["In/Out"]) for row in rows[:3]],
                         [("0", "input 0"), ("0", "input 1"), ("0", "output 0")])
        done = subprocess.run([str(PLUMB), "compare", str(self.ge), str(self.fx)],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.assertRegex(done.stdout, r"Token .* In/Out")
        self.assertRegex(done.stdout, r"\| Add3 .* 0 \| output 0 ")

    def test_truncated_ge_file(self) -> None:
        files = self.simple()
        before = self.compare()
        path = files[1][0]
        path.write_bytes(path.read_bytes()[:-20])
        self.check_damage(before, "Add1", "the file ends inside this tensor")
        path.write_bytes(path.read_bytes()[:30])
        self.check_damage(before, "Add1", "the header should have")
        path.write_bytes(b"")
        self.check_damage(before, "Add1", "too few")

    def test_unknown_type(self) -> None:
        self.simple()
        before = self.compare()
        write_ge(ge_folder(self.ge), "Add", "Add1", 1, [Tensor(values(2, 3, 4), type_=77)],
                 [Tensor(values(3, 3, 4))])
        self.check_damage(before, "Add1", "data type 77")

    def test_broken_graph_line(self) -> None:
        self.simple()
        before = self.compare()
        path = next(self.ge.glob("*.txt"))
        text = path.read_text()
        lines = text.splitlines()
        for i in range(lines.index("op {", 5), lines.index("op {", 20)):
            path.write_text("\n".join(lines[:i] + ["@@@"] + lines[i + 1:]) + "\n")
            old, new = self.by_name(before), self.by_name(self.compare())
            for name in ("Add0", "Add2", "Add3"):
                self.assertEqual(old[name], new[name], f"line {i}: {lines[i]}")
            self.assertIn("not understood", self.said)
        path.write_text(text.replace('type: "T"', 'type: "a: b: c {"'))
        self.assertEqual(self.by_name(before), self.by_name(self.compare()))

    def test_missing_and_damaged_fx_files(self) -> None:
        files = self.simple()
        before = self.compare()
        path = files[1][1][0]
        good = path.read_bytes()
        path.write_bytes(good[:-5])
        self.check_damage(before, "Add1", path.name)
        path.unlink()
        rest = [row for row in self.compare() if row["API Name"] == "Add1"]
        self.assertEqual([row["Result"] for row in rest], ["NO COUNTERPART", "PASS", "PASS"])
        self.assertIn("no such input", rest[0]["Err_message"])
        for other in files[1][1][1:]:
            other.unlink()
        self.check_damage(before, "Add1", "has nothing of its node add_1-aten.add")

    def test_missing_ge_file(self) -> None:
        files = self.simple()
        before = self.compare()
        files[1][0].unlink()
        old, new = self.by_name(before), self.by_name(self.compare())
        self.assertEqual([(row["Result"], row["Accuracy Reached or Not"], row["Err_message"])
                          for row in new["add_1-aten.add"]],
                         [("NO COUNTERPART", "N/A",
                           "no operator of the target run corresponds to this FX node")])
        self.assertEqual(new["Add0"] + new["Add2"] + new["Add3"],
                         old["Add0"] + old["Add2"] + old["Add3"])
        self.assertIn("0 unmatched, 1 without a counterpart", self.said)

    def test_unreadable_file(self) -> None:
        files = self.simple()
        before = self.compare()
        files[1][0].unlink()
        files[1][0].mkdir()
        (files[1][0] / "x").touch()
        self.check_damage(before, "Add1", "a folder, where its name is")
        (files[1][0] / "x").unlink()
        files[1][0].rmdir()
        files[1][0].symlink_to("nowhere")
        self.check_damage(before, "Add1", "the link leads nowhere")
        if os.geteuid() != 0:
            files[2][0].chmod(0)
            self.check_damage([row for row in before if row["API Name"] != "Add1"], "Add2",
                              "Permission denied")

    def test_inputs_by_number(self) -> None:
        write_graph(self.ge, [Op("Cat", ["x"], ["cat-aten.cat.OUTPUT.0"])])
        arrays = [values(i, 2, 3) for i in range(12)]
        write_ge(ge_folder(self.ge), "ConcatD", "Cat", 1, [Tensor(a) for a in arrays],
                 [Tensor(np.concatenate(arrays))])
        folder = fx_folder(self.fx)
        for i, array in enumerate(arrays):
            np.save(folder / f"cat-aten.cat.INPUT.0.{i}.20250301120000000274.npy", array)
        np.save(folder / "cat-aten.cat.OUTPUT.0.20250301120000000274.npy", np.concatenate(arrays))
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS"] * 13)
        quirk = self.compare("--rules", "msprobe")
        self.assertGreater(sum(row["Result"] == "FAIL" for row in quirk), 5)

    def test_several_named_outputs(self) -> None:
        a, b = values(1, 4), values(2, 4)
        write_graph(self.ge, [Op("Two", ["x"], ["one-aten.one.OUTPUT.0", "two-aten.two.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "Two", "Two", 1, [], [Tensor(a), Tensor(b)])
        write_fx(fx_folder(self.fx), "one-aten.one", [], [a])
        write_fx(fx_folder(self.fx), "two-aten.two", [], [b])
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS", "PASS"])
        self.assertEqual(len(self.compare("--rules", "msprobe")), 1)

    def test_tokens_ranks_and_graphs(self) -> None:
        a = values(1, 4)
        for rank in (0, 1):
            for graph in (1, 2):
                write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])], graph, rank)
                for token in (0, 1, 10):
                    write_ge(ge_folder(self.ge, token, graph, rank), "A", "A", token, [],
                             [Tensor(a)])
                    write_fx(fx_folder(self.fx, token if token < 10 else 11, graph, rank), "a-a",
                             [], [a])
        rows = self.compare()
        files = sorted({row["file"].rsplit("_", 1)[0] for row in rows})
        self.assertEqual(files, [f"compare_result_graph{g}_rank{r}" for g in (1, 2) for r in (0, 1)])
        self.assertEqual(len(rows), 4 * (2 + 2))
        alone = [row["API Name"] for row in rows if row["Result"] == "FAIL"]
        self.assertEqual(sorted(alone), ["token 10"] * 4 + ["token 11"] * 4)
        self.assertEqual(len(self.compare("--rules", "msprobe", "--columns", "msprobe")), 8)

    def test_rank_on_one_side_only(self) -> None:
        self.simple()
        (self.ge / "worldsize2_global_rank7").mkdir()
        rows = self.compare()
        self.assertEqual(len(rows), 13)
        self.assertEqual(rows[-1]["Err_message"], "the golden run has no such rank")

    def test_old_folders(self) -> None:
        a = values(1, 4)
        write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])])
        for token in (0, 1):
            write_ge(ge_folder(self.ge, token, rank=None), "A", "A", token, [], [Tensor(a)])
            folder = self.fx / "data_dump" / str(token + 1) / "gm_1_dump"
            folder.mkdir(parents=True)
            write_fx(folder, "a-a", [], [a])
        for golden in (self.fx, self.fx / "data_dump"):
            for rules in ("documented", "msprobe"):
                rows = self.compare("--rules", rules, golden=golden)
                self.assertEqual([row["Result"] for row in rows], ["PASS", "PASS"])

    def test_names(self) -> None:
        """mapping.csv, FFTS+ names, names without a stream, a file twice."""
        a = [values(i, 4) for i in range(4)]
        names = ["Long", "Ffts", "Old", "Twice"]
        write_graph(self.ge, [Op(name, [], [f"{name}-a.OUTPUT.0"]) for name in names])
        folder = ge_folder(self.ge)
        time = ge_dump.TIME
        files = ["123456789", f"A.Ffts.1.2.{time}.4.1.0.3", f"A.Old.5.{time}", f"A.Twice.1.2.{time}"]
        (folder / "mapping.csv").write_text(f"123456789,A.Long.1.2.{time}\n")
        for array, name, file in zip(a, names, files):
            write_ge(folder, "A", name, 0, [], [Tensor(array)], file)
            write_fx(fx_folder(self.fx), f"{name}-a", [], [array])
        write_ge(folder, "A", "Twice", 0, [], [Tensor(values(9, 2))], f"A.Twice.1.3.{time}")
        rows = self.by_name(self.compare())
        for name in names:
            self.assertEqual(rows[name][-1]["Result"] if name != "Twice" else "PASS", "PASS", name)
        self.assertEqual(sorted(row["Result"] for row in rows["Twice"]),
                         ["NO COUNTERPART", "PASS"])

    def test_fused_between_ge_dumps(self) -> None:
        a, b, c = values(1, 4), values(2, 4), values(3, 4)
        ops = [Op("Add", ["x", "y"]), Op("Mul", ["Add", "z"])]
        other = self.root / "off"
        write_graph(self.ge, ops)
        write_graph(other, ops)
        write_ge(ge_folder(self.ge), "AutomaticBufferFusionOp", "AddMul", 1,
                 [Tensor(a), Tensor(b), Tensor(c)], [Tensor((a + b) * c)])
        write_ge(ge_folder(other), "Add", "Add", 1, [Tensor(a), Tensor(b)], [Tensor(a + b)])
        mul = write_ge(ge_folder(other), "Mul", "Mul", 2, [Tensor(a + b), Tensor(c)],
                       [Tensor((a + b) * c)])
        rows = self.compare(golden=other)
        self.assertEqual([row["Result"] for row in rows], ["PASS"] * 4)
        self.assertIn("Mul.Mul", rows[3]["Data Name"])
        mul.unlink()
        rows = self.compare(golden=other)
        self.assertEqual([row["Result"] for row in rows], ["PASS", "PASS", "FAIL", "FAIL"])
        self.assertIn("no readable file of Mul", rows[3]["Err_message"])

    def test_zero_golden_hides_nothing(self) -> None:
        write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "A", "A", 1, [], [Tensor(np.float32([1e-5, 1, 1]))])
        write_fx(fx_folder(self.fx), "a-a", [], [np.float32([0, 1, 1])])
        rows = self.compare()
        self.assertEqual((rows[0]["Result"], rows[0]["MaxRelativeErr"]), ("FAIL", "inf"))
        self.assertEqual(self.compare("--rules", "msprobe")[0]["MaxRelativeErr"], "0")

    def test_info(self) -> None:
        files = self.simple(1)
        done = subprocess.run([str(PLUMB), "info", str(files[0][0])], stdout=subprocess.PIPE,
                              text=True, check=True)
        self.assertIn("GE dump file, 3 tensors", done.stdout)
        words = [0x5A5A5A5A, 2, 1, 2, 0, 64]
        data = np.array(words, np.uint32).tobytes() + np.arange(1, 9, dtype=np.uint64).tobytes()
        path = write_ge(self.root, "", "", 0, [], [Tensor(np.frombuffer(data, np.uint8))],
                        f"Opdebug.Node_OpDebug.1.2.{ge_dump.TIME}")
        done = subprocess.run([str(PLUMB), "info", str(path)], stdout=subprocess.PIPE, text=True,
                              check=True)
        self.assertIn("AI CPU (version 2): model_id 1, stream_id 2, task_id 3", done.stdout)


if __name__ == "__main__":
    unittest.main()
