"""Gradients of parameters, as they arrive."""

import functools
from collections import Counter
from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor

from plumb._capture.sink import Parameter


class Parameters:
    """The parameters that a recorder follows."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.hooks: Dict[int, Tuple[Any, Any, List[Tuple[str, str, str]]]] = {}
        self.expected: Counter = Counter()  # parameters of a module that are followed
        self.new_step()

    def new_step(self) -> None:
        self.passes: Counter = Counter()   # backward passes of a module's parameters
        self.arrived: Dict[str, set] = {}  # its parameters that have come in this pass

    def hook(self, path: str, kind: str, module: torch.nn.Module) -> None:
        if "backward" not in self.recorder.config.data_mode:
            return
        for name, parameter in module._parameters.items():
            if parameter is None or not parameter.requires_grad or not parameter.is_leaf:
                continue
            entry = self.hooks.get(id(parameter))
            if entry is None:
                users: List[Tuple[str, str, str]] = []
                handle = parameter.register_hook(functools.partial(self._ran, users))
                entry = self.hooks[id(parameter)] = (parameter, handle, users)
            user = (path, kind, name)
            if user not in entry[2]:
                entry[2].append(user)
                self.expected[path] += 1

    def _ran(self, users: List[Tuple[str, str, str]], grad: Tensor) -> None:
        if not self.recorder.active:
            return
        with self.recorder.lock, self.recorder.quietly(), torch.no_grad():
            for path, kind, name in users:
                try:
                    here = self.arrived.setdefault(path, set())
                    if name in here:  # another pass
                        self.passes[path] += 1
                        here.clear()
                    here.add(name)
                    last = len(here) == self.expected[path]
                    parameter = Parameter(path, kind, name, self.passes[path])
                    self.recorder.sink.parameter_gradient(parameter, grad, last)
                    if last:
                        here.clear()
                        self.passes[path] += 1
                except Exception:
                    self.recorder.problem(f"Module.{path}.{kind} parameters_grad {name}")

    def unhook(self) -> None:
        for _, handle, _ in self.hooks.values():
            handle.remove()
        self.hooks.clear()
        self.expected.clear()
