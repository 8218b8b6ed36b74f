"""Graph dumps: which graph, operator and tensor of one side belongs to which of the other."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import List, Sequence

import numpy as np

from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph
from torchair_case import PLUMB, TorchairCase, values


class Graphs(TorchairCase):
    def several(self, count: int, rank: int = 0) -> None:
        """As many graphs, each with values of its own, so that a wrong pair fails."""
        for graph in range(1, count + 1):
            array = values(graph, 3, 4)
            write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])], graph, rank)
            write_ge(ge_folder(self.ge, 0, graph, rank), "A", "A", 0, [], [Tensor(array)])
            write_fx(fx_folder(self.fx, 0, graph, rank), "a-a", [], [array])

    def test_twelve_graphs(self) -> None:
        self.several(12)
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS"] * 12)
        self.assertEqual(self.code, 0)

    def test_a_side_lacks_a_graph(self) -> None:
        for lacking in ("ge", "fx"):
            self.several(12)
            folder = ge_folder(self.ge, 0, 5).parents[1] if lacking == "ge" else \
                fx_folder(self.fx, 0, 5).parent
            shutil.rmtree(folder)
            rows = self.compare()
            self.assertEqual(sum(row["Result"] == "PASS" for row in rows), 11, lacking)
            rest = [row for row in rows if row["Result"] != "PASS"]
            self.assertEqual([row["API Name"] for row in rest], ["graph_5"])
            self.assertIn("target" if lacking == "ge" else "golden", rest[0]["Err_message"])
            self.assertEqual(self.code, 1)

    def test_a_text_is_missing(self) -> None:
        self.several(11)
        next(self.ge.glob("dynamo_original_graph_2_*")).unlink()
        rows = self.compare()
        self.assertEqual(sum(row["Result"] == "PASS" for row in rows), 10)
        self.assertEqual([(row["API Name"], row["Err_message"]) for row in rows
                          if row["Result"] != "PASS"],
                         [("graph_2", "there is data of it, but no graph text")])

    def test_a_text_that_was_cut(self) -> None:
        """What was behind the end is not compared, and that is no success."""
        self.several(2)
        path = next(self.ge.glob("dynamo_original_graph_1_*"))
        text = path.read_text()
        path.write_text(text + text[text.index("op {"):-20].replace('"A"', '"B"'))
        rows = self.compare()
        self.assertEqual([(row["API Name"], row["Result"]) for row in rows],
                         [("graph text", "FAIL"), ("A", "PASS"), ("A", "PASS")])
        self.assertIn("it ends inside an operator", rows[0]["Err_message"])
        self.assertEqual(self.code, 1)

    def test_texts_of_a_repeated_run(self) -> None:
        """Another process wrote the text again: the later one is used."""
        self.several(11)
        for path in list(self.ge.glob("*.txt")):
            older = path.with_name(path.name.replace("pid_1_ts_2", "pid_9_ts_1"))
            older.write_text(path.read_text().replace("a-a", "b-b"))
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS"] * 11)
        self.assertEqual(self.code, 0)
        self.assertIn("pid_9_ts_1.txt: a later text of the same graph is used", self.said)

    def test_model_ids_in_another_order(self) -> None:
        self.several(3)
        root = ge_folder(self.ge).parents[2]
        for graph, model in ((1, 30), (2, 20), (3, 4)):
            (root / f"graph_{graph}" / str(graph)).rename(root / f"graph_{graph}" / str(model))
        self.assertEqual({row["Result"] for row in self.compare()}, {"PASS"})

    def test_graphs_of_different_seconds(self) -> None:
        self.several(3)
        top = ge_folder(self.ge).parents[3]
        later = top.parent / "20250301120009" / "0"
        later.mkdir(parents=True)
        (top / "0" / "graph_2").rename(later / "graph_2")
        self.assertEqual([row["Result"] for row in self.compare()], ["PASS"] * 3)

    def test_names_of_the_text(self) -> None:
        self.several(2)
        root = ge_folder(self.ge).parents[2]
        for graph, name in ((1, "model_b"), (2, "model.a")):
            (root / f"graph_{graph}").rename(root / name.replace(".", "_"))
            fx_folder(self.fx, 0, graph).parent.rename(
                fx_folder(self.fx, 0, graph).parent.with_name(name))
            text = next(self.ge.glob(f"dynamo_original_graph_{graph}_*"))
            text.write_text(text.read_text().replace(f"graph_{graph}", name))
        self.assertEqual([row["Result"] for row in self.compare()], ["PASS"] * 2)

    def test_other_names_go_by_position(self) -> None:
        self.several(11)
        root = ge_folder(self.ge).parents[2]
        for graph in range(1, 12):
            (root / f"graph_{graph}").rename(root / f"_{graph - 1}")
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS"] * 11)
        self.assertIn("taken in their order", self.said)

    def test_old_fx_folders(self) -> None:
        """Tokens hold the graphs; one token lacks the first of them."""
        for graph in (1, 2):
            write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])], graph)
        for token in (0, 1):
            for graph in (1, 2):
                if (token, graph) == (1, 1):
                    continue
                array = values(10 * token + graph, 4)
                write_ge(ge_folder(self.ge, token, graph, None), "A", "A", 0, [], [Tensor(array)])
                folder = self.fx / "data_dump" / str(token + 1) / f"gm_{graph}_dump"
                folder.mkdir(parents=True)
                write_fx(folder, "a-a", [], [array])
        self.assertEqual([row["Result"] for row in self.compare()], ["PASS"] * 3)


class Likeness(TorchairCase):
    """Equal values of another shape or kind are not the same tensor."""

    def one(self, target: Tensor, golden: np.ndarray) -> str:
        write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "A", "A", 0, [], [target])
        write_fx(fx_folder(self.fx), "a-a", [], [golden])
        rows = self.compare()
        self.assertEqual(len(rows), 1)
        self.assertEqual(self.code, 0 if rows[0]["Result"] == "PASS" else 1)
        return rows[0]["Result"] + " " + rows[0]["Err_message"]

    def test_shapes(self) -> None:
        array = values(1, 4, 6)
        self.assertIn("FAIL the shapes differ: target [4, 6], golden [6, 4]",
                      self.one(Tensor(array), array.reshape(6, 4)))
        self.assertIn("FAIL the shapes differ", self.one(Tensor(array), array.reshape(24)))
        self.assertIn("FAIL the shapes differ", self.one(Tensor(array), values(1, 4, 7)))
        self.assertIn("PASS", self.one(Tensor(array), array.reshape(4, 1, 6)))
        self.assertIn("PASS", self.one(Tensor(array, dims=[24], original=[4, 6]), array))

    def test_kinds(self) -> None:
        whole = np.arange(1, 25).reshape(4, 6)
        self.assertIn("FAIL the types are of different kinds: target int32, golden float32",
                      self.one(Tensor(whole.astype(np.int32)), whole.astype(np.float32)))
        self.assertIn("FAIL", self.one(Tensor(whole.astype(np.float16)), whole))
        self.assertIn("FAIL", self.one(Tensor(np.ones(4, np.bool_)), np.ones(4, np.int32)))
        self.assertIn("PASS", self.one(Tensor(whole.astype(np.int32)), whole))
        self.assertIn("PASS", self.one(Tensor(whole.astype(np.float16)), whole.astype(np.float32)))

    def test_conversions(self) -> None:
        """A conversion that the compiler put in changes the kind by purpose."""
        write_graph(self.ge, [])
        whole = np.arange(1, 25)
        write_ge(ge_folder(self.ge), "Cast", "trans_Cast_1", 0, [Tensor(whole.astype(np.int32))],
                 [Tensor(whole.astype(np.float32))])
        write_fx(fx_folder(self.fx), "a-a", [], [whole])
        self.assertEqual(self.compare()[0]["Result"], "PASS")

    def test_condensed(self) -> None:
        array = values(1, 40, 60)
        for golden in (array.reshape(60, 40), np.ones((40, 60), np.int32)):
            self.one(Tensor(array), golden)
            subprocess.run([str(PLUMB), "condense", str(self.ge), "--settle", "0.01"], check=True,
                           stdout=subprocess.DEVNULL)
            self.assertTrue(list(self.ge.rglob("*.condensed.json")))
            row = self.compare()[0]
            self.assertEqual(row["Result"], "FAIL")
            self.assertRegex(row["Err_message"], "shapes differ|different kinds")
            shutil.rmtree(self.ge)


class Names(TorchairCase):
    """Which operator of the graph a file is of."""

    def test_only_begins_like_an_operator(self) -> None:
        a, b = values(1, 4), values(2, 4)
        write_graph(self.ge, [Op("MatMul_0", [], ["mm-aten.mm.OUTPUT.0"]),
                              Op("Add", ["x"], ["add-aten.add.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "MatMul", "MatMul_0", 1, [], [Tensor(a)])
        write_ge(ge_folder(self.ge), "MemSet", "MatMul_0_MemSet", 0, [], [Tensor(b)])
        write_ge(ge_folder(self.ge), "MemSet", "MatMul_0Add_MemSet", 2, [], [Tensor(b)])
        write_ge(ge_folder(self.ge), "Cast", "MatMul_0_Cast_1", 3, [Tensor(b)], [Tensor(b)])
        write_fx(fx_folder(self.fx), "mm-aten.mm", [], [a])
        rows = self.by_name(self.compare())
        self.assertEqual([row["Result"] for row in rows["MatMul_0"]], ["PASS"])
        for name in ("MatMul_0_MemSet", "MatMul_0Add_MemSet"):
            self.assertEqual([row["Err_message"] for row in rows[name]],
                             ["the graph text has no operator of this name"])
        self.assertEqual([row["Result"] for row in rows["MatMul_0_Cast_1"]], ["PASS"])

    def test_between_ge_dumps(self) -> None:
        a, b = values(1, 4), values(2, 4)
        ops = [Op("Add", ["x"]), Op("Mul", ["Add"])]
        other = self.root / "off"
        for root in (self.ge, other):
            write_graph(root, ops)
            write_ge(ge_folder(root), "Add", "Add", 1, [Tensor(a)], [Tensor(b)])
            write_ge(ge_folder(root), "Mul", "Mul", 2, [Tensor(a)], [Tensor(b)])
        write_ge(ge_folder(self.ge), "MemSet", "AddMul_MemSet", 3, [Tensor(b)], [Tensor(a)])
        rows = self.by_name(self.compare(golden=other))
        self.assertEqual([row["Err_message"] for row in rows["AddMul_MemSet"]],
                         ["the golden run has no file of this operator"])
        self.assertEqual([row["Result"] for row in rows["Add"] + rows["Mul"]], ["PASS"] * 4)

    def test_another_way_to_cut(self) -> None:
        """The longest operator first is not always the one: Add_1, then 0Mul."""
        a, b = values(1, 4), values(2, 4)
        write_graph(self.ge, [Op("Add_1", ["x"], ["a-a.OUTPUT.0"]), Op("Add_10", ["y"]),
                              Op("0Mul", ["Add_1"], ["m-m.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "F", "Add_10Mul", 1, [Tensor(a)], [Tensor(b)])
        write_fx(fx_folder(self.fx), "a-a", [a], [a])
        write_fx(fx_folder(self.fx), "m-m", [a], [b])
        self.assertEqual([row["Result"] for row in self.compare()], ["PASS", "PASS"])

    def test_names_as_files_spell_them(self) -> None:
        names = ["layers.0/Add x", "block/1.Mul", r"back\\slash", r'quo\"te', r"caf\303\251"]
        files = ["layers_0_Add_x", "block_1_Mul", "back_slash", 'quo"te', "caf\u00e9"]
        arrays = [values(i, 4) for i in range(len(names))]
        write_graph(self.ge, [Op(name, [], [f"n{i}-n.OUTPUT.0"]) for i, name in enumerate(names)])
        for i, (file, array) in enumerate(zip(files, arrays)):
            on_disk = os.fsdecode(file.encode())  # UTF-8, whatever the locale has
            write_ge(ge_folder(self.ge), "A", on_disk, i, [], [Tensor(array)])
            write_fx(fx_folder(self.fx), f"n{i}-n", [], [array])
        rows = self.compare()
        self.assertEqual([(row["API Name"], row["Result"]) for row in rows],
                         [(file, "PASS") for file in files])

    def test_fused_names_as_files_spell_them(self) -> None:
        a, b, c = values(1, 4), values(2, 4), values(3, 4)
        ops = [Op("l.0/Add", ["x", "y"], ["add-aten.add.OUTPUT.0"]),
               Op("l.0/Mul", ["l.0/Add", "z"], ["mul-aten.mul.OUTPUT.0"])]
        other = self.root / "off"
        for root in (self.ge, other):
            write_graph(root, ops)
        write_ge(ge_folder(self.ge), "AutomaticBufferFusionOp", "l_0_Addl_0_Mul", 1,
                 [Tensor(a), Tensor(b), Tensor(c)], [Tensor((a + b) * c)])
        write_ge(ge_folder(other), "Add", "l_0_Add", 1, [Tensor(a), Tensor(b)], [Tensor(a + b)])
        write_ge(ge_folder(other), "Mul", "l_0_Mul", 2, [Tensor(a + b), Tensor(c)],
                 [Tensor((a + b) * c)])
        write_fx(fx_folder(self.fx), "add-aten.add", [a, b], [a + b])
        write_fx(fx_folder(self.fx), "mul-aten.mul", [a + b, c], [(a + b) * c])
        for golden in (self.fx, other):
            self.assertEqual([row["Result"] for row in self.compare(golden=golden)], ["PASS"] * 4)

    def test_one_name_for_two(self) -> None:
        write_graph(self.ge, [Op("a.b", [], ["one-a.OUTPUT.0"]), Op("a_b", [], ["two-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "A", "a_b", 1, [], [Tensor(values(1, 4))])
        write_fx(fx_folder(self.fx), "one-a", [], [values(1, 4)])
        write_fx(fx_folder(self.fx), "two-a", [], [values(2, 4)])
        rows = self.by_name(self.compare())
        self.assertEqual([row["Err_message"] for row in rows["a_b"]],
                         ["several operators of the graph have this name in files"])


class Inputs(TorchairCase):
    """Which input is which, and what has no counterpart although all is well."""

    def fused(self, stored: int) -> Path:
        """Add(x, y), Mul(Add, x), Sub(Mul, z) in one, with x once (3 inputs) or twice (4)."""
        x, y, z = values(1, 4), values(2, 4), values(3, 4)
        add, mul = x + y, (x + y) * x
        ops = [Op("Add", ["x", "y"], ["add-aten.add.OUTPUT.0"]),
               Op("Mul", ["Add", "x"], ["mul-aten.mul.OUTPUT.0"]),
               Op("Sub", ["Mul", "z"], ["sub-aten.sub.OUTPUT.0"])]
        other = self.root / "off"
        for root in (self.ge, other):
            write_graph(root, ops)
        inputs = [x, y, z] if stored == 3 else [x, y, x, z]
        write_ge(ge_folder(self.ge), "AutomaticBufferFusionOp", "AddMulSub", 1,
                 [Tensor(array) for array in inputs[:stored]], [Tensor(mul - z)])
        for i, (name, ins, out) in enumerate((("add", [x, y], add), ("mul", [add, x], mul),
                                              ("sub", [mul, z], mul - z))):
            write_ge(ge_folder(other), name, name.capitalize(), i, map(Tensor, ins), [Tensor(out)])
            write_fx(fx_folder(self.fx), f"{name}-aten.{name}", ins, [out])
        return other

    def test_shared_input_of_a_fusion(self) -> None:
        for stored in (3, 4):
            other = self.fused(stored)
            for golden in (self.fx, other):
                rows = self.compare(golden=golden)
                self.assertEqual([row["Result"] for row in rows], ["PASS"] * (stored + 1))

    def test_unclear_inputs_of_a_fusion(self) -> None:
        other = self.fused(2)
        for golden in (self.fx, other):
            rows = self.compare(golden=golden)
            self.assertEqual([row["Result"] for row in rows], ["NO COUNTERPART"] * 2 + ["PASS"])
            self.assertIn("take 4 inputs from outside, its file has 2", rows[0]["Err_message"])

    def test_outputs_of_one_operator_are_different_inputs(self) -> None:
        a, b = values(1, 4), values(2, 4)
        write_graph(self.ge, [Op("Add", ["Split"], ["add-a.OUTPUT.0"]),
                              Op("Mul", ["Add", "Split"], ["mul-m.OUTPUT.0"])])
        text = next(self.ge.glob("*.txt"))
        text.write_text(text.read_text().replace('"Split:0"', '"Split:1"', 1))
        write_ge(ge_folder(self.ge), "F", "AddMul", 1, [Tensor(a), Tensor(b)], [Tensor(a * b)])
        write_fx(fx_folder(self.fx), "add-a", [a], [a])
        write_fx(fx_folder(self.fx), "mul-m", [a, b], [a * b])
        self.assertEqual([row["Result"] for row in self.compare()], ["PASS"] * 3)

    def node(self, fx: Sequence[object], ge: Sequence[np.ndarray], sources: Sequence[str],
             constants: Sequence[str] = ()) -> List[str]:
        """The results of an operator that has these inputs, and passes for its output."""
        write_graph(self.ge, [Op(name) for name in constants] +
                    [Op("A", sources, ["a-aten.a.OUTPUT.0"])])
        text = next(self.ge.glob("*.txt"))
        lines = text.read_text()
        for name in constants:
            lines = lines.replace(f'name: "{name}"\n  type: "T"', f'name: "{name}"\n  type: "Const"')
        text.write_text(lines)
        shutil.rmtree(self.fx, ignore_errors=True)
        output = values(9, 4)
        write_ge(ge_folder(self.ge), "A", "A", 1, map(Tensor, ge), [Tensor(output)])
        write_fx(fx_folder(self.fx), "a-aten.a", [np.asarray(value) for value in fx], [output])
        rows = self.compare()
        results = [row["Result"] for row in rows]
        self.assertEqual(self.code, 1 if "FAIL" in results else 0)
        self.assertEqual(results.pop(), "PASS")  # the output
        return results

    def test_arguments_that_are_no_tensors(self) -> None:
        x, w, b = values(1, 2, 4), values(2, 4), values(3, 4)
        none = ["NO COUNTERPART"]
        self.assertEqual(self.node([x, -1, False], [x], ["x"]), ["PASS"] + none * 2)
        self.assertEqual(self.node([x, [4], w, b, 1e-5], [x, w, b], ["x", "w", "b"]),
                         ["PASS"] * 3 + none * 2)
        self.assertEqual(self.node([x, None, w], [x, w], ["x", "w"]), ["PASS"] * 2 + none)
        self.assertEqual(self.node([x, "mean"], [x], ["x"]), ["PASS"] + none)
        # A number is a constant of another type on the device.
        self.assertEqual(self.node([x, 2], [x, np.float32(2)], ["x", "c"], ["c"]), ["PASS"] * 2)
        # Numbers that mean something else than the constants: select(x, 0, 1) as a gather.
        constants = [np.int64([1]), np.int64([0])]
        self.assertEqual(self.node([x, 0, 1], [x, *constants], ["x", "c", "d"], ["c", "d"]),
                         ["PASS"] + none * 2)

    def test_wrong_tensors_beside_arguments(self) -> None:
        x, w, b = values(1, 2, 4), values(2, 4), values(3, 4)
        self.assertEqual(self.node([x, [4], w, b, 1e-5], [x, w, b + 1], ["x", "w", "b"]),
                         ["PASS", "PASS", "FAIL"] + ["NO COUNTERPART"] * 2)
        ids = np.arange(1, 5)
        self.assertEqual(self.node([x, ids], [x, ids + 1], ["x", "ids"]), ["PASS", "FAIL"])
        self.assertEqual(self.node([x, ids], [x, ids.astype(np.float32)], ["x", "ids"]),
                         ["PASS", "FAIL"])

    def test_an_output_that_the_text_names(self) -> None:
        """Its file should be there, whether one node or several make the outputs."""
        a, b = values(1, 4), values(2, 4)
        for names in (["s-s.OUTPUT.0", "s-s.OUTPUT.1"], ["s-s.OUTPUT.0", "g-g.OUTPUT.0"]):
            shutil.rmtree(self.fx, ignore_errors=True)
            write_graph(self.ge, [Op("Split", ["x"], names)])
            write_ge(ge_folder(self.ge), "S", "Split", 1, [Tensor(a)], [Tensor(a), Tensor(b)])
            nodes = {name.split(".")[0] for name in names}
            for node in nodes:
                write_fx(fx_folder(self.fx), node, [a], [])
            for name, array in zip(names, (a, b)):
                np.save(fx_folder(self.fx) / f"{name}.20250301120000000274.npy", array)
            self.assertEqual({row["Result"] for row in self.compare()}, {"PASS"})
            next(fx_folder(self.fx).glob(names[1] + ".*")).unlink()
            rows = [row for row in self.compare() if row["Result"] == "FAIL"]
            self.assertEqual([(row["In/Out"], row["Err_message"]) for row in rows],
                             [("output 1", f"the FX dump has no output {names[1][-1]} of its node "
                               + names[1].split(".")[0])])
            self.assertEqual(self.code, 1)

    def test_a_run_that_was_repeated(self) -> None:
        """The latest file of a tensor counts, and the others are named."""
        a, b = values(1, 4), values(2, 4)
        write_graph(self.ge, [Op("Add", ["x", "y"], ["add-aten.add.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "Add", "Add", 1, [Tensor(a), Tensor(b)], [Tensor(a + b)])
        paths = write_fx(fx_folder(self.fx), "add-aten.add", [a, b], [a + b])
        for wrong, results in ((1, "PASS"), (2, "FAIL")):
            for path in paths:
                np.save(path.with_name(path.name.replace("20250301", "20250228")),
                        np.load(path) + (wrong == 1))
                np.save(path, np.load(path) + (wrong == 2))
            rows = self.compare()
            self.assertEqual([row["Result"] for row in rows],
                             [results] * 3 + ["NO COUNTERPART"] * 3)
            self.assertEqual({row["Err_message"] for row in rows[3:]},
                             {"a later file of the same tensor is compared"})

    def test_folded_nodes(self) -> None:
        a = values(1, 4)
        write_graph(self.ge, [Op("Fold", [], ["fold-a.OUTPUT.0"]),
                              Op("A", ["Fold"], ["a-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "A", "A", 1, [Tensor(a)], [Tensor(a)])
        write_fx(fx_folder(self.fx), "fold-a", [], [a])
        write_fx(fx_folder(self.fx), "a-a", [a], [a])
        rows = self.compare()
        self.assertEqual([row["Result"] for row in rows], ["PASS", "PASS", "NO COUNTERPART"])
        self.assertEqual((rows[2]["Accuracy Reached or Not"], self.code), ("N/A", 0))
        self.assertIn("2 compared: 2 pass, 0 fail; 0 unmatched, 1 without a counterpart", self.said)

    def test_nothing_compared_is_not_right(self) -> None:
        write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "B", "B", 1, [], [Tensor(values(1, 4))])
        write_fx(fx_folder(self.fx), "a-a", [], [values(1, 4)])
        self.assertEqual({row["Result"] for row in self.compare()}, {"NO COUNTERPART"})
        self.assertEqual(self.code, 1)


class FxAgainstFx(TorchairCase):
    """Two FX dumps: names differ by the time in them, and nothing else."""

    def run_of(self, root: Path, stamp: int, tokens: Sequence[int] = (0, 1),
               graphs: Sequence[int] = (1,)) -> None:
        for graph in graphs:
            for token in tokens:
                folder = fx_folder(root, token, graph)
                for i, name in enumerate(("mm", "cat", "relu")):
                    for place in ("INPUT.0", "INPUT.0.1", "INPUT.10", "OUTPUT.0"):
                        seed = ((graph * 2 + token) * 3 + i) * 20 + len(place)
                        np.save(folder / f"{name}-aten.{name}.{place}.{stamp + i}.npy",
                                values(seed, 3, 4))
                    np.save(folder / f"{name}-aten.{name}.INPUT.11.{stamp + i}.npy", np.array("mean"))

    def both(self, **options: Sequence[int]) -> Path:
        other = self.root / "other"
        self.run_of(self.fx, 20250301120000000274, **options)
        self.run_of(other, 20250302130000000999, **options)
        self.ge = self.fx
        return other

    def test_all_agree(self) -> None:
        rows = self.compare(golden=self.both())
        self.assertEqual(self.code, 0)
        self.assertEqual(sum(row["Result"] == "PASS" for row in rows), 2 * 3 * 4)
        self.assertEqual({row["Err_message"] for row in rows if row["Result"] != "PASS"},
                         {"the same argument on both sides, and no tensor"})
        self.assertEqual([(row["API Name"], row["Token"], row["In/Out"]) for row in rows[:4]],
                         [("mm-aten.mm", "0", "input 0"), ("mm-aten.mm", "0", "input 0.1"),
                          ("mm-aten.mm", "0", "input 10"), ("mm-aten.mm", "0", "input 11")])

    def test_lists_in_lists(self) -> None:
        other = self.both(tokens=[0])
        for root, time in ((self.fx, "20250301120000000274"), (other, "20250302130000000999")):
            for i in range(3):
                name = f"mm-aten.mm.INPUT.12.0.{i}.{time}.npy"
                np.save(fx_folder(root) / name, values(70 + i, 3, 4))
        rows = self.compare(golden=other)
        self.assertEqual((self.code, sum(row["Result"] == "PASS" for row in rows)), (0, 15))

    def test_a_run_that_was_repeated(self) -> None:
        other = self.both(tokens=[0])
        for root, more in ((other, 1), (self.fx, 0)):
            self.run_of(root, 20240301120000000274, [0])
            for path in fx_folder(root).glob("*.OUTPUT.0.2024*"):
                np.save(path, np.load(path) + more)
            rows = self.compare(golden=other)
            self.assertEqual(self.code, 0)
            self.assertEqual(sum(row["Result"] == "PASS" for row in rows), 12)
            self.assertEqual(sum(row["Err_message"] == "a later file of the same tensor is compared"
                                 for row in rows), 15 if more else 30)

    def test_without_a_mode(self) -> None:
        other = self.both()
        command = [str(PLUMB), "compare", str(self.fx), str(other)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("24 compared: 24 pass, 0 fail; 0 unmatched", done.stdout)
        one = [str(fx_folder(root)) for root in (self.fx, other)]
        done = subprocess.run(command[:2] + one, stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("12 compared: 12 pass", done.stdout)

    def test_differences(self) -> None:
        other = self.both(graphs=(1, 2, 10))
        folder = fx_folder(self.fx, 1, 10)
        bad = next(folder.glob("cat-*.OUTPUT.0.*"))
        np.save(bad, np.load(bad) + 1)
        next(folder.glob("mm-*.INPUT.10.*")).unlink()
        text = next(folder.glob("mm-*.INPUT.11.*"))
        np.save(text, np.array("sum"))
        for path in fx_folder(other, 0, 2).glob("relu-*"):
            path.unlink()
        rows = [(row["file"].split("_2")[0], row["API Name"], row["Token"], row["Err_message"])
                for row in self.compare(golden=other) if row["Result"] == "FAIL"]
        self.assertEqual([row[:3] for row in rows],
                         [("compare_result_graph10_rank0", "mm-aten.mm", "1"),
                          ("compare_result_graph10_rank0", "mm-aten.mm", "1"),
                          ("compare_result_graph10_rank0", "cat-aten.cat", "1"),
                          ("compare_result_graph2_rank0", "relu-aten.relu", "0")])
        self.assertEqual([row[3] for row in rows[:2] + rows[3:]],
                         ["an argument that is no tensor, and not the same on both sides",
                          "the target run has no such tensor of this node",
                          "the golden run has no such node"])

    def test_condensed(self) -> None:
        other = self.both()
        subprocess.run([str(PLUMB), "condense", str(other)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        rows = self.compare(golden=other)
        self.assertEqual(len({(row["API Name"], row["Token"], row["In/Out"]) for row in rows}),
                         len(rows))
        self.assertEqual(sum(row["Result"] == "PASS" for row in rows), 2 * 3 * 4)

    def test_swapped(self) -> None:
        write_graph(self.ge, [Op("A", [], ["a-a.OUTPUT.0"])])
        write_ge(ge_folder(self.ge), "A", "A", 0, [], [Tensor(values(1, 4))])
        write_fx(fx_folder(self.fx), "a-a", [], [values(1, 4)])
        for mode in ([], ["--mode", "torchair"]):
            done = subprocess.run([str(PLUMB), "compare", str(self.fx), str(self.ge), *mode],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("the two are swapped", done.stderr)


if __name__ == "__main__":
    unittest.main()
