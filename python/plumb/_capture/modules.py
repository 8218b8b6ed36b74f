"""Which modules are recorded; which are found only when they are called, and which never were."""

import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import torch

from plumb._capture import compiled
from plumb._capture.sink import parameters_of

Models = Union[torch.nn.Module, Sequence[torch.nn.Module], Dict[str, torch.nn.Module], None]
ALWAYS = "always"
ALONE = "alone"  # when no module inside it was called: nothing else would show what it did
NEVER = "never"  # its calls are counted
COVERED = "was not called; its parameters are recorded with"
ENCLOSED = "runs inside the compiled region of"


class Known(NamedTuple):
    """A module of a model that was given to start()."""
    path: str
    kind: str
    module: torch.nn.Module
    root: bool     # the model itself: its calls are counted for token_range
    written: str   # ALWAYS, ALONE or NEVER
    script: str    # the path of the scripted module that it is a part of


def named_models(models: Models) -> List[Tuple[str, Any]]:
    """(what stands before its paths, model)."""
    if models is None:
        return []
    if isinstance(models, torch.nn.Module):
        return [("", models)]
    if isinstance(models, dict):
        return [(f"{key}.", model) for key, model in models.items()]
    several = models if isinstance(models, (list, tuple)) else [models]
    return [(f"{i}.", model) for i, model in enumerate(several)]


def class_of(module: torch.nn.Module) -> str:
    """Of a scripted module, that of the module it was made from."""
    if isinstance(module, torch.jit.ScriptModule):
        return str(getattr(module, "original_name", "") or type(module).__name__)
    kind = type(compiled.original(module))
    # fully_shard() makes a class of its own of each.
    if len(kind.__bases__) == 2 and kind.__bases__[0].__name__ == "FSDPModule":
        kind = kind.__bases__[1]
    return kind.__name__


# Attributes by which wrappers hold a module: it has the name that it has without them.
INVISIBLE = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))


def plain_path(path: str) -> str:
    return ".".join(part for part in path.split(".") if part not in INVISIBLE)


def has_parameters(module: torch.nn.Module) -> bool:
    return next(parameters_of(module), None) is not None


class Modules:
    """inside: modules are recorded at all; leaves: those with modules inside only when they have
    parameters of their own, or nothing inside was called."""

    def __init__(self, inside: bool, leaves: bool = False) -> None:
        self.inside, self.leaves = inside, leaves
        self.known: Dict[int, Known] = {}
        self.models: List[Tuple[str, torch.nn.Module, bool, bool]] = []
        self.replicas: "weakref.WeakKeyDictionary[torch.nn.Module, Known]" = \
            weakref.WeakKeyDictionary()
        self.compiled: Set[int] = set()  # ids of modules that torch.compile(module) has wrapped
        self.strangers: Dict[int, Any] = {}  # id -> weak reference, of modules of no model
        self.new_step()

    def __len__(self) -> int:
        return len(self.known)

    def is_region(self, module: torch.nn.Module) -> bool:
        """Whether it runs as one compiled region."""
        return id(module) in self.compiled or compiled.is_compiled(module)

    def enclosed(self, module: torch.nn.Module, by: str) -> Iterator[Known]:
        """The modules inside a region, of which no call is seen."""
        for part in module.modules():
            known = self.known.get(id(part))
            if known is not None and part is not module:
                self.idle[known.path] = f"{ENCLOSED} {by}"
                yield known

    def new_step(self) -> None:
        self.called: Set[str] = set()
        self.idle: Dict[str, str] = {}  # path -> why it is not recorded

    # -- Registering -------------------------------------------------------------------------------

    def add(self, prefix: str, model: torch.nn.Module, itself: bool, counted: bool) -> None:
        """itself: also the model, whatever is inside it; counted: its calls are."""
        self.models.append((prefix, model, itself, counted))
        self.strangers.clear()
        self._scan(prefix, model, itself, counted)

    def _scan(self, prefix: str, model: torch.nn.Module, itself: bool, counted: bool) -> None:
        scripts: List[str] = []
        for path, module in model.named_modules():
            inner = compiled.original(module)
            if inner is not module:
                self.compiled.add(id(inner))
            path = plain_path(path)
            full = f"{prefix}{path}" if path else prefix[:-1]
            script = next((one for one in scripts if not one or path.startswith(f"{one}.")), None)
            if script is None and isinstance(module, torch.jit.ScriptModule):
                scripts.append(path)
            root = module is model
            written = ALONE if inner is not module and self.inside else \
                self._written(module, root, itself)
            if written == NEVER and not (root and counted):
                continue
            where = "" if script is None else f"{prefix}{script}" or class_of(model)
            self.known.setdefault(id(module), Known(full, class_of(module), inner, root, written,
                                                    where))

    def _written(self, module: torch.nn.Module, root: bool, itself: bool) -> str:
        if not self.inside:
            return NEVER
        if (root and itself) or next(module.children(), None) is None or has_parameters(module):
            return ALWAYS
        return ALONE if root or self.leaves else ALWAYS

    def clear(self) -> None:
        self._note_idle()
        self.known.clear()
        self.compiled.clear()
        self.models.clear()
        self.replicas.clear()
        self.strangers.clear()

    # -- Finding -----------------------------------------------------------------------------------

    def find(self, module: torch.nn.Module, around: Sequence[int]) -> Optional[Known]:
        """around: the ids of the modules that are running, the innermost last."""
        known = self.known.get(id(module))
        if known is not None:
            return known
        if module.__dict__.get("_is_replica"):
            return self.replicas.get(module)
        if not self.inside:
            return None
        outer = next((self.known[one] for one in reversed(around) if one in self.known), None)
        stranger = self.strangers.get(id(module))
        if stranger is not None and stranger() is module and \
                (outer is None or not any(one is module for one in outer.module.modules())):
            return None
        for model in self.models:  # a module that came later
            self._scan(*model)
        known = self.known.get(id(module))
        if known is None:
            self.strangers[id(module)] = weakref.ref(module)
            if outer is not None:
                self.idle[f"{outer.path or outer.kind}: {class_of(module)}"] = \
                    "was called there but is no module of the model"
        return known

    # -- What is missing ---------------------------------------------------------------------------

    def _note_idle(self) -> None:
        for known in self.known.values():
            if known.written == NEVER or known.path in self.called:
                continue
            if has_parameters(known.module) or next(known.module.children(), None) is None:
                self.idle.setdefault(known.path or known.kind, f"is part of the scripted module {known.script}"
                                     if known.script else "was not called")

    def covered(self, known_path: str, by: str) -> None:
        self.idle[known_path] = f"{COVERED} {by}"

    def not_recorded(self, parts: Sequence[str]) -> Dict[str, str]:
        """path -> why, of this step. parts: the names that were asked for, if any."""
        self._note_idle()
        return {path: why for path, why in self.idle.items() if path not in self.called and
                (not parts or any(part in path for part in parts))}

    def uncalled(self, module: torch.nn.Module) -> List[Tuple[str, Known]]:
        """(path inside, module) of those inside that were not called in this step."""
        found = []
        for path, part in module.named_modules():
            known = self.known.get(id(part))
            if known is not None and part is not module and known.path not in self.called:
                found.append((path, known))
        return found
