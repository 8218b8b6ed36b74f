"""Watches a model: calls of modules and of PyTorch's functions, and the gradients that come back.

Results stay the same to the last bit: nothing is added to the autograd graph, no random number is
drawn, no hook is put on a module, and no path of PyTorch that looks at hooks or modes is left.
Modules are seen through torch.nn.Module.__call__, so that copies, replicas and pickles of a model
stay what they are. Whatever goes wrong in here is noted and never raised.
"""

import contextlib
import functools
import os
import sys
import threading
import traceback
import weakref
from collections import Counter
from typing import (Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple,
                    Union)

import torch
from torch import Tensor

from plumb.capture import graph, names
from plumb.capture.config import Config
from plumb.capture.sink import Call, Parameter, Sink
from plumb.capture.wrap import Patches, Wrapped
from plumb.tensors import children

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_DEPTH = 64
NOTES = 1000  # of which the texts are kept
DEPTH = 4     # times the limit of Python's stack
Models = Union[torch.nn.Module, Sequence[torch.nn.Module], Dict[str, torch.nn.Module], None]


class Known(NamedTuple):
    """A module that is recorded."""
    path: str
    kind: str
    module: torch.nn.Module
    root: bool      # a model given to start(): its calls are counted for token_range
    written: bool   # the root of a model with modules in it is not


class Unseen:
    """Hides what is called inside from tensor subclasses and from modes, which are the script's."""

    __slots__ = ("function", "dispatch")

    def __enter__(self) -> None:
        self.function = torch._C.DisableTorchFunction()
        self.function.__enter__()
        self.dispatch = torch._C._DisableTorchDispatch()  # as long as it lives

    def __exit__(self, *error: Any) -> None:
        del self.dispatch
        self.function.__exit__(*error)


class Local(threading.local):
    """Of each thread: whether what it calls now is inside a recorded API or inside us, and the
    modules it is in."""

    def __init__(self) -> None:
        self.quiet = False
        self.modules: List[Call] = []


def tensors_in(value: Any, place: str, found: List[Tuple[str, Tensor]],
               depth: int = MAX_DEPTH) -> None:
    """Appends (place, tensor) of all that a value holds."""
    if isinstance(value, Tensor):
        found.append((place, value))
    elif depth and not isinstance(value, (str, bytes, int, float, type(None))):
        for name, item in children(value):
            tensors_in(item, f"{place}.{name}", found, depth - 1)


def arguments_in(args: Sequence[Any], kwargs: Dict[str, Any]) -> List[Tuple[str, Tensor]]:
    found: List[Tuple[str, Tensor]] = []
    for i, arg in enumerate(args):
        tensors_in(arg, str(i), found)
    for key, arg in kwargs.items():
        tensors_in(arg, key, found)
    return found


def as_outputs(output: Any) -> Sequence[Any]:
    """A call that returns one thing is like one that returns a tuple of it."""
    plain = isinstance(output, (tuple, list)) and not hasattr(output, "_fields")
    return output if plain else (output,)


def outputs_in(output: Any) -> List[Tuple[str, Tensor]]:
    return arguments_in(as_outputs(output), {})


def stack_of() -> Tuple[Any, ...]:
    """Where the script is, innermost first: (code, line) pairs."""
    frame = sys._getframe(1)
    found = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(HERE):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


