"""What plumb blame can look at besides calls of functions and modules of dumps: captures of modules,
graphs, operators of begin_dump. PyTorch is the device; faults are planted into the files that it
left behind."""

import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from blame_case import FAULTS, MODULES, PLUMB, Case, blame, doubted, first, judged, named, reasons  # noqa: E402
from capture_case import BUILD  # noqa: E402
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import plumb  # noqa: E402


class Captures(Case):
    def capture(self, name: str) -> Path:
        return self.record(name, self.make(), hook_name="dump")

    def as_npy(self, capture: Path) -> Path:
        """The same tensors, a file each."""
        target = self.root / "npy"
        shutil.rmtree(target, ignore_errors=True)
        h5, = capture.glob("*.h5")
        subprocess.run([PLUMB, "convert", str(h5), str(target)], check=True, stdout=subprocess.PIPE)
        return target

    def test_right(self) -> None:
        capture = self.capture("right")
        for settings in (True, False):
            found = blame(self.copy(capture, settings), status=0)
            self.assertEqual((found["calls"], judged(found)), (28, 27), reasons(found))
            self.assertEqual(named(found), [])
        found = blame(self.as_npy(capture), status=0)
        self.assertEqual(judged(found), 27, reasons(found))

    def test_ranks(self) -> None:
        """Each file by itself, with its own settings."""
        both = self.capture("zero")
        before = dict(os.environ)
        os.environ.update(RANK="1", LOCAL_RANK="1")
        try:
            shutil.copytree(self.capture("one"), both, dirs_exist_ok=True)
        finally:
            os.environ.clear()
            os.environ.update(before)
        found = blame(both, status=0)
        self.assertEqual((found["calls"], judged(found)), (56, 54), reasons(found))
        path = both / "globalrank-1_localrank-1_modules.json"
        path.write_text(path.read_text().replace('"eps": 1e-06,\n  "elementwise', '"eps": 1e-03,\n  "elementwise'))
        found = blame(both, status=1)
        self.assertEqual({(one["call"], one["rank"]) for one in found["faults"]},
                         {("layer.LayerNorm.0.forward", 1), ("layer.LayerNorm.0.backward", 1)})

    def test_faults(self) -> None:
        """In files, without settings: named where nothing else explains it, doubted elsewhere."""
        npy = self.as_npy(self.capture("right"))
        counts = {"planted": 0, "named": 0, "doubted": 0}
        for module in MODULES:
            path, = npy.glob(f"{module}.*.forward_output.0.npy")
            before = np.load(path)
            for kind in () if "Dropout" in module else \
                    ("scaled", "tile", "nan", "rolled", "shifted", "sign", "doubled", "smaller type"):
                after = FAULTS[kind](torch.from_numpy(before)).contiguous().numpy()
                if np.array_equal(before, after):
                    continue
                np.save(path, after)
                found, call = blame(npy), path.name.partition("_output")[0]
                counts["planted"] += 1
                counts["named"] += named(found)[:1] == [call]
                counts["doubted"] += doubted(found)[:1] == [call]
            np.save(path, before)
        self.assertEqual(counts["planted"], counts["named"] + counts["doubted"], counts)
        self.assertGreater(counts["named"], 60, counts)

    def test_weights(self) -> None:
        """A capture without parameters: not judged, until they are given."""
        npy = self.as_npy(self.capture("right"))
        for path in [*npy.glob("*forward_params*"), *npy.glob("*forward_buffers*")]:
            path.unlink()
        found = blame(npy, status=0)
        self.assertIn("its parameters were not recorded", reasons(found))
        before = judged(found)
        weights = self.root / "weights.pt"
        torch.save({f"model.{name}": value for name, value in self.make().state_dict().items()}, weights)
        found = blame(npy, "--weights", weights, status=0)
        self.assertGreater(judged(found), before + 8, reasons(found))
        path, = npy.glob("up.Linear.*.forward_output.0.npy")
        np.save(path, np.load(path) * np.float32(1.01))
        self.assertEqual(first(blame(npy, "--weights", weights, status=1)), path.name.partition("_output")[0])
        self.assertFalse(plumb.blame(str(npy), weights=str(weights)))


