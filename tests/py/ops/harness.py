"""What a test of operators is made of: cases, and how one is checked.

A file cases_<family>.py holds generators of cases:

    def cases():
        yield case("Functional.layer_norm", randn(2, 3, 8), [8], randn(8), randn(8), eps=1e-5)
        yield case("Torch.max", randn(3, 4), 1, grad_output=0)
        yield case("NPU.npu_mish", randn(5), ref=lambda x: x * torch.tanh(F.softplus(x)))

The name's prefix says where PyTorch's own is found: Functional (torch.nn.functional), Tensor (a method of the first
argument), Torch (torch, dotted names too), Aten (torch.ops.aten). ref=callable stands in where PyTorch has none.

A case is checked four ways:
* raised: plumb's reference on the float32 values against PyTorch in float64, forward and backward;
* own: plumb in the given types against PyTorch in the given types: same dtypes and shapes, values to float32 accuracy;
* finite differences of plumb's extended-precision forward against plumb's float64 backward;
* refused=True: plumb must refuse, with a message, what PyTorch refuses too.
"""

import math
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F

from ops.native import OWN, RAISED, Call, Native, Refused

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])  # cases that PyTorches disagree on ask for it

_generator = torch.Generator()


def seed(text: str) -> None:
    """Values depend on the name of the file, not on which files were loaded before it."""
    _generator.manual_seed(zlib.crc32(text.encode()))


def randn(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Normal values that a float32 holds and that have no two equal neighbours; they require a gradient."""
    return (torch.randn(shape, generator=_generator) * scale).to(dtype).requires_grad_(True)


def crandn(*shape: int, dtype: torch.dtype = torch.complex64, scale: float = 1.0) -> torch.Tensor:
    """Complex ones, both parts normal."""
    parts = torch.randn((*shape, 2), generator=_generator) * scale
    return torch.view_as_complex(parts).to(dtype).requires_grad_(True)


def uniform(low: float, high: float, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.rand(shape, generator=_generator) * (high - low) + low).to(dtype).requires_grad_(True)


def ints(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Integers in [low, high)."""
    return torch.randint(low, high, shape, generator=_generator).to(dtype)


def bools(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=_generator) < 0.5


def fixed(values: Any, dtype: torch.dtype = torch.float32, grad: bool = False) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).requires_grad_(grad)


class Case:
    def __init__(self, api: str, args: Tuple[Any, ...], kwargs: Dict[str, Any], ref: Optional[Callable[..., Any]],
                 grad_output: int, rtol: float, own_rtol: float, differences: bool, backward: bool, values: bool,
                 refused: bool, bfloat16: bool, check_own: bool) -> None:
        self.prefix, self.name = api.split(".", 1)
        self.api, self.args, self.kwargs, self.ref, self.grad_output = api, args, kwargs, ref, grad_output
        self.rtol, self.own_rtol, self.differences, self.backward = rtol, own_rtol, differences, backward
        self.values, self.refused, self.bfloat16, self.check_own = values, refused, bfloat16, check_own

    def __repr__(self) -> str:
        def text(v: Any) -> str:
            if isinstance(v, torch.Tensor):
                return f"{str(v.dtype)[6:]}{list(v.shape)}"
            if isinstance(v, (list, tuple)):
                return "[" + ", ".join(map(text, v)) + "]"
            return repr(v)
        parts = [text(a) for a in self.args] + [f"{k}={text(v)}" for k, v in self.kwargs.items()]
        return f"{self.api}({', '.join(parts)})"


def case(api: str, *args: Any, ref: Optional[Callable[..., Any]] = None, grad_output: int = 0, rtol: float = 1e-11,
         own_rtol: float = 1e-4, differences: bool = True, backward: bool = True, values: bool = True,
         refused: bool = False, bfloat16: bool = False, check_own: bool = True, **kwargs: Any) -> Case:
    """rtol is relative to the largest value of a tensor; values=False compares shapes and dtypes only."""
    return Case(api, args, kwargs, ref, grad_output, rtol, own_rtol, differences, backward, values, refused, bfloat16,
                check_own)