class Recorder:
    """One capture. start() and stop() may alternate; a step is all between two next_step()."""

    def __init__(self, sink: Sink, apis: bool, risk_level: str = "ALL",
                 config: Optional[Config] = None, inside: bool = True) -> None:
        """apis: whether functions are recorded; inside: whether the modules of models are."""
        self.sink = sink
        self.apis, self.inside = apis, inside
        self.config = config or Config()
        self.lock = threading.RLock()
        self.local = Local()
        self.active = False
        self.opened = False
        self.calls = 0
        self.problems = 0
        self.notes: List[str] = []
        self.modules: Dict[int, Known] = {}
        self.replicas: "weakref.WeakKeyDictionary[torch.nn.Module, Known]" = \
            weakref.WeakKeyDictionary()
        self.patches = Patches()
        self.risk_level = risk_level
        self.prepared = False
        self.token_range: Optional[Tuple[int, int]] = None
        # A call is chosen or not, with its gradients.
        self.scope = [name.replace(".backward", ".forward") for name in self.config.scope]
        self.hooks: Dict[int, Tuple[Any, Any, List[Tuple[str, str, str]]]] = {}
        self.expected: Counter = Counter()  # parameters of a module that are followed
        self.works: Dict[int, Tuple[Any, Call, Tuple[Any, ...], Dict[str, Any]]] = {}
        self._new_step()

    def _new_step(self) -> None:
        self.counts: Counter = Counter()
        # Calls whose gradients may come, as long as their graph lives; of begun ones they will.
        self.followed: "weakref.WeakValueDictionary[int, Call]" = weakref.WeakValueDictionary()
        self.begun: Set[Call] = set()
        self.passes: Counter = Counter()   # backward passes of a module's parameters
        self.arrived: Dict[str, set] = {}  # its parameters that have come in this pass
        self.in_scope = False
        self.tokens = -1

    # -- On and off --------------------------------------------------------------------------------

    def start(self, step: int, models: Models = None,
              token_range: Optional[Sequence[int]] = None) -> None:
        with self.lock:
            if self.active and _current is self:
                return
            self.stop()  # one that Ctrl-C cut short
            self.token_range = (int(token_range[0]), int(token_range[1])) if token_range else None
            self._register(models)
            if not self.prepared:
                self._prepare()
            if not self.opened:
                self._new_step()
                self.opened = self._guarded(self.sink.open, step)
                if not self.opened:
                    return
            self.active = True
            _switch_on(self)

    def stop(self) -> None:
        with self.lock:
            if not self.active:
                return
            _switch_off(self)
            self._finish_works()
            self._finish_gradients()
            self.active = False
            self._unhook()
            self.modules.clear()
            self.replicas.clear()
            self._guarded(self.sink.pause)

    def next_step(self) -> None:
        """Ends the step: its files are complete after this."""
        with self.lock:
            self.stop()
            if self.opened:
                self._guarded(self.sink.close)
                self.opened = False

    def forked(self) -> None:
        """In the child of a fork: the files belong to the parent."""
        self.active = self.opened = False
        self.calls = self.problems = 0
        self.notes.clear()
        self.lock = threading.RLock()
        self.patches.uninstall()

    def _register(self, models: Models) -> None:
        if models is None:
            return
        if isinstance(models, torch.nn.Module):
            named = [("", models)]
        elif isinstance(models, dict):
            named = [(f"{key}.", model) for key, model in models.items()]
        else:
            several = models if isinstance(models, (list, tuple)) else [models]
            named = [(f"{i}.", model) for i, model in enumerate(several)]
        for prefix, model in named:
            if not isinstance(model, torch.nn.Module):
                self.note(f"start: a model that is a {type(model).__name__}, not a torch.nn.Module")
                continue
            self.add_module(prefix, model)

    def add_module(self, prefix: str, model: torch.nn.Module, itself: bool = False) -> None:
        """Records the modules inside a model; the model itself when it has none, or on demand."""
        alone = itself or next(model.children(), None) is None
        for path, module in model.named_modules():
            root = module is model
            if (self.inside and (not root or alone)) or (root and self.token_range):
                full = f"{prefix}{path}" if path else prefix[:-1]
                self.modules.setdefault(id(module), Known(full, type(module).__name__, module, root,
                                                          self.inside and (not root or alone)))

    def _prepare(self) -> None:
        """What will be wrapped. One object for each function, for good."""
        self.prepared = True
        self.patches.add(torch.nn.Module, "__call__", _module_call)
        if _original_replicate is not None:
            self.patches.add(torch.nn.Module, "_replicate_for_data_parallel", _replicate)
        if not self.apis:
            return
        for place in names.places(self.risk_level):
            self._guarded(self.add_api, place.prefix, place.name, place.owner, place.attribute)
        packet, work = (_found(torch, "_ops", "OpOverloadPacket"),
                        _found(torch._C, "_distributed_c10d", "Work"))
        if packet is not None:
            self.patches.add(packet, "__call__", _packet_call)
        if work is not None:
            self.patches.add(work, "wait", _work_wait)
        # The compiler reads functions, and must find those of PyTorch.
        self.patches.add(torch.jit, "script", _script)

    def add_api(self, prefix: str, name: str, owner: Any, attribute: str) -> None:
        key = (id(owner), attribute)
        wrapped = _all_wrapped.get(key)
        if wrapped is None:
            function = getattr(owner, attribute)
            wrapped = _all_wrapped[key] = Wrapped(prefix, name, owner, attribute, function)
        wrapped.prefix, wrapped.name = prefix, name
        self.patches.add(owner, attribute, wrapped)

    # -- What goes wrong ---------------------------------------------------------------------------

    def note(self, text: str) -> None:
        self.problems += 1
        if len(self.notes) < NOTES:
            self.notes.append(text)

    def problem(self, what: str) -> None:
        """Of the exception at hand."""
        kind, error, trace = sys.exc_info()
        last = traceback.extract_tb(trace)[-1]
        lines = str(error).strip().split("\n")
        self.note(f"{what}: {lines[0] or getattr(kind, '__name__', '')} "
                  f"({os.path.basename(last.filename)}:{last.lineno})")

    def _guarded(self, function: Callable[..., Any], *args: Any) -> bool:
        """Whether all went well."""
        try:
            with self._quietly():
                function(*args)
            return True
        except Exception:
            self.problem(getattr(function, "__name__", "capture"))
            return False

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        local = self.local
        before, local.quiet = local.quiet, True
        try:
            with Unseen():
                yield
        finally:
            local.quiet = before

    # -- Which -------------------------------------------------------------------------------------

    def _chosen(self, call: Call) -> bool:
        """By scope and list."""
        if self.scope:
            self.in_scope = self.in_scope or call.title("forward") == self.scope[0]
            if not self.in_scope:
                return False
        parts = self.config.list
        if not parts or any(part in call.title("forward") for part in parts):
            return True
        # A module that matches is recorded with all that is in it.
        around = call.parent
        while around is not None:
            title = around.title("forward")
            if any(part in title for part in parts):
                return True
            around = around.parent
        return False

    def _in_range(self) -> bool:
        return self.token_range is None or self.token_range[0] <= self.tokens <= self.token_range[1]

    # -- Calls -------------------------------------------------------------------------------------

    def api_call(self, wrapped: Wrapped, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        local = self.local
        if local.quiet or torch._C._get_tracing_state() is not None:
            return wrapped.function(*args, **kwargs)
        return self._recorded(wrapped.prefix, wrapped.name, "", None, wrapped.function, args,
                              kwargs)

    def module_call(self, known: Known, module: torch.nn.Module, args: Tuple[Any, ...],
                    kwargs: Dict[str, Any]) -> Any:
        """module: the known one, or a replica of it."""
        function = functools.partial(_original_call, module)
        if torch._C._get_tracing_state() is not None or self.local.quiet:
            return function(*args, **kwargs)
        if known.root:
            with self.lock:
                self.tokens += 1
        if not known.written:
            return function(*args, **kwargs)
        return self._recorded("Module", known.path, known.kind, module, function, args, kwargs)

    def _recorded(self, prefix: str, name: str, kind: str, module: Optional[torch.nn.Module],
                  function: Callable[..., Any], args: Tuple[Any, ...],
                  kwargs: Dict[str, Any]) -> Any:
        local = self.local
        api = module is None
        local.quiet = True
        call: Optional[Call] = None
        edges = None
        try:
            with Unseen():
                call, edges = self._before(prefix, name, kind, module, args, kwargs)
        except Exception:
            self.problem(f"{prefix}.{name}")
        except BaseException:  # Ctrl-C
            local.quiet = False
            raise
        # What a recorded API calls is part of it; what a module calls is recorded.
        local.quiet = api
        if call is not None and not api:
            local.modules.append(call)
        try:
            output = function(*args, **kwargs)
        except BaseException:
            local.quiet = False
            raise
        finally:
            if call is not None and not api:
                local.modules.pop()
        local.quiet = True
        try:
            if call is not None:
                with Unseen():
                    self._after(call, edges, args, kwargs, output)
        except Exception:
            self.problem(f"{prefix}.{name}")
        finally:
            local.quiet = False
        return output

    def _before(self, prefix: str, name: str, kind: str, module: Optional[torch.nn.Module],
                args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Optional[Call], Any]:
        if not self._in_range():
            return None, None
        parent = self.local.modules[-1] if self.local.modules else None
        with self.lock:
            key = (prefix, name)
            number = self.counts[key]
            self.counts[key] = number + 1
            call = Call(prefix, name, kind, number, parent, module)
            if not self._chosen(call):
                call.follow = False  # in the chain of modules, but not written
                return call, None
            if self.config.extra_info:
                call.stack = stack_of()
            found = arguments_in(args, kwargs)
            call.inputs = [place for place, _ in found]
            self.sink.arguments(call, args, kwargs)
            if module is not None:
                self._hook_parameters(call, module)
        return call, graph.edges_of([tensor for _, tensor in found])

    def _after(self, call: Call, edges: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any],
               output: Any) -> None:
        with self.lock:
            if self.config.scope and call.title("forward") == self.scope[1]:
                self.in_scope = False
            call.module = None
            if call.follow is False or not self.active:
                return
            if call.prefix == "Distributed" and self._is_work(output):
                self.works[id(output)] = (output, call, args, kwargs)
                return
            found = outputs_in(output)
            call.outputs = [place for place, _ in found]
            self.sink.results(call, args, kwargs, output)
            self.calls += 1
            if edges is not None and any(tensor.requires_grad for _, tensor in found):
                self._follow(call, edges, [tensor for _, tensor in found])

    # -- Gradients ---------------------------------------------------------------------------------

    def _follow(self, call: Call, edges: graph.Edges, outputs: List[Tensor]) -> None:
        if "backward" not in self.config.data_mode:
            return
        planned = graph.plan(edges, outputs)
        if not planned.nodes:
            return
        if not planned.complete:
            self.note(f"{call.title('backward')}: its graph has more than {graph.MAX_NODES} nodes; "
                      "gradients of its inputs may be missing")
        call.follow = graph.Follow(len(planned.nodes), planned.parts)
        self.followed[id(call)] = call
        graph.hook(planned.nodes, self._ran, call)

    def _ran(self, call: Call, which: int, work: graph.Work, given: Any, received: Any) -> None:
        """The hook of a node; called by whichever thread runs backward."""
        if not self.active or not call.follow:
            return
        with self.lock, self._quietly(), torch.no_grad():
            try:
                if call.follow and call.follow.add(which, work, given, received,
                                                   functools.partial(self.sink.gradient, call)):
                    self._went_back(call)
                elif call.follow:
                    self.begun.add(call)
            except Exception:
                self.problem(f"{call.prefix}.{call.name}.{call.number} backward")

    def _went_back(self, call: Call) -> None:
        follow, call.follow = call.follow, None
        self.followed.pop(id(call), None)
        self.begun.discard(call)
        if follow.any:
            self.sink.backward(call)

    def _finish_gradients(self) -> None:
        """Calls of which some outputs got no gradient are written with what there is."""
        with self._quietly(), torch.no_grad():
            for call in list(self.followed.values()):
                try:
                    call.follow.rest(functools.partial(self.sink.gradient, call))
                    self._went_back(call)
                except Exception:
                    self.problem(f"{call.prefix}.{call.name}.{call.number} backward")
            self.followed.clear()
            self.begun.clear()

    def _hook_parameters(self, call: Call, module: torch.nn.Module) -> None:
        if "backward" not in self.config.data_mode:
            return
        for name, parameter in module._parameters.items():
            if parameter is None or not parameter.requires_grad or not parameter.is_leaf:
                continue
            entry = self.hooks.get(id(parameter))
            if entry is None:
                users: List[Tuple[str, str, str]] = []
                handle = parameter.register_hook(functools.partial(self._parameter_ran, users))
                entry = self.hooks[id(parameter)] = (parameter, handle, users)
            user = (call.name, call.kind, name)
            if user not in entry[2]:
                entry[2].append(user)
                self.expected[call.name] += 1

    def _parameter_ran(self, users: List[Tuple[str, str, str]], grad: Tensor) -> None:
        if not self.active:
            return
        with self.lock, self._quietly(), torch.no_grad():
            for path, kind, name in users:
                try:
                    here = self.arrived.setdefault(path, set())
                    if name in here:  # another pass
                        self.passes[path] += 1
                        here.clear()
                    here.add(name)
                    last = len(here) == self.expected[path]
                    parameter = Parameter(path, kind, name, self.passes[path])
                    self.sink.parameter_gradient(parameter, grad, last)
                    if last:
                        here.clear()
                        self.passes[path] += 1
                except Exception:
                    self.problem(f"Module.{path}.{kind} parameters_grad {name}")

    def _unhook(self) -> None:
        for _, handle, _ in self.hooks.values():
            handle.remove()
        self.hooks.clear()
        self.expected.clear()

    # -- Communication that goes on after the call -------------------------------------------------

    def _is_work(self, output: Any) -> bool:
        if isinstance(output, list):
            return bool(output) and all(self._is_work(item) for item in output)
        return hasattr(output, "wait") and hasattr(output, "is_completed")

    def work_done(self, work: Any) -> None:
        """After wait(): now the arguments hold what was exchanged."""
        if self.local.quiet or not self.works:
            return
        with self.lock, self._quietly():
            for key, (owner, call, args, kwargs) in list(self.works.items()):
                members = owner if isinstance(owner, list) else [owner]
                if any(member is work for member in members):
                    if all(member is work or member.is_completed() for member in members):
                        del self.works[key]
                        self._write_work(call, args, kwargs)
                    return

    def _write_work(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        try:
            self.sink.results(call, args, kwargs, None)
            self.calls += 1
        except Exception:
            self.problem(f"{call.prefix}.{call.name}.{call.number}")

    def _finish_works(self) -> None:
        with self._quietly():
            for owner, call, args, kwargs in self.works.values():
                members = owner if isinstance(owner, list) else [owner]
                if all(member.is_completed() for member in members):
                    self._write_work(call, args, kwargs)
                else:
                    self.note(f"{call.title('forward')}: nobody waited for it before stop()")
            self.works.clear()

    # -- Values that the script hands over ---------------------------------------------------------

    def save(self, variable: Any, name: str, backward: bool) -> None:
        if not self.active:
            return
        with self.lock, self._quietly():
            try:
                number = self.counts["save", name]
                self.counts["save", name] = number + 1
                self.sink.saved(name, number, "", variable)
                self.calls += 1
                if backward:
                    found: List[Tuple[str, Tensor]] = []
                    tensors_in(variable, "", found)
                    for place, tensor in found:
                        if tensor.requires_grad:
                            tensor.register_hook(
                                functools.partial(self._saved_ran, name, number, place[1:]))
            except Exception:
                self.problem(f"save {name}")

    def _saved_ran(self, name: str, number: int, place: str, grad: Tensor) -> None:
        if not self.active:
            return
        with self.lock, self._quietly(), torch.no_grad():
            try:
                self.sink.saved(f"{name}_grad", number, place, grad.detach())
            except Exception:
                self.problem(f"save {name}")


# -- One recorder at a time sees the process -------------------------------------------------------

def _found(owner: Any, *path: str) -> Any:
    """None where this PyTorch has no such thing."""
    for name in path:
        owner = getattr(owner, name, None)
    return owner


_all_wrapped: Dict[Tuple[int, str], Wrapped] = {}
_current: Optional[Recorder] = None
_depth: Optional[Tuple[int, int]] = None  # limits of Python's stack: the script's, ours
_original_call = torch.nn.Module.__call__


def _switch_on(recorder: Recorder) -> None:
    global _current, _depth, _original_call
    if _current is not None:
        _current.note("another capture was started before stop(): it records what followed")
        _current.stop()
    _original_call = torch.nn.Module.__call__
    _current = recorder
    recorder.patches.install()
    Wrapped.active = recorder.api_call
    # A module takes three times as many frames of the stack as it does alone.
    script = sys.getrecursionlimit()
    _depth = (script, script * DEPTH)
    sys.setrecursionlimit(script * DEPTH)


def _switch_off(recorder: Recorder) -> None:
    global _current
    if _current is recorder:
        Wrapped.active = None
        _current = None
        recorder.patches.uninstall()
        _restore_depth()


def _restore_depth() -> None:
    """Unless the script has set a limit since, or is deeper than its own."""
    global _depth
    if _depth is not None and sys.getrecursionlimit() == _depth[1]:
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(_depth[0])
    _depth = None


def _module_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    recorder = _current
    if recorder is None:
        return _original_call(self, *args, **kwargs)
    known = recorder.modules.get(id(self))
    if known is None and self.__dict__.get("_is_replica"):
        known = recorder.replicas.get(self)
    if known is None:
        return _original_call(self, *args, **kwargs)
    return recorder.module_call(known, self, args, kwargs)


_original_replicate = _found(torch.nn.Module, "_replicate_for_data_parallel")


def _replicate(self: torch.nn.Module) -> torch.nn.Module:
    """Replicas of DataParallel are recorded under the names of the model's modules."""
    replica = _original_replicate(self)
    recorder = _current
    known = recorder.modules.get(id(self)) if recorder is not None else None
    if known is not None:
        recorder.replicas[replica] = known
    return replica


_original_packet_call = _found(torch, "_ops", "OpOverloadPacket", "__call__")


def _packet_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    recorder = _current
    function = functools.partial(_original_packet_call, self)
    if recorder is None or recorder.local.quiet or torch._C._get_tracing_state() is not None:
        return function(*args, **kwargs)
    space, _, name = getattr(self, "_qualified_op_name", "").partition("::")
    if space != "aten":
        return function(*args, **kwargs)
    return recorder._recorded("Aten", name, "", None, function, args, kwargs)


_original_wait = _found(torch._C, "_distributed_c10d", "Work", "wait")


def _work_wait(self: Any, *args: Any, **kwargs: Any) -> Any:
    result = _original_wait(self, *args, **kwargs)
    if _current is not None:
        _current.work_done(self)
    return result


_original_script = torch.jit.script


@functools.wraps(_original_script)
def _script(*args: Any, **kwargs: Any) -> Any:
    recorder = _current
    if recorder is None:
        return _original_script(*args, **kwargs)
    _switch_off(recorder)
    try:
        return _original_script(*args, **kwargs)
    finally:
        _switch_on(recorder)


def _after_fork() -> None:
    global _current
    if _current is not None:
        recorder, _current = _current, None
        Wrapped.active = None
        recorder.forked()
        _restore_depth()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
