"""plumb.judge: a result against what right arithmetic shows for the same call (docs/VERDICTS.md)."""

import difflib
import functools
import sys
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from plumb import _core, tensors

# Worst last: the verdict on a whole call is that of its worst part.
ORDER = ("same", "not judged", "rounding", "tie", "inherited", "cheaper arithmetic", "fault")

_PREFIXES = (("torch.nn.functional.", "Functional"), ("torch._C._nn.", "Functional"),
             ("torch.Tensor.", "Tensor"), ("torch.ops.aten.", "Aten"), ("aten::", "Aten"),
             ("aten.", "Aten"), ("torch.", "Torch"), ("F.", "Functional"))


class Opinion:
    """What is to be said of one result, or of all results of a call (`parts`).

    `verdict` is a word of ORDER, `why` a sentence with the numbers that decided. An opinion is true
    unless it is a fault, or nothing could be judged."""

    def __init__(self, name: str, fields: Dict[str, Any], parts: Sequence["Opinion"] = ()) -> None:
        self.name = name
        self.verdict: str = fields["verdict"]
        self.why: str = fields["why"]
        self.worst: float = fields["worst"]
        self.limit: float = fields["limit"]
        self.at: int = fields["at"]
        self.got: float = fields["got"]
        self.expected: float = fields["expected"]
        self.differing: float = fields["differing"]
        self.arithmetic: str = fields["arithmetic"]
        self.allowed: bool = fields["allowed"]
        self.pattern: str = fields["pattern"]
        self.version: int = fields["version"]
        self.parts = list(parts)

    def __bool__(self) -> bool:
        return self.verdict not in ("fault", "not judged")

    def __str__(self) -> str:
        lines = [f"{part.name}: {part.verdict}: {part.why}" for part in self.parts]
        return "\n".join(lines) if lines else f"{self.name}: {self.verdict}: {self.why}"

    def __repr__(self) -> str:
        return f"<Opinion {self.name}: {self.verdict}: {self.why}>"

    def as_dict(self) -> Dict[str, Any]:
        fields = {key: value for key, value in vars(self).items() if key != "parts"}
        return {**fields, "parts": [part.as_dict() for part in self.parts]}


_UNKNOWN = {"verdict": "not judged", "why": "no gradient was given for it", "worst": 0.0, "limit": 0.0,
            "at": 0, "got": 0.0, "expected": 0.0, "differing": 0.0, "arithmetic": "",
            "allowed": False, "pattern": "", "version": 0}


class _Call(NamedTuple):
    """An operator, and the arguments that came with it."""
    prefix: Optional[str]
    name: str
    before: Tuple[Any, ...] = ()  # those of the caller
    after: Tuple[Any, ...] = ()  # behind them
    kwargs: Dict[str, Any] = {}


def _called(op: Any) -> _Call:
    """What is to be computed: by a name ("layer_norm", "torch.nn.functional.gelu"), a function of
    PyTorch, a method of a tensor, a functools.partial of these, or a torch.nn.Module."""
    if isinstance(op, str):
        for start, prefix in _PREFIXES:
            if op.startswith(start):
                return _Call(prefix, op[len(start):])
        return _Call("Functional", op)  # where its arguments have two orders, this one
    if isinstance(op, functools.partial):
        inner = _called(op.func)
        return inner._replace(before=inner.before + op.args,
                              kwargs={**inner.kwargs, **op.keywords})
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(op, torch.nn.Module):
        return _called_module(op)
    if type(op).__module__ == "torch._ops":  # aten.add.Tensor
        return _called(str(op))
    name = getattr(op, "__name__", None)
    if not name or isinstance(op, type):
        raise TypeError(f"op must be the name of an operator, a function of PyTorch or a "
                        f"torch.nn.Module, not {op!r}")
    owner = getattr(op, "__self__", None)
    if torch is not None and isinstance(owner, torch.Tensor):  # x.add
        return _Call("Tensor", name, (owner,))
    module = getattr(op, "__module__", None) or ""
    if module in ("torch.nn.functional", "torch._C._nn"):
        return _Call("Functional", name)
    if module == "torch._tensor" or \
            type(op).__name__ in ("method_descriptor", "wrapper_descriptor"):
        return _Call("Tensor", name)
    if name == "<lambda>" or not (module == "" or module.split(".")[0] == "torch"):
        raise TypeError(f"{op!r} is no function of PyTorch; give the operator that it should be "
                        'like, by its name ("gelu") or as a function')
    return _Call(None, name)


def _called_module(module: Any) -> _Call:
    """A module of a class that is known, as a call of a function with its parameters."""
    from plumb._verdict.lower import Held, lower
    try:
        lowered = lower(module)
    except NotImplementedError as why:
        raise _refused(f"{type(module).__name__} cannot be judged as one call: {why}; capture a run "
                       "of it and give that to plumb.blame, which judges the calls inside") from None
    if lowered.op is None:
        raise _refused(f"{type(module).__name__} computes nothing")

    def value(item: Any) -> Any:
        return getattr(module, item.name) if isinstance(item, Held) else item

    prefix, _, name = lowered.op.partition(".")
    return _Call(prefix, name, (), tuple(value(item) for item in lowered.args),
                 {key: value(item) for key, item in lowered.kwargs.items()})


