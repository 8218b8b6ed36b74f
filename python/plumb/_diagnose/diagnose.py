"""plumb.diagnose: runs a model in two ways, records both, and says where they part and whose fault that is."""

import contextlib
import itertools
import os
import shutil
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from plumb._capture import config as configuration
from plumb._capture.dump import DumpSink
from plumb._capture.recorder import Recorder
from plumb._compare.notebook import compare
from plumb._core import Error
from plumb._diagnose.result import Diagnosis
from plumb._diagnose.variant import (Variant, Way, compiled, dtype_of, made, moved, place_of, read, tensors_of,
                                     usual)
from plumb._verdict.blame import blame


@contextlib.contextmanager
def _unchanged(model: torch.nn.Module) -> Iterator[None]:
    """Gradients, buffers, mode and random numbers are afterwards what they were."""
    grads = [(parameter, parameter.grad) for parameter in model.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    with torch.random.fork_rng():
        try:
            for parameter, _ in grads:
                parameter.grad = None
            yield
        finally:
            for parameter, grad in grads:
                parameter.grad = grad
            with torch.no_grad():
                for buffer, before in buffers:
                    if not torch.equal(buffer, before):
                        buffer.copy_(before)
            for module, training in modes:
                module.training = training


def _loss(result: Any) -> torch.Tensor:
    """The model's own, or the mean square of what it gives."""
    loss = getattr(result, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    found = [tensor.float().square().mean() for tensor in tensors_of(result) if tensor.requires_grad]
    if not found:
        raise Error("diagnose: backward=True, but no output of the model has a gradient")
    return sum(found[1:], found[0])


def _call(run: Callable[..., Any], inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return run(**inputs)
    return run(*inputs) if isinstance(inputs, (list, tuple)) else run(inputs)


def _record(variant: Variant, model: torch.nn.Module, inputs: Any, backward: bool, folder: str
            ) -> Tuple[List[torch.Tensor], Dict[str, str], List[str]]:
    """Runs it once. The outputs, what was not recorded, and what went wrong meanwhile."""
    model = made(variant, model)
    settings = configuration.configure(None, task="tensor", level="mix", dump_path=folder)
    sink = DumpSink(settings, lambda step: folder)
    recorder = Recorder(sink, True, settings.risk(), settings, True, itself=True)
    with _unchanged(model):
        run = compiled(variant, model)
        recorder.start(0, run if isinstance(run, torch.nn.Module) else model)
        try:
            with contextlib.nullcontext() if backward else torch.no_grad():
                if callable(inputs) and not isinstance(inputs, (torch.Tensor, Mapping)):
                    result = inputs(run)
                else:
                    result = _call(run, moved(inputs, dtype_of(model), place_of(variant, model)))
                if backward:
                    _loss(result).backward()
        finally:
            recorder.next_step()
            sink.end()
    outputs = [tensor.detach().double().cpu() for tensor in tensors_of(result)]
    idle = {name: why for name, why in recorder.modules.idle.items()}
    return outputs, idle, [*recorder.notes, *sink.errors]


def _apart(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """The largest relative distance of outputs."""
    most = float("nan")
    for a, b in itertools.zip_longest(one, other):
        if a is None or b is None or a.shape != b.shape:
            return float("inf")
        size = float(b.norm())
        away = float((a - b).norm()) / size if size else float((a - b).norm() != 0)
        most = away if not away <= most else most
    return most


def _nan(side: str, outputs: Sequence[torch.Tensor]) -> List[str]:
    bad = sum(int(output.isnan().sum()) for output in outputs)
    return [f"{bad} of the {sum(output.numel() for output in outputs)} numbers that {side} gives are NaN"] * bool(bad)


def diagnose(model: torch.nn.Module, inputs: Any, a: Way = None, b: Way = None, *, backward: bool = False,
             folder: Optional[Union[str, "os.PathLike[str]"]] = None,
             arithmetic: Union[str, Sequence[str]] = "") -> Diagnosis:
    """Runs the model in the ways a and b, and says where a parts from b and whose fault that is.

    inputs: what the model is called with: a dict of named arguments, a tuple or list, one tensor; or a
    function that is given the model and runs it (`lambda model: model.generate(ids)`).
    a, b: "bfloat16", "cuda:0", "eager" or "sdpa" (attention of Transformers), "compiled" or "compiled:BACKEND",
    several of them ("bfloat16 sdpa"), a dict with dtype, device, attention, compile and model, or another model.
    What is not said is as in the model. Without a and b: the model as it is against float32 with eager attention;
    one that is so already in bfloat16 against itself. Where only one is given, the other is the model as it is.
    backward: a training step; the loss is result.loss, or the mean square of the outputs.
    folder: keeps both dumps, in a and b there; else they live as long as the result.
    arithmetic: cheaper arithmetic that is meant, as for plumb.blame.

    The model, its gradients and buffers, and random numbers are afterwards as they were; both ways draw the same."""
    if not isinstance(model, torch.nn.Module):
        raise Error(f"diagnose: the model is a {type(model).__name__}, not a torch.nn.Module")
    ways = usual(model) if a is None and b is None else [read(a), read(b)]
    if folder is None:
        root = tempfile.mkdtemp(prefix="plumb-")
        try:
            return _diagnose(model, inputs, ways, backward, root, arithmetic, root)
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise
    return _diagnose(model, inputs, ways, backward, os.path.abspath(os.fspath(folder)), arithmetic, None)


def _diagnose(model: torch.nn.Module, inputs: Any, ways: List[Variant], backward: bool, root: str,
              arithmetic: Union[str, Sequence[str]], temporary: Optional[str]) -> Diagnosis:
    folders = [os.path.join(root, name) for name in ("a", "b")]
    for path in folders:
        if os.path.exists(os.path.join(path, "dump.json")):
            raise Error(f"diagnose: {path} holds a dump already")
    found = [_record(way, model, inputs, backward, path) for way, path in zip(ways, folders)]
    not_recorded = {f"{side}: {name}": why for side, (_, idle, _) in zip("ab", found)
                    for name, why in idle.items()}
    problems = [f"{side}: {line}" for side, (_, _, lines) in zip("ab", found) for line in lines]
    return Diagnosis(ways[0].says(model), ways[1].says(model), folders,
                     blame(*folders, arithmetic=arithmetic), blame(*reversed(folders), arithmetic=arithmetic),
                     compare(*folders), _apart(found[0][0], found[1][0]),
                     _nan("a", found[0][0]) + _nan("b", found[1][0]), not_recorded, problems, temporary)
