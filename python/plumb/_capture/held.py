"""Functions of PyTorch that a program holds: `self.act = F.gelu`, `from torch.nn.functional import linear`.

A function that was taken before recording began is not the attribute that recording replaces. So it is
looked for, and replaced for as long as something is recorded, where programs keep functions: globals of
modules and attributes of classes, of modules of the model and of objects in them, in dictionaries and
lists there, in closures, defaults and partials. What holds one and cannot be changed (a tuple, a set, a
variable of a function that is running) is listed. Modules of PyTorch and of Python are left alone.
Only types are asked here: a proxy that loads something when it is looked at stays as it is.
"""

import functools
import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from plumb._capture.wrap import Wrapped

OWN = frozenset(("torch", "plumb", "functorch", "torchgen", "numpy", *getattr(sys, "stdlib_module_names", ()))) \
    - {"__main__"}
DEPTH = 3  # of containers and objects inside each other
PLAIN = (str, bytes, int, float, type(None), torch.Tensor, torch.dtype, torch.device, types.ModuleType)
DEFINED = (type, types.FunctionType)
NO_FUNCTIONS = frozenset(vars(torch.nn.Module()))  # what every module has


class Holder(NamedTuple):
    """Where a function is held, as wrap.Patches takes it."""
    owner: Any
    attribute: Any
    value: Any


def attributes_of(value: Any) -> Any:
    """The dictionary of an object; None where it has none."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


class Search:
    """wrapped: the recording functions, by id of those that they stand for. seen: of modules that were
    looked at before, how many names they had; -1 where one held a function."""

    def __init__(self, wrapped: Dict[int, Wrapped], seen: Dict[str, int]) -> None:
        self.wrapped, self.seen = wrapped, seen
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
            if name.partition(".")[0] in OWN or not issubclass(type(module), types.ModuleType):
                continue
            namespace = vars(module)
            known = self.seen.get(name)
            if known == len(namespace) and name != "__main__":
                continue
            count = len(self.holders)
            for key, value in list(namespace.items()):
                self.look(namespace, key, value, f"{name}.{key}", DEPTH)
                if issubclass(type(value), DEFINED) and vars(value).get("__module__", value.__module__) == name:
                    self.definition(value, f"{name}.{key}")
            self.seen[name] = len(namespace) if count == len(self.holders) else -1

    def definition(self, value: Any, where: str) -> None:
        """Of a class or function that is defined in a module."""
        if issubclass(type(value), types.FunctionType):
            self.function(value, where)
            return
        for key, item in list(vars(value).items()):
            inner = item.__func__ if type(item) in (staticmethod, classmethod) else item
            one = self.one(inner)
            if one is not None:
                self.add(value, key, type(item)(one) if inner is not item else one)
            elif type(inner) is types.FunctionType:
                self.function(inner, f"{where}.{key}")
            elif not key.startswith("__"):
                self.look(None, key, item, f"{where}.{key}", 1)

    def function(self, function: types.FunctionType, where: str) -> None:
        for cell in function.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # it is empty
                continue
            one = self.one(inner)
            if one is not None:
                self.add(cell, "cell_contents", one)
            elif type(inner) is types.FunctionType and id(inner) not in self.visited:
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
                own = vars(module)
                for key in own.keys() - NO_FUNCTIONS:
                    self.look(own, key, own[key], f"{prefix}{path}.{key}", DEPTH)

    def callers(self) -> None:
        """Variables of the functions that are running: they cannot be replaced."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_name != "<module>" and str(frame.f_globals.get("__name__")).partition(".")[0] not in OWN:
                for name, value in list(frame.f_locals.items()):
                    one = self.wrapped.get(id(value))
                    if one is not None:
                        self.fixed[f"{one.prefix}.{one.name} in the variable {name} of {code.co_name}"] = ""
            frame = frame.f_back

    # -- What holds other things -------------------------------------------------------------------

    def items(self, holder: Any, where: str, depth: int) -> None:
        for key, value in list(holder.items()) if issubclass(type(holder), dict) else list(enumerate(holder)):
            self.look(holder, key, value, f"{where}.{key}", depth)

    def look(self, holder: Any, key: Any, value: Any, where: str, depth: int) -> None:
        one = self.one(value)
        if one is not None:
            self.add(holder, key, one)
        elif depth and not issubclass(type(value), (*PLAIN, *DEFINED)) and id(value) not in self.visited:
            self.visited.add(id(value))
            self.inside(value, where, depth)

    def inside(self, value: Any, where: str, depth: int) -> None:
        kind = type(value)
        if kind in (dict, list) or issubclass(kind, (dict, list)) and _is_own(kind):
            self.items(value, where, depth - 1)
        elif kind is functools.partial:
            one = self.one(value.func)
            if one is not None:
                self.add(value, "func", one)
        elif kind in (tuple, set, frozenset):
            for item in value:
                one = self.one(item)
                if one is not None:
                    self.fixed[f"{one.prefix}.{one.name} in the {kind.__name__} {where}"] = ""
                else:
                    self.look(value, None, item, where, depth - 1)
        elif not _is_own(kind) and not issubclass(kind, torch.nn.Module):
            attributes = attributes_of(value)  # of an object of the script
            if type(attributes) is dict:
                self.items(attributes, where, depth - 1)


def _is_own(kind: type) -> bool:
    """Whether it is a type of Python, PyTorch or the like."""
    home = str(getattr(kind, "__module__", "")).partition(".")[0]
    return home in OWN or home == "builtins"


def find(wrapped: Dict[int, Wrapped], models: List[Tuple[str, torch.nn.Module]],
         seen: Dict[str, int]) -> Tuple[List[Holder], List[str]]:
    """Where functions are held now, and texts about where they cannot be replaced."""
    search = Search(wrapped, seen)
    search.modules()
    search.models(models)
    search.callers()
    return search.holders, list(search.fixed)
