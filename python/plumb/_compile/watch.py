"""Where inductor's passes begin and end.

Every pass that changed a graph becomes a step: the graph before it and the graph after it, both copies. Passes are
known by what inductor itself puts around them (GraphTransformObserver), by the functions that the three stages
call with a graph, and, for what changes in between, by their neighbours. Nothing here raises into the compiler.
"""

import functools
import inspect
import types
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Tuple

import torch
from torch import fx

from plumb._compile.drawn import without_modes
from plumb._compile.snapshot import Copies, Lowered, cut_out, signature, snapshot
from plumb._compile.values import placeholders
from plumb._passcheck.copies import describe

STAGES = (("pre-grad", "pre_grad_passes"), ("joint", "joint_graph_passes"),
          ("post-grad", "post_grad_passes"))
PLAIN_NAMES = ("pattern_matcher", "apply")  # which say nothing


class Label(NamedTuple):
    name: str  # of the pass, or of the function that it is
    slot: str  # the setting of inductor or the observer through which it runs; "" where it is the name


class Step(NamedTuple):
    """A pass that changed a graph."""
    label: Label
    before: fx.GraphModule
    after: fx.GraphModule
    patterns: List[str]


class Stage:
    """One stage at work on one graph."""

    def __init__(self, name: str, module: fx.GraphModule, inputs: Any) -> None:
        self.name, self.module, self.inputs = name, module, inputs
        self.title = f"{name} pass"     # in reports
        self.labels: List[Label] = []   # of the passes that run, the innermost last
        self.latest = "the beginning"   # pass that ended
        self.seen: List[Label] = []     # all that ran
        self.steps: List[Step] = []
        self.patterns: List[str] = []   # applied since the last step
        self.lowered: Dict[int, Lowered] = {}
        self.kept: List[Any] = []       # targets of lowered, so that their ids stay theirs
        self.copies = Copies()
        with without_modes():
            self.mark: Hashable = signature(module)
            self.last = snapshot(module, self.copies)
        self.first = self.last

    def owns(self, module: Any) -> bool:
        """The graph itself, or one that a pass made of it; the branches of a cond in it have stages of their own."""
        if module is self.module:
            return True
        if any(module is part for part in self.module.modules()):
            return False
        names = [node.name for node in placeholders(module)] if isinstance(module, fx.GraphModule) else []
        return bool(names) and names == [node.name for node in placeholders(self.last)]

    def look(self, label: Label, module: Optional[fx.GraphModule] = None) -> None:
        """What has changed since the last time was done by this pass."""
        module = self.module if module is None else module
        with without_modes():
            mark = signature(module)
            if mark == self.mark and module is self.module:
                return
            self.module = module
            if mark != self.mark:
                after = snapshot(module, self.copies, self.lowered)
                self.steps.append(Step(label, self.last, after, self.patterns))
                self.last, self.mark, self.patterns = after, mark, []

    def begin(self, label: Label, module: fx.GraphModule) -> None:
        self.look(self._between(label), module)
        self.labels.append(label)

    def end(self, module: Optional[fx.GraphModule] = None) -> None:
        label = self._innermost()
        self.look(label, module)
        ended = self.labels.pop()
        if not self.labels or ended.name not in PLAIN_NAMES:
            self.seen.append(ended)
        self.latest = ended.name

    def _innermost(self) -> Label:
        named = [label for label in self.labels if label.name not in PLAIN_NAMES]
        return (named or self.labels)[-1]

    def _between(self, following: Optional[Label]) -> Label:
        if self.labels:
            return self._innermost()
        then = following.name if following else "the end"
        return Label(f"between {self.latest} and {then}", "")

    def finish(self, module: fx.GraphModule) -> None:
        self.labels.clear()
        self.look(self._between(None), module)


def function_name(one: Any) -> str:
    """Of a pass; "" where it has none of its own."""
    while isinstance(one, functools.partial):
        one = one.func
    name = getattr(one, "__name__", "")
    if not name and not isinstance(one, types.FunctionType):
        name = type(one).__name__
    return "" if name in ("<lambda>", "apply", "") else str(name)


