"""Runs of a module in float64, exactly or with errors made on purpose.

Every operator that PyTorch runs, forward and backward, passes through a mode: what would be
narrower than float64 is raised to it, and in runs with errors each result is off by what storing it in its
own type may cost, and by what adding up in float32 may.
"""

import math
from typing import (Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set,
                    Tuple)

import torch

from plumb._passcheck.higher import Mode, is_higher, run_higher
from plumb._passcheck.wide import called

WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128}
WIDE.update({getattr(torch, name): torch.float64
             for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)})

# Results are numbers of the arguments, or whole numbers: nothing is rounded.
EXACT = set("""relu relu_ threshold threshold_backward clamp clamp_ clamp_min clamp_min_ clamp_max
clamp_max_ maximum minimum max min amax amin where cat stack index index_select gather embedding
select_backward slice_backward copy_ clone fill_ zero_ zeros zeros_like ones ones_like full
full_like new_zeros new_ones new_full new_empty new_empty_strided empty empty_like empty_permuted empty_strided neg neg_ abs
sign masked_fill masked_fill_ scatter scatter_ sort topk max_pool2d_with_indices constant_pad_nd
flip roll repeat tril triu eq ne lt le gt ge arange argmax argmin logical_not logical_and logical_or
bitwise_not masked_select nonzero index_put_ index_put one_hot _unsafe_view hardtanh hardtanh_ floor
ceil round trunc isnan isinf lift_fresh_copy scalar_tensor _local_scalar_dense unfold_backward
histc bincount bucketize searchsorted
""".split())
RANDOM = ("bernoulli", "dropout", "rand", "normal", "multinomial", "uniform", "exponential",
          "poisson", "cauchy", "geometric", "log_normal", "rrelu")
PRODUCTS = set("mm addmm bmm baddbmm matmul addbmm mv addmv dot _grouped_mm".split())
BITS = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 24, torch.float64: 50,
        torch.complex64: 24, torch.complex128: 50}  # float64 rounds in these runs as well
LEAST = {torch.float16: -14}


def name_of(func: Any) -> str:
    return str(func).split(".")[1] if str(func).startswith("aten.") else str(func)


def floats(value: Any) -> Iterator[torch.Tensor]:
    """The floating-point tensors in the results or arguments of an operator."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() or value.is_complex():
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from floats(item)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(mapped(item, change) for item in value)
    return change(value)


def widened(value: Any) -> Any:
    """A tensor or a type as float64; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return value.to(WIDE[value.dtype]) if value.dtype in WIDE else value
    return WIDE.get(value, value) if isinstance(value, torch.dtype) else value


def raise_module(module: torch.nn.Module) -> None:
    """All its numbers to float64; Module.double() leaves complex ones as they are."""
    module._apply(lambda value: value.to(torch.complex128) if value.is_complex() else
                  value.double() if value.is_floating_point() else value)


def narrowed(value: Any) -> Any:
    """A tensor of float64 as float32."""
    wide = isinstance(value, torch.Tensor) and value.dtype == torch.float64
    return value.to(torch.float32) if wide else value


