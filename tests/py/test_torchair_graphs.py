"""Graph dumps: which graph, operator and tensor of one side belongs to which of the other."""

import shutil
import subprocess
import unittest
from pathlib import Path

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
        array = values(1, 4, 6)
        for golden in (array.reshape(6, 4), np.ones((4, 6), np.int32)):
            self.one(Tensor(array), golden)
            subprocess.run([str(PLUMB), "condense", str(self.ge)], check=True,
                           stdout=subprocess.DEVNULL)
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
            write_ge(ge_folder(self.ge), "A", file, i, [], [Tensor(array)])
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


if __name__ == "__main__":
    unittest.main()
