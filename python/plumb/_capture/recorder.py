"""Watches a model: calls of modules and of PyTorch's functions, and the gradients that come back.

Results stay the same to the last bit: nothing is added to the autograd graph, no random number is
drawn, no hook is put on a module, and no path of PyTorch that looks at hooks or modes is left.
Modules are seen through torch.nn.Module.__call__ and the forward of their classes (switch.py), so
that copies, replicas and pickles of a model stay what they are. Whatever goes wrong in here is noted and never raised.
"""

import contextlib
import functools
import os
import sys
import threading
import traceback
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch
from torch import Tensor

from plumb import regions
from plumb._capture import compiled, exchange, graph, held, names, reduced, still, switch, unwritten
from plumb._capture.config import Config
from plumb._capture.exchange import Exchanges
from plumb._capture.given import arguments_in, as_outputs, in_order, outputs_in, tensors_in, version_of
from plumb._capture.gradients import Gradients
from plumb._capture.modules import ALONE, ALWAYS, NEVER, Known, Models, Modules, named_models
from plumb._capture.objects import Objects
from plumb._capture.parameters import Parameters
from plumb._capture.sink import Call, Sink, parameters_of
from plumb._capture.unseen import Unseen
from plumb._capture.wrap import Patches, Wrapped

HERE = os.path.dirname(os.path.abspath(__file__))
NOTES = 1000  # of which the texts are kept
BEGUN, OVER = -1, -2  # moments of a call; others are numbers of its nodes


class Local(threading.local):
    """Of each thread: whether what it calls now is inside a recorded API, the recorded modules it
    is in, and for those that are recorded only when nothing inside was called whether it was."""

    def __init__(self) -> None:
        self.quiet = False
        self.exchanging = False
        self.modules: List[Call] = []
        self.region: Optional[Call] = None  # the compiled one that is no module
        self.alone: List[List[bool]] = []
        # What was recorded last, when nothing of the script's runs before that which goes with it, and
        # the hooks that it put on nodes.
        self.last: Any = None
        self.hooked: Dict[Any, Any] = {}


