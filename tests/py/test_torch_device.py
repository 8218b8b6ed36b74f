"""Devices of PyTorch: what the workers compute, and who else computes when plumb cannot."""

import csv
import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch

sys.path.insert(0, str(Path(__file__).parent))
import module_zoo  # noqa: E402
from check_dump import add, backward, forward, save, tensor, value  # noqa: E402
from dump_model import Recorder  # noqa: E402
from small_models import MODELS  # noqa: E402
from torch_runs import BUILD, Folder, Result  # noqa: E402


class Values(Folder):
    """The same calls on a device of PyTorch as on plumb's own."""

    def test_models(self) -> None:
        for name in MODELS:
            with self.subTest(model=name):
                result = self.check(self.model(name, "tensor"), "-d", "torch:cpu")
                self.assertEqual((result.code, result.not_passed()), (0, {}), result.stderr)
                self.assertTrue(result.rows)

    def test_modules(self) -> None:
        torch.manual_seed(1)
        recorder = Recorder(self.folder / "zoo")
        calls = list(module_zoo.calls())
        with recorder:
            for _, function, inputs in calls:
                module_zoo.record(recorder, function, inputs)
        dump = recorder.write()
        result = self.check(dump, "-d", "torch:cpu")
        self.assertEqual(result.not_passed(), {})
        self.assertGreater(len(result.rows), 200)
        again = self.check(dump, "-d", "torch:cpu", "-n", "3")
        self.assertEqual(again.bytes, result.bytes)

    def test_other_rules(self) -> None:
        result = self.check(self.model("gpt"), "-d", "torch:cpu", "--rules", "msprobe")
        bad = [name for name, row in result.not_passed().items() if row[0] != "pass"]
        self.assertEqual(bad, ["Tensor.masked_fill.0", "Tensor.masked_fill.1"])  # infinities

    def test_graphs(self) -> None:
        """plumb numeric_check there: shared weights, several results, integers as parameters."""
        ref = lambda name, index=None: {"ref": name, **({} if index is None else {"index": index})}
        node = lambda name, op, *args: {"name": name, "op": op, "args": list(args)}
        graph = {"plumb_graph": 1, "inputs": {"i": {"dtype": "int64", "shape": [2], "value": 1}},
                 "parameters": {"w": {"dtype": "float32", "shape": [3, 2]},
                                "k": {"dtype": "int64", "shape": [2], "value": 7}},
                 "nodes": [node("a", "Functional.embedding", ref("i"), ref("w")),
                           node("b", "Torch.add", ref("a"), ref("k")),
                           node("c", "Torch.chunk", ref("w"), 2, 1),
                           node("d", "Torch.mul", ref("c", 0), ref("c", 1)),
                           node("y", "Torch.matmul", ref("d"), ref("e", 0)),
                           node("e", "Torch.split", ref("b"), 1)],
                 "outputs": [ref("y"), ref("e")]}
        path = self.folder / "graph.json"
        path.write_text(json.dumps(graph))
        rows: List[List[List[str]]] = []
        for device in ("cpu", "torch:cpu"):
            out = self.folder / "out.csv"
            done = subprocess.run([BUILD / "plumb", "numeric_check", path, path, "--iterations",
                                   "2", "--device", device, "-o", out, "--quiet"], text=True,
                                  stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(out) as file:
                rows.append(list(csv.reader(file)))
        self.assertEqual(len(rows[0]), 1 + 2 * 9)
        place = rows[0][0].index("Golden L2norm")
        for ours, theirs in zip(rows[0][1:], rows[1][1:]):
            self.assertEqual(ours[:5], theirs[:5])
            self.assertAlmostEqual(float(ours[place]), float(theirs[place]), 4)
        path.write_text(json.dumps(graph).replace("Torch.matmul", "matmul"))
        done = subprocess.run([BUILD / "plumb", "numeric_check", path, path, "--device",
                               "torch:cpu"], text=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("which matmul is meant: Torch.matmul or Tensor.matmul", done.stderr)

    def test_kinds_of_arguments(self) -> None:
        x = tensor([6, 8], grad=True)
        dtype = {"type": "torch.dtype", "value": "torch.float64"}
        device = {"type": "torch.device", "value": "cuda:3"}
        part = [{"type": "slice", "value": [1, None, 2]}, {"type": "ellipsis", "value": "..."},
                value(0)]
        data: Dict[str, Any] = {}
        add(data, "Tensor.__getitem__.0", forward(x, part), backward(tensor([3])))
        add(data, "Tensor.__getitem__.1", forward(x, [value(2), value(3)]), backward(tensor([])))
        add(data, "Tensor.__setitem__.0", forward(x, [value(2), value(3)], value(0.5)))
        add(data, "Tensor.item.0", forward(tensor([1])))
        add(data, "Torch._foreach_add_.0", forward([x, x], [x, x]))
        add(data, "Torch.sum.0", forward(x, dim=[value(0)], dtype=dtype))
        add(data, "Torch.full.0", forward([value(2), value(3)], value(0.1), device=device))
        add(data, "Torch.cat.0", forward([x, x], dim=value(-1)), backward(tensor([6, 16])))
        add(data, "Tensor.add_.0", forward(x, x, alpha=value(0.3)), backward(tensor([6, 8])))
        add(data, "Tensor.cuda.0", forward(x), backward(x))
        add(data, "Torch.linalg.inv.0", forward(tensor([3, 3], "float64")))
        add(data, "Torch.svd.0", forward(tensor([4, 3])))  # the signs of its vectors are free
        add(data, "Aten.aten::mul.0", forward(x, x), backward(x))
        add(data, "Aten.add.Tensor.0", forward(x, x), backward(x))
        add(data, "VF.tanh.0", forward(x), backward(x))
        add(data, "Torch.max.0", forward(x, value(1)), backward(tensor([6]), None))
        add(data, "Tensor.size.0", forward(x, value(1)))
        add(data, "Torch.add.0", forward(tensor([0, 3]), tensor([0, 3])))
        add(data, "Torch.where.0", forward(tensor([6, 8], "bool", False, True), x,
                                           tensor([], "float32", 0.5, 0.5)), backward(x))
        result = self.check(save(self.folder / "dump.json", data), "-d", "torch:cpu")
        self.assertEqual(result.not_passed(), {})

    def test_fused_operators(self) -> None:
        data: Dict[str, Any] = {}

        def one(name: str, *args: Any, grads: Optional[List[Any]] = None, **kwargs: Any) -> None:
            add(data, f"NPU.{name}.{len(data)}", forward(*args, **kwargs),
                backward(*grads) if grads else None)

        x, gamma = tensor([4, 6, 8], grad=True), tensor([8], grad=True)
        one("npu_rms_norm", x, gamma, grads=[x, None])
        one("npu_rms_norm", x, gamma=gamma, epsilon=value(0.01), grads=[x, None])
        one("npu_add_rms_norm", x, x, gamma, grads=[x, None, x])
        one("npu_swiglu", x, grads=[tensor([4, 6, 4])])
        one("npu_swiglu", x, dim=value(1), grads=[tensor([4, 3, 8])])
        for name in ("npu_fast_gelu", "fast_gelu", "npu_mish", "npu_silu", "npu_gelu"):
            one(name, x, grads=[x])
        one("npu_geglu", x, grads=[tensor([4, 6, 4]), None])
        one("npu_gelu_mul", x, grads=[tensor([4, 6, 4])])
        four, turn = tensor([2, 5, 3, 8], grad=True), tensor([1, 5, 1, 8], grad=True)
        one("npu_rotary_mul", four, turn, turn, grads=[four])
        one("npu_rotary_mul", four, r1=turn, r2=turn, rotary_mode=value("interleave"), grads=[four])
        one("npu_apply_rotary_pos_emb", four, four, turn, turn, grads=[four, four])
        mask = tensor([2, 1, 3, 8], "bool", False, True)
        one("npu_scaled_masked_softmax", four, mask, value(0.5), value(False), grads=[four])
        one("npu_scaled_masked_softmax", four, None, value(2.0), value(True), grads=[four])
        one("npu_linear", x, tensor([5, 8], grad=True), tensor([5], grad=True),
            grads=[tensor([4, 6, 5])])
        one("npu_confusion_transpose", x, [value(0), value(2), value(1)], [value(4), value(48)],
            value(True), grads=[tensor([4, 48])])
        one("npu_confusion_transpose", x, [value(1), value(0)], [value(4), value(48)],
            value(False), grads=[tensor([48, 4])])
        one("npu_layer_norm_eval", x, [value(8)], gamma, gamma, value(0.1), grads=[x])
        pictures, channels = tensor([2, 6, 4, 4], grad=True), tensor([6], grad=True)
        one("npu_group_norm_silu", pictures, channels, channels, value(3), value(1e-5),
            grads=[pictures, None, None])
        one("npu_sort_v2", x, value(1), value(True), grads=[x])
        one("npu_moe_gating_top_k_softmax", tensor([6, 8], grad=True),
            tensor([6], "bool", False, True), value(3), grads=[tensor([6, 3]), None, None])
        one("npu_max", x, value(1), grads=[tensor([4, 8]), None])
        state = [tensor([4, 6]), tensor([4, 6]), tensor([4, 6], low=0.1)]
        for nesterov in (False, True):
            one("npu_apply_adam", value(0.9), value(0.99), value(0.01), value(0.9), value(0.99),
                value(1e-6), tensor([4, 6]), value(False), value(nesterov), out=state)
        one("npu_apply_adam_w", value(0.9), value(0.99), value(0.01), value(0.1), value(0.9),
            value(0.99), value(1e-6), tensor([4, 6]), tensor([4, 6], low=0.0), value(True),
            value(True), out=state)
        for layout, shape, keys in (("BNSD", [2, 4, 5, 8], [2, 2, 7, 8]),
                                    ("BSND", [2, 5, 4, 8], [2, 7, 2, 8]),
                                    ("BSH", [2, 5, 32], [2, 7, 16]),
                                    ("SBH", [5, 2, 32], [7, 2, 16])):
            q, k = tensor(shape, grad=True), tensor(keys, grad=True)
            one("npu_fusion_attention", q, k, k, value(4), value(layout), scale=value(0.3),
                grads=[q, None, None])
        q = tensor([1, 2, 6, 8], grad=True)
        for mode in (2, 3, 4):
            one("npu_fusion_attention", q, q, q, value(2), value("BNSD"), scale=value(0.3),
                atten_mask=tensor([2048, 2048], "bool", False, True), sparse_mode=value(mode),
                pre_tockens=value(2), next_tockens=value(1), grads=[q, None, None])
        one("npu_fusion_attention", q, q, q, value(2), value("BNSD"), scale=value(0.3),
            pse=tensor([1, 2, 6, 6], grad=True), atten_mask=tensor([6, 6], "bool", False, True),
            grads=[q, None, None])
        t = tensor([9, 2, 8], grad=True)
        ends = [value(4), value(9)]
        one("npu_fusion_attention", t, t, t, value(2), value("TND"), scale=value(0.3),
            actual_seq_qlen=ends, actual_seq_kvlen=ends, grads=[t, None, None])
        result = self.check(save(self.folder / "dump.json", data), "-d", "torch:cpu")
        self.assertEqual(result.not_passed(), {})

    def test_dropout_and_random_numbers(self) -> None:
        big = tensor([100, 100], grad=True, low=1.0, high=2.0)
        data: Dict[str, Any] = {}
        add(data, "Functional.dropout.0", forward(big, p=value(0.3)), backward(big))
        add(data, "Functional.dropout.1", forward(tensor([20, 6]), p=value(0.5)))
        add(data, "Functional.dropout2d.0", forward(tensor([3, 5, 9, 9]), p=value(0.5)))
        add(data, "Torch.randn_like.0", forward(big))
        add(data, "Torch.svd_lowrank.0", forward(tensor([9, 9]), q=value(2)))
        result = self.check(save(self.folder / "dump.json", data), "-d", "torch:cpu")
        self.assertEqual([row[0] for row in result.rows.values()], ["pass"] * 3 + ["SKIP"] * 2)
        for row in list(result.rows.values())[3:]:
            self.assertIn("the results are random", row[2])


class Fallback(Folder):
    """Calls that plumb cannot run: PyTorch does, on both sides if need be."""

    def lacking(self) -> Path:
        c, x = tensor([4, 6], "complex64", 0.0, 2.0, grad=True), tensor([4, 6], grad=True)
        data: Dict[str, Any] = {}
        add(data, "Torch.sinc.0", forward(c), backward(c))
        add(data, "Mine.thrice.0", forward(x), backward(x))
        add(data, "my_ops.twice.0", forward(tensor([4], "bfloat16")))
        add(data, "Torch.add.0", forward(x, x), backward(x))
        return save(self.folder / "dump.json", data)

    def test_both_sides(self) -> None:
        result = self.check(self.lacking(), "--import", "my_ops")
        self.without_reference(result)
        types = {row[0]: row[1:3] for row in result.details}
        for way in ("forward", "backward"):
            self.assertEqual(types[f"Torch.sinc.0.{way}.output.0"], ["torch.complex128", "torch.complex64"])
        said = {row[0].split(".")[1]: row[-2] for row in result.details}
        self.assertIn("reference and device by PyTorch", said["sinc"])
        self.assertNotIn("PyTorch", said["add"])

    def test_reference_only(self) -> None:
        result = self.check(self.lacking(), "--import", "my_ops.py", "-d", "torch:cpu")
        self.without_reference(result)
        self.assertIn("reference by PyTorch", result.details[0][-2])

    def without_reference(self, result: Result) -> None:
        """Operators that nobody but the user has are not judged by themselves."""
        skipped = result.not_passed()
        self.assertEqual((result.code, list(skipped)), (0, ["Mine.thrice.0", "my_ops.twice.0"]))
        for row in skipped.values():
            self.assertEqual(row[0], "SKIP")
            self.assertIn("what --import brings is never the reference", row[2])

    def test_complex_results_are_compared(self) -> None:
        """A wrong imaginary part is an error."""
        (self.folder / "wrong.py").write_text(
            "import torch\n"
            "def turn(x):\n"
            "    return torch.complex(x.real, x.imag * 1.1)\n"
            "torch.linalg.inv = turn\n")
        c = tensor([4, 4], "complex64", 0.0, 2.0)
        result = self.check(self.dump(Torch__linalg__inv__0=(forward(c), None)), "--import", "wrong")
        self.assertEqual((result.code, result.rows["Torch.linalg.inv.0"][0]), (1, "error"))

    def test_without_pytorch(self) -> None:
        dump = self.lacking()
        for result in (self.check(dump, "--no-torch"), self.check(dump, PLUMB_PYTHON="/bin/false")):
            skipped = result.not_passed()
            self.assertEqual(result.code, 0)
            self.assertEqual(list(skipped), ["Torch.sinc.0", "Mine.thrice.0", "my_ops.twice.0"])
            self.assertEqual([row[0] for row in skipped.values()], ["SKIP"] * 3)
        for row in skipped.values():
            self.assertIn("set PLUMB_PYTHON to a Python that has it", row[2])
        result = self.check(dump, "-d", "torch:cpu", PLUMB_PYTHON="/bin/false")
        self.assertEqual((result.code, result.stdout), (2, ""))
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("set PLUMB_PYTHON", result.stderr)

    def test_what_cannot_start(self) -> None:
        dump = self.lacking()
        for options, words in ((["torch:nosuch:0"], "device nosuch:0"),
                               (["torch:cpu", "--import", "no_such"], "--import no_such: Mod"),
                               (["torch:npu:0"], "torch_npu")):
            result = self.check(dump, "-d", *options)
            self.assertEqual(result.code, 2)
            self.assertIn(words, result.stderr)

    def test_names_lead_to_operators_only(self) -> None:
        mark = self.folder / "mark"
        data: Dict[str, Any] = {}
        for k, name in enumerate(("Torch.os.system", "Torch.load", "Torch.hub.load", "Aten.save",
                                  "Torch.from_file", "Tensor.__reduce_ex__", "Tensor.__class__",
                                  "Functional.importlib", "VF.__class__", "builtins.exec")):
            add(data, f"{name}.{k}", forward(value(f"touch {mark}"), value(True), value(8)))
        result = self.check(save(self.folder / "dump.json", data), "-d", "torch:cpu")
        self.assertEqual([row[0] for row in result.rows.values()], ["SKIP"] * len(data))
        self.assertFalse(mark.exists())


if __name__ == "__main__":
    unittest.main()