def _refused(message: str) -> _core.Error:
    error = _core.Error(message)
    error.code = "UNSUPPORTED"
    return error


def _known(prefix: Optional[str], name: str) -> None:
    """Raises for an operator that plumb does not have, with those that it may have been."""
    if _core.has_op(prefix, name):
        return
    if prefix is not None and _core.has_op(None, name):
        raise _refused(f"plumb has no operator {name!r} of {prefix}; it has one of that name: "
                       f"op={name!r}")
    names = sorted({one for text in _core.op_names() for one in text.split()})
    near = difflib.get_close_matches(name, names, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; plumb ops lists those it has"
    raise _refused(f"plumb has no operator {name!r}{hint}")


def _listed(value: Any) -> List[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _output(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and value and \
            all(isinstance(item, (int, float, complex, list)) for item in value):
        raise TypeError("got must be a tensor or an array, or several of them, not a list of "
                        "numbers")
    return tensors.to_core(value)


def _wanting(value: Any) -> Any:
    """The same view, as a tensor that gets a gradient where it can have one."""
    if isinstance(value, list):
        return [_wanting(item) for item in value]
    if isinstance(value, _core.Tensor) and str(value.dtype).split(".")[-1].startswith(
            ("float", "bfloat", "complex")):
        return _core.Tensor(value.pointer, value.dtype, value.shape, value.stride, True, value)
    return value


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, _core.Tensor):
        yield value


def _placed(grads: Sequence[Any], leaves: Sequence[Any]) -> List[Any]:
    """Gradients beside the tensors that they belong to: one for each tensor, or one for each that
    can have one."""
    if len(grads) == len(leaves):
        return list(grads)
    able = [k for k, leaf in enumerate(leaves) if leaf.requires_grad]
    if len(grads) != len(able):
        raise ValueError(f"{len(grads)} gradients for {len(leaves)} tensors, of which {len(able)} can "
                         "have one; give one for each, None where there is none")
    placed: List[Any] = [None] * len(leaves)
    for at, grad in zip(able, grads):
        placed[at] = grad
    return placed


def judge(got: Any, op: Any, inputs: Any = (), kwargs: Optional[Dict[str, Any]] = None, *,
          grad_outputs: Any = None, got_grads: Any = None, arithmetic: Union[str, Sequence[str]] = "",
          seed: int = 0, runs: int = 0) -> Opinion:
    """Whether `got` is what a right implementation of `op` shows for these inputs.

    op: its name ("layer_norm", "torch.nn.functional.gelu", "aten::mm"), the function of PyTorch, a
    method of a tensor, or a torch.nn.Module whose class plumb knows: its parameters are arguments
    then. inputs: its positional arguments (a tensor by itself is the only one), as they were before
    the call; kwargs: those by name.
    got: what an implementation returned, a tensor or several. Gradients are judged too where
    grad_outputs (of the outputs) and got_grads (of the tensors among the arguments, in their order)
    are given. arithmetic: which cheaper arithmetic is allowed ("tf32,bf16-store").

    plumb computes the call in higher precision, and again with errors of the size that right
    arithmetic makes. Raises plumb.Error when it does not have the operator."""
    prefix, name, before, after, own = _called(op)
    _known(prefix, name)
    if name == "flex_attention":  # its functions, if it was given any, as what they come to
        from plumb._verdict.flex import flex_arguments
        inputs, kwargs = flex_arguments(*_listed(inputs), **(kwargs or {}))
    args = [tensors.to_core(value) for value in (*before, *_listed(inputs), *after)]
    named = {key: tensors.to_core(value) for key, value in {**own, **(kwargs or {})}.items()}
    outputs = [_output(value) for value in _listed(got)] if got is not None else []
    grads = None
    placed: List[Any] = []
    missing: List[int] = []
    if grad_outputs is not None:
        args = [_wanting(value) for value in args]
        named = {key: _wanting(value) for key, value in named.items()}
        grads = [tensors.to_core(value) for value in _listed(grad_outputs)]
        leaves = [leaf for value in [*args, *named.values()] for leaf in _leaves(value)]
        placed = _placed([tensors.to_core(value) for value in _listed(got_grads)], leaves)
        missing = [k for k, leaf in enumerate(leaves) if leaf.requires_grad and placed[k] is None]
    elif got_grads is not None:
        raise ValueError("got_grads needs grad_outputs, the gradients of the outputs")
    allowed = arithmetic if isinstance(arithmetic, str) else ",".join(arithmetic)
    rows = _core.judge_call(prefix, name, args, named, grads, outputs, placed, seed=seed, runs=runs,
                            arithmetic=allowed or None)
    parts = [Opinion(f"{kind} {number}", fields) for kind, number, fields in rows]
    parts += [Opinion(f"gradient {number}", _UNKNOWN) for number in missing] if parts else []
    if not parts:
        raise ValueError("nothing to judge: give got, or got_grads with grad_outputs")
    judged = [part for part in parts if part.verdict != "not judged"]
    worst = max(judged or parts, key=lambda part: ORDER.index(part.verdict))
    why = worst.why
    if judged and len(judged) < len(parts):
        why += f"; {len(parts) - len(judged)} of {len(parts)} results are not judged"
    return Opinion(f"{name} {worst.name}", {**vars(worst), "why": why}, parts)
