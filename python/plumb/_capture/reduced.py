"""Gradients after backward, of models that processes share.

DistributedDataParallel and fully sharded models reduce gradients outside of what Python sees, or into
tensors that no hook is on. What an optimiser will use is recorded when backward() is over:
Module.reduced.{path}.{Class}.parameters_grad.{n}, of a sharded one the shard of this process.
"""

from typing import Any, Iterator, List, Set, Tuple

import torch
from torch import Tensor

from plumb._capture.modules import class_of, plain_path
from plumb._capture.sink import Parameter

PATH = "reduced"
REPLICATED = "DistributedDataParallel"
SHARDED = ("FullyShardedDataParallel", "FSDPModule")
WHY = ("(its all_reduce runs inside PyTorch's C++) is not recorded as a call; gradients after it are those of "
       f"Module.{PATH}")


def kinds(module: torch.nn.Module) -> Set[str]:
    return {base.__name__ for base in type(module).__mro__}


def shared(model: torch.nn.Module) -> Iterator[Tuple[str, torch.nn.Module]]:
    """(path, module) of the parts of a model whose gradients are reduced, the outermost ones."""
    found: List[str] = []
    for path, module in model.named_modules():
        if kinds(module) & {REPLICATED, *SHARDED} and not any(not one or path.startswith(f"{one}.") for one in found):
            found.append(path)
            yield path, module


def gradients(module: torch.nn.Module) -> List[Tuple[str, Tensor]]:
    return [(name, parameter.grad) for name, parameter in module._parameters.items()
            if parameter is not None and parameter.grad is not None and parameter.grad.numel()]


def record(recorder: Any, prefix: str, model: torch.nn.Module) -> None:
    """Into the sink of a recorder, which holds its lock."""
    for root, whole in shared(model):
        if REPLICATED in kinds(whole):
            recorder.modules.idle.setdefault(f"{prefix}{plain_path(root)}" or REPLICATED, WHY)
        for path, module in whole.named_modules(prefix=root):
            found = gradients(module)
            where = ".".join(part for part in (PATH, prefix.rstrip("."), plain_path(path)) if part)
            for i, (name, grad) in enumerate(found):
                parameter = Parameter(where, class_of(module), name, recorder.parameters.passes[where])
                recorder.sink.parameter_gradient(parameter, grad, i == len(found) - 1)
            if found:
                recorder.parameters.passes[where] += 1
