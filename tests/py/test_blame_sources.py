"""What plumb blame can look at besides calls of functions: modules of dumps at level L0, captures of
modules, graphs, operators of begin_dump. PyTorch is the device; faults are planted into the files
that it left behind."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).parent))

import module_zoo  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from capture_case import BUILD  # noqa: E402
from ge_dump import Op, Tensor, fx_folder, ge_folder, write_fx, write_ge, write_graph  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import plumb  # noqa: E402

PLUMB = str(BUILD / "plumb")


def blame(*words: Any, status: Optional[int] = None) -> Dict[str, Any]:
    done = subprocess.run([PLUMB, "blame", *map(str, words), "--format", "json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    if status is not None and done.returncode != status:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def judged(found: Dict[str, Any]) -> int:
    count: int = found["calls"] - found["verdicts"]["not judged"]
    return count


def first(found: Dict[str, Any]) -> str:
    """The worst call."""
    name: str = found["faults"][0]["call"] if found["faults"] else ""
    return name


def named(found: Dict[str, Any]) -> List[str]:
    """Faults and cheaper arithmetic."""
    return [one["call"] for one in found["faults"] + found["suspicious"] if one["verdict"] != "not judged"]


def doubted(found: Dict[str, Any]) -> List[str]:
    return [one["call"] for one in found["suspicious"] if one["verdict"] == "not judged"]


def reasons(found: Dict[str, Any]) -> str:
    return "; ".join(f"{one['count']}: {one['what']}" for one in found["not_judged"])


# -- What goes wrong -------------------------------------------------------------------------------

def tile(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[:max(1, flat.numel() // 16)] = 0
    return flat.reshape(t.shape)


def sign(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[flat.abs().argmax()] *= -1
    return flat.reshape(t.shape)


def nan(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[flat.numel() // 2] = float("nan")
    return flat.reshape(t.shape)


def every_other(t: torch.Tensor) -> torch.Tensor:
    return t * torch.where(torch.arange(t.numel()).reshape(t.shape) % 2 == 0, 1.0, 0.97).to(t.dtype)


FAULTS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled": lambda t: t * 1.01,
    "shifted": lambda t: t + 0.05 * t.float().abs().mean().to(t.dtype),
    "tile": tile,
    "rolled": lambda t: t.roll(1, 0) if t.dim() else t * 1.1,
    "sign": sign,
    "nan": nan,
    "doubled": lambda t: t * 2,
    "every other": every_other,
    "smaller type": lambda t: t.bfloat16().to(t.dtype) if t.dtype == torch.float32 else t * 1.02,
}


# -- Models ----------------------------------------------------------------------------------------

class Llama(nn.Module):
    """The norm as others write it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.variance_epsilon = 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if x.dtype == torch.float64 else x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * y.to(x.dtype)


LlamaRMSNorm = type("LlamaRMSNorm", (Llama,), {})


class Zoo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 32, padding_idx=3)
        self.conv = nn.Conv1d(32, 32, 3, padding=1, groups=4)
        self.batch = nn.BatchNorm1d(32)
        self.gelu = nn.GELU()
        self.layer = nn.LayerNorm(32, eps=1e-6)
        self.up = nn.Linear(32, 48)
        self.drop = nn.Dropout(0.1)
        self.softmax = nn.Softmax(dim=-1)
        self.group = nn.GroupNorm(4, 48)
        self.pool = nn.AvgPool1d(2)
        self.leaky = nn.LeakyReLU(0.2)
        self.rms = LlamaRMSNorm(48)
        self.out = nn.Linear(48, 10)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, words: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        x = self.batch(self.conv(self.embedding(words).transpose(1, 2)))
        x = self.drop(self.up(self.layer(self.gelu(x.transpose(1, 2).contiguous()))))
        x = self.group((x + self.softmax(x)).transpose(1, 2))
        x = self.rms(self.leaky(self.pool(x)).mean(-1))
        loss: torch.Tensor = self.loss(self.out(x), classes)
        return loss


class Attention(nn.Module):
    def __init__(self, fused: bool, fault: float) -> None:
        super().__init__()
        self.fused, self.fault = fused, fault

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if self.fused:
            fused = getattr(F, "scaled_dot_product_attention", None)
            y: torch.Tensor = fused(q, k, v) if fused else F._scaled_dot_product_attention(q, k, v)[0]
        else:
            y = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
        return y * self.fault


class Attending(nn.Module):
    def __init__(self, fused: bool, fault: float) -> None:
        super().__init__()
        self.into, self.head = nn.Linear(16, 32), nn.Linear(32, 5)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(32), "qkv": nn.Linear(32, 96), "attention": Attention(fused, fault if n == 1 else 1.0),
            "out": nn.Linear(32, 32), "up": nn.Linear(32, 64), "act": nn.GELU(), "down": nn.Linear(64, 32)})
            for n in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.into(x)
        for block in self.blocks:
            x = x + block["out"](block["attention"](*block["qkv"](block["norm"](x)).chunk(3, -1)))
            x = x + block["down"](block["act"](block["up"](x)))
        y: torch.Tensor = self.head(x)
        return y


MODULES = ("embedding.Embedding", "conv.Conv1d", "batch.BatchNorm1d", "gelu.GELU", "layer.LayerNorm", "up.Linear",
           "drop.Dropout", "softmax.Softmax", "group.GroupNorm", "pool.AvgPool1d", "leaky.LeakyReLU",
           "rms.LlamaRMSNorm", "out.Linear", "loss.CrossEntropyLoss")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def make(self, dtype: torch.dtype = torch.float32, training: bool = True) -> nn.Module:
        torch.manual_seed(0)
        model = Zoo().to(dtype).train(training)
        model.drop.eval()
        return model

    def data(self) -> Sequence[torch.Tensor]:
        torch.manual_seed(1)
        return torch.randint(0, 40, (4, 16)), torch.randint(0, 10, (4,))

    def record(self, name: str, model: nn.Module, steps: int = 1, level: str = "L0",
               run: Optional[Callable[[], Any]] = None, **how: Any) -> Path:
        """As a dump, or with how as a capture of modules."""
        path = self.root / name
        debugger = plumb.PrecisionDebugger(dump_path=str(path), model=model, **how) if how else \
            plumb.PrecisionDebugger(dump_path=str(path), task="tensor", level=level)
        self.addCleanup(debugger._close_quietly)
        for _ in range(steps):
            if how:
                debugger.start()
            else:
                debugger.start(model)
            if run is not None:
                run()
            else:
                model(*self.data()).backward()
            debugger.stop()
            debugger.step()
        debugger._close_quietly()
        return path

    def folder(self, dump: Path, step: int = 0) -> Path:
        found, = (dump / f"step{step}").iterdir()
        return found

    def copy(self, dump: Path, settings: bool = True) -> Path:
        target = self.root / "copy"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(dump, target)
        for path in [] if settings else target.rglob("*modules.json"):
            path.unlink()
        return target

    def change(self, dump: Path, name: str, fault: Callable[[torch.Tensor], torch.Tensor], step: int = 0) -> None:
        path = self.folder(dump, step) / "dump_tensor_data" / f"{name}.pt"
        before = torch.load(path)
        after = fault(before).contiguous()
        self.assertFalse(torch.equal(before, after), name)
        torch.save(after, path)


# -- Modules of dumps ------------------------------------------------------------------------------

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
        with patched(F, "linear", halves):
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
            with patched(F, "layer_norm", lambda *a, real=F.layer_norm: real(*a) * scale):
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


@contextlib.contextmanager
def patched(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, before)


# -- Captures of modules ---------------------------------------------------------------------------

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
