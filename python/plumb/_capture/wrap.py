"""Attributes of torch replaced by recording ones, and put back exactly.

A TorchFunctionMode would see more, but switches off the fused paths of PyTorch; a wrapped attribute
leaves them as they are.
"""

import functools
import importlib
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

MISSING = object()


class Wrapped:
    """Stands where a function of PyTorch stood. It is equal to that function, since tensor
    subclasses look functions up in tables, and one object for good, since modules keep functions as
    attributes: when nothing is recorded it is the function."""

    # Of the class: whoever records hangs on it (switch.py).
    active: Optional[Callable[["Wrapped", Tuple[Any, ...], Any], Any]] = None

    def __init__(self, prefix: str, name: str, owner: Any, attribute: str,
                 function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.prefix, self.name = prefix, name
        self.owner, self.attribute, self.function = owner, attribute, function
        self.binds = hasattr(type(function), "__get__")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        record = Wrapped.active
        return self.function(*args, **kwargs) if record is None else record(self, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # As the function itself would: built-in ones do not become methods.
        return types.MethodType(self, instance) if self.binds and instance is not None else self

    def __eq__(self, other: object) -> bool:
        function = other.function if isinstance(other, Wrapped) else other
        return self is other or bool(self.function == function)

    def __hash__(self) -> int:
        return hash(self.function)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "function"), name)

    def __reduce__(self) -> Any:
        module = self.owner.__module__ if isinstance(self.owner, type) else ""
        return _found_again, (getattr(self.owner, "__name__", ""), module, self.attribute)

    def __deepcopy__(self, memo: Any) -> "Wrapped":
        return self


def _found_again(owner: str, module: str, attribute: str) -> Any:
    """A pickled function, in a process that may not record."""
    home = importlib.import_module(module or owner)
    return getattr(getattr(home, owner) if module else home, attribute)


# (id of the owner, attribute) -> owner, how many have put something there, what was there before.
_places: Dict[Tuple[int, str], List[Any]] = {}


class Patches:
    """A set of attributes that is put in place and taken back as a whole. Where several do so, the
    first one's value stays until the last has gone."""

    def __init__(self) -> None:
        self.items: List[Tuple[Any, Any, Any]] = []  # owner, attribute, new value
        self.held: List[Tuple[Any, Any, Any]] = []   # that a program holds
        self.installed = False

    def add(self, owner: Any, attribute: Any, value: Any) -> None:
        self.items.append((owner, attribute, value))
        if self.installed:
            _put(owner, attribute, value)

    def hold(self, holders: List[Tuple[Any, Any, Any]]) -> None:
        """Those that are put in place as well, instead of earlier ones."""
        assert not self.installed
        self.held = list(holders)

    def remove(self, owner: Any, attribute: str) -> None:
        """Takes one back for good."""
        for item in [item for item in self.items if item[0] is owner and item[1] == attribute]:
            self.items.remove(item)
            if self.installed:
                _take_back(owner, attribute)

    def install(self) -> None:
        if not self.installed:
            self.installed = True
            for owner, attribute, value in (*self.items, *self.held):
                _put(owner, attribute, value)

    def uninstall(self) -> None:
        if self.installed:
            self.installed = False
            for owner, attribute, _ in reversed((*self.items, *self.held)):
                _take_back(owner, attribute)


def _put(owner: Any, attribute: Any, value: Any) -> None:
    place = _places.get((id(owner), attribute))
    if place is not None:
        place[1] += 1
        return
    before = _get(owner, attribute)
    if isinstance(owner, HOLDERS) and type(value) is Wrapped and \
            before is not value and before is not value.function:
        return  # the script has put something else there
    if type(before) is Wrapped:
        before = before.function
    # An inherited attribute is not the owner's own: it comes back by deleting.
    _places[id(owner), attribute] = [owner, 1, before, value]
    _set(owner, attribute, value)


def _take_back(owner: Any, attribute: Any) -> None:
    place = _places.get((id(owner), attribute))
    if place is None:
        return
    place[1] -= 1
    if place[1]:
        return
    del _places[id(owner), attribute]
    if isinstance(owner, HOLDERS) and _get(owner, attribute) is not place[3]:
        return  # the script has put something else there
    if place[2] is MISSING:
        delattr(owner, attribute)
    else:
        _set(owner, attribute, place[2])


# What a program holds functions in, beside classes and modules (held.py).
HOLDERS = (dict, list, types.CellType, types.FunctionType, functools.partial)


def _get(owner: Any, attribute: Any) -> Any:
    if isinstance(owner, dict):
        return owner.get(attribute, MISSING)
    if isinstance(owner, list):
        return owner[attribute] if attribute < len(owner) else MISSING
    if isinstance(owner, HOLDERS):
        return getattr(owner, attribute)
    return vars(owner).get(attribute, MISSING)


def _set(owner: Any, attribute: Any, value: Any) -> None:
    if isinstance(owner, (dict, list)):
        owner[attribute] = value
    elif isinstance(owner, functools.partial):
        owner.__setstate__((value, owner.args, owner.keywords, vars(owner)))
    else:
        setattr(owner, attribute, value)
