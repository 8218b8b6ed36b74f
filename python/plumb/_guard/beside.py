"""A function of the user's own beside a reference of the user's own.

The reference is run as it is, in float64, and in float64 with errors of the size that right
arithmetic makes; the result of the function is judged against these as that of a pass is against
the graph before it (docs/VERDICTS.md). Gradients come from a second run of the function, on copies,
for cotangents drawn at random.
"""

import contextlib
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from plumb import _core, tensors
from plumb._guard.check import (NoReference, busy, same_memory, stack_text, why_unseen)
from plumb._passcheck.copies import copy_inputs, describe
from plumb._passcheck.opinions import FEW_NUMBERS, flat, plain, raise_inputs, said
from plumb._passcheck.raised import BITS, Errors, Raised, Recorder, Step, widened
from plumb._passcheck.state import keep_generators
from plumb._verdict.judge import ORDER, Opinion

try:
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass as _is_wrapper
except ImportError:  # PyTorch 1
    def _is_wrapper(value: Any) -> bool:  # type: ignore[misc]
        return False

_is_transformed = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor",
                          lambda tensor: False)
Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]
Leaves = List[Tuple[str, torch.Tensor]]
Found = Dict[str, torch.Tensor]  # results, what was written into, gradients, by what each is called
HALF = (torch.bfloat16, torch.float16)
SEED = 20_000
CALLED = "the reference"


def named_tensors(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Tuple[str, torch.Tensor]]:
    """"argument 0", "argument weight", "argument 1.scale"."""
    found = [*tensors.flatten(tuple(args)), *tensors.flatten(dict(kwargs))]
    return [(f"argument {path}", value) for path, value in found if isinstance(value, torch.Tensor)]


def outputs_of(result: Any) -> Found:
    found = [(path, value) for path, value in tensors.flatten(result) if isinstance(value, torch.Tensor)]
    return {f"output {path}" if path else "output": value for path, value in found}