class Watch:
    """Puts its hooks into inductor and takes them out again. done: what is called with every finished stage."""

    def __init__(self, done: Callable[[Stage], None], problem: Callable[[str], None]) -> None:
        self.done, self.problem = done, problem
        self.running: List[Stage] = []
        self.undo: List[Tuple[Any, str, Any]] = []

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self.undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, value)

    def safely(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            with torch.no_grad():
                return function(*args)
        except Exception as error:
            self.problem(f"{what}: {describe(error)}")
            return None

    def install(self) -> None:
        import torch._inductor.compile_fx as compile_fx
        import torch._inductor.pattern_matcher as pattern_matcher
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver
        for stage, name in STAGES:
            function = getattr(compile_fx, name)
            self._put(compile_fx, name, self._stage(stage, function))
            self._functions(inspect.unwrap(function))
        for name in ("apply_graph_pass", "apply_gm_pass"):
            self._put(GraphTransformObserver, name, self._applied(vars(GraphTransformObserver)[name]))
        self._put(GraphTransformObserver, "__enter__", self._entered(GraphTransformObserver.__enter__))
        self._put(GraphTransformObserver, "__exit__", self._left(GraphTransformObserver.__exit__))
        for kind in ("GraphPatternEntry", "LoweringPatternEntry", "ReplacementPatternEntry"):
            entry = getattr(pattern_matcher, kind)
            self._put(entry, "apply", self._pattern(entry.apply, kind.startswith("Lowering")))

    def remove(self) -> None:
        for owner, name, value in reversed(self.undo):
            setattr(owner, name, value)
        self.undo.clear()
        self.running.clear()

    # -- Stages ------------------------------------------------------------------------------------

    def _stage(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(module: Any, *args: Any, **kwargs: Any) -> Any:
            inputs = args[0] if name == "pre-grad" and args else kwargs.get("example_inputs", ())
            stage = self.safely(f"the {name} stage", Stage, name, module, inputs)
            if stage is None:
                return function(module, *args, **kwargs)
            self.running.append(stage)
            try:
                result = function(module, *args, **kwargs)
            finally:
                self.running.pop()
            after = result if isinstance(result, fx.GraphModule) else module
            self.safely(f"the {name} stage", stage.finish, after)
            self.done(stage)
            return result
        return run

    def _stage_of(self, module: Any) -> Optional[Stage]:
        if isinstance(module, fx.Graph):
            module = module.owning_module
        stage = self.running[-1] if self.running else None
        return stage if stage is not None and stage.owns(module) else None

    def _functions(self, function: Any) -> None:
        """Those that a stage calls by their names, with a graph."""
        space = function.__globals__
        for name in sorted(set(function.__code__.co_names)):
            value = space.get(name)
            if isinstance(value, types.FunctionType):
                self.undo.append((_Globals(space), name, value))
                space[name] = self._called(name.lstrip("_"), value)

    def _called(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            module = next((value for value in args if isinstance(value, (fx.Graph, fx.GraphModule))), None)
            stage = self._stage_of(module) if module is not None else None
            if stage is None:
                return function(*args, **kwargs)
            module = module.owning_module if isinstance(module, fx.Graph) else module
            self.safely(name, stage.begin, Label(name, ""), module)
            depth = len(stage.labels)
            result = function(*args, **kwargs)
            if depth and len(stage.labels) == depth:
                self.safely(name, stage.end, result if isinstance(result, fx.GraphModule) else module)
            return result
        return run

    # -- Passes ------------------------------------------------------------------------------------

    @staticmethod
    def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(observer: Any, pass_fn: Any) -> Any:
            observer._plumb_function = pass_fn
            return function(observer, pass_fn)
        return run

    def _entered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(observer: Any) -> Any:
            stage = self.safely("a pass", self._stage_of, observer.gm)
            if stage is not None:
                self.safely("a pass", stage.begin, _label(observer), observer.gm)
                observer._plumb_depth = len(stage.labels)
            return function(observer)
        return run

    def _left(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(observer: Any, *raised: Any) -> Any:
            result = function(observer, *raised)
            stage = self.running[-1] if self.running else None
            depth = getattr(observer, "_plumb_depth", 0)
            if stage is not None and depth and len(stage.labels) == depth:
                self.safely("a pass", stage.end)
            return result
        return run

    def _pattern(self, function: Callable[..., Any], lowering: bool) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(entry: Any, match: Any, graph: Any, node: Any) -> Any:
            stage = self.safely("a pattern", self._stage_of, graph)
            if stage is None:
                return function(entry, match, graph, node)
            name = pattern_name(entry)
            cut = self.safely(name, _cut, match, node) if lowering else None
            known = set(graph.nodes) if cut is not None else set()
            result = function(entry, match, graph, node)
            stage.patterns.append(f"{name} at {node.name}")
            if cut is not None:
                self.safely(name, _remember, stage, name, cut, [one for one in graph.nodes if one not in known])
            return result
        return run


class _Globals:
    """A module's names, as an object whose attributes can be set."""

    def __init__(self, space: Dict[str, Any]) -> None:
        object.__setattr__(self, "space", space)

    def __setattr__(self, name: str, value: Any) -> None:
        self.space[name] = value


def _label(observer: Any) -> Label:
    slot = str(observer.passname)
    function = getattr(observer, "_plumb_function", None)
    if function is None and "custom" in slot:  # the older form: with observer: config.slot(graph)
        function = getattr(torch._inductor.config, slot, None)
    name = function_name(function) if function is not None else ""
    return Label(name, slot) if name and name != slot else Label(slot, "")


def pattern_name(entry: Any) -> str:
    name = getattr(entry, "pattern_name", None) or function_name(getattr(entry, "handler", None) or "")
    if name and name != "str":
        return str(name)
    target = next(iter(getattr(entry.pattern, "fns", ())), None)
    return f"a pattern that ends in {target}" if target is not None else type(entry).__name__


def _cut(match: Any, node: fx.Node) -> Tuple[fx.GraphModule, List[fx.Node]]:
    return cut_out(list(match.nodes), node)


def _remember(stage: Stage, name: str, cut: Tuple[fx.GraphModule, List[fx.Node]],
              new: List[fx.Node]) -> None:
    module, needed = cut
    if len(new) == 1:
        given = new[0].all_input_nodes
        stage.lowered[id(new[0].target)] = Lowered(module, [given.index(node) for node in needed], name)
        stage.kept.append(new[0].target)
