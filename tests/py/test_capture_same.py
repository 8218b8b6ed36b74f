"""A captured model computes what it computes without capture, to the last bit."""

import copy
import io
import pickle
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple

sys.path.insert(0, str(Path(__file__).parent))
import gpt_model  # noqa: E402
import torch  # noqa: E402
import torch.fx  # noqa: E402
from capture_case import CaptureTest  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

Case = Callable[[], Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]]


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 8),
                                  nn.Dropout(0.5, inplace=True), nn.Hardswish(inplace=True))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        y.mul_(2).add_(x)
        y[:, 1:3] = y[:, 3:5] * 3
        y.narrow(1, 0, 2).relu_()
        return y


class Shared(nn.Module):
    """Tied weights, a module called three times, outputs in a dict, an argument by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.twice = nn.Linear(8, 8)
        self.head = nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def part(self, x: torch.Tensor, scale: float = 1.0) -> dict:
        return {"hidden": self.twice(x) * scale, "skip": (x, None)}

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for _ in range(3):
            out = self.part(x, scale=1.5)
            x = torch.tanh(out["hidden"]) + out["skip"][0]
        return self.head(input=x)


class Checkpointed(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 8))
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, self.first(x), **self.options)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * grad


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Square.apply(self.fc(x)).clamp(max=4).topk(3, dim=-1)[0]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True)
        self.gru = nn.GRU(12, 5)
        self.cell = nn.RNNCell(5, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.lstm(x)
        z, h = self.gru(y)
        return self.cell(z[0]) + h.sum()


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def gpt(**more: Any) -> Case:
    def make() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
        model, ids = gpt_model.make(gpt_model.Config(layers=1, dropout=0.1, context=8, **more))
        return model, lambda m: gpt_model.loss(m, ids)
    return make


def mixed() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model, ids = gpt_model.make(gpt_model.Config(layers=1, context=8))

    def objective(m: nn.Module) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = m(ids[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    return model, objective


def of(model: Callable[[], nn.Module], *shape: int) -> Case:
    def make() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
        made, x = model(), random(*shape)
        return made, lambda m: m(x).square().mean()
    return make


def attention() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model, x = nn.ModuleDict({"mha": nn.MultiheadAttention(8, 2, dropout=0.2)}), random(5, 3, 8)
    return model, lambda m: m["mha"](x, x, x)[0].square().mean()


def double_backward() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)), random(4, 8).requires_grad_()

    def objective(m: nn.Module) -> torch.Tensor:
        grad, = torch.autograd.grad(m(x).sum(), x, create_graph=True)
        return (grad.norm(dim=1) - 1).square().mean()
    return model, objective


def twice() -> Tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), random(4, 8)

    def objective(m: nn.Module) -> torch.Tensor:
        out = m(x)
        out.sum().backward(retain_graph=True)
        return out.square().mean()
    return model, objective


CASES = {
    "gpt": gpt(),
    "in place": of(InPlace, 4, 8),
    "shared": lambda: (Shared(), lambda m: m(torch.arange(12).view(3, 4)).square().mean()),
    "checkpoint": of(lambda: Checkpointed(use_reentrant=True), 4, 8),
    "checkpoint without reentry": of(lambda: Checkpointed(use_reentrant=False), 4, 8),
    "own function": of(Custom, 4, 8),
    "recurrent": of(Recurrent, 3, 4, 8),
    "convolutions": of(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
                                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)), 2, 3, 8, 8),
    "encoder": of(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, 3, 8),
    "attention": attention,
    "wrapped": of(lambda: nn.DataParallel(nn.Sequential(nn.Linear(8, 8), nn.GELU())), 4, 8),
    "autocast": mixed,
    "double backward": double_backward,
    "two backwards": twice,
}


class SameTest(CaptureTest):
    def train(self, case: Case, optimiser: type, inside: bool, **settings: Any) -> List[torch.Tensor]:
        """Losses, gradients and weights of three steps, and where the random numbers stand."""
        torch.manual_seed(3)
        model, objective = case()
        optimise = optimiser(model.parameters(), lr=0.05)
        debugger = self.debugger(**settings) if settings else None
        seen: List[torch.Tensor] = []
        for _ in range(3):
            optimise.zero_grad()
            if debugger:
                debugger.start(model)
            value = objective(model)
            value.backward()
            if inside:
                optimise.step()
            if debugger:
                debugger.stop()
                debugger.step()
            if not inside:
                optimise.step()
            seen.append(value.detach().clone())
            seen += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        seen += [p.detach().clone() for p in model.parameters()] + [b.clone() for b in model.buffers()]
        if debugger:
            for step in range(3):
                self.assertEqual(self.dump(step).problems(), "")
                self.assertTrue(any("backward" in name for name in self.dump(step).data))
        return [*seen, torch.get_rng_state()]

    def check(self, name: str, optimiser: type, **settings: Any) -> None:
        inside = optimiser is torch.optim.Adam  # its calls are recorded too
        plain = self.train(CASES[name], optimiser, inside)
        captured = self.train(CASES[name], optimiser, inside, **settings)
        self.assertEqual(len(plain), len(captured))
        for i, (a, b) in enumerate(zip(plain, captured)):
            self.assertTrue(torch.equal(a, b), f"{name} {settings}: value {i} differs")

    def test_training(self) -> None:
        for name in CASES:
            with self.subTest(name):
                self.check(name, torch.optim.SGD, level="mix")

    def test_modes(self) -> None:
        for settings in ({"level": "L0"}, {"level": "L1", "section": {"summary_mode": "md5"}},
                         {"level": "mix", "task": "tensor"}, {"level": "mix", "task": "structure"},
                         {"level": "mix", "section": {"summary_mode": "xor"}}, {"level": "mix", "risk_level": "CORE"}):
            with self.subTest(settings):
                self.check("gpt", torch.optim.Adam, **settings)
                self.check("in place", torch.optim.Adam, **settings)

    def test_inference_takes_the_fused_path(self) -> None:
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        model, x = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), random(2, 3, 8)
        used = []
        fused = torch._transformer_encoder_layer_fwd
        torch._transformer_encoder_layer_fwd = lambda *args: (used.append(1), fused(*args))[1]
        self.addCleanup(setattr, torch, "_transformer_encoder_layer_fwd", fused)
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                plain = model(x)
                self.assertEqual(len(used), 2)
                with self.capture(model, level="mix"):
                    captured = model(x)
            self.assertTrue(torch.equal(plain, captured))
            self.assertEqual(len(used), 4)
            used.clear()
            self.assertIn("Module.layers.1.TransformerEncoderLayer.forward.0", self.dump().data)

    def test_copies_and_pickles_are_models_of_their_own(self) -> None:
        torch.manual_seed(0)
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), random(2, 4)
        with self.capture(model, level="mix"):
            clone = copy.deepcopy(model)
            with torch.no_grad():
                clone[0].weight.mul_(2)
            self.assertFalse(torch.equal(clone(x), model(x)))
            again = pickle.loads(pickle.dumps(model))
            self.assertTrue(torch.equal(again(x), model(x)))
            torch.save(model, io.BytesIO())
            activation = pickle.loads(pickle.dumps(F.relu))
            self.assertTrue(torch.equal(activation(x), x.clamp(min=0)))

    def test_scripting_and_tracing(self) -> None:
        def scripted(x: torch.Tensor) -> torch.Tensor:
            return F.relu(x) + torch.tanh(x)
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), random(2, 4)
        with self.capture(model, level="mix"):
            compiled = torch.jit.script(scripted)
            traced = torch.jit.trace(model, x)
            scripted_model = torch.jit.script(model)
            self.assertTrue(torch.equal(compiled(x), scripted(x)))
            self.assertTrue(torch.equal(traced(x), scripted_model(x)))
        self.assertNotIn("detach", str(traced.graph))

    def test_subclasses_and_modes_see_only_the_script(self) -> None:
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        seen: List[str] = []
        handled = {F.relu: lambda x: "mine", torch.Tensor.add: lambda x, y: "my sum"}

        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                seen.append(getattr(function, "__name__", str(function)))
                if function in handled:
                    return handled[function](*args)
                return super().__torch_function__(function, types, args, kwargs or {})

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        class FunctionMode(TorchFunctionMode):
            def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                seen.append(f"mode: {getattr(function, '__name__', function)}")
                return function(*args, **(kwargs or {}))

        def script() -> List[Any]:
            with FunctionMode(), FunctionMode():
                F.linear(F.relu(torch.ones(3, 3)), torch.ones(3, 3, requires_grad=True)).sum().backward()
            x = torch.arange(3.).as_subclass(Mine)
            results = [F.relu(x), x.add(x), torch.exp(x).tolist()]
            with Mode():
                leaf = torch.ones(3, requires_grad=True)
                torch.tanh(leaf).sum().backward()
            return results
        expected, plain = script(), list(seen)
        seen.clear()
        with self.capture():
            self.assertEqual(script(), expected)
        self.assertEqual(seen, plain)
        self.assertEqual(expected[:2], ["mine", "my sum"])

    def test_symbolic_tracing(self) -> None:
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), random(2, 4)
        with self.capture(model, level="mix"):
            traced = torch.fx.symbolic_trace(model)
            self.assertTrue(torch.equal(traced(x), model(x)))
        self.assertTrue(torch.equal(traced(x), model(x)))

    def test_everything_is_put_back(self) -> None:
        owners = (torch, torch.Tensor, F, torch.nn.Module, torch.linalg, torch.distributed, torch.jit)
        before = [dict(vars(owner)) for owner in owners]
        hooks = torch.ones(2, requires_grad=True)
        model = nn.Sequential(nn.Linear(2, 2))
        state = {key: (dict(value) if isinstance(value, dict) else value) for key, value in vars(model[0]).items()}
        for _ in range(2):
            with self.capture(model, level="mix"):
                self.assertIsNot(torch.add, before[0]["add"])
                self.assertEqual(torch.add, before[0]["add"])
                self.assertIn(torch.add, {before[0]["add"]: 1})
                (model(hooks) * 2).sum().backward()
        for owner, old in zip(owners, before):
            now = dict(vars(owner))
            self.assertEqual(now.keys(), old.keys())
            self.assertTrue(all(now[key] is old[key] for key in old), owner)
        self.assertEqual({key: (dict(value) if isinstance(value, dict) else value)
                          for key, value in vars(model[0]).items()}, state)

    def test_the_script_gets_its_own_exceptions(self) -> None:
        model = nn.Sequential(nn.Linear(4, 4))
        with self.capture(model, level="mix") as debugger:
            with self.assertRaisesRegex(RuntimeError, "shape"):
                model(random(2, 3))
            with self.assertRaises(TypeError):
                torch.add()
            out = model(random(2, 4))
        self.assertTrue(any(name.startswith("Module.0.Linear.forward") for name in self.dump().data))
        self.assertEqual(out.shape, (2, 4))
        self.assertFalse(debugger._recorder.local.quiet)


if __name__ == "__main__":
    unittest.main()
