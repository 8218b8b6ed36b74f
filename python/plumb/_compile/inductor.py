"""plumb.inductor_check: did a pass of inductor, PyTorch's or yours, change the numbers?"""

import atexit
import contextlib
import importlib.abc
import importlib.util
import logging
import os
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence

import torch
from torch import fx

from plumb._compile.drawn import Drawn, without_modes
from plumb._compile.judged import Judged, judge_pair
from plumb._compile.report import CheckedPass, InductorReport, checked_pass
from plumb._compile.values import NoValue, Values
from plumb._compile.watch import Stage, Watch
from plumb._passcheck.copies import copy_inputs, copy_module, describe
from plumb._passcheck.state import deterministic

log = logging.getLogger("plumb.inductor_check")
VARIABLE = "PLUMB_INDUCTOR_CHECK"
COMPILER = "torch._inductor.compile_fx"
_lock = threading.Lock()


class Checker:
    """Judges stages as they end."""

    def __init__(self, report: InductorReport) -> None:
        self.report = report
        self.values = Values()
        self.finals: List[fx.GraphModule] = []  # what is handed to code generation, one for each graph

    def problem(self, text: str) -> None:
        if text not in self.report.problems:
            self.report.problems.append(text)
            log.warning("%s", text)

    def stage(self, stage: Stage) -> None:
        """Nothing of this may disturb the compiler."""
        try:
            with _quiet(), without_modes():
                self._stage(stage)
        except Exception as error:
            self.problem(f"the {stage.name} stage: {describe(error)}")

    def _stage(self, stage: Stage) -> None:
        if stage.name == "pre-grad":
            self.values.start(stage.inputs)
        graph = f"graph {len(self.report.graphs)} ({self._kind(stage)})"
        self.report.graphs.append(graph)
        changing = {id(step.label) for step in stage.steps}
        for label in stage.seen:
            if id(label) not in changing:
                self._add(CheckedPass(stage.name, graph, label.name, label.slot, "unchanged",
                                      "the graph is as it was", None, "", "", "", [], ""))
        inputs: Optional[Sequence[Any]] = None
        why = ""
        if stage.steps or stage.name != "pre-grad":
            try:
                inputs = self.values.of(stage.name, stage.module, stage.inputs)
            except NoValue as error:
                why = f"no values for the graph: {error}"
            except Exception as error:
                why = f"no values for the graph: {describe(error)}"
        for step in stage.steps:
            found = Judged("not judged", why) if inputs is None else self._judge(stage, step, inputs)
            self._add(checked_pass(stage.name, graph, step.label.name, step.label.slot, found, step.patterns,
                                   source_of(step.after, found.node)))
        if stage.name == "post-grad":
            self.finals.append(stage.last)
            if inputs is not None:
                self._run_forward(stage.last, inputs)

    def _judge(self, stage: Stage, step: Any, inputs: Sequence[Any]) -> Judged:
        gradients = stage.name == "pre-grad"
        if not gradients:
            inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in inputs]
        return judge_pair(step.before, step.after, inputs, gradients)

    def _run_forward(self, module: fx.GraphModule, inputs: Sequence[Any]) -> None:
        """What it returns is what its backward will be given."""
        output = next(node for node in module.graph.nodes if node.op == "output")
        names = [one.name if isinstance(one, fx.Node) else None for one in _listed(output.args[0])]
        with contextlib.suppress(Exception), without_modes(), torch.no_grad(), Drawn():
            results = copy_module(module, [])(*copy_inputs(tuple(inputs)))
            self.values.remember({name: value for name, value in zip(names, _listed(results)) if name})

    def _kind(self, stage: Stage) -> str:
        names = [node.name for node in stage.last.graph.nodes if node.op == "placeholder"]
        if stage.name == "pre-grad":
            return "as Dynamo traced it"
        if stage.name == "joint":
            return "forward and backward" if any(name.startswith("tangents") for name in names) else "forward"
        return "backward" if any(name.startswith("tangents") for name in names) else "forward"

    def _add(self, one: CheckedPass) -> None:
        self.report.checked.append(one)
        if one.verdict == "fault":
            log.warning("fault in the %s pass %s on %s: node %s: %s: %s", one.stage, one.title, one.graph,
                        one.node, one.what, one.why)
        elif one.verdict != "unchanged":
            log.info("%s pass %s on %s: %s: %s", one.stage, one.title, one.graph, one.verdict, one.why)


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def source_of(module: fx.GraphModule, name: Optional[str]) -> str:
    """The last line of the script in the node's stack, and of the nodes that lead to it."""
    node = next((one for one in module.graph.nodes if one.name == name), None)
    waiting = [node] if node is not None else []
    seen = set(waiting)
    while waiting:
        node = waiting.pop(0)
        lines = str(node.meta.get("stack_trace") or "").splitlines()
        files = [i for i, line in enumerate(lines) if line.strip().startswith("File ")]
        if files:
            return ": ".join(line.strip() for line in lines[files[-1]:files[-1] + 2])
        for needed in node.all_input_nodes:
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Generators and flags as they were, no gradient, no compilation of what the check itself runs."""
    import torch._dynamo
    before = torch._C._dynamo.eval_frame.set_eval_frame(None)
    try:
        with deterministic(False):
            yield
    finally:
        torch._C._dynamo.eval_frame.set_eval_frame(before)


# -- For a script ----------------------------------------------------------------------------------

_active: Optional[Checker] = None


def _needed() -> None:
    if not hasattr(torch, "compile"):
        raise RuntimeError(f"plumb.inductor_check needs PyTorch 2; this is {torch.__version__}")


@contextlib.contextmanager
def checking(report: InductorReport) -> Iterator[Checker]:
    """With what compile_check needs."""
    global _active
    _needed()
    import torch._functorch.config
    import torch._inductor.compile_fx  # noqa: F401
    with _lock:
        if _active is not None:
            raise RuntimeError("plumb.inductor_check is at work already")
        checker = _active = Checker(report)
    watch = Watch(checker.stage, checker.problem)
    try:
        watch.install()
        with no_caches():
            yield checker
    finally:
        watch.remove()
        with _lock:
            _active = None


@contextlib.contextmanager
def no_caches() -> Iterator[None]:
    """A graph that comes out of a cache passes no pass."""
    changes: Dict[Any, Dict[str, Any]] = {
        torch._inductor.config: {"fx_graph_cache": False, "fx_graph_remote_cache": False},
        torch._functorch.config: {"enable_autograd_cache": False, "enable_remote_autograd_cache": False,
                                  "bypass_autograd_cache": True}}
    with contextlib.ExitStack() as stack:
        for config, wanted in changes.items():
            known = {name: value for name, value in wanted.items() if hasattr(config, name)}
            stack.enter_context(config.patch(known))
        yield


@contextlib.contextmanager
def inductor_check() -> Iterator[InductorReport]:
    """Checks every pass of inductor over all that is compiled in the with block:

        with plumb.inductor_check() as report:
            torch.compile(model)(x)
        assert report, report

    Before each pre-grad, joint and post-grad pass the graph is copied; both sides are run on the values of the
    script (made ones where there are none) and judged. The report is truthy when no pass is a fault; stage,
    pass_name, node, verdict and why tell of the first one, checked has all. Results of compilations are the same as
    without it. PLUMB_INDUCTOR_CHECK=1 in the environment of a script that imports plumb does the same for
    all of it, and logs to plumb.inductor_check."""
    report = InductorReport()
    with checking(report):
        yield report


# -- By the environment ----------------------------------------------------------------------------

class _Finder(importlib.abc.MetaPathFinder):
    """Waits for inductor to be loaded, which happens when something is compiled."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != COMPILER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def then(module: Any) -> None:
                run(module)
                for_all()
            spec.loader.exec_module = then  # type: ignore[method-assign]
        return spec


def from_environment() -> None:
    """Called when plumb is imported with the variable set."""
    if not hasattr(torch, "compile"):
        log.warning("%s is set, but inductor is of PyTorch 2; this is %s", VARIABLE, torch.__version__)
    elif COMPILER in sys.modules:
        for_all()
    else:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        process = os.getpid()

        def tell() -> None:
            if os.getpid() == process and finder in sys.meta_path:
                print(f"plumb: inductor_check: {InductorReport().summary()}", file=sys.stderr)

        atexit.register(tell)


def for_all() -> None:
    """From here to the end of the program."""
    report = InductorReport()
    try:
        stack = contextlib.ExitStack()
        stack.enter_context(checking(report))
    except Exception:
        log.exception("inductor's passes are not checked")
        return
    process = os.getpid()

    def tell() -> None:
        if os.getpid() == process:
            stack.close()  # and is kept until here: what nobody keeps is over at once
            print(f"plumb: inductor_check: {report.summary()}", file=sys.stderr)

    atexit.register(tell)