def with_each(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same arguments with every tensor of lists, tuples and dictionaries changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: with_each(item, change) for key, item in value.items()} \
            if type(value) is dict else value
    if isinstance(value, (list, tuple)):
        items = [with_each(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def passable(inputs: Arguments) -> Tuple[Arguments, Leaves]:
    """Leaves that want a gradient may not be written into; what the program has there may be. So
    copies are passed; and with them come the leaves, each argument's own, also where one tensor is
    passed twice."""
    leaves: Dict[int, torch.Tensor] = {}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.requires_grad:
            return tensor
        leaf = tensor.detach().requires_grad_()
        copy = leaf.clone()
        leaves[id(copy)] = leaf
        return copy
    args, kwargs = with_each(inputs, change)
    return (args, kwargs), [(name, leaves.get(id(value), value))
                            for name, value in named_tensors(args, kwargs)]


def sums_of(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Tuple[Any, Any, int]]:
    """By which a tensor that was written into is known."""
    return {name: (value.shape, value.dtype, tensors.view(value.detach()).crc32())
            for name, value in named_tensors(args, kwargs)}


def is_number(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def differentiable(found: Found) -> Found:
    return {name: value for name, value in found.items() if value.requires_grad and is_number(value)}


def gradients(found: Found, cotangents: Found, leaves: Leaves) -> Found:
    """Of the leaves, as PyTorch means it: none is zero."""
    outputs = {name: value for name, value in differentiable(found).items() if name in cotangents}
    wanted = [(name, leaf) for name, leaf in leaves if leaf.requires_grad and is_number(leaf)]
    if not outputs or not wanted:
        return {}
    drawn = [cotangents[name].to(value.device, value.dtype) for name, value in outputs.items()]
    got = torch.autograd.grad(list(outputs.values()), [leaf for _, leaf in wanted], drawn,
                              allow_unused=True)
    return {f"gradient of {name}": torch.zeros_like(leaf) if grad is None else grad
            for (name, leaf), grad in zip(wanted, got)}


def written(before: Dict[str, Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Found:
    after = sums_of(args, kwargs)
    return {name: value.detach() for name, value in named_tensors(args, kwargs)
            if after[name] != before.get(name)}


class Given:
    """The arguments of a call as they were before it, in memory of their own."""

    def __init__(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.args, self.kwargs = copy_inputs((tuple(args), dict(kwargs)))
        self.named = named_tensors(self.args, self.kwargs)

    def copy(self) -> Arguments:
        return copy_inputs((self.args, self.kwargs))

    def wide(self, errors: Optional[Errors]) -> Arguments:
        """In float64, with errors as if they had just been stored."""
        def change(value: torch.Tensor) -> torch.Tensor:
            if errors is None or not is_number(value):
                return widened(value)
            return errors.stored(widened(value), value.dtype)
        return raise_inputs(self.copy(), change)

    def types(self) -> List[torch.dtype]:
        return [tensor.dtype for _, tensor in self.named if is_number(tensor)]

    def narrowest(self) -> torch.dtype:
        return min(self.types(), key=lambda dtype: BITS.get(dtype, 4), default=torch.float32)

    def changed(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Found:
        """Which of these arguments are no longer what they were."""
        return written(sums_of(self.args, self.kwargs), args, kwargs)


class Run(NamedTuple):
    outputs: Found
    written: Found
    grads: Found

    def all(self) -> Found:
        return {**self.outputs, **self.written, **self.grads}


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Generators as they are, and no warnings: the program did not ask for these runs."""
    undo = keep_generators()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for put_back in undo:
            put_back()


def stored_as(recorded: Recorder, change: Callable[[torch.dtype], torch.dtype]) -> Recorder:
    """The same run as if its results had been stored in other types."""
    twin = Recorder()
    twin.seen = [Step(step.name, [change(dtype) for dtype in step.dtypes], step.terms, step.casts)
                 for step in recorded.seen]
    twin.types, twin.random = set(map(change, recorded.types)), recorded.random
    return twin


def narrow(recorded: Recorder, dtype: torch.dtype) -> Recorder:
    return stored_as(recorded, lambda _: dtype)


NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}


class Plain:
    """A reference that is a mere function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def ready(self, wide: bool, errors: Optional[Errors]) -> Tuple[Callable[..., Any], Leaves]:
        """What is called in one run, and the tensors besides its arguments whose gradients count."""
        return self.function, []

    def recorder(self) -> Recorder:
        """What sees a run that nobody raises."""
        return Recorder()

    def passes(self, mode: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """Right before a run: what it is given, as it is passed."""


class Reference:
    """All runs of a reference for one call."""

    def __init__(self, plan: Plain, given: Given, cotangents: Optional[Found]) -> None:
        self.plan, self.given, self.cotangents = plan, given, cotangents
        self.recorded = Recorder()
        self.stored: Optional[Run] = None  # as it is, in the types of the program
        try:
            self.stored = self._run(None, False)
        except NoReference:
            raise
        except Exception:
            pass  # it may be one for float64 only
        if self.recorded.random:
            raise NoReference(f"it draws at random ({self.recorded.random})")
        try:
            if self.stored is None:
                self._run(None, True)
                self.recorded = narrow(self.recorded, given.narrowest())
            elif not any(dtype in NARROWER for dtype in given.types()):
                # A reference may go to float64 by itself; what it stands for does not.
                self.recorded = stored_as(self.recorded, lambda dtype: NARROWER.get(dtype, dtype))
            self.exact = self._run(Raised(self.recorded), True).all()
        except NoReference:
            raise
        except Exception as error:
            raise NoReference(f"it cannot be run in float64 ({describe(error)})") from None
        size = sum(value.numel() for value in self.exact.values())
        self.count = 8 if size < FEW_NUMBERS else 4
        self.noise = self._runs(self.recorded, 0)
        self.half: List[Found] = []  # as if everything were rounded to the 16-bit type of the inputs
        if given.narrowest() in HALF:
            self.half = self._runs(narrow(self.recorded, given.narrowest()), 1)

    def _run(self, mode: Any, wide: bool, errors: Optional[Errors] = None) -> Run:
        """mode None: a recorder of its own."""
        inputs = self.given.wide(errors) if wide else self.given.copy()
        function, held = self.plan.ready(wide, errors)
        if mode is None:
            mode = self.recorded = self.plan.recorder()
        with torch.set_grad_enabled(self.cotangents is not None):
            (args, kwargs), leaves = passable(inputs)
            self.plan.passes(mode, args, kwargs)
            before = sums_of(args, kwargs)
            with mode:
                result = function(*args, **kwargs)
            outputs, changed = outputs_of(result), written(before, args, kwargs)
            if self.cotangents is None:
                return Run(outputs, changed, {})
            with mode:
                return Run(outputs, changed, gradients(outputs, self.cotangents, [*leaves, *held]))

    def _runs(self, recorded: Recorder, kind: int) -> List[Found]:
        found = []
        for number in range(self.count):
            errors = Errors(SEED * (kind + 1) + number)
            found.append(self._run(Raised(recorded, errors), True, errors).all())
        return found

    def judge(self, name: str, got: torch.Tensor, arithmetic: str) -> Opinion:
        exact = self.exact.get(name)
        if exact is None:
            return said("fault", "the reference has no such result")
        y = flat(exact)
        runs = lambda of: [tensors.view(one) for one in
                           (flat(run[name]) for run in of if name in run) if one.numel() == y.numel()]
        half = runs(self.half)
        found = _core.judge_whole(
            plain(self.shaped(name, got)), plain(got), tensors.view(y),
            tensors.view(y) if half else None, runs(self.noise), [], [], half,
            narrowest=str(self.given.narrowest()), arithmetic=arithmetic or None, called=CALLED)
        return Opinion(name, found)

    def shaped(self, name: str, got: torch.Tensor) -> torch.Tensor:
        """What the reference itself gives in the types of the program; where it computes in a wider
        type than it was given and does not go back, or takes float64 only, in the result's."""
        stored = self.stored.all().get(name) if self.stored is not None else None
        if stored is None:
            stored = self.exact[name]
            return stored.to(got.dtype) if is_number(stored) and is_number(got) else stored
        if stored.dtype == got.dtype or not (is_number(stored) and is_number(got)):
            return stored
        bits = lambda dtype: BITS.get(dtype, 4)
        fine = bits(got.dtype) >= min([bits(stored.dtype), *map(bits, self.given.types())])
        return stored.to(got.dtype) if fine and stored.is_complex() == got.is_complex() else stored


def why_not(named: Leaves) -> Optional[str]:
    for _, tensor in named:
        why = why_unseen(tensor)
        if why is None and (_is_wrapper(tensor) or tensor.is_nested):
            why = f"{type(tensor).__name__}, a tensor that is made of others"
        if why is None and _is_transformed(tensor):
            why = "a transform of torch.func is at work"
        if why is not None:
            return why
    return None


def drawn_like(outputs: Found, draw: int) -> Found:
    """A cotangent for each output: numbers that its type holds."""
    generator = torch.Generator().manual_seed(SEED + draw)
    found: Found = {}
    for name, value in outputs.items():
        wide = torch.complex128 if value.is_complex() else torch.float64
        drawn = torch.randn(value.shape, dtype=wide, generator=generator)
        found[name] = drawn.to(value.dtype)
    return found


def reference_of(plan: Plain, given: Given, cotangents: Optional[Found]) -> Reference:
    """What a reference compiles does not compile while its operators are looked at; where that is
    all that is wrong with it, it is run as it was written."""
    stance = getattr(getattr(torch, "compiler", None), "set_stance", None)
    try:
        return Reference(plan, given, cotangents)
    except NoReference:
        if stance is None or "torch._dynamo" not in sys.modules:
            raise
    with stance("force_eager"):
        return Reference(plan, given, cotangents)


class Check:
    """One call: what it was given, then what it gave."""

    def __init__(self, op: _core.GuardOperator, given: Given, wants_gradients: bool) -> None:
        self.op, self.given = op, given
        self.again: Optional[Callable[[str], Opinion]] = None  # on a gradient, from another draw
        self.wants_gradients = wants_gradients and torch.is_grad_enabled() and any(
            tensor.requires_grad for _, tensor in given.named)

    def judge(self, function: Callable[..., Any], plan: Plain, args: Tuple[Any, ...],
              kwargs: Dict[str, Any], result: Any, arithmetic: str) -> None:
        """Counted and logged; NoReference: neither."""
        outputs = outputs_of(result)
        why = why_not(list(outputs.items()))
        if why is not None:
            raise NoReference(why)
        changed = self.given.changed(args, kwargs)
        cotangents, grads = None, {}
        if self.wants_gradients and differentiable(outputs):
            cotangents, grads = self._gradients(function, outputs, 0)
        elif self.wants_gradients and outputs:
            self.op.pass_over("gradients: its result has none")
        try:
            ours = reference_of(plan, self.given, cotangents)
        except NoReference:
            if cotangents is None:
                raise
            ours = reference_of(plan, self.given, None)
        if grads and not any(name in ours.exact for name in grads):
            self.op.pass_over("gradients: the reference has none")
            grads = {}

        def again(name: str) -> Opinion:
            other, found = self._gradients(function, outputs, 1)
            return reference_of(plan, self.given, other).judge(name, found[name].detach(), arithmetic)
        self.again = again
        self.tell(ours, Run(outputs, changed, grads), arithmetic)

    def _gradients(self, function: Callable[..., Any], outputs: Found,
                   draw: int) -> Tuple[Optional[Found], Found]:
        cotangents = drawn_like(differentiable(outputs), draw)
        try:
            inputs = self.given.copy()
            with torch.enable_grad():
                (args, kwargs), leaves = passable(inputs)
                again = outputs_of(function(*args, **kwargs))
                return cotangents, gradients(again, cotangents, leaves)
        except Exception as error:
            self.op.pass_over(f"gradients: a second run fails ({describe(error)})")
            return None, {}

    def _sure(self, opinion: Opinion) -> Opinion:
        """What is wrong with a gradient may come from how what the forward kept is rounded, and what
        the cotangents make of that; a fault is there for others too."""
        if opinion.verdict != "fault" or not opinion.name.startswith("gradient") or self.again is None:
            return opinion
        other = self.again(opinion.name)
        return other if other.verdict != "fault" else opinion

    def tell(self, ours: Reference, run: Run, arithmetic: str) -> None:
        # What the function writes into and the reference does not, is no result but a change.
        free = {name for name in run.written if name not in ours.exact}
        left = next((name for name in run.written if name in free and not any(
            same_memory(run.written[name], value) for value in run.outputs.values())), None)
        got = {name: value for name, value in run.all().items() if name not in free}
        missing = [name for name in ours.exact if name not in got
                   and (run.grads or not name.startswith("gradient"))]
        opinions = [self._sure(ours.judge(name, value.detach(), arithmetic)) for name, value in got.items()]
        for name in missing:
            written = name.startswith("argument")
            opinions.append(Opinion(name, vars(said("fault", f"{name} is "
                            f"{'left as it was' if written else 'missing'}; the reference has it"))))
        if not opinions:
            raise NoReference("neither it nor the reference gives a tensor")
        judged = [one for one in opinions if one.verdict != "not judged"] or opinions
        worst = max(judged, key=lambda one: ORDER.index(one.verdict))
        values, right, labels = [], [], []
        for name, value in got.items():
            exact = ours.exact.get(name)
            if exact is None:
                continue
            values.append(plain(value))
            right.append(plain(exact if is_number(value) else ours.shaped(name, value)))
            labels.append(name)
        on = labels.index(worst.name) if worst.name in labels else len(labels)
        self.op.judge(self.op.name, plain_args(self.given.args), plain_args(self.given.kwargs),
                      [plain(value) for value in run.outputs.values()], right, True, stack_text(),
                      left and f"the function changed its {left}, which the reference leaves alone",
                      values, labels, (on, worst.verdict, worst.why))


def plain_args(value: Any) -> Any:
    """Arguments for the log: tensors without their history."""
    if isinstance(value, torch.Tensor):
        return plain(value)
    if isinstance(value, dict):
        return {str(key): plain_args(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_args(item) for item in value]
    return tensors.to_core(value) if value is None or isinstance(
        value, (bool, int, float, str, torch.dtype, torch.device)) else str(value)


def begin(op: _core.GuardOperator, args: Tuple[Any, ...], kwargs: Dict[str, Any],
          wants_gradients: bool, more: Sequence[torch.Tensor] = ()) -> Optional[Check]:
    """None when the call is not to be checked; why is in the account. more: tensors that it uses
    besides its arguments."""
    named = named_tensors(args, kwargs)
    why = why_not(named)
    if why is not None:
        op.pass_over(why)
        return None
    if not op.claim(max([value.numel() for _, value in named] + [value.numel() for value in more],
                        default=0)):
        return None
    return Check(op, Given(args, kwargs), wants_gradients)


def run(op: _core.GuardOperator, function: Callable[..., Any], reference: Callable[..., Any],
        args: Tuple[Any, ...], kwargs: Dict[str, Any], wants_gradients: bool,
        arithmetic: str) -> Any:
    """Makes the call, and checks it if it can. What the function returns or raises is passed on as it
    is; what goes wrong in the check is counted."""
    check = None
    try:
        with busy():
            check = begin(op, args, kwargs, wants_gradients)
    except Exception as error:
        op.trouble(describe(error))
    result = function(*args, **kwargs)
    if check is not None:
        finish(op, lambda: check.judge(function, Plain(reference), args, kwargs, result, arithmetic))
    return result


def finish(op: _core.GuardOperator, judge: Callable[[], None]) -> None:
    try:
        with busy(), left_alone(), torch.autograd.set_detect_anomaly(False):
            judge()
    except NoReference as error:
        op.pass_over(str(error))
    except Exception as error:
        op.trouble(describe(error))
