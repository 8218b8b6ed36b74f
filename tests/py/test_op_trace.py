"""What PyTorch's dispatcher runs for the modules of torch.nn and small models, forward and backward: every aten call
of it, by its full name (aten.add.Tensor), must be an operator of plumb and give PyTorch's result."""

import sys
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parent))
import module_zoo  # noqa: E402
import small_models  # noqa: E402
from ops.harness import flatten_outputs, tree_map  # noqa: E402
from ops.native import OWN, Call, Native, Refused  # noqa: E402

# Results that are not determined: memory as it was found, and buffers that other devices do not have.
UNSET = {"empty": 0, "empty_like": 0, "new_empty": 0, "empty_strided": 0, "new_empty_strided": 0,
         "log_sigmoid_forward": 1, "_ctc_loss": 1}
# May leave elements undefined, which plumb refuses.
UNDEFINED = {"resize_as_"}
# Where PyTorch itself computes with constants or series of fewer digits.
LOOSE = {"hardsigmoid_backward": 1e-7, "polygamma": 1e-8}
# Without a dtype these take PyTorch's default, which no call records.
MAKERS = {"ones", "zeros", "full", "eye", "linspace"}


def plain(value: Any) -> Any:
    """Places and layouts say nothing about values."""
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class Tracer(TorchDispatchMode):
    """Runs each call in plumb too, on what its arguments were before it."""

    def __init__(self, native: Native) -> None:
        super().__init__()
        self.native, self.failures, self.calls = native, Counter(), Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (),
                           kwargs: Dict[str, Any] = {}) -> Any:  # noqa: B006
        name, kwargs = str(func), kwargs or {}
        before = tree_map(lambda t: t.detach().clone(memory_format=torch.preserve_format), (args, kwargs))
        out = func(*args, **kwargs)
        if not name.startswith("aten."):
            return out
        self.calls[name] += 1
        places = {a.name for a in func._schema.arguments if a.is_out}  # where results go, not what they are
        before = before[0], {k: v for k, v in before[1].items() if k not in places}
        try:
            why = self.check(name, before, args[0] if out is None else out)  # in place, on a list
        except (Refused, TypeError) as error:
            why = str(error)
        if why:
            self.failures[f"{name}: {why}"] += 1
        return out

    def check(self, name: str, before: Any, out: Any) -> str:
        args, kwargs = before
        short = name.split(".")[1]
        if self.native.is_random(None, name) or short in UNDEFINED:
            return ""
        names = {k: plain(v) for k, v in kwargs.items() if plain(v) is not None}
        if short in MAKERS:
            names.setdefault("dtype", torch.get_default_dtype())
        got, _, _ = self.native.run(Call("", name, [plain(a) for a in args], names), OWN)
        want = flatten_outputs(out)
        if len(got) != len(want):
            return f"{len(got)} results instead of {len(want)}"
        for k, (a, b) in enumerate(zip(got, want)):
            if UNSET.get(short) == k:
                continue
            why = differs(a, b, LOOSE.get(short, 1e-10))
            if why:
                return f"result {k}: {why}"
        return ""


def differs(a: Any, b: Any, limit: float) -> str:
    if not isinstance(b, torch.Tensor) or not isinstance(a, torch.Tensor):
        return "" if a == b or (a is None and isinstance(b, torch.Tensor)) else f"{a!r} instead of {b!r}"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if not b.is_floating_point():
        return "" if torch.equal(a, b) else "other numbers"
    limit = limit if b.dtype == torch.float64 else 1e-4
    scale = float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 0.0
    close = torch.isclose(a, b, rtol=limit, atol=limit * scale + 1e-14, equal_nan=True)
    return "" if bool(close.all()) else f"other numbers, by {float((a - b).abs().max()):.3g}"


def recurrent() -> Iterator[Tuple[Any, List[Any]]]:
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        yield kind(4, 5, num_layers=2, bidirectional=True), [torch.randn(6, 3, 4)]
    for kind in (torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell):
        yield kind(4, 5), [torch.randn(3, 4)]


def optimisers() -> Iterator[Any]:
    for foreach in (False, True):
        for make in (lambda p, f: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, foreach=f),
                     lambda p, f: torch.optim.Adam(p, 0.1, weight_decay=0.1, amsgrad=True, foreach=f),
                     lambda p, f: torch.optim.AdamW(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.Adagrad(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.RMSprop(p, 0.1, centered=True, momentum=0.5, foreach=f),
                     lambda p, f: torch.optim.Adamax(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.NAdam(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.RAdam(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.Rprop(p, 0.1, foreach=f),
                     lambda p, f: torch.optim.Adadelta(p, 0.1, foreach=f)):
            weights = [torch.randn(3, 4).requires_grad_(), torch.randn(5).requires_grad_()]
            yield make(weights, foreach)


class Trace(unittest.TestCase):
    def run_traced(self) -> Tracer:
        tracer = Tracer(Native())
        for name, function, inputs in module_zoo.calls():
            given = [v.tensor.double() if isinstance(v, module_zoo.Fixed) else
                     v.detach().requires_grad_() if v.is_floating_point() else v for v in inputs]
            with tracer:
                out = function(*given)
                out = [o for o in (out if isinstance(out, (list, tuple)) else [out])
                       if isinstance(o, torch.Tensor) and o.requires_grad]
                torch.autograd.backward(out, [torch.randn(o.shape) for o in out])
        for make in small_models.MODELS.values():
            step = make(torch.float64)
            with tracer:
                step()
        for module, inputs in recurrent():
            with tracer:
                out = module(*inputs)
                (out[0] if isinstance(out, tuple) else out).square().sum().backward()
        for optimiser in optimisers():
            for _ in range(2):
                for weight in optimiser.param_groups[0]["params"]:
                    weight.grad = torch.randn(weight.shape)
                with tracer:
                    optimiser.step()
                    optimiser.zero_grad(set_to_none=False)
        return tracer

    def test_all_calls(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(5)
        kept = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            tracer = self.run_traced()
        finally:
            torch.set_default_dtype(kept)
        print(f"\naten names: {len(tracer.calls)}, calls: {sum(tracer.calls.values())}", file=sys.stderr)
        lines: List[str] = [f"{count} x {text}" for text, count in sorted(tracer.failures.items())]
        self.assertFalse(lines, f"{len(lines)} kinds of failures:\n" + "\n".join(lines))


if __name__ == "__main__":
    unittest.main()
