"""plumb blame on modules of dumps at level L0. PyTorch is the device; faults are planted into the
files that it left behind."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).parent))

import module_zoo  # noqa: E402
import torch  # noqa: E402
from blame_case import (FAULTS, MODULES, PLUMB, Attending, Case, blame, doubted, first, judged, named,  # noqa: E402
                        reasons)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import plumb  # noqa: E402


class Modules(Case):
    def test_right(self) -> None:
        """Every module, forward, backward and parameters; with its settings and without."""
        dump = self.record("right", self.make())
        found = blame(dump, status=0)
        self.assertEqual((found["calls"], judged(found)), (36, 35), reasons(found))
        self.assertEqual(reasons(found), "1: no gradient was recorded")  # of the words
        found = blame(self.copy(dump, settings=False), status=0)
        self.assertEqual(judged(found), 34, reasons(found))
        self.assertIn("its padding_idx was not recorded", reasons(found))
        self.assertEqual((named(found), doubted(found)), ([], []))

    def test_right_variants(self) -> None:
        """bfloat16, float64, statistics of training, autocast, another order of summation: nobody is
        blamed. What rounds on the way is cheaper arithmetic."""
        for name, model in (("bfloat16", self.make(torch.bfloat16)), ("float64", self.make(torch.float64)),
                            ("eval", self.make(training=False))):
            with self.subTest(name):
                found = blame(self.record(name, model), status=0)
                self.assertEqual(judged(found), 35, reasons(found))
        model = nn.Sequential(nn.Conv1d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(160, 20))
        x = torch.randn(5, 8, 12)

        def cast() -> None:
            with torch.autocast("cpu", torch.bfloat16):
                y = model(x)
            y.float().pow(2).mean().backward()
        found = blame(self.record("autocast", model, run=cast), status=0)
        self.assertEqual((found["calls"], judged(found)), (10, 9), reasons(found))

        def halves(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            n = x.shape[-1] // 2
            return x[..., n:] @ weight[:, n:].t() + (x[..., :n] @ weight[:, :n].t() + bias)
        with mock.patch.object(F, "linear", halves):
            self.assertEqual(named(blame(self.record("halves", self.make()), status=0)), [])

    def test_faults(self) -> None:
        """Nine kinds in every module: named first, with settings; named or doubted, without."""
        dump = self.record("right", self.make())
        planted = missed = 0
        for module in MODULES:
            name = f"Module.{module}.forward.0"
            for kind, fault in FAULTS.items():
                if (module, kind) in (("loss.CrossEntropyLoss", "sign"), ("loss.CrossEntropyLoss", "every other")):
                    continue  # of one number they are nothing of their own
                for settings in (True, False):
                    if not settings and (kind not in ("scaled", "tile", "nan") or "Dropout" in module):
                        continue  # whether it was on is not recorded
                    copy = self.copy(dump, settings)
                    with contextlib.suppress(AssertionError):
                        self.change(copy, f"{name}.output.0", fault)
                        found = blame(copy)
                        planted += 1
                        right = named(found)[:1] == [name] if settings else \
                            [name] in (named(found)[:1], doubted(found)[:1])
                        missed += not right
                        if not right:
                            print("missed:", name, kind, settings, found["faults"][:1])
        self.assertEqual(missed, 0, f"of {planted}")
        self.assertGreater(planted, 140)

    def test_dropout(self) -> None:
        """On it is random; where nobody noted that, what passes its input on was off."""
        model = self.make()
        model.drop.train()
        dump = self.record("on", model)
        self.assertIn("2: the results are random", reasons(blame(dump, status=0)))
        self.assertIn("2: whether its dropout was on is not recorded",
                      reasons(blame(self.copy(dump, settings=False), status=0)))

    def test_zoo(self) -> None:
        """All modules of PyTorch: nobody is blamed."""
        found = {one: (function, inputs) for one, function, inputs in module_zoo.calls()
                 if isinstance(function, nn.Module)}
        model = nn.ModuleDict({name.replace(".", "_"): module for name, (module, _) in found.items()})

        def run() -> None:
            for module, inputs in found.values():
                given = [one.tensor if isinstance(one, module_zoo.Fixed) else
                         one.clone().requires_grad_() * 1 if one.is_floating_point() else one for one in inputs]
                output = module(*given)
                first = output if isinstance(output, torch.Tensor) else output[0]
                if first.requires_grad:
                    (first * torch.randn(first.shape)).sum().backward()
        torch.manual_seed(2)
        dump = self.record("zoo", model, run=run)
        right = blame(dump, status=0)
        self.assertEqual((named(right), doubted(right)), ([], []))
        self.assertGreater(judged(right), 300, reasons(right))
        without = blame(self.copy(dump, settings=False), status=0)
        self.assertGreater(judged(without), 250, reasons(without))

    def test_pairs(self) -> None:
        """Against another run: plain or fused attention, bfloat16 or float32. What is not known, attention
        above all, is judged by its jump."""
        def run(name: str, fused: bool = False, dtype: torch.dtype = torch.float32, fault: float = 1.0) -> Path:
            torch.manual_seed(3)
            model = Attending(fused, fault).to(dtype)
            x = torch.randn(4, 12, 16, generator=torch.Generator().manual_seed(4)).to(dtype)
            return self.record(name, model, run=lambda: model(x).float().pow(2).mean().backward())
        plain, fused, bfloat16 = run("plain"), run("fused", True), run("bfloat16", dtype=torch.bfloat16)
        for target in (fused, bfloat16):
            found = blame(target, plain, status=0)
            self.assertGreaterEqual(found["by_jump"], 6)
        found = blame(run("wrong", fault=1.05), plain, status=1)
        self.assertEqual([(one["call"], one["by_jump"]) for one in found["faults"]],
                         [("Module.blocks.1.attention.Attention.forward.0", True)])

    def test_gradients(self) -> None:
        """Of inputs and of parameters."""
        dump = self.record("right", self.make())
        for name in ("up.Linear.backward.0.output.0", "layer.LayerNorm.backward.0.output.0",
                     "conv.Conv1d.parameters_grad.0.weight", "layer.LayerNorm.parameters_grad.0.bias",
                     "embedding.Embedding.parameters_grad.0.weight"):
            with self.subTest(name):
                copy = self.copy(dump)
                self.change(copy, f"Module.{name}", FAULTS["scaled"])
                found = blame(copy, status=0 if "parameters" in name else 1)
                call, _, result = name.partition(".0.")
                if "parameters" not in name:
                    self.assertEqual(first(found), f"Module.{call}.0")
                    continue
                self.assertEqual(doubted(found), [f"Module.{call}.0"])  # something else may use them
                self.assertEqual(found["suspicious"][0]["result"], f"gradient of {result}")

    def test_shared_parameters(self) -> None:
        """Weights that two modules have in common, or that a function uses too: nobody is blamed."""
        class Tied(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.words, self.head = nn.Embedding(40, 32), nn.Linear(32, 40, bias=False)
                self.head.weight = self.words.weight
                self.last = nn.Linear(40, 40)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y: torch.Tensor = self.last(self.head(self.words(x)))
                return y + F.linear(y, self.last.weight)
        torch.manual_seed(0)
        model, x = Tied(), torch.randint(0, 40, (4, 9))
        found = blame(self.record("tied", model, run=lambda: model(x).pow(2).mean().backward()), status=0)
        self.assertIn("2: the parameter is shared with another module", reasons(found))
        self.assertEqual(doubted(found), ["Module.last.Linear.parameters_grad.0"])

    def test_settings_matter(self) -> None:
        """A norm with another eps than it was constructed with is wrong; where that was not recorded,
        it may be right."""
        model = self.make()
        model.layer.eps = 1e-6
        dump = self.record("eps", model)
        path = self.folder(dump) / "modules.json"
        settings = json.loads(path.read_text())
        self.assertEqual(settings["Module.layer.LayerNorm.forward.0"]["eps"], 1e-6)
        settings["Module.layer.LayerNorm.forward.0"]["eps"] = 1e-3
        path.write_text(json.dumps(settings))
        self.assertEqual(first(blame(dump, status=1))[:22], "Module.layer.LayerNorm")
        path.unlink()
        self.assertEqual(named(blame(dump, status=0)), [])

    def test_other_class(self) -> None:
        """A class of the same name that does something else is no fault."""
        other = type("LayerNorm", (nn.LayerNorm,), {"forward": lambda self, x: 1.5 * nn.LayerNorm.forward(self, x)})
        model = self.make()
        model.layer = other(32)
        found = blame(self.record("other", model), status=0)
        self.assertIn("Module.layer.LayerNorm.forward.0", doubted(found))
        why, = (one["why"] for one in found["suspicious"] if "layer.LayerNorm.forward" in one["call"])
        self.assertIn("has the name of one of PyTorch's, but is another", why)

    def test_hooks(self) -> None:
        """What a hook makes of an output is not the module's fault."""
        model = self.make()
        model.up.register_forward_hook(lambda module, inputs, output: output * 1.5)
        found = blame(self.record("hooks", model), status=0)
        self.assertIn("Module.up.Linear.forward.0", doubted(found))

    def test_mix(self) -> None:
        """The call inside is the culprit, not the module around it."""
        dump = self.record("mix", self.make(), level="mix")
        self.assertEqual(named(blame(dump, status=0)), [])
        for name in ("Functional.layer_norm.0.forward.output.0", "Module.layer.LayerNorm.forward.0.output.0"):
            self.change(dump, name, FAULTS["scaled"])
        found = blame(dump, status=1)
        self.assertEqual([one["call"] for one in found["faults"]], ["Functional.layer_norm.0.forward"])

    def test_several_calls(self) -> None:
        """A module that is called twice: each call by itself; what its parameters get is of both."""
        model = nn.ModuleDict({"fc": nn.Linear(24, 24)})
        x = torch.randn(8, 24)
        dump = self.record("twice", model, run=lambda: model["fc"](model["fc"](x)).sum().backward())
        found = blame(dump, status=0)
        self.assertIn("it is the sum over several calls of the module", reasons(found))
        self.change(dump, "Module.fc.Linear.forward.1.output.0", FAULTS["tile"])
        self.assertEqual(first(blame(dump, status=1)), "Module.fc.Linear.forward.1")

    def test_steps_and_order(self) -> None:
        """Two steps against one with its calls in another order, and one missing: the fault is named, with
        its step."""
        dump, golden = self.record("two", self.make(), steps=2), self.record("golden", self.make(), steps=2)
        for step in (0, 1):
            path = self.folder(golden, step) / "dump.json"
            tree = json.loads(path.read_text())
            names = list(tree["data"])
            names.remove("Module.softmax.Softmax.forward.0")
            tree["data"] = {name: tree["data"][name] for name in reversed(names)}
            path.write_text(json.dumps(tree))
        self.assertEqual(named(blame(dump, golden, status=0)), [])
        self.change(dump, "Module.up.Linear.forward.0.output.0", FAULTS["scaled"], step=1)
        found = blame(dump, golden, status=1)
        self.assertEqual((first(found), found["faults"][0]["step"]), ("Module.up.Linear.forward.0", 1))

    def test_ranks(self) -> None:
        dump = self.record("ranks", self.make())
        there = self.folder(dump)
        for rank in (0, 1):
            shutil.copytree(there, there.parent / f"rank{rank}")
        shutil.rmtree(there)
        torch.save(torch.load(there.parent / "rank1/dump_tensor_data/Module.up.Linear.forward.0.output.0.pt") * 1.01,
                   there.parent / "rank1/dump_tensor_data/Module.up.Linear.forward.0.output.0.pt")
        found = blame(dump, status=1)
        self.assertEqual([(one["call"], one["rank"]) for one in found["faults"]], [("Module.up.Linear.forward.0", 1)])

    def test_damaged_settings(self) -> None:
        """What cannot be read is as if it were not there."""
        dump = self.record("damaged", self.make())
        path = self.folder(dump) / "modules.json"
        text = path.read_text()
        for bad in ("", "[]", text[:len(text) // 2], '{"Module.up.Linear.forward.0": 3}',
                    text.replace('"eps": 1e-06', '"eps": ' + "[" * 600 + "]" * 600)):
            path.write_text(bad)
            found = blame(dump, status=0)
            self.assertGreaterEqual(judged(found), 32, bad[:20])

    def test_statistics(self) -> None:
        """Without values there is the jump, and nothing else is claimed."""
        def statistics(name: str, scale: float = 1.0) -> Path:
            model = self.make()
            path = self.root / name
            debugger = plumb.PrecisionDebugger(dump_path=str(path), task="statistics", level="L0")
            self.addCleanup(debugger._close_quietly)
            with mock.patch.object(F, "layer_norm", lambda *a, real=F.layer_norm: real(*a) * scale):
                debugger.start(model)
                model(*self.data()).backward()
                debugger.stop()
                debugger.step()
            debugger._close_quietly()
            return path
        right, other, wrong = statistics("right"), statistics("other"), statistics("wrong", 1.05)
        found = blame(right, other, status=0)
        self.assertEqual(found["by_jump"], judged(found))
        found = blame(wrong, other, status=1)
        self.assertEqual(first(found), "Module.layer.LayerNorm.forward.0")
        self.assertTrue(all(one["by_jump"] for one in found["faults"]))
        done = subprocess.run([PLUMB, "blame", str(right)], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("its tensors were not recorded", done.stdout)


if __name__ == "__main__":
    unittest.main()