# -- Operators -------------------------------------------------------------------------------------

class Operators(Case):
    SCRIPT = ("import sys, torch, plumb\n"
              "plumb.begin_dump(X_DUMP_NUM=9, X_DUMP_OUTPUT=int(sys.argv[1]))\n"
              "torch.manual_seed(0)\n"
              "x, w = torch.randn(16, 24), torch.randn(24, 8)\n"
              "y = torch.softmax(x @ w, -1)\n"
              "torch.nn.functional.layer_norm(y, (8,)).relu_()\n"
              "plumb.end_dump()\n")

    def record_operators(self, outputs: bool) -> Path:
        folder = self.root / f"aten{int(outputs)}"
        folder.mkdir()
        subprocess.run([sys.executable, "-c", self.SCRIPT, str(int(outputs))], cwd=folder, check=True,
                       stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
        found, = (folder / "xray_debug").iterdir()
        return found

    def test_outputs_kept(self) -> None:
        dump = self.record_operators(True)
        found = blame(dump / "dump.json", status=0)
        self.assertEqual(named(found), [])
        self.assertGreaterEqual(judged(found), 4, reasons(found))
        tree = json.loads((dump / "dump.json").read_text())["data"]
        name, = (name for name, entry in tree.items() if entry["op"].startswith("aten._softmax"))
        path = dump / "dump" / tree[name]["output"][0]["data_name"]
        torch.save(torch.load(path) * 1.01, path)
        self.assertEqual(first(blame(dump / "dump.json", status=1)), name)

    def test_inputs_only(self) -> None:
        found = blame(self.record_operators(False) / "dump.json", status=2)
        self.assertEqual(judged(found), 0)
        self.assertIn("X_DUMP_OUTPUT", reasons(found))


# -- Graphs ----------------------------------------------------------------------------------------

class Graphs(Case):
    """A small network as FX nodes and as GE operators."""

    NODES = {"MatMul": "mm-aten.mm.default", "Add": "add-aten.add.Tensor", "Gelu": "gelu-aten.gelu.default",
             "Softmax": "_softmax-aten._softmax.default", "Trans": "t-aten.t.default", "Mean": "mean-aten.mean.dim",
             "Odd": "mystery-aten.mystery.default"}

    def values(self, scale: float = 1.0) -> Dict[str, Any]:
        rng = np.random.default_rng(3)
        x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((12, 16), (16, 20), (20,)))
        h = x @ w
        y = h + b
        g = F.gelu(torch.from_numpy(y)).numpy()
        s = torch.softmax(torch.from_numpy(g), -1).numpy() * np.float32(scale)
        t = np.ascontiguousarray(s.T)
        m = g.mean(-1, dtype=np.float32)
        return {"x": x, "w": w, "b": b, "h": h, "y": y, "g": g, "s": s, "t": t, "m": m}

    def fx(self, name: str, fault: Optional[str] = None, kind: str = "scaled", tokens: int = 1,
           scale: float = 1.0) -> Path:
        for token in range(tokens):
            v = self.values(scale)
            folder = fx_folder(self.root / name, token)
            nodes = {"mm-aten.mm.default": (("x", "w"), "h"), "add-aten.add.Tensor": (("h", "b"), "y"),
                     "gelu-aten.gelu.default": (("y",), "g"),
                     "_softmax-aten._softmax.default": (("g", np.array(-1), np.array(False)), "s"),
                     "t-aten.t.default": (("s",), "t"),
                     "mean-aten.mean.dim": (("g", np.array([-1])), "m"),
                     "mystery-aten.mystery.default": (("m",), "m")}
            for key, (inputs, output) in nodes.items():
                out = v[output]
                if key == fault and token == tokens - 1:
                    out = FAULTS[kind](torch.from_numpy(out)).numpy()
                write_fx(folder, key, [v[one] if isinstance(one, str) else one for one in inputs], [out])
        return self.root / name

    def ge(self, name: str, fault: Optional[str] = None, kind: str = "scaled", scale: float = 1.0) -> Path:
        v, root = self.values(scale), self.root / name
        ops = {"MatMulV2.MatMul": (("x", "wt"), "h"), "Add.Add": (("h", "b"), "y"), "Gelu.Gelu": (("y",), "g"),
               "SoftmaxV2.Softmax": (("g",), "s"), "Transpose.Trans": (("s", "perm"), "t"),
               "ReduceMean.Mean": (("g", "axes"), "m"), "Mystery.Odd": (("m",), "m")}
        v.update(wt=np.ascontiguousarray(v["w"].T), perm=np.array([1, 0], np.int32), axes=np.array([1], np.int32))
        names = {"x": "arg0", "wt": "arg1", "b": "arg2", "perm": "c0", "axes": "c1"}
        texts = [Op(one) for one in names.values()]
        folder = ge_folder(root)
        for order, (key, (inputs, output)) in enumerate(ops.items()):
            type_, op = key.split(".")
            texts.append(Op(op, [names[one] for one in inputs], [f"{self.NODES[op]}.OUTPUT.0"]))
            if op != "Odd":
                names[output] = op
            out = v[output] if key != fault else FAULTS[kind](torch.from_numpy(v[output])).numpy()
            write_ge(folder, type_, op, order + 1, [Tensor(v[one]) for one in inputs], [Tensor(out)])
        write_graph(root, texts)
        return root

    def test_fx(self) -> None:
        found = blame(self.fx("right", tokens=2), status=0)
        self.assertEqual((found["calls"], judged(found), named(found)), (14, 12, []), reasons(found))
        self.assertIn("plumb has no operator aten.mystery.default", reasons(found))
        planted = 0
        for key in ("mm-aten.mm.default", "add-aten.add.Tensor", "gelu-aten.gelu.default",
                    "_softmax-aten._softmax.default", "t-aten.t.default", "mean-aten.mean.dim"):
            for kind in ("scaled", "shifted", "tile", "rolled", "sign", "nan", "every other", "smaller type"):
                shutil.rmtree(self.root / "bad", ignore_errors=True)
                found = blame(self.fx("bad", key, kind, tokens=2))
                self.assertEqual(named(found)[:1], [key], kind)
                self.assertEqual((found["faults"] + found["suspicious"])[0]["step"], 1)
                planted += 1
        self.assertEqual(planted, 48)

    def save_node(self, folder: Path, number: int, target: str, *args: Any, **keywords: Any) -> None:
        """Runs an ATen operator, and leaves files behind as a node does: every positional argument, elements
        of lists by themselves, what is neither tensor nor number as an object; no keywords."""
        packet, overload = target.split(".")
        output = getattr(getattr(torch.ops.aten, packet), overload)(*args, **keywords)
        outputs = output if isinstance(output, (tuple, list)) else [output]
        for word, values in (("INPUT", args), ("OUTPUT", outputs)):
            for i, value in enumerate(values):
                several = isinstance(value, list) and value and isinstance(value[0], torch.Tensor)
                for j, one in enumerate(value if several else [value]):
                    array = one.numpy() if isinstance(one, torch.Tensor) else \
                        np.array(one, dtype=object if one is None else None)
                    np.save(folder / f"n{number}-aten.{target}.{word}.{i}{f'.{j}' if several else ''}."
                            f"20250301120000000{number:03d}.npy", array)

    def test_fx_forms(self) -> None:
        """Lists, numbers, None, several outputs, keywords that are not in the dump: nobody is blamed."""
        torch.manual_seed(0)
        folder, rand = fx_folder(self.root / "forms"), torch.randn
        x = rand(8, 16)
        nodes: List[Any] = [
            ("native_layer_norm.default", x, [16], rand(16), rand(16), 1e-5), ("cat.default", [x, rand(4, 16)], 0),
            ("addmm.default", rand(12), x, rand(16, 12)), ("bmm.default", rand(2, 3, 4), rand(2, 4, 5)),
            ("convolution.default", rand(2, 4, 9), rand(6, 4, 3), None, [2], [1], [1], False, [0], 1),
            ("embedding.default", rand(20, 8), torch.randint(0, 20, (3, 5))), ("view.default", x, [4, 32]),
            ("permute.default", rand(2, 3, 4), [2, 0, 1]), ("transpose.int", x, 0, 1), ("where.self", x > 0, x, 2 * x),
            ("mul.Tensor", x, torch.tensor(2.5)), ("mul.Scalar", x, 0.125), ("pow.Tensor_Scalar", x, 2),
            ("sum.dim_IntList", x, [-1], True), ("slice.Tensor", x, 1, 2, 9), ("select.int", x, 0, 3),
            ("expand.default", rand(1, 16), [8, 16]), ("gt.Scalar", x, 0), ("sub.Tensor", x, 1.5),
            ("max_pool2d_with_indices.default", rand(2, 3, 8, 8), [2, 2], [2, 2]), ("split.Tensor", x, 4),
            ("native_batch_norm.default", rand(4, 3, 5), rand(3), rand(3), torch.zeros(3), torch.ones(3), True, 0.1,
             1e-5), ("topk.default", x, 3), ("index_select.default", x, 0, torch.tensor([1, 3, 5])),
            ("gelu.default", x, {"approximate": "tanh"}), ("_to_copy.default", x, {"dtype": torch.float16}),
            ("div.Tensor_mode", x, rand(8, 16).abs() + 1, {"rounding_mode": "floor"}),
            ("var_mean.correction", x, [1], {"correction": 0})]
        for number, (target, *args) in enumerate(nodes):
            keywords = args.pop() if isinstance(args[-1], dict) else {}
            self.save_node(folder, number, target, *args, **keywords)
        found = blame(self.root / "forms", status=0)
        self.assertEqual((named(found), doubted(found), judged(found)), ([], [], len(nodes)), reasons(found))

    def test_fx_keywords(self) -> None:
        """x + 2 y may be an addition with alpha=2: not shown to be wrong, and told."""
        rng = np.random.default_rng(5)
        x, y = (rng.standard_normal((6, 7)).astype(np.float32) for _ in range(2))
        write_fx(fx_folder(self.root / "alpha"), "add-aten.add.Tensor", [x, y], [x + 2 * y])
        found = blame(self.root / "alpha", status=2)
        self.assertEqual(doubted(found), ["add-aten.add.Tensor"])
        self.assertIn("alpha = 2", found["suspicious"][0]["why"])

    def test_ge(self) -> None:
        found = blame(self.ge("right"), status=0)
        self.assertEqual((found["calls"], judged(found), named(found)), (7, 6, []), reasons(found))
        self.assertIn("plumb does not know the type Mystery", reasons(found))
        for key in ("MatMulV2.MatMul", "Add.Add", "Gelu.Gelu", "SoftmaxV2.Softmax", "Transpose.Trans",
                    "ReduceMean.Mean"):
            for kind in ("scaled", "shifted", "tile", "rolled", "sign", "nan", "every other", "smaller type"):
                shutil.rmtree(self.root / "bad", ignore_errors=True)
                self.assertEqual(named(blame(self.ge("bad", key, kind)))[:1], [key], kind)

    def test_jumps(self) -> None:
        """What is not known is judged by the other run: of GE, of FX, of GE against FX."""
        found = blame(self.fx("a", "mystery-aten.mystery.default"), self.fx("b"), status=1)
        self.assertEqual((first(found), found["faults"][0]["by_jump"]), ("mystery-aten.mystery.default", True))
        found = blame(self.ge("c", "Mystery.Odd"), self.ge("d"), status=1)
        self.assertEqual((first(found), found["faults"][0]["by_jump"]), ("Mystery.Odd", True))
        found = blame(self.ge("g", "Mystery.Odd"), self.fx("h"), status=1)
        self.assertEqual((first(found), found["faults"][0]["by_jump"]), ("Mystery.Odd", True))
        found = blame(self.ge("e"), self.ge("f", scale=1.02))
        self.assertEqual(named(found), [])  # the other one is wrong
        self.assertEqual(found["verdicts"]["inherited"], 2)

    def test_damaged(self) -> None:
        """Files that cannot be read cost their call."""
        root = self.ge("damaged")
        path, = root.rglob("Add.Add.*")
        path.write_bytes(path.read_bytes()[:40])
        found = blame(root, status=0)
        self.assertEqual(judged(found), 5, reasons(found))


if __name__ == "__main__":
    unittest.main()
