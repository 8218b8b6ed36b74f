"""torch.fx graphs as graph files of plumb, which `plumb numeric_check` runs without PyTorch.

docs/PASSCHECK.md describes the files. The graph is run once, so that sizes and other numbers that
the model takes from its inputs become literals.
"""

import json
import operator
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple, Union

import torch
from torch import fx, nn

from plumb import _core, tensors
from plumb._passcheck.copies import copy_inputs, copy_module, describe
from plumb._passcheck.leaves import PLAIN
from plumb._passcheck.nodes import in_order
from plumb._passcheck.run import split_inputs
from plumb._passcheck.state import deterministic, seed
from plumb._verdict.lower import Held, lower

_OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and_": "bitwise_and",
    "or_": "bitwise_or", "xor": "bitwise_xor", "invert": "bitwise_not", "getitem": "__getitem__",
    "itruediv": "div", "ifloordiv": "floor_divide", "imod": "remainder", "iadd": "add",
    "isub": "sub", "imul": "mul", "ipow": "pow", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "imatmul": "matmul",
}
_FOLDERS = "plumb_tensors"
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def export_graph(module: nn.Module, inputs: Any, path: Union[str, Path]) -> None:
    """Writes `path`, a JSON file, and beside it a folder with the tensors. module: a GraphModule,
    or a module that torch.fx can trace; inputs: as for numeric_check. Raises plumb.Error with all
    that plumb has no operator for."""
    parts = module.named_modules() if isinstance(module, nn.Module) else ()
    more = [text for path, part in parts for text in _besides(path, part)]
    if more:
        raise _error("; ".join(more))
    try:
        graph = module if isinstance(module, fx.GraphModule) else \
            fx.symbolic_trace(copy_module(module, []))  # tracing runs the module's own code
        twin = copy_module(in_order(graph, []), [])
    except Exception as error:
        raise _error(f"torch.fx makes no graph of this module: {describe(error)}") from error
    with deterministic():
        export = _Export(twin, inputs, Path(path))
        export.run()
    export.write()


def _besides(path: str, module: nn.Module) -> Iterator[str]:
    """What a module does that tracing does not see, or takes for constant."""
    place = path or type(module).__name__
    if any(getattr(module, table, None) for table in _HOOKS):
        yield f"{place}: it has hooks (weight_norm and spectral_norm are such), which no graph has"
    if hasattr(module, "parametrizations"):
        yield f"{place}: its parameters are computed (torch.nn.utils.parametrize)"
    if not path and "forward" in vars(module):
        yield f"{place}: its forward is not that of its class"