def stack_of() -> Tuple[Any, ...]:
    """Where the script is, innermost first: (code, line) pairs."""
    frame = sys._getframe(1)
    found = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((HERE, regions.__file__)):
            found.append((code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def preferred(one: Wrapped) -> Tuple[bool, bool, str]:
    """Sorts the places of functions: of one that has several names, the last counts."""
    return one.prefix == "Functional", "." not in one.name, one.name


class Recorder:
    """One capture. start() and stop() may alternate; a step is all between two next_step()."""

    def __init__(self, sink: Sink, apis: bool, risk_level: str = "ALL",
                 config: Optional[Config] = None, inside: bool = True, leaves: bool = False,
                 itself: bool = False) -> None:
        """apis: whether functions are recorded; inside, leaves: which modules of models are (see
        Modules); itself: whether models are, whatever is inside."""
        self.sink = sink
        self.itself = itself
        self.apis = apis
        self.config = config or Config()
        self.lock = threading.RLock()
        self.local = Local()
        self.active = False
        self.opened = False
        self.stops = 0  # a call that one of them fell into is not finished
        self.calls = 0
        self.problems = 0
        self.notes: List[str] = []
        self.modules = Modules(inside, leaves)
        self.patches = Patches()
        self.apis_wrapped: Set[Wrapped] = set()
        self.forwards: Set[type] = set()  # classes whose forward is seen
        self.risk_level = risk_level
        self.prepared = False
        self.token_range: Optional[Tuple[int, int]] = None
        # A call is chosen or not, with its gradients.
        self.scope = [name.replace(".backward", ".forward") for name in self.config.scope]
        self.parameters = Parameters(self)
        self.gradients = Gradients(self)
        self.exchanges = Exchanges(self)
        self.objects = Objects(self)
        self.looked_at: Dict[str, int] = {}  # modules in which held functions were looked for
        self._new_step()

    def _new_step(self) -> None:
        self.counts: Counter = Counter()
        self.gradients.new_step()
        self.parameters.new_step()
        self.in_scope = False
        self.tokens = -1
        self.exchanges.new_step()

    # -- On and off --------------------------------------------------------------------------------

    def start(self, step: int, models: Models = None,
              token_range: Optional[Sequence[int]] = None) -> None:
        with self.lock:
            if self.active and self in switch.active:
                self._register(models)
                return
            self.stop()  # one that Ctrl-C cut short
            self.token_range = (int(token_range[0]), int(token_range[1])) if token_range else None
            if not self.opened:
                self.modules.new_step()
            self._register(models)
            if not self.prepared:
                self._prepare()
            if not self.opened:
                self._new_step()
                self.opened = self._guarded(self.sink.open, step)
                if not self.opened:
                    return
            self._guarded(self._renew)
            self._guarded(self._find_held)
            self.active = True
            switch.switch_on(self)

    def stop(self) -> None:
        with self.lock:
            if not self.active:
                return
            switch.switch_off(self)
            self.patches.hold([])
            self.exchanges.finish()
            self.gradients.finish()
            self.active = False
            self.stops += 1
            self.parameters.unhook()
            self.modules.clear()
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
        for prefix, model in named_models(models):
            if not isinstance(model, torch.nn.Module):
                self.note(f"start: a model that is a {type(model).__name__}, not a torch.nn.Module")
                continue
            try:
                self.add_module(prefix, model)
            except Exception:  # of a method of the model's own
                self.problem(f"start: {type(model).__name__}")

    def add_module(self, prefix: str, model: torch.nn.Module, itself: bool = False) -> None:
        """Records the modules inside a model; the model itself when it has none, has parameters of
        its own or calls none of those inside, or on demand."""
        self.modules.add(prefix, model, itself or self.itself, self.token_range is not None)
        self._see_forward()

    def _see_forward(self) -> None:
        """Of the classes of known modules: module.forward(x) is a call as well."""
        for kind in {type(known.module) for known in self.modules.known.values()} - self.forwards:
            self.forwards.add(kind)
            place = switch.forward_of(kind)
            if place is not None and not any(item[0] is place[0] and item[1] == "forward"
                                             for item in self.patches.items):
                self.patches.add(place[0], "forward", place[1])

    def find_module(self, module: torch.nn.Module, around: Sequence[int]) -> Optional[Known]:
        try:
            count = len(self.modules)
            known = self.modules.find(module, around)
            if len(self.modules) != count:
                self._see_forward()
            return known
        except Exception:  # of a method of the model's own
            self.problem(f"a call of {type(module).__name__}")
            return None

    def _prepare(self) -> None:
        """What will be wrapped. One object for each function, for good."""
        self.prepared = True
        self.patches.add(torch.nn.Module, "__call__", switch.module_call)
        if switch.original_replicate is not None:
            self.patches.add(torch.nn.Module, "_replicate_for_data_parallel", switch.replicate)
        self.patches.add(torch.jit, "script", switch.script)
        self.patches.add(torch.autograd, "backward", switch.backward)
        if not self.apis:
            return
        for place in names.places(self.risk_level):
            self._guarded(self.add_api, place.prefix, place.name, place.owner, place.attribute)
        for prefix, name, owner in unwritten.owners():  # seen, if not recorded
            self.patches.add(owner, name, _wrapped(prefix, name, owner, name))
        packet, work = (switch.found(torch, "_ops", "OpOverloadPacket"),
                        switch.found(torch._C, "_distributed_c10d", "Work"))
        if packet is not None:
            self.patches.add(packet, "__call__", switch.packet_call)
            self.patches.add(torch._ops.OpOverload, "__call__", switch.overload_call)
        if work is not None:
            self.patches.add(work, "wait", switch.work_wait)
            self.patches.add(torch.distributed.P2POp, "__init__", switch.p2p_init)

    def _renew(self) -> None:
        """What stands for a function that the script has replaced since stands for that one now."""
        for owner, attribute, value in list(self.patches.items):
            if type(value) is Wrapped:
                current = vars(owner).get(attribute, value)
                if current is not value.function and type(current) is not Wrapped and callable(current):
                    self.patches.remove(owner, attribute)
                    del _all_wrapped[id(owner), attribute]
                    self.add_api(value.prefix, value.name, owner, attribute)

    def _find_held(self) -> None:
        """Functions that the script took before recording began."""
        if not self.apis:
            return
        wrapped = {id(one.function): one for one in sorted(self.apis_wrapped, key=preferred)}
        models = [(prefix, model) for prefix, model, _, _ in self.modules.models]
        holders, fixed = held.find(wrapped, models, self.looked_at)
        self.patches.hold(holders)
        for text in fixed:
            self.modules.idle[text] = "cannot be replaced there; calls of it are not recorded"

    def takes_operator(self, prefix: str, name: str) -> bool:
        """As functions of that name are: not what only looks, and by risk level."""
        return prefix != "Aten" or names.wanted_operator(name, self.risk_level)

    def add_api(self, prefix: str, name: str, owner: Any, attribute: str) -> None:
        wrapped = _wrapped(prefix, name, owner, attribute)
        wrapped.prefix, wrapped.name = prefix, name
        self.apis_wrapped.add(wrapped)
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
            with self.quietly():
                function(*args)
            return True
        except Exception:
            self.problem(getattr(function, "__name__", "capture"))
            return False

    @contextlib.contextmanager
    def quietly(self, after: Any = None) -> Iterator[None]:
        """What is called in here is nobody's to record. after: what local.last is when the script has
        had no turn since (still.py)."""
        here, local = switch.here, self.local
        before, here.busy = here.busy, True
        if after is None or local.last != after:
            self.sink.moved()
            local.hooked = {}
        local.last = None
        try:
            with Unseen():
                yield
        finally:
            here.busy = before

    def busy(self) -> bool:
        """Whether this thread is at recording something."""
        return switch.here.busy

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

    def api_call(self, prefix: str, name: str, function: Callable[..., Any], *args: Any,
                 **kwargs: Any) -> Any:
        return self._recorded(prefix, name, "", None, function, args, kwargs)

    def exchange_call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Of a functional collective."""
        self.local.exchanging = True
        try:
            return self._recorded(exchange.PREFIX, f"{exchange.FUNCTIONAL}{name}", "", None, function, args, kwargs)
        finally:
            self.local.exchanging = False

    def memory_taken(self, result: Any) -> None:
        self._guarded(unwritten.note, result)

    def module_call(self, known: Known, module: torch.nn.Module, function: Callable[..., Any],
                    *args: Any, **kwargs: Any) -> Any:
        """module: the known one, or a replica of it."""
        if self.local.quiet:
            return function(*args, **kwargs)
        with self.lock:
            self.modules.called.add(known.path)
            if known.root:
                self.tokens += 1
        for frame in self.local.alone:
            frame[0] = True
        module = compiled.original(module)
        # Of a region whose inside is recorded no module inside is called, and its nodes are to know it.
        if known.written == ALWAYS or (known.written == ALONE and self.config.compiled == "inside" and
                                       self.modules.is_region(module)):
            return self._recorded("Module", known.path, known.kind, module, function, args, kwargs)
        if known.written == ALONE:
            return self._recorded_alone(known, module, function, args, kwargs)
        return function(*args, **kwargs)

    def region(self, function: Callable[..., Any], args: Tuple[Any, ...],
               kwargs: Dict[str, Any]) -> Optional[Callable[[Any], None]]:
        """A compiled region begins; what comes back takes its result. None: it is the region of a
        module, which is recorded as such, or inside something that is."""
        around, self.local.region = self.local.region, None
        running = self.modules.known.get(switch.here.inside[-1]) if switch.here.inside else None
        if self.local.quiet or (running is not None and running.written != NEVER and
                                self.modules.is_region(running.module)):
            return None
        name = regions.name_of(function)
        stops = self.stops
        with self.quietly():
            call, edges = self._before(compiled.PREFIX, name, "", None, args, kwargs)
            self._region_of(function, f"{compiled.PREFIX}.{name}")
        self.local.region = call

        def end(result: Any) -> None:
            self.local.region = around
            try:
                if call is not None and stops == self.stops:
                    with self.quietly():
                        self._after(call, edges, args, kwargs, result)
            except Exception:
                self.problem(f"{compiled.PREFIX}.{name}")
        return end

    @contextlib.contextmanager
    def inside_region(self) -> Iterator[None]:
        """What is recorded in here belongs to the region that runs."""
        modules, region = self.local.modules, self.local.region
        if region is not None:
            modules.append(region)
        try:
            yield
        finally:
            if region is not None:
                modules.pop()

    def _region_of(self, function: Callable[..., Any], name: str) -> None:
        """A region that is a module of the model, which was compiled apart from it: torch.compile(model)."""
        module = regions.module_of(function)
        known = self.modules.known.get(id(module))
        if module is None or known is None or known.module is not module:
            return
        with self.lock:
            for one in (known, *self.modules.enclosed(module, name)):
                self.parameters.hook(one.path, one.kind, one.module)

    def _recorded(self, prefix: str, name: str, kind: str, module: Optional[torch.nn.Module],
                  function: Callable[..., Any], args: Tuple[Any, ...],
                  kwargs: Dict[str, Any]) -> Any:
        local = self.local
        api = module is None
        stops = self.stops
        call: Optional[Call] = None
        edges = None
        around = self._around(sys._getframe(1)) if api else None  # a module that is nothing but this call
        try:
            with self.quietly((around, BEGUN) if around is not None else None):
                call, edges = self._before(prefix, name, kind, module, args, kwargs)
                if call is not None and not api:
                    call.single = still.single(module)
                    local.last = (call, BEGUN)
        except Exception:
            self.problem(f"{prefix}.{name}")
        # What a recorded API calls is part of it; what a module calls is recorded.
        before, local.quiet = local.quiet, api
        if call is not None and not api:
            local.modules.append(call)
        try:
            output = function(*args, **kwargs)
        finally:
            local.quiet = before
            if call is not None and not api:
                local.modules.pop()
        try:
            if call is not None and stops == self.stops:
                with self.quietly((call, OVER)):
                    self._after(call, edges, args, kwargs, output)
                    if around is not None:
                        local.last = (around, OVER)
                    else:
                        local.hooked = {}  # it would keep the graph
        except Exception:
            self.problem(f"{prefix}.{name}")
        return output

    def _around(self, frame: Any) -> Optional[Call]:
        """The module whose only code has called what is called from this frame."""
        call = self.local.modules[-1] if self.local.modules else None
        if call is None or call.single is None:
            return None
        while frame is not None and frame.f_code.co_filename.startswith(HERE):
            frame = frame.f_back
        return call if frame is not None and frame.f_code is call.single else None

    def _recorded_alone(self, known: Known, module: torch.nn.Module, function: Callable[..., Any],
                        args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """Written afterwards, when no module inside was called; its inputs are then as they were,
        unless somebody has written into them."""
        frame, stops = [False], self.stops
        versions, edges = [], None
        try:
            with self.quietly():
                found = [tensor for _, tensor in arguments_in(args, kwargs)]
                versions = [version_of(tensor) for tensor in found]
                edges = graph.edges_of(found)
        except Exception:
            self.problem(f"Module.{known.path}")
        self.local.alone.append(frame)
        try:
            output = function(*args, **kwargs)
        finally:
            self.local.alone.pop()
        if not frame[0] and stops == self.stops:
            try:
                with self.quietly():
                    call, _ = self._before("Module", known.path, known.kind, module, args, kwargs)
                    if call is not None:
                        if versions != [version_of(tensor) for _, tensor
                                        in arguments_in(args, kwargs)]:
                            self.note(f"{call.title('forward')}: it changed an input in place; the "
                                      "input that is recorded is the changed one")
                        self._after(call, edges, args, kwargs, output)
            except Exception:
                self.problem(f"Module.{known.path}")
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
            if prefix == exchange.PREFIX:
                args = self.exchanges.number(call, args, kwargs)
            if self.config.extra_info:
                call.stack = stack_of()
            self.objects.note(call, (*args, *kwargs.values()))
            if module is not None and len(kwargs) > 1:
                kwargs = in_order(module, kwargs)
            found = arguments_in(args, kwargs)
            call.inputs = [place for place, _ in found]
            call.unwritten = module is None and any(unwritten.holds(tensor) for _, tensor in found)
            self.sink.arguments(call, args, kwargs)
            if module is not None:
                self.parameters.hook(call.name, call.kind, module)
                if self.modules.is_region(module):
                    for known in self.modules.enclosed(module, call.name or call.kind):
                        self.parameters.hook(known.path, known.kind, known.module)
        return call, graph.edges_of([tensor for _, tensor in found])

    def _after(self, call: Call, edges: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any],
               output: Any) -> None:
        with self.lock:
            if self.config.scope and call.title("forward") == self.scope[1]:
                self.in_scope = False
            module, call.module = call.module, None
            if call.follow is False or not self.active:
                return
            self.exchanges.flush_arrived()
            if not exchange.gives_result(call) and self.exchanges.begin(call, args, kwargs, output):
                return
            self.objects.note(call, as_outputs(output))
            found = outputs_in(output)
            call.outputs = [place for place, _ in found]
            if call.unwritten:
                unwritten.carry(call.name, [tensor for _, tensor in found])
            if not self.exchanges.begin(call, args, kwargs, output):
                self.sink.results(call, args, kwargs, output)
            if module is not None and self.sink.takes_inner:
                self._inner_parameters(call, module)
            self.calls += 1
            if edges is not None and any(tensor.requires_grad for _, tensor in found):
                self.gradients.follow(call, edges, [tensor for _, tensor in found])

    def _inner_parameters(self, call: Call, module: torch.nn.Module) -> None:
        """Of modules that were not called, and so are used by this one without a word."""
        for path, known in self.modules.uncalled(module):
            for name, value in parameters_of(known.module):
                self.sink.inner_parameter(call, f"{path}.{name}", value)
                self.modules.covered(known.path, call.name or call.kind)

    def went_back(self) -> None:
        """backward() is over: gradients of sharded and replicated models are reduced now."""
        if not self.active or "backward" not in self.config.data_mode:
            return
        with self.lock, self.quietly(), torch.no_grad():
            for prefix, model, _, _ in self.modules.models:
                try:
                    reduced.record(self, prefix, model)
                except Exception:
                    self.problem(f"{prefix or type(model).__name__}: gradients after backward")

    # -- Values that the script hands over ---------------------------------------------------------

    def save(self, variable: Any, name: str, backward: bool) -> None:
        if not self.active:
            return
        with self.lock, self.quietly():
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
        with self.lock, self.quietly(), torch.no_grad():
            try:
                self.sink.saved(f"{name}_grad", number, place, grad.detach())
            except Exception:
                self.problem(f"save {name}")


_all_wrapped: Dict[Tuple[int, str], Wrapped] = {}


def _wrapped(prefix: str, name: str, owner: Any, attribute: str) -> Wrapped:
    """The one object for a function."""
    key = (id(owner), attribute)
    if key not in _all_wrapped:
        _all_wrapped[key] = Wrapped(prefix, name, owner, attribute, getattr(owner, attribute))
    return _all_wrapped[key]