def half_unit(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Half a unit in the last place of numbers of that type."""
    bits = BITS.get(dtype, 4)
    exponent = torch.frexp(value.abs())[1].clamp(min=LEAST.get(dtype, -126) + 1)
    size = torch.ldexp(torch.ones_like(value), exponent - bits - 1)
    return torch.where(value == 0, torch.zeros_like(value), size)


class Errors:
    """Errors of the size that right arithmetic makes, from a seed. fine: 16-bit types count as
    float32. plain: sums are made term after term, without the trees of a library."""

    def __init__(self, seed: int, fine: bool = False, plain: bool = False) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.fine, self.plain = fine, plain

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        drawn = torch.rand(like.shape, dtype=torch.float64, generator=self.random)
        return (2 * drawn - 1).to(like.device)

    def stored(self, value: torch.Tensor, dtype: torch.dtype, times: float = 1) -> torch.Tensor:
        """As if it had been stored in that type, and read again."""
        if value.is_complex():
            parts = torch.view_as_real(value.resolve_conj())
            return torch.view_as_complex(self.stored(parts, dtype, times).contiguous())
        if self.fine and BITS.get(dtype, 4) < 24:
            dtype = torch.float32
        return value + times * self.uniform(value) * half_unit(value, dtype)

    def scaled(self, value: torch.Tensor, relative: float) -> torch.Tensor:
        if value.is_complex():
            parts = torch.view_as_real(value.resolve_conj())
            return torch.view_as_complex(self.scaled(parts, relative).contiguous())
        return value * (1 + relative * self.uniform(value))


def terms(name: str, args: Sequence[Any], result: Any) -> int:
    """How many numbers an operator adds up, as far as shapes tell."""
    tensors = list(floats(args))
    outputs = list(floats(result))
    if not tensors or not outputs:
        return 1
    if name in PRODUCTS:
        return max(1, int(tensors[-2].shape[-1])) if len(tensors) > 1 and tensors[-2].dim() else 1
    if name == "convolution":
        return max(1, tensors[1].numel() // max(1, tensors[1].shape[0]))
    if name == "convolution_backward":
        return max(1, tensors[0].numel() // max(1, tensors[0].shape[1]))
    if "norm" in name or "softmax" in name:
        return int(tensors[0].shape[-1]) if tensors[0].dim() else 1
    most = max(tensor.numel() for tensor in tensors)
    return max(1, most // max(1, min(output.numel() for output in outputs)))


Cast = Tuple[Tuple[int, ...], Any]  # a shape, and the type that it was cast to


class Step(NamedTuple):
    """One operator of a recorded run."""
    name: str
    dtypes: List[torch.dtype]  # of its results
    terms: int
    casts: List[Cast]  # since the one before


class Recorder(Mode):
    """What runs, and which types its results have. Casts are kept apart: autograd makes none for a
    cast that a run in float64 did not make."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: List[Step] = []
        self.types: Set[torch.dtype] = set()
        self.casts: List[Cast] = []
        self.random: Optional[str] = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if is_higher(func):
            return run_higher(self, func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        name = name_of(func)
        if is_random(name) and self.random is None:
            self.random = name
        self.types.update(tensor.dtype for tensor in floats(result))
        if name == "_to_copy":
            self.casts += [(tuple(tensor.shape), tensor.dtype) for tensor in floats(result)]
        else:
            self.seen.append(Step(name, [tensor.dtype for tensor in floats(result)],
                                  terms(name, args, result), self.casts))
            self.casts = []
        return result

    def narrowest(self) -> torch.dtype:
        return min(self.types, key=lambda dtype: BITS.get(dtype, 4), default=torch.float64)


class Raised(Mode):
    """Everything in float64; with errors as if results had the recorded types."""

    def __init__(self, recorded: Recorder, errors: Optional[Errors] = None) -> None:
        super().__init__()
        self.recorded, self.errors = recorded, errors
        self.at = 0
        self.fallback: Optional[torch.dtype] = None  # once it runs otherwise than recorded
        self.casts: List[Cast] = []  # made since the last operator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        named = kwargs or {}
        name = name_of(func)
        target = named.get("dtype") if name == "_to_copy" else None
        args = mapped(args, widened)
        named = {key: mapped(value, widened) for key, value in named.items()}
        if is_higher(func):
            return run_higher(self, func, args, named)
        step = Step(name, [target], 1, []) if name == "_to_copy" else self._recorded(name)
        # What gives whole numbers rounds nothing by itself: a sum of counts is as it was.
        if self.errors is None or is_untouched(func, name) or not step.dtypes:
            return called(func, name, args, named)
        if name == "_to_copy" and not list(floats(args[0])):
            return self._from_integers(func(*args, **named), target)
        if name == "_to_copy":
            self.casts.append((tuple(args[0].shape), target))
        elif not _writes(func):
            args = self._cast(args, step.casts)
        result = self._by_steps(func, name, args, named, step.dtypes)
        if result is None:
            result = self.with_errors(func, args, named, step.dtypes, step.terms)
        for tensor, dtype in zip(floats(result), step.dtypes + step.dtypes[-1:] * 16):
            if dtype in BITS or dtype in WIDE:
                tensor.copy_(self.errors.stored(tensor, dtype))
        return result

    def _from_integers(self, result: torch.Tensor, target: Any) -> torch.Tensor:
        """Whole numbers in a floating-point type: only those that it does not have are rounded. What counts experts
        by their numbers, as floats, would count others else."""
        if target in WIDE and target is not torch.complex64:
            known = result.to(target).to(result.dtype) == result
            result.copy_(torch.where(known, result, self.errors.stored(result, target)))
        return result

    def with_errors(self, func: Any, args: Any, named: Dict[str, Any], dtypes: Sequence[Any],
                    many: int) -> Any:
        """What an operator that adds up so many numbers gives, before that is stored."""
        if name_of(func) == "_to_copy" or _writes(func):
            return func(*args, **named)
        relative = min(2.0 ** -10, _unit(dtypes) * math.sqrt(many))
        moved = mapped(args, lambda value: self._moved(value, relative))
        result = called(func, name_of(func), moved, named)
        self._add_own(func, moved, named, dtypes, result)
        if self.errors.plain and _unit(dtypes) == 2.0 ** -24:
            self._add_drift(func, moved, named, result)
        for tensor in floats(result):
            tensor.copy_(self.errors.scaled(tensor, relative / math.sqrt(3)))
        return result

    def _by_steps(self, func: Any, name: str, args: Any, named: Dict[str, Any],
                  dtypes: Sequence[Any]) -> Any:
        """None where the operator is one step, or nobody knows its steps."""
        from plumb._passcheck.steps import Steps, steps_of
        steps = steps_of(func, name, self.errors.plain)
        if steps is None:
            return None
        try:
            with Steps(self, _unit(dtypes) < 2.0 ** -24):
                result = steps(*args, **named)
        except (RuntimeError, TypeError):
            return None
        return None if result is NotImplemented else result

    def _moved(self, value: Any, relative: float) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128):
            return self.errors.scaled(value, relative)
        return value

    def _add_own(self, func: Any, args: Any, named: Dict[str, Any], dtypes: Sequence[Any],
                 result: Any) -> None:
        """The errors that the operator makes in float32 itself, with signs drawn at random: some
        formulas that everybody uses lose more than their conditioning tells."""
        if all(dtype in (torch.float64, torch.complex128) for dtype in dtypes):
            return
        try:
            own = func(*mapped(args, narrowed), **named)
        except (RuntimeError, TypeError):
            return  # not in float32
        for tensor, other in zip(floats(result), floats(own)):
            if tensor.is_complex() or tensor.shape != other.shape:
                continue
            off = torch.nan_to_num(other.to(torch.float64) - tensor, 0.0, 0.0, 0.0)
            tensor.add_(torch.sign(self.errors.uniform(tensor)) * off)

    def _add_drift(self, func: Any, args: Any, named: Dict[str, Any], result: Any) -> None:
        from plumb._passcheck.steps import drifts
        for tensor, off in zip(floats(result), drifts(name_of(func), args, named)):
            if off is not None and off.numel() == tensor.numel():
                tensor.add_(torch.sign(self.errors.uniform(tensor)) * off.reshape(tensor.shape))

    def _cast(self, args: Any, wanted: Sequence[Cast]) -> Any:
        """Arguments with the errors of casts that the recorded run made and this one did not."""
        missing = list(wanted)
        for cast in self.casts:
            if cast in missing:
                missing.remove(cast)
        self.casts = []

        def change(value: Any) -> Any:
            for shape, dtype in missing:
                if isinstance(value, torch.Tensor) and value.dtype == torch.float64 and \
                        tuple(value.shape) == shape:
                    value = self.errors.stored(value, dtype)
            return value

        return mapped(args, change) if missing else args

    def _recorded(self, name: str) -> Step:
        """What the recorded run knows of this operator."""
        seen = self.recorded.seen
        if self.fallback is None and self.at < len(seen) and seen[self.at].name == name:
            self.at += 1
            return seen[self.at - 1]
        if self.fallback is None:
            self.fallback = self.recorded.narrowest()
        return Step(name, [self.fallback], 1, [])


def _unit(dtypes: Sequence[Optional[torch.dtype]]) -> float:
    wide = all(dtype in (torch.float64, torch.complex128) for dtype in dtypes)
    return 2.0 ** (-51 if wide and dtypes else -24)


def is_untouched(func: Any, name: str) -> bool:
    """It rounds nothing, or nothing is known of it."""
    return name in EXACT or not hasattr(func, "_schema") or _is_view(func) or is_random(name)


def is_random(name: str) -> bool:
    return any(word in name for word in RANDOM) and not name.endswith("_backward")


def _is_view(func: Any) -> bool:
    """Its results are memory of its arguments, and it writes nothing."""
    returns = func._schema.returns
    return any(item.alias_info is not None for item in returns) and not _writes(func)


def _writes(func: Any) -> bool:
    """To its arguments; of running statistics not every schema says so."""
    return "batch_norm" in str(func) or any(item.alias_info is not None and item.alias_info.is_write
               for item in func._schema.arguments)