class _Values(fx.Interpreter):
    """What every node is, without copies: who shares memory with whom can be seen."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.values: Dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


class _Export:
    def __init__(self, module: fx.GraphModule, inputs: Any, path: Path) -> None:
        self.module = module
        self.path = path
        args, kwargs = split_inputs(inputs)
        places = [n.target for n in module.graph.nodes if n.op == "placeholder"]
        self.arguments = args + tuple(kwargs[name] for name in places[len(args):] if name in kwargs)
        self.names = {id(value): name for name, value in
                      [*module.named_buffers(), *module.named_parameters()]}
        self.sections: Dict[str, Dict[str, Any]] = {"inputs": {}, "parameters": {}, "buffers": {}}
        self.saved: Dict[str, torch.Tensor] = {}
        self.nodes: List[Dict[str, Any]] = []
        self.outputs: List[Any] = []
        self.stands_for: Dict[fx.Node, Any] = {}  # the JSON of a reference to each node
        self.problems: List[str] = []
        self.used: Set[str] = set()

    # -- Walking -----------------------------------------------------------------------------------

    def run(self) -> None:
        recorder = _Values(copy_module(self.module, []))
        seed()
        fresh = copy_inputs(self.arguments)
        try:
            with torch.no_grad():
                recorder.run(*fresh)
        except Exception as error:
            raise _error(f"the graph could not be run with these inputs: {describe(error)}") \
                from error
        # The recorder ran a copy: its nodes stand in the same order.
        self.values = dict(zip(self.module.graph.nodes, recorder.values.values()))
        for name, parameter in self.module.named_parameters():
            self._leaf("parameters", name, parameter)
        given = iter(self.arguments)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, next(given, None))
            elif node.op == "get_attr":
                self.stands_for[node] = {"ref": self._attribute(self._fetch(node.target),
                                                                node.target)}
            elif node.op == "output":
                self._results(node)
            elif not _holds_tensor(self.values[node]):
                if node.target is operator.setitem:
                    self.problems.append(f"{node.name}: setitem changes a tensor in place")
                continue  # a number that depends on shapes: a literal wherever it is used
            else:
                self._call(node)
        if self.problems:
            raise _error("; ".join(dict.fromkeys(self.problems)))

    def _results(self, node: fx.Node) -> None:
        try:
            self.outputs = [self._json(value) for _, value in leaves_of(node.args[0])]
        except _Lost:
            pass
        except NotImplementedError as error:
            self.problems.append(f"the output: {error}")

    def _fetch(self, target: str) -> Any:
        value: Any = self.module
        for part in target.split("."):
            value = getattr(value, part)
        return value

    def _placeholder(self, node: fx.Node, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self._leaf("inputs", node.name, value)
            self.stands_for[node] = {"ref": node.name}
        elif _holds_tensor(value):
            self.problems.append(f"the input {node.name} is a {type(value).__name__} of tensors; "
                                 "graph files take tensors")

    def _attribute(self, value: Any, name: str) -> str:
        name = self.names.get(id(value), name)
        if name not in self.used:
            self._leaf("parameters" if isinstance(value, nn.Parameter) else "buffers", name, value)
        return name

    def _leaf(self, section: str, name: str, value: torch.Tensor) -> None:
        self.used.add(name)
        entry: Dict[str, Any] = {"dtype": str(value.dtype).rpartition(".")[2],
                                 "shape": list(value.shape)}
        entry["file"] = f"{self.path.stem}_{_FOLDERS}/{len(self.saved)}.pt"
        self.saved[entry["file"]] = value.detach().clone()
        if value.requires_grad != (section == "parameters"):
            entry["requires_grad"] = value.requires_grad
        self.sections[section][name] = entry

    # -- Calls -------------------------------------------------------------------------------------

    def _call(self, node: fx.Node) -> None:
        args, kwargs = list(node.args), dict(node.kwargs)
        in_place = bool(kwargs.pop("inplace", False))
        try:
            if node.op == "call_module":
                module = self._fetch(str(node.target))
                if "forward" in vars(module):
                    raise NotImplementedError("its forward is not that of its class")
                lowered = lower(module)
                in_place = bool(getattr(module, "inplace", False))
                if lowered.op is None:
                    self.stands_for[node] = self._json(args[0])
                    return
                op = lowered.op
                args += [self._held(module, node, item) for item in lowered.args]
                kwargs.update({key: self._held(module, node, item)
                               for key, item in lowered.kwargs.items()})
            elif node.op == "call_method":
                op = f"Tensor.{node.target}"
                in_place = str(node.target).endswith("_") and not str(node.target).endswith("__")
            else:
                op, changes = _function_name(node.target)
                in_place = in_place or changes
                if op.endswith("__getitem__") and isinstance(args[0], fx.Node) and \
                        isinstance(self.values[args[0]], (tuple, list)):
                    self._element(node, args)
                    return
            if not _core.has_op(*_split(op)):
                raise NotImplementedError(f"plumb has no operator {op}")
            entry = {"name": self._free_name(node.name), "op": op,
                     "args": [self._json(item) for item in args]}
            if kwargs:
                entry["kwargs"] = {key: self._json(item) for key, item in kwargs.items()}
        except _Lost:
            return
        except NotImplementedError as error:
            self.problems.append(f"{node.name}: {error}")
            return
        self.nodes.append(entry)
        self.stands_for[node] = {"ref": entry["name"]}
        if in_place:
            self._changed(node)

    def _element(self, node: fx.Node, args: List[Any]) -> None:
        index, source = args[1], self._json(args[0])
        if isinstance(source, list) and isinstance(index, int):
            self.stands_for[node] = source[index]
        elif isinstance(index, int) and "index" not in source:
            self.stands_for[node] = {**source, "index": index}
        elif isinstance(index, slice):
            picked = range(len(self.values[args[0]]))[index]
            self.stands_for[node] = [{**source, "index": k} for k in picked]
        else:
            raise NotImplementedError(f"element {index!r} of a {type(args[0]).__name__}")

    def _changed(self, node: fx.Node) -> None:
        """A call that works in place: from here on its first argument means its result. Others that
        look at the same memory would have to follow, which a graph file cannot say."""
        source = node.args[0]
        if not isinstance(source, fx.Node):
            return
        changed = _storage(self.values[source])
        position = list(self.module.graph.nodes).index(node)
        later = set(list(self.module.graph.nodes)[position + 1:])
        for other, value in self.values.items():
            if other in (node, source) or not any(user in later for user in other.users):
                continue
            if other in later or changed is None or _storage(value) != changed:
                continue
            self.problems.append(f"{node.name} changes {source.name} in place, and {other.name}, a "
                                 "view of the same memory, is used afterwards")
        self.stands_for[source] = self.stands_for[node]

    def _held(self, module: nn.Module, node: fx.Node, item: Any) -> Any:
        if not isinstance(item, Held):
            return item
        return _Json({"ref": self._attribute(getattr(module, item.name),
                                             f"{node.target}.{item.name}")})

    def _free_name(self, name: str) -> str:
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name

    # -- JSON --------------------------------------------------------------------------------------

    def _json(self, value: Any) -> Any:
        if isinstance(value, _Json):
            return value.value
        if isinstance(value, fx.Node):
            if value in self.stands_for:
                return self.stands_for[value]
            if _holds_tensor(self.values[value]):
                raise _Lost(value.name)
            return self._json(self.values[value])
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):  # torch.Size too
            return [self._json(item) for item in value]
        if isinstance(value, slice):
            return {"type": "slice",
                    "value": [self._json(item) for item in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"type": "ellipsis", "value": "..."}
        for kind in ("dtype", "device", "memory_format"):
            if isinstance(value, getattr(torch, kind)):
                return {"type": f"torch.{kind}", "value": str(value)}
        if isinstance(value, torch.Tensor):
            return {"ref": self._attribute(value, self._free_name("constant"))}
        raise NotImplementedError(f"an argument of type {type(value).__name__}")

    def write(self) -> None:
        folder = self.path.parent / f"{self.path.stem}_{_FOLDERS}"
        if self.saved:
            folder.mkdir(exist_ok=True)
        for name, value in self.saved.items():
            tensors.view(value.contiguous()).save(str(self.path.parent / name))
        parts = [f" {json.dumps(key)}: {_spread(value)},\n" for key, value in self.sections.items()]
        text = ('{\n "plumb_graph": 1,\n' + "".join(parts) + f' "nodes": {_spread(self.nodes)},\n'
                f' "outputs": {json.dumps(self.outputs)}\n}}\n')
        whole = self.path.with_name(self.path.name + ".part")  # the file is whole or absent
        whole.write_text(text, encoding="utf-8")
        whole.replace(self.path)


class _Lost(NotImplementedError):
    """It needs a node that could not be written, which is a problem already."""


class _Json:
    """A piece of the file that is made already."""

    def __init__(self, value: Any) -> None:
        self.value = value


def leaves_of(value: Any) -> List[Tuple[str, Any]]:
    """The nodes and plain values of an output, in order."""
    if isinstance(value, fx.Node):
        return [("", value)]
    inside = list(tensors.children(value))
    if inside:
        return [pair for _, item in inside for pair in leaves_of(item)]
    plain = value is None or tensors.is_tensor(value) or isinstance(value, PLAIN)
    return [("", value)] if plain else []


def _function_name(target: Any) -> Tuple[str, bool]:
    """The name of an operator, and whether it works in place."""
    name = getattr(target, "__name__", str(target))
    where = getattr(target, "__module__", "") or ""
    if hasattr(target, "_schema") and hasattr(target, "overloadpacket"):  # torch.ops.aten...
        name = str(target._schema.name)
        overload = target._schema.overload_name
        return (f"{name}.{overload}" if overload else name), name.endswith("_")
    if getattr(operator, name, None) is target:
        return "Tensor." + _OPERATORS.get(name, name), name in _OPERATORS and name[0] == "i" and \
            name != "invert"
    if where.startswith("torch.nn.functional") or where == "torch._C._nn" or \
            getattr(torch.nn.functional, name, None) is target:
        return f"Functional.{name}", name.endswith("_")
    return f"Torch.{name}", name.endswith("_") and not name.endswith("__")


def _split(op: str) -> Tuple[Optional[str], str]:
    prefix, dot, rest = op.partition(".")
    return (prefix, rest) if dot and prefix[0].isupper() else (None, op)


def _holds_tensor(value: Any) -> bool:
    return next(tensors.flatten(value), None) is not None


def _storage(value: Any) -> Optional[int]:
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    get = getattr(value, "untyped_storage", None) or value.storage
    return get().data_ptr()


def _spread(value: Any) -> str:
    """One entry a line."""
    if not value:
        return json.dumps(value)
    if isinstance(value, dict):
        lines = [f"  {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n }"
    return "[\n" + ",\n".join("  " + json.dumps(item) for item in value) + "\n ]"


def _error(message: str) -> "_core.Error":
    error = _core.Error(message)
    error.code = "UNSUPPORTED"
    return error
