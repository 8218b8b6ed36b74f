"""Records what a PyTorch program calls, as a dump.json of level L1 with the task statistics or tensor.

Every function of torch.nn.functional and torch and every method of a tensor that the pre-check knows by name is wrapped
while the recorder is on. Only the outermost call counts. Inputs are recorded as they are before the call, so that
operators that write into them show what they got. Gradients of outputs are taken where autograd passes them; those of
the inputs come from a second run of the call on copies.
"""

import contextlib
import functools
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

NAMES = Path(__file__).resolve().parents[2] / "src" / "msprobe" / "api_names.txt"
OWNERS = {"Functional": torch.nn.functional, "Tensor": torch.Tensor, "Torch": torch}
NOT_WRAPPED = {"is_tensor", "__bool__", "__nonzero__"}  # asked all the time, by the recorder and by the modules


def listed() -> Iterator[Tuple[str, str]]:
    """Prefix and name of all APIs that a dump of PyTorch may hold."""
    for prefix, body in re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", NAMES.read_text(), re.M | re.S):
        if prefix in OWNERS:
            yield from ((prefix, name) for name in body.split() if name not in NOT_WRAPPED)


def rebuilt(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same arguments with other tensors."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: rebuilt(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [rebuilt(item, change) for item in value]
    return value


def tensors_of(value: Any) -> List[torch.Tensor]:
    found: List[torch.Tensor] = []
    rebuilt(value, found.append)
    return found


def as_outputs(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def leaf_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def statistics(tensor: torch.Tensor) -> Dict[str, Any]:
    none: Dict[str, Any] = {"Max": None, "Min": None, "Mean": None, "Norm": None}
    if not tensor.numel():
        return none
    if tensor.dtype == torch.bool:
        return {**none, "Max": bool(tensor.any()), "Min": bool(tensor.all())}
    if tensor.is_complex():
        size = tensor.abs()
        return {**none, "Max": size.max().item(), "Min": size.min().item(), "Mean": size.mean().item()}
    if not tensor.dim():
        return dict.fromkeys(none, tensor.item())
    limits = {**none, "Max": tensor.max().item(), "Min": tensor.min().item()}
    if not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return limits
    return {**limits, "Mean": tensor.float().mean().item(), "Norm": tensor.float().norm().item()}


class Recorder:
    """Use as a context manager; then write()."""

    def __init__(self, folder: Path, task: str = "statistics") -> None:
        self.folder, self.task = folder, task
        self.files = folder / "dump_tensor_data"
        self.data: Dict[str, Any] = {}
        self.backward: Dict[str, Any] = {}
        self.calls: Dict[str, int] = {}
        self.waiting: Dict[str, Callable[[], None]] = {}
        self.busy = False
        self.wrapped: List[Tuple[Any, str, bool, Any]] = []
        folder.mkdir(parents=True, exist_ok=True)
        if task == "tensor":
            self.files.mkdir(exist_ok=True)

    # ---- Elements --------------------------------------------------------------------------------------------------

    def tensor(self, value: torch.Tensor, place: str) -> Dict[str, Any]:
        kept = value.detach()
        info = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape), **statistics(kept),
                "requires_grad": value.requires_grad}
        if self.task == "tensor":
            info["data_name"] = f"{place}.pt"
            torch.save(kept.clone().contiguous(), self.files / info["data_name"])
        return info

    def element(self, value: Any, place: str, name: Optional[str] = None) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value, place)
        if value is None:
            return None
        if isinstance(value, torch.Size):
            return {"type": "torch.Size", "value": list(value)}
        if isinstance(value, (list, tuple)):
            return [self.element(item, f"{place}.{k}") for k, item in enumerate(value)]
        if isinstance(value, (bool, int, float, str)):
            return {"type": type(value).__name__, "value": value}
        if isinstance(value, slice):
            return {"type": "slice", "value": [value.start, value.stop, value.step]}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": str(value).rpartition(".")[2]}
        if isinstance(value, torch.dtype) and name in ("dtype", "output_dtype"):
            return {"type": "torch.dtype", "value": str(value)}
        if isinstance(value, torch.device) and name == "device":
            return {"type": "torch.device", "value": str(value)}
        return {}  # a dtype or device by position is not kept

    # ---- Calls -----------------------------------------------------------------------------------------------------

    def call(self, prefix: str, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.busy = True
        try:
            number = self.calls.get(f"{prefix}.{name}", 0)
            full = f"{prefix}.{name}.{number}"
            with torch.no_grad():
                entry = {"input_args": [self.element(arg, f"{full}.forward.input.{k}") for k, arg in enumerate(args)],
                         "input_kwargs": {key: self.element(arg, f"{full}.forward.kwargs.{key}", key)
                                          for key, arg in kwargs.items()}}
                copies = rebuilt([list(args), kwargs], leaf_copy)
            random = torch.get_rng_state()
            result = function(*args, **kwargs)
            outputs = as_outputs(result)
            with torch.no_grad():
                entry["output"] = [self.element(out, f"{full}.forward.output.{k}") for k, out in enumerate(outputs)]
            self.calls[f"{prefix}.{name}"] = number + 1
            self.data[f"{full}.forward"] = entry
            self.follow(full, function, copies, outputs, random)
            return result
        finally:
            self.busy = False

    def follow(self, full: str, function: Callable[..., Any], copies: Any, outputs: List[Any],
               random: torch.Tensor) -> None:
        """Waits for the gradients of the outputs; those of one node of the graph come together."""
        nodes: Dict[Any, List[Tuple[int, int]]] = {}
        for k, out in enumerate(outputs):
            if isinstance(out, torch.Tensor) and out.grad_fn is not None:
                nodes.setdefault(out.grad_fn, []).append((out.output_nr, k))
        grads: List[Optional[torch.Tensor]] = [None] * len(outputs)
        missing = set(range(len(nodes)))

        def finish() -> None:
            del self.waiting[full]
            if any(grad is not None for grad in grads):
                self.went_back(full, function, copies, grads, random)

        def arrived(which: int, places: List[Tuple[int, int]], _: Any, given: Any) -> None:
            if full not in self.waiting:  # a graph that is walked twice
                return
            for number, k in places:
                grads[k] = given[number]
            missing.discard(which)
            if not missing:
                finish()

        # A hook that refers to its own node would be lost: Python takes the two for garbage.
        for which, (node, places) in enumerate(nodes.items()):
            node.register_hook(functools.partial(arrived, which, places))
        if nodes:
            self.waiting[full] = finish

    def went_back(self, full: str, function: Callable[..., Any], copies: Any, grads: List[Optional[torch.Tensor]],
                  random: torch.Tensor) -> None:
        before, self.busy = self.busy, True
        now = torch.get_rng_state()
        torch.set_rng_state(random)
        try:
            with torch.enable_grad():
                # Not leaves, so that operators may write into them.
                args, kwargs = rebuilt(copies, lambda t: t * 1 if t.requires_grad else t.clone())
                outputs = as_outputs(function(*args, **kwargs))
            pairs = [(out, grad) for out, grad in zip(outputs, grads) if grad is not None and out.requires_grad]
            leaves = tensors_of(copies)
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            got = iter(torch.autograd.grad([out for out, _ in pairs], wanted, [grad for _, grad in pairs],
                                           allow_unused=True))
            entry = f"{full}.backward"
            self.backward[entry] = {
                "input": [self.element(grad, f"{entry}.input.{k}") for k, grad in enumerate(grads)],
                "output": [self.element(next(got) if leaf.requires_grad else None, f"{entry}.output.{k}")
                           for k, leaf in enumerate(leaves)]}
        finally:
            self.busy = before
            torch.set_rng_state(now)

    # ---- On and off ------------------------------------------------------------------------------------------------

    def wrapper(self, prefix: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if self.busy:
                return function(*args, **kwargs)
            return self.call(prefix, name, function, args, kwargs)
        return recorded

    def __enter__(self) -> "Recorder":
        for prefix, name in listed():
            owner: Any = OWNERS[prefix]
            *path, last = name.split(".")
            for part in path:
                owner = getattr(owner, part, None)
            function = getattr(owner, last, None)
            if callable(function):
                self.wrapped.append((owner, last, last in vars(owner), function))
                setattr(owner, last, self.wrapper(prefix, name, function))
        return self

    def __exit__(self, *_: Any) -> None:
        for owner, name, own, function in reversed(self.wrapped):
            if own:
                setattr(owner, name, function)
            else:
                delattr(owner, name)
        self.wrapped = []

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is called meanwhile is not recorded; gradients still are."""
        before, self.busy = self.busy, True
        yield
        self.busy = before

    def write(self) -> Path:
        for finish in list(self.waiting.values()):  # some outputs have got no gradient
            finish()
        path = self.folder / "dump.json"
        folder = str(self.files.resolve()) if self.task == "tensor" else None
        path.write_text(json.dumps({"task": self.task, "level": "L1", "framework": "pytorch", "dump_data_dir": folder,
                                    "data": {**self.data, **self.backward}}, indent=1))
        return path