def tree_map(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(tree_map(function, v) for v in value)
    if isinstance(value, dict):
        return {k: tree_map(function, v) for k, v in value.items()}
    return value


def leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from leaves(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from leaves(v)


def as_dtype(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(t: torch.Tensor) -> torch.Tensor:
        if t.is_complex() and dtype == torch.float64:
            return t.detach().to(torch.complex128).requires_grad_(t.requires_grad)
        if not t.is_floating_point():
            return t
        # A cast keeps the strides, so that views stay what they are.
        return t.detach().to(dtype).requires_grad_(t.requires_grad)
    return change


def wide_dtype(value: Any) -> Any:
    """The widest type of the kind, of a type; anything else as it is."""
    if not isinstance(value, torch.dtype):
        return value
    return torch.complex128 if value.is_complex else torch.float64 if value.is_floating_point else value


def real_parts(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers by their parts, in a last dimension."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def torch_function(case_: Case) -> Callable[..., Any]:
    if case_.ref:
        return case_.ref
    if case_.prefix == "Tensor":
        return lambda x, *a, **k: getattr(x, case_.name)(*a, **k)
    place: Any = {"Functional": F, "Torch": torch, "Aten": torch.ops.aten}[case_.prefix]
    for part in case_.name.split("."):
        place = getattr(place, part)
    return place


def flatten_outputs(out: Any) -> List[Any]:
    if isinstance(out, (list, tuple)):
        return [o for part in out for o in (flatten_outputs(part) if isinstance(part, (list, tuple)) else [part])]
    return [out]


def run_torch(case_: Case, dtype: Optional[torch.dtype], grad: Optional[torch.Tensor] = None
              ) -> Tuple[List[Any], List[Optional[torch.Tensor]]]:
    """Outputs and, with a gradient, the gradient of each tensor among the arguments."""
    args, kwargs = (case_.args, case_.kwargs) if dtype is None else tree_map(as_dtype(dtype), (case_.args,
                                                                                             case_.kwargs))
    if dtype == torch.float64:
        kwargs = {k: wide_dtype(v) for k, v in kwargs.items()}
    inputs = list(leaves((args, kwargs)))
    # Non-leaf twins, so that in-place operators work.
    twins = {id(t): (t * 1 if t.requires_grad else t.clone()) for t in inputs}
    strided = {id(t): (twins[id(t)] if t.is_contiguous() or not t.requires_grad else t * 1) for t in inputs}
    args, kwargs = tree_map(lambda t: strided[id(t)], (args, kwargs))
    outputs = flatten_outputs(torch_function(case_)(*args, **kwargs))
    grads: List[Optional[torch.Tensor]] = [None] * len(inputs)
    if grad is not None:
        target = outputs[case_.grad_output]
        wanted = [t for t in inputs if t.requires_grad]
        if wanted and isinstance(target, torch.Tensor) and target.requires_grad:
            found = torch.autograd.grad(target, wanted, grad.to(target.dtype).reshape(target.shape), allow_unused=True)
            by_id = dict(zip(map(id, wanted), found))
            grads = [by_id.get(id(t)) for t in inputs]
    return [o.detach() if isinstance(o, torch.Tensor) else o for o in outputs], grads


class Mismatch(AssertionError):
    pass


def compare(what: str, case_: Case, got: Any, want: Any, rtol: float, values: bool = True) -> None:
    if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
        if type(got) is not type(want) or got != want:
            raise Mismatch(f"{case_}: {what}: plumb {got!r}, PyTorch {want!r}")
        return
    if list(got.shape) != list(want.shape):
        raise Mismatch(f"{case_}: {what}: shape {list(got.shape)}, PyTorch {list(want.shape)}")
    if not values or got.numel() == 0:
        return
    if got.is_complex() != want.is_complex():
        raise Mismatch(f"{case_}: {what}: {got.dtype}, PyTorch {want.dtype}")
    got, want = real_parts(got), real_parts(want)
    if not want.is_floating_point():
        if not torch.equal(got.to(want.dtype), want):
            raise Mismatch(f"{case_}: {what}: {got.flatten()[:8].tolist()}, PyTorch {want.flatten()[:8].tolist()}")
        return
    a, b = got.double().flatten(), want.double().flatten()
    both_nan = torch.isnan(a) & torch.isnan(b)
    same = (a == b) | both_nan
    finite = torch.isfinite(b)
    scale = b[finite].abs().max().item() if finite.any() else 1.0
    close = (a - b).abs() <= rtol * (b.abs() + scale * 1e-1)
    bad = ~(same | (close & finite))
    if bad.any():
        k = int(torch.nonzero(bad)[0])
        raise Mismatch(f"{case_}: {what}: element {k} is {a[k].item()!r}, PyTorch {b[k].item()!r} "
                       f"({int(bad.sum())} of {a.numel()} differ)")


def gradient_for(case_: Case, output: Any) -> Optional[torch.Tensor]:
    if not (case_.backward and isinstance(output, torch.Tensor) and
            (output.is_floating_point() or output.is_complex())):
        return None
    if not any(t.requires_grad for t in leaves((case_.args, case_.kwargs))):
        return None
    g = torch.Generator().manual_seed(7)
    if output.is_complex():
        return torch.view_as_complex(torch.randn((*output.shape, 2), generator=g)).to(torch.complex128)
    return torch.randn(output.shape, generator=g).double()


def check_differences(native: Native, case_: Case, grad: torch.Tensor) -> None:
    """Directional derivatives, one for each tensor: Richardson's extrapolation of central differences."""
    args, kwargs = tree_map(as_dtype(torch.float64), (case_.args, case_.kwargs))
    kwargs = {k: wide_dtype(v) for k, v in kwargs.items()}
    _, _, grads = native.run(Call(case_.prefix, case_.name, args, kwargs, grad, case_.grad_output), OWN)
    inputs = list(leaves((args, kwargs)))
    g = torch.Generator().manual_seed(11)
    for number, (x, dx) in enumerate(zip(inputs, grads)):
        if not x.requires_grad or x.numel() == 0 or not (x.is_floating_point() or x.is_complex()):
            continue
        shape = real_parts(x).shape
        parts = torch.sign(torch.rand(shape, generator=g, dtype=torch.float64) - 0.5) * \
            (1 + torch.randint(0, 4, shape, generator=g)) / 4
        direction = torch.view_as_complex(parts) if x.is_complex() else parts

        def value(step: float) -> Tuple[float, float]:
            moved = tree_map(lambda t: (t.detach() + step * direction).requires_grad_(True) if t is x else t,
                             (args, kwargs))
            return native.objective(Call(case_.prefix, case_.name, *moved, grad, case_.grad_output))

        def slope(step: float) -> float:
            (a, b), (p, q) = value(step), value(-step)
            return ((a - p) + (b - q)) / (2 * step)

        # So small that no random value is within a step of a kink; a float32 and a step add up without rounding.
        h = 2.0 ** -24
        coarse, fine = slope(h), slope(h / 2)
        want = (4 * fine - coarse) / 3
        slopes = real_parts(dx) * parts if dx is not None else torch.zeros(())
        got, size = float(slopes.sum()), float(slopes.abs().sum())
        if not abs(got - want) <= 1e-8 * (size + abs(want)) + 1e-12:
            raise Mismatch(f"{case_}: derivative of argument {number}: backward {got!r}, differences {want!r}")


def check(native: Native, case_: Case) -> None:
    if case_.refused:
        try:
            native.run(Call(case_.prefix, case_.name, case_.args, case_.kwargs), RAISED)
        except Refused as refused:
            if not str(refused):
                raise Mismatch(f"{case_}: refused without a word")
            return
        raise Mismatch(f"{case_}: should have been refused")

    outputs, _ = run_torch(case_, torch.float64)
    grad = gradient_for(case_, outputs[case_.grad_output]) if case_.grad_output < len(outputs) else None
    try:
        want, want_grads = run_torch(case_, torch.float64, grad)
    except NotImplementedError:  # PyTorch has no derivative of some in-place forms
        grad = None
        want, want_grads = run_torch(case_, torch.float64)
    try:
        got, _, got_grads = native.run(Call(case_.prefix, case_.name, case_.args, case_.kwargs, grad,
                                            case_.grad_output), RAISED)
    except Refused as refused:
        raise Mismatch(f"{case_}: refused: {refused}") from None
    if len(got) != len(want):
        raise Mismatch(f"{case_}: {len(got)} outputs, PyTorch {len(want)}")
    for k, (a, b) in enumerate(zip(got, want)):
        compare(f"output {k}", case_, a, b, case_.rtol, case_.values)
    if grad is not None:
        for k, (a, b) in enumerate(zip(got_grads, want_grads)):
            if a is None and b is not None:
                a = torch.zeros_like(b) if not b.any() else a
            if b is None and a is not None:
                b = torch.zeros_like(a) if not a.any() else b
            compare(f"gradient {k}", case_, a, b, case_.rtol * 10, case_.values)

    if case_.check_own:
        check_own(native, case_, None, case_.own_rtol)
    if case_.bfloat16:
        check_own(native, case_, torch.bfloat16, 4e-2)
    if grad is not None and case_.differences:
        check_differences(native, case_, grad)


def check_own(native: Native, case_: Case, dtype: Optional[torch.dtype], rtol: float) -> None:
    try:
        want, _ = run_torch(case_, dtype)
    except (RuntimeError, TypeError):
        return  # PyTorch's CPU kernels lack the type
    args, kwargs = (case_.args, case_.kwargs) if dtype is None else tree_map(as_dtype(dtype), (case_.args,
                                                                                             case_.kwargs))
    got, _, _ = native.run(Call(case_.prefix, case_.name, args, kwargs), OWN)
    for k, (a, b) in enumerate(zip(got, want)):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dtype != b.dtype:
            raise Mismatch(f"{case_}: output {k} is {a.dtype}, PyTorch {b.dtype}")
        compare(f"own output {k}", case_, a, b, rtol, case_.values)
