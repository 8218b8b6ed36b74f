"""Compilers that stop after each stage of torch.compile, and keep what they were given.

dynamo runs the traced graph as it is; aot the graphs of AOT autograd; decompositions those with inductor's
decompositions and partitioner; inductor is the whole.
"""

import contextlib
import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import torch
from torch import fx

from plumb._compile.snapshot import Copies, snapshot
from plumb._passcheck.copies import copy_inputs
from plumb._passcheck.nodes import copy_of

_number = itertools.count()


class Graph:
    """One graph that a compiler got, and its last run."""

    def __init__(self, module: fx.GraphModule, backward: bool) -> None:
        self.module, self.backward = module, backward
        self.inputs: Optional[Sequence[Any]] = None
        self.results: Optional[Sequence[Any]] = None
        self.state: Optional[torch.Tensor] = None  # of the generator, before the run
        self.values: Dict[str, Any] = {}           # of nodes, where it was interpreted
        self.final: Optional[fx.GraphModule] = None  # what inductor's passes made of it, where they were watched

    def starts(self, inputs: Sequence[Any]) -> None:
        self.state = torch.get_rng_state()
        self.inputs = [value.detach() if isinstance(value, torch.Tensor) else value
                       for value in copy_inputs(list(inputs))]

    def ends(self, results: Any) -> None:
        self.results = copy_of(list(results) if isinstance(results, (list, tuple)) else [results])


class _Interpreter(fx.Interpreter):
    def __init__(self, graph: Graph, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.graph_kept = graph
        self.extra_traceback = False

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op not in ("placeholder", "get_attr", "output"):
            self.graph_kept.values[n.name] = copy_of(result)
        return result


class Backend:
    """stage: dynamo, aot, decompositions or inductor. keeping: whether graphs and values are kept."""

    def __init__(self, stage: str, keeping: bool, patches: Dict[str, Any]) -> None:
        self.stage, self.keeping, self.patches = stage, keeping, patches
        self.__name__ = stage  # which the compiler's errors tell
        self.graphs: List[Graph] = []
        self.count = 0  # of graphs that were compiled
        self.finals: Sequence[fx.GraphModule] = ()  # of a check of passes that is under way

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any], **more: Any) -> Any:
        self.count += 1
        if self.stage == "dynamo":
            return self._interpreted(module, False)
        if self.stage == "inductor":
            return self._inductor(module, inputs)
        from functorch.compile import min_cut_rematerialization_partition
        from torch._dynamo.backends.common import aot_autograd
        options: Dict[str, Any] = {
            "fw_compiler": lambda graph, _: self._boxed(graph, False),
            "bw_compiler": lambda graph, _: self._boxed(graph, True),
            "partition_fn": min_cut_rematerialization_partition,
            "keep_inference_input_mutations": True}
        if self.stage == "decompositions":
            from torch._inductor.compile_fx import select_decomp_table
            options["decompositions"] = select_decomp_table()
        return aot_autograd(**options)(module, inputs)

    def _interpreted(self, module: fx.GraphModule, backward: bool) -> Callable[..., Any]:
        if not self.keeping:
            return fx.Interpreter(module).run
        graph = Graph(snapshot(module, Copies()), backward)
        self.graphs.append(graph)

        def run(*args: Any) -> Any:
            graph.starts(args)
            results = _Interpreter(graph, module).run(*args)
            graph.ends(results)
            return results
        return run

    def _boxed(self, module: fx.GraphModule, backward: bool) -> Callable[..., Any]:
        inner = self._interpreted(module, backward)

        def run(args: List[Any]) -> Any:
            given = list(args)
            args.clear()
            return inner(*given)
        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def _inductor(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner
        if not self.keeping:
            return compile_fx(module, inputs, config_patches=self.patches)

        def inner(graph_module: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
            graph = Graph(snapshot(graph_module, Copies()), bool(options.get("is_backward")))
            self.graphs.append(graph)
            compiled: Any = compile_fx_inner(graph_module, example_inputs, **options)
            graph.final = self.finals[-1] if self.finals else None

            def run(args: List[Any]) -> Any:
                graph.starts(args)
                results = compiled(args)
                graph.ends(results)
                return results
            run._boxed_call = True  # type: ignore[attr-defined]
            return run
        return compile_fx(module, inputs, inner_compile=inner, config_patches=self.patches)


def compiled_with(backend: Backend, options: Dict[str, Any]) -> Callable[[torch.nn.Module], Callable[..., Any]]:
    """A function of code of its own, since the compiler keeps what it made by the code that it read."""
    def make(module: torch.nn.Module) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return module(*args, **kwargs)
        call.__code__ = call.__code__.replace(co_name=f"checked_{next(_number)}")
        return torch.compile(call, backend=backend, **options)
    return make


@contextlib.contextmanager
def compiler_settings(fallback_random: bool) -> Iterator[None]:
    """No limit on compilations, after which a function would silently run uncompiled; random numbers those
    of PyTorch, where the model draws any."""
    import torch._dynamo
    import torch._inductor.config
    limits = {name: 1 << 16 for name in ("recompile_limit", "accumulated_recompile_limit", "cache_size_limit",
                                         "accumulated_cache_size_limit")
              if hasattr(torch._dynamo.config, name)}
    with torch._dynamo.config.patch(limits), torch._inductor.config.patch(fallback_random=fallback_random):
        yield
