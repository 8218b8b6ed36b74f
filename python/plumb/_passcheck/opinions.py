"""The second opinion about a pass: what right arithmetic shows for the module before it.

Both modules are run in float64, and the one before also with errors of the size that its types
make.
A result in float64 that is off is another formula; a stored one that is off by more than the errors
explain is a fault (docs/PASSCHECK.md)."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from plumb import _core, tensors
from plumb._passcheck.copies import copy_inputs, describe
from plumb._passcheck.raised import BITS, Errors, Raised, Recorder, raise_module, widened
from plumb._verdict.judge import Opinion

Key = Tuple[str, str]  # kind and name
Harvest = Dict[Key, torch.Tensor]

FEW_NUMBERS = 1 << 12
MOST_NUMBERS = 1 << 26  # in all runs together
SETS = ("noise", "fine", "constants", "changed")


def raise_inputs(value: Any, change: Callable[[torch.Tensor], torch.Tensor] = widened) -> Any:
    """A copy with every floating-point tensor in float64."""
    if isinstance(value, torch.Tensor):
        wide = change(value.detach())
        return wide.clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: raise_inputs(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [raise_inputs(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def constants(module: torch.nn.Module) -> Dict[str, torch.Tensor]:
    """Parameters, buffers, and tensors that are mere attributes."""
    found = dict(module.named_parameters())
    found.update(module.named_buffers())
    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor):
                found[f"{prefix}.{name}" if prefix else name] = value
    return found


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    try:
        return a is b or ((a.dtype, a.shape) == (b.dtype, b.shape) and
                          tensors.view(a.detach()).crc32() == tensors.view(b.detach()).crc32())
    except Exception:
        return False


class Plan:
    """What is run and kept of either side."""

    def __init__(self, kinds: Any, outputs: Sequence[Optional[str]],
                 cotangents: Dict[str, torch.Tensor], rate: float) -> None:
        self.kinds, self.outputs, self.cotangents, self.rate = kinds, outputs, cotangents, rate


class Opinions:
    """Asked for each pair of the first iteration. make_side: a side of a check from a module."""

    def __init__(self, given: Sequence[torch.nn.Module], names: Dict[str, str], inputs: Any,
                 plan: Plan, make_side: Callable[..., Any], record_nodes: Callable[..., Any],
                 arithmetic: str) -> None:
        self.given, self.names, self.inputs, self.plan = given, names, inputs, plan
        self.make_side, self.record_nodes, self.arithmetic = make_side, record_nodes, arithmetic
        self.why = ""  # why nothing is judged
        self.no_backward = ""  # why gradients of all outputs are not
        self.exact: List[Optional[Harvest]] = [None, None]
        self.runs: Dict[str, List[Harvest]] = {name: [] for name in SETS}
        self.changed: List[set] = [set(), set()]  # names, as before where the pass renamed them
        self.recorded: List[Recorder] = []
        self.count = 0  # of runs in a set
        self.nodes: List[Callable[[str], None]] = []  # which add those of nodes to a set
        try:
            self._find_changed()
            self._run()
        except Exception as error:
            self.why = f"the module cannot be run in float64: {describe(error)}"

    # -- Runs --------------------------------------------------------------------------------------

    def _find_changed(self) -> None:
        sides = [{self.names.get(name, name) if i else name: value
                  for name, value in constants(module).items()}
                 for i, module in enumerate(self.given)]
        for i in (0, 1):
            self.changed[i] = {name for name, value in sides[i].items()
                               if name not in sides[1 - i] or
                               not same_bits(value, sides[1 - i][name])}

    def _run(self) -> None:
        for i in (0, 1):
            recorder = Recorder()
            self._harvest(i, recorder, None)
            self.recorded.append(recorder)
            if recorder.random:
                self.why = f"the module draws at random ({recorder.random})"
                return
        self.exact[0] = self._raised(0, None)
        try:
            self.exact[1] = self._raised(1, None)
        except Exception:
            self.exact[1] = None  # the stored results are judged all the same
        size = sum(value.numel() for value in self.exact[0].values())
        self.count = 8 if size < FEW_NUMBERS else 4
        for name in self._wanted():
            self._run_set(name)

    def _run_set(self, name: str) -> None:
        for run in range(self.count):
            seed = 1000 * SETS.index(name) + run + 1
            self.runs[name].append(
                self._raised(int(name in ("constants", "changed")), name, seed))
        for add in self.nodes:
            add(name)

    def _wanted(self) -> List[str]:
        found = ["noise"]
        if BITS.get(self.recorded[0].narrowest(), 4) < 24 and self.exact[1] is not None:
            found.append("fine")
        if self.changed[1] and self.exact[1] is not None:
            found.append("constants")
        return found  # "changed" is only for what seems a fault

    def _mode(self, i: int, name: Optional[str], errors: Optional[Errors]) -> Raised:
        return Raised(self.recorded[i], None if name == "constants" else errors)

    def _raised(self, i: int, name: Optional[str], seed: int = 0) -> Harvest:
        errors = _errors(name, seed)
        return self._harvest(i, self._mode(i, name, errors), errors, name)

    def _side(self, i: int, mode: Any, errors: Optional[Errors],
              name: Optional[str]) -> Tuple[Any, Any, Dict[str, torch.Tensor]]:
        """The side, its inputs, and its parameters without errors."""
        side = self.make_side(("before", "after")[i], self.given[i], [])
        side.names = self.names if i else {}
        if isinstance(mode, Recorder):
            return side, copy_inputs(self.inputs), {}
        types = {key: value.dtype for key, value in constants(side.module).items()}
        raise_module(side.module)
        clean = {key: value.clone() for key, value in side.parameters().items()}
        if errors is None:
            return side, raise_inputs(self.inputs), clean
        with torch.no_grad():
            for key, value in constants(side.module).items():
                known = self.names.get(key, key) if i else key
                if value.dtype not in (torch.float64, torch.complex128) or not value.numel():
                    continue
                if name != "constants":
                    value.copy_(errors.stored(value, types[key]))
                elif known in self.changed[1]:  # folded: the end of several steps
                    value.copy_(errors.stored(value, types[key], 2))
        if name == "constants":
            return side, raise_inputs(self.inputs), clean
        return side, raise_inputs(self.inputs, lambda value: errors.stored(
            widened(value), value.dtype) if value.is_floating_point() or value.is_complex() else
            value), clean

    def _harvest(self, i: int, mode: Any, errors: Optional[Errors],
                 name: Optional[str] = None) -> Harvest:
        with torch.autograd.set_detect_anomaly(False):  # which takes longer than everything else
            return self._run_side(i, mode, errors, name)

    def _run_side(self, i: int, mode: Any, errors: Optional[Errors],
                  name: Optional[str]) -> Harvest:
        side, inputs, clean = self._side(i, mode, errors, name)
        found: Harvest = {}

        def keep(kind: str, values: Dict[str, Any]) -> None:
            for key, value in values.items():
                if isinstance(value, torch.Tensor):
                    found[kind, key] = flat(value)

        with mode:
            side.run(inputs)
        keep("output", side.outputs)
        keep("buffer", side.buffers())
        keep("input", side.arguments)
        if not {"gradient", "step"} & set(self.plan.kinds):
            return found
        if self.plan.outputs[i] is not None:
            with mode:
                side.backward(self.plan.outputs[i])
        keep("gradient", side.gradients())
        for key, value in clean.items():
            grad = side.gradients().get(key)
            step = value if grad is None else value - self.plan.rate * grad
            found["parameter after step", key] = flat(step)
        if self.plan.cotangents:
            weights = {key: value if isinstance(mode, Recorder) else widened(value)
                       for key, value in self.plan.cotangents.items()}
            try:
                with mode:
                    keep("gradient of all outputs", side.gradients_of({
                        key: value.to(side.outputs[key].device)
                        for key, value in weights.items()}))
            except Exception as error:  # where both sides have none the check itself says so
                self.no_backward = f"its backward cannot be run in float64: {describe(error)}"
        return found

    # -- Nodes -------------------------------------------------------------------------------------

    def add_nodes(self, shared: Sequence[str], named_leaves: Callable[..., Dict[str, Any]]) -> None:
        """The same runs once more, for nodes of two graphs that kept their names."""
        if self.why or self.exact[1] is None:
            return

        def run(i: int, name: Optional[str], seed: int) -> Harvest:
            errors = _errors(name, seed)
            mode = self._mode(i, name, errors)
            side, inputs, _ = self._side(i, mode, errors, name)
            with mode:
                seen = self.record_nodes(side.module, inputs)
            return {("node", key): flat(leaf) for node in shared if node in seen
                    for key, leaf in named_leaves(seen[node], node, iterators=False).items()
                    if isinstance(leaf, torch.Tensor)}

        for i in (0, 1):
            self.exact[i].update(run(i, None, 0))
        size = sum(value.numel() for value in self.exact[0].values())

        def add(name: str) -> None:
            for number, harvest in enumerate(self.runs[name]):
                if size * 4 * len(self.runs[name]) <= MOST_NUMBERS:
                    i = int(name in ("constants", "changed"))
                    harvest.update(run(i, name, 1000 * SETS.index(name) + number + 1))

        for name in SETS:
            add(name)
        self.nodes.append(add)

    # -- One pair ----------------------------------------------------------------------------------

    def judge(self, kind: str, name: str, before: Any, after: Any,
              equal: Optional[bool] = None) -> Opinion:
        """equal: of what is no tensor, None where nobody can tell."""
        missing = before is None or after is None
        if kind == "parameter":
            if missing or name in self.changed[0]:
                return said("not judged",
                            "the pass changed this parameter; the outputs tell whether rightly")
            return said("same", "the same parameter, bit for bit")
        if kind in ("gradient", "gradient of all outputs", "parameter after step") and \
                name in self.changed[0] | self.changed[1]:
            return said("not judged",
                        "the pass changed this parameter, whose gradient is another one then")
        if not missing and not (tensors.is_tensor(before) and tensors.is_tensor(after)):
            if equal is None:
                return said("not judged", "neither a tensor nor a value that can be compared")
            return said("same" if equal else "fault",
                        "the same value" if equal else "another value than before")
        if self.why:
            return said("not judged", self.why)
        if self.no_backward and not missing and (kind, name) not in (self.exact[0] or {}):
            return said("not judged", self.no_backward)
        try:
            found = self._ask((kind, name), before, after)
            if found["verdict"] == "fault" and self.exact[1] is not None:
                if not self.runs["changed"]:
                    self._run_set("changed")
                found = self._ask((kind, name), before, after)
            return Opinion(name, found)
        except Exception as error:
            return said("not judged", describe(error))

    def _ask(self, key: Key, before: Any, after: Any) -> Dict[str, Any]:
        y = (self.exact[0] or {}).get(key)
        formula = (self.exact[1] or {}).get(key)
        whole = y is not None and isinstance(before, torch.Tensor) and \
            y.numel() == before.numel() * (2 if before.is_complex() else 1)
        if not whole:
            y = formula = None
        if formula is not None and formula.numel() != y.numel():
            formula = None

        def runs(name: str) -> List[Any]:
            found = [run[key] for run in self.runs[name] if key in run]
            return [tensors.view(one) for one in found if y is not None and
                    one.numel() == y.numel()]

        return _core.judge_whole(
            plain(before), plain(after), None if y is None else tensors.view(y),
            None if formula is None else tensors.view(formula), runs("noise"), runs("fine"),
            runs("constants") if formula is not None else [],
            runs("changed") if formula is not None else [],
            narrowest=str(self.recorded[1].narrowest()), arithmetic=self.arithmetic or None)


def _errors(name: Optional[str], seed: int) -> Optional[Errors]:
    """Those of a set. What the module after does more coarsely may be its sums, too."""
    return Errors(seed, name == "fine", name == "changed") if name else None


def flat(value: torch.Tensor) -> torch.Tensor:
    """Its numbers as float64 on the CPU, complex ones by parts."""
    value = value.detach()
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    return value.to("cpu", torch.float64).contiguous().reshape(-1).clone()


def plain(value: Any) -> Any:
    return tensors.to_core(value.detach() if isinstance(value, torch.Tensor) else value)


def said(verdict: str, why: str) -> Opinion:
    return Opinion("", {"verdict": verdict, "why": why, "worst": 0.0, "limit": 0.0, "at": 0,
                        "got": 0.0, "expected": 0.0, "differing": 0.0, "arithmetic": "",
                        "allowed": False, "pattern": "", "version": 0})
