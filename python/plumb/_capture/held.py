"""Functions of PyTorch that a program holds: `self.act = F.gelu`, `from torch.nn.functional import linear`.

A function that was taken before recording began is not the attribute that recording replaces. So it is
looked for, and replaced for as long as something is recorded, where programs keep functions: globals of
modules and attributes of classes, of modules of the model and of objects in them, in dictionaries and
lists there, in closures, defaults and partials. What holds one and cannot be changed (a tuple, a set, a
variable of a function that is running) is listed. Modules of PyTorch and of Python are left alone.
"""

import functools
import sys
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from plumb._capture.wrap import Wrapped

OWN = frozenset(("torch", "plumb", "functorch", "torchgen", "numpy", *getattr(sys, "stdlib_module_names", ()))) \
    - {"__main__"}
DEPTH = 3  # of containers and objects inside each other
PLAIN = (str, bytes, int, float, type(None), torch.Tensor, torch.dtype, torch.device, types.ModuleType)


class Holder(NamedTuple):
    """Where a function is held, as wrap.Patches takes it."""
    owner: Any
    attribute: Any
    value: Any


class Search:
    """wrapped: the recording functions, by id of those that they stand for. seen: names of modules whose
    classes and functions were looked at before; those do not change."""

    def __init__(self, wrapped: Dict[int, Wrapped], seen: Set[str]) -> None:
        self.wrapped, self.seen = wrapped, seen
        self.ids = frozenset(wrapped)
        self.holders: List[Holder] = []
        self.fixed: Dict[str, str] = {}  # where something cannot be replaced -> what
        self.visited: Set[int] = set()

    def one(self, value: Any) -> Optional[Wrapped]:
        found = self.wrapped.get(id(value))
        if found is None and type(value) is Wrapped:
            return self.wrapped.get(id(value.function))
        return found

    def add(self, owner: Any, attribute: Any, value: Any) -> None:
        self.holders.append(Holder(owner, attribute, value))

    # -- Programs ----------------------------------------------------------------------------------

    def modules(self) -> None:
        for name, module in list(sys.modules.items()):
            if module is None or name.partition(".")[0] in OWN or not isinstance(module, types.ModuleType):
                continue
            namespace = vars(module)
            if name in self.seen and name != "__main__":
                if not self.ids.isdisjoint(map(id, namespace.values())):
                    self.items(namespace, name, 0)
                continue
            self.seen.add(name)
            for key, value in list(namespace.items()):
                self.look(namespace, key, value, f"{name}.{key}", DEPTH)
                if getattr(value, "__module__", None) == name:
                    self.definition(value, f"{name}.{key}")

    def definition(self, value: Any, where: str) -> None:
        """Of a class or function that is defined in a module."""
        if isinstance(value, types.FunctionType):
            self.function(value, where)
        elif isinstance(value, type):
            for key, item in list(vars(value).items()):
                inner = item.__func__ if isinstance(item, (staticmethod, classmethod)) else item
                one = self.one(inner)
                if one is not None:
                    self.add(value, key, type(item)(one) if inner is not item else one)
                elif isinstance(inner, types.FunctionType):
                    self.function(inner, f"{where}.{key}")
                elif not isinstance(item, PLAIN) and not key.startswith("__"):
                    self.inside(item, f"{where}.{key}", 1)

    def function(self, function: types.FunctionType, where: str) -> None:
        for cell in function.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # it is empty
                continue
            one = self.one(inner)
            if one is not None:
                self.add(cell, "cell_contents", one)
            elif isinstance(inner, types.FunctionType) and inner is not function and id(inner) not in self.visited:
                self.visited.add(id(inner))
                self.function(inner, where)
        defaults = function.__defaults__ or ()
        if any(self.one(value) is not None for value in defaults):
            self.add(function, "__defaults__", tuple(self.one(value) or value for value in defaults))
        if function.__kwdefaults__:
            self.items(function.__kwdefaults__, where, 0)

    def models(self, models: List[Tuple[str, torch.nn.Module]]) -> None:
        for prefix, model in models:
            for path, module in model.named_modules():
                self.items(vars(module), f"{prefix}{path}" or type(module).__name__, DEPTH)

    def callers(self) -> None:
        """Variables of the functions that are running: they cannot be replaced."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if frame.f_locals is not frame.f_globals and code.co_name != "<module>":
                for name, value in list(frame.f_locals.items()):
                    one = self.wrapped.get(id(value))
                    if one is not None and str(frame.f_globals.get("__name__")).partition(".")[0] not in OWN:
                        self.fixed[f"{one.prefix}.{one.name} in the variable {name} of {code.co_name}"] = ""
            frame = frame.f_back

    # -- What holds other things -------------------------------------------------------------------

    def items(self, holder: Any, where: str, depth: int) -> None:
        for key, value in list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder)):
            self.look(holder, key, value, f"{where}.{key}", depth)

    def look(self, holder: Any, key: Any, value: Any, where: str, depth: int) -> None:
        one = self.one(value)
        if one is not None:
            self.add(holder, key, one)
        elif depth and not isinstance(value, (*PLAIN, type, types.FunctionType)):
            self.inside(value, where, depth)

    def inside(self, value: Any, where: str, depth: int) -> None:
        if id(value) in self.visited:
            return
        self.visited.add(id(value))
        if isinstance(value, (dict, list)):
            self.items(value, where, depth - 1)
        elif isinstance(value, functools.partial):
            one = self.one(value.func)
            if one is not None:
                self.add(value, "func", one)
        elif isinstance(value, (tuple, set, frozenset)):
            for item in value:
                one = self.one(item)
                if one is not None:
                    self.fixed[f"{one.prefix}.{one.name} in the {type(value).__name__} {where}"] = ""
                elif depth > 1 and not isinstance(item, (*PLAIN, type, types.FunctionType)):
                    self.inside(item, where, depth - 1)
        elif str(type(value).__module__).partition(".")[0] not in (*OWN, "builtins"):
            # An object of the script. No property of it is run.
            attributes = getattr(value, "__dict__", None)
            if type(attributes) is dict and not isinstance(value, torch.nn.Module):
                self.items(attributes, where, depth - 1)


def find(wrapped: Dict[int, Wrapped], models: List[Tuple[str, torch.nn.Module]],
         seen: Optional[Set[str]] = None) -> Tuple[List[Holder], List[str]]:
    """Where functions are held now, and texts about where they cannot be replaced."""
    search = Search(wrapped, set() if seen is None else seen)
    search.modules()
    search.models(models)
    search.callers()
    return search.holders, list(search.fixed)
