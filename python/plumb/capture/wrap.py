"""Attributes of torch replaced by recording ones, and put back exactly.

A TorchFunctionMode would see more, but switches off the fused paths of PyTorch; a wrapped attribute
leaves them as they are.
"""

import functools
import importlib
import types
from typing import Any, Callable, List, Optional, Tuple

MISSING = object()


class Wrapped:
    """Stands where a function of PyTorch stood. It is equal to that function, since tensor
    subclasses look functions up in tables, and one object for good, since modules keep functions as
    attributes: when nothing is recorded it is the function."""

    # Of the class: one recorder at a time.
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


class Patches:
    """A set of attributes that is put in place and taken back as a whole."""

    def __init__(self) -> None:
        self.items: List[Tuple[Any, str, Any]] = []  # owner, attribute, new value
        self.before: List[Tuple[Any, str, Any]] = []

    def add(self, owner: Any, attribute: str, value: Any) -> None:
        self.items.append((owner, attribute, value))
        if self.before:
            self._set(owner, attribute, value)

    def remove(self, owner: Any, attribute: str) -> None:
        """Takes one back for good."""
        installed = bool(self.before)
        self.uninstall()
        self.items = [item for item in self.items if (item[0], item[1]) != (owner, attribute)]
        if installed:
            self.install()

    def install(self) -> None:
        if not self.before:
            for owner, attribute, value in self.items:
                self._set(owner, attribute, value)

    def _set(self, owner: Any, attribute: str, value: Any) -> None:
        # An inherited attribute is not the owner's own: it comes back by deleting.
        self.before.append((owner, attribute, vars(owner).get(attribute, MISSING)))
        setattr(owner, attribute, value)

    def uninstall(self) -> None:
        for owner, attribute, value in reversed(self.before):
            if value is MISSING:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, value)
        self.before = []
