"""Ten families of Transformers with random weights: recorded without a changed bit, right ones not blamed, and
faults that were planted found first.

PLUMB_ZOO=all runs every family in every way; without it a part of them, in a minute or two. Run as a program with
--table, it prints what acc_check makes of each family: calls, those of native operators, errors."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "py")]

from capture_case import PLUMB  # noqa: E402

import plumb  # noqa: E402
import torch  # noqa: E402

try:
    import zoo  # noqa: E402
    from zoo_faults import FAULTS, in_another_order, planted  # noqa: E402
except ModuleNotFoundError:  # Debian 13 has no Transformers
    zoo = None

ALL = os.environ.get("PLUMB_ZOO") == "all"
FAMILIES = list(zoo.FAMILIES) if ALL and zoo else ["llama", "mixtral", "bert", "t5", "mamba"]
FAST_FAULTS = ("norm weight x 1.01", "wrong eps", "rotary off by one", "expert swapped", "mask off by one",
               "stale cache", "wrong eps by the compiler", "norm weight x 1.01, compiled")

# Calls of PyTorch's own kernels in bfloat16 that err more than rounding explains, by family: what they do is named
# beside them. Everything else of a bfloat16 run is right.
KNOWN_BFLOAT16 = {
    "Torch.tanh": "backward computes 1 - y * y from the rounded y",
    "Functional.layer_norm": "backward rounds single numbers of a row on the way",
    "Functional.scaled_dot_product_attention": "backward takes the rounded output, and rounds gradients of scores",
    "Tensor.__mul__": "backward adds products up that are rounded to bfloat16",
}


@unittest.skipIf(zoo is None, "Transformers is not installed")
class Zoo(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.made = 0
        torch._dynamo.reset()

    def record(self, model: Any, work: Any, **settings: Any) -> Tuple[Any, Path]:
        """What work gives while it is recorded, and the folder."""
        self.made += 1
        folder = self.root / str(self.made)
        debugger = plumb.PrecisionDebugger(dump_path=str(folder), **{"task": "tensor", "level": "mix", **settings})
        debugger.start(model)
        result = work()
        debugger.stop()
        debugger.step()
        return result, folder

    def assert_same(self, one: List[torch.Tensor], other: List[torch.Tensor]) -> None:
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertTrue(torch.equal(a, b))


class Recorded(Zoo):
    """Results and gradients, bit by bit."""

    def test_training_step(self) -> None:
        runs = 0
        for name in FAMILIES:
            for attention in ("sdpa", "eager") if ALL and zoo.FAMILIES[name].attention else ("",):
                for dtype in (torch.float32, torch.bfloat16):
                    with self.subTest(model=name, attention=attention, dtype=dtype):
                        model, inputs = zoo.make(name, attention, dtype)
                        alone = zoo.step(model, inputs)
                        seen, folder = self.record(model, lambda: zoo.step(model, inputs))
                        self.assert_same(alone, seen)
                        self.assertEqual([path.read_text() for path in folder.rglob("dump_error_info.log")], [])
                        runs += 1
        print(f"\nbit-identical training steps: {runs}")

    def test_generate_with_cache(self) -> None:
        for name in FAMILIES:
            if not zoo.FAMILIES[name].generates:
                continue
            with self.subTest(model=name):
                model, inputs = zoo.make(name)
                alone = zoo.generate(model, inputs)
                seen, _ = self.record(model, lambda: zoo.generate(model, inputs), task="statistics")
                self.assert_same([alone], [seen])

    def test_compiled(self) -> None:
        for name in FAMILIES if ALL else ["llama"]:
            for backend in ("eager", "aot_eager", "inductor") if ALL else ("aot_eager",):
                with self.subTest(model=name, backend=backend), torch.no_grad():
                    torch._dynamo.reset()
                    model, inputs = zoo.make(name)
                    run = torch.compile(model, backend=backend)
                    alone = zoo.logits(run, inputs)
                    seen, _ = self.record(run, lambda: zoo.logits(run, inputs))  # noqa: B023
                    self.assert_same([alone], [seen])


class Right(Zoo):
    """Nobody is blamed for rounding."""

    def ways(self, name: str, model: Any) -> List[Tuple[Any, Any]]:
        found: List[Tuple[Any, Any]] = [(in_another_order(model), None)]
        if zoo.FAMILIES[name].attention:
            found += [("sdpa", "eager"), ("eager", "sdpa")] if ALL else [("sdpa", "eager")]
        return found

    def test_float32(self) -> None:
        count = 0
        for name in FAMILIES:
            model, inputs = zoo.make(name)
            for a, b in self.ways(name, model):
                with self.subTest(model=name, b=b):
                    found = plumb.diagnose(model, inputs, a, b, backward=ALL)
                    self.assertTrue(found, str(found)[:2000])
                    self.assertEqual(found.sources, [])
                    count += 1
        print(f"\nright variants in float32, not blamed: {count}")

    def test_compiled(self) -> None:
        for name in FAMILIES if ALL else ["llama"]:
            with self.subTest(model=name):
                torch._dynamo.reset()
                model, inputs = zoo.make(name)
                found = plumb.diagnose(model, inputs, a="compiled" if ALL else "compiled:aot_eager")
                self.assertTrue(found, str(found)[:2000])
                self.assertEqual(found.report.counts["unmatched"], 0)

    def test_bfloat16(self) -> None:
        """What is blamed is what the list above names, and nothing that comes from outside."""
        blamed: Dict[str, int] = {}
        calls = 0
        for name in FAMILIES:
            with self.subTest(model=name):
                model, inputs = zoo.make(name)
                found = plumb.diagnose(model, inputs, "bfloat16", "float32", backward=ALL)
                calls += found.judged
                self.assertEqual(found.sources, [])
                for fault in found.faults:
                    kind = ".".join(fault["call"].split(".")[:2])
                    blamed[kind] = blamed.get(kind, 0) + 1
                    self.assertIn(kind, KNOWN_BFLOAT16, fault)
        print(f"\nbfloat16 against float32: {calls} calls judged, blamed: {blamed or 'none'}")

    def test_padding_is_no_fault(self) -> None:
        """Padded at the beginning, the two attentions differ in rows that see nothing: no call is wrong."""
        model, inputs = zoo.make("llama")
        found = plumb.diagnose(model, {key: value.flip(1) for key, value in inputs.items()}, "sdpa", "eager")
        self.assertEqual((found.faults, found.faults_of_b, found.sources), ([], [], []))
        self.assertFalse(found)
        assert found.first is not None
        self.assertEqual((found.first["kind"], found.first["module"]), ("parting", "model.layers.0.self_attn"))


class Planted(Zoo):
    def test_first(self) -> None:
        """The fault is the first thing that is named, in its module or one inside it."""
        chosen, seen = [], set()
        for fault in FAULTS:
            if ALL or (fault.what in FAST_FAULTS and fault.what not in seen):
                chosen.append(fault)
                seen.add(fault.what)
        for fault in chosen:
            with self.subTest(model=fault.family, fault=fault.what):
                torch._dynamo.reset()
                model, inputs = zoo.make(fault.family)
                work = (lambda m: zoo.generate(m, inputs)) if fault.generates else inputs  # noqa: B023
                found = plumb.diagnose(model, work, a=planted(fault, model))
                self.assertFalse(found)
                assert found.first is not None
                self.assertEqual((found.first["module"] + ".")[:len(fault.module) + 1], fault.module + ".",
                                 str(found)[:2000])
        print(f"\nplanted faults found first: {len(chosen)} of {len(chosen)}")


class CompileCheck(Zoo):
    """plumb.compile_check: healthy models say so, and what the compiler does wrong is named."""

    @staticmethod
    def asked(name: str, dtype: torch.dtype = torch.float32) -> Tuple[Any, Any]:
        model, inputs = zoo.make(name, dtype=dtype)
        return model, {**inputs, "return_dict": False, **({"use_cache": False} if zoo.FAMILIES[name].generates else {})}

    def test_healthy(self) -> None:
        for name in FAMILIES if ALL else ["qwen3", "mixtral"]:
            for dtype in (torch.float32, torch.bfloat16) if ALL else (torch.float32,):
                with self.subTest(model=name, dtype=dtype):
                    torch._dynamo.reset()
                    report = plumb.compile_check(*self.asked(name, dtype))
                    self.assertTrue(report, str(report)[:3000])
                    self.assertIsNone(report.stage)
                    self.assertGreater(report.graphs, 0)
                    outputs = [row.opinion.verdict for row in report.results.rows if row.kind == "output"]
                    self.assertNotIn("not judged", outputs, str(report)[:3000])

    def test_a_wrong_lowering(self) -> None:
        """The code of rsqrt, which the norms of these models are made of."""
        from torch._inductor import lowering
        aten = torch.ops.aten
        right = lowering.lowerings[aten.rsqrt.default]

        def wrong(x: Any) -> Any:
            return lowering.lowerings[aten.mul.Tensor](right(x), 1.01)
        for name in ("llama", "gemma", "mixtral", "t5") if ALL else ("llama", "mixtral"):
            with self.subTest(model=name):
                torch._dynamo.reset()
                with unittest.mock.patch.dict(lowering.lowerings, {aten.rsqrt.default: wrong}):
                    report = plumb.compile_check(*self.asked(name))
                self.assertFalse(report, str(report)[:3000])
                self.assertEqual(("code generation", "fault"), (report.stage, report.verdict), str(report)[:3000])
                self.assertIn("rsqrt", str(report.node))


class Diagnosed(Zoo):
    """What diagnose leaves behind."""

    def test_nothing_changes(self) -> None:
        model, inputs = zoo.make("bert")
        model.train()
        result = zoo.step(model, inputs)  # leaves gradients
        before = {key: value.clone() for key, value in model.state_dict().items()}
        grads = [parameter.grad for parameter in model.parameters()]
        values = [None if grad is None else grad.clone() for grad in grads]
        state, attention, call = torch.get_rng_state(), model.config._attn_implementation, torch.nn.Module.__call__
        found = plumb.diagnose(model, inputs, "bfloat16 eager", backward=True)
        self.assertGreater(found.judged, 100)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertIs(torch.nn.Module.__call__, call)
        self.assertEqual(model.config._attn_implementation, attention)
        self.assertTrue(model.training)
        for key, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[key]), key)
        for parameter, grad, value in zip(model.parameters(), grads, values):
            self.assertIs(parameter.grad, grad)
            self.assertTrue(grad is None or torch.equal(grad, value))
        self.assertEqual(len(result), 1 + len(grads))

    def test_page(self) -> None:
        model, inputs = zoo.make("llama")
        found = plumb.diagnose(model, inputs, folder=self.root / "kept")
        self.assertIn("a: float32, sdpa attention\nb: float32, eager attention\n", str(found))
        self.assertIn("Nothing is wrong", str(found))
        self.assertTrue(found._repr_html_().startswith("<pre>"))
        self.assertTrue((self.root / "kept" / "a" / "dump.json").exists())
        self.assertLess(found.apart, 1e-5)
        with self.assertRaisesRegex(plumb.Error, "holds a dump already"):
            plumb.diagnose(model, inputs, folder=self.root / "kept")
        with self.assertRaisesRegex(plumb.Error, '"bfloat17" is neither a type'):
            plumb.diagnose(model, inputs, a="bfloat17")
        with self.assertRaisesRegex(plumb.Error, '"dtpye" is not one of'):
            plumb.diagnose(model, inputs, a={"dtpye": torch.bfloat16})
        with self.assertRaisesRegex(plumb.Error, "Linear has no choice of attention"):
            plumb.diagnose(torch.nn.Linear(2, 2), torch.ones(1, 2), a="eager")


def table() -> None:
    """What acc_check makes of a training step of each family, in Markdown."""
    print(f"PyTorch {torch.__version__}, acc_check of a training step on cpu, level mix\n")
    print("| model | type | calls | native | pass | error | skipped |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in zoo.FAMILIES:
        for dtype in (torch.float32, torch.bfloat16):
            model, inputs = zoo.make(name, dtype=dtype)
            with tempfile.TemporaryDirectory() as root:
                debugger = plumb.PrecisionDebugger(dump_path=f"{root}/dump", task="tensor", level="mix")
                debugger.start(model)
                zoo.step(model, inputs)
                debugger.stop()
                debugger.step()
                dump = next(Path(root).rglob("dump.json"))
                subprocess.run([str(PLUMB), "acc_check", "-api_info", str(dump), "-o", root, "--no-torch"],
                               capture_output=True)
                path = next(Path(root).glob("accuracy_checking_result*.csv"))
                rows = list(csv.DictReader(path.open(encoding="utf-8")))
            skipped = [row for row in rows if row["Forward Test Success"].upper() == "SKIP"]
            bad = [row for row in rows if "ERROR" in (row["Forward Test Success"].upper(),
                                                      row["Backward Test Success"].upper())]
            lacking = sum("no operator" in " ".join(map(str, row.values())) for row in skipped)
            print(f"| {name} | {str(dtype)[6:]} | {len(rows)} | {100 * (len(rows) - lacking) / len(rows):.1f} % | "
                  f"{len(rows) - len(bad) - len(skipped)} | {len(bad)} | {len(skipped)} |", flush=True)


if __name__ == "__main__":
    if "--table" in sys.argv:
        table()
    else:
        unittest.main()
