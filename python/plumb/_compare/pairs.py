"""Verdicts on pairs of values in memory, and what to tell a person about them."""

import math
from typing import Any, Dict, Iterator, List, Optional, Tuple

from plumb._compare import leaves
from plumb._core import Error, Tensor, compare, element, first_apart, judge
from plumb._compare.leaves import Leaf

# Stored mantissa bits and smallest exponent of the float types.
_FLOATS = {
    "float64": (52, -1022), "float32": (23, -126), "float16": (10, -14), "bfloat16": (7, -126),
    "float8_e4m3fn": (3, -6), "float8_e5m2": (2, -14), "complex128": (52, -1022),
    "complex64": (23, -126),
}

# Usual tolerances of the types whose errors people know.
_TOLERANCES = {
    "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5),
    "complex64": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5),
}


def assignments(settings: Dict[str, Any]) -> List[str]:
    """Keyword arguments as a standard takes them: "rtol=0.01"."""
    words = {True: "yes", False: "no"}
    return [f"{name}={words[value] if isinstance(value, bool) else value}"
            for name, value in settings.items()]


def tolerances(target: Tensor, golden: Tensor, given: Tuple[bool, bool]) -> Tuple[float, float]:
    """rtol and atol for the coarser of two types. A Python number, or a list of them, has no type
    of its own that could be finer or coarser."""
    types = [tensor.dtype for tensor, plain in zip((target, golden), given) if not plain]
    found = [_tolerance(dtype) for dtype in types or [target.dtype, golden.dtype]]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def _tolerance(dtype: str) -> Tuple[float, float]:
    if dtype in _TOLERANCES:
        return _TOLERANCES[dtype]
    return (2.0 ** -_FLOATS.get(dtype, (3, 0))[0], 1e-5) if "float" in dtype else (0.0, 0.0)


class Result:
    """What became of one pair."""

    def __init__(self, word: str, count: str, severity: int, reason: str) -> None:
        self.word, self.count, self.severity, self.reason = word, count, severity, reason
        self.headline = ""  # the reason at more length
        self.metrics: Dict[str, Any] = {}
        self.dtype = self.shape = ""
        self.tensors: Optional[Tuple[Tensor, Tensor]] = None
        self.tolerance: Optional[Tuple[float, float, bool]] = None

    def explain(self, name: str) -> str:
        """Lines that say where to look."""
        where = f"{name}: " if name else ""
        if not self.tensors:
            return f"{where}{self.reason}"
        target, golden = self.tensors
        if not name and target.shape == golden.shape:
            where = "the tensors differ: "
        lines = [f"{where}{self.headline or self.reason}"]
        lines.append(f"  actual:   {target.dtype} {leaves.shape_text(target)}")
        lines.append(f"  expected: {golden.dtype} {leaves.shape_text(golden)}")
        if target.shape == golden.shape and target.count:
            lines += _elements(target, golden, self)
        lines += [f"  hint: {hint}" for hint in _hints(target, golden)]
        return "\n".join(lines)


def _is_complex(tensor: Tensor) -> bool:
    return tensor.dtype.startswith("complex")


def _same_kind(a: Any, b: Any) -> bool:
    try:
        return bool(type(a) is type(b) and a == b)
    except Exception:  # a comparison of the caller's own may do anything
        return False


def judge_all(target: Any, golden: Any, standard: Optional[str],
              settings: Dict[str, Any]) -> Iterator[Tuple[str, Result]]:
    """(name, result) of every leaf of both sides, in target's order."""
    left, right = list(leaves.find(target)), list(leaves.find(golden))
    if len(left) == len(right) == 1 and not (left[0].name and right[0].name):
        left, right = [Leaf("", left[0].value)], [Leaf("", right[0].value)]
    elif len(right) == 1 and not right[0].name and leaves.is_number(right[0].value):
        right = [Leaf(leaf.name, right[0].value) for leaf in left]
    others: Dict[str, List[Leaf]] = {}
    for leaf in right:  # {"a.b": 1, "a": {"b": 2}} has two of one name
        others.setdefault(leaf.name, []).append(leaf)
    for leaf in left:
        same = others.get(leaf.name)
        other = same.pop(0) if same else None
        if other is None:
            yield leaf.name, Result("UNMATCHED", "unmatched", 2,
                                    f"there is no {leaf.name!r} on the expected side")
        elif leaf.numeric and other.numeric:
            yield leaf.name, _judge(leaf, other, standard, settings)
        elif not _same_kind(leaf.value, other.value):
            yield leaf.name, Result(
                "FAIL", "failed", 2,
                f"values differ: {_short(leaf.value)} against {_short(other.value)}")
    for name in (leaf.name for same in others.values() for leaf in same):
        yield name, Result("UNMATCHED", "unmatched", 2, f"there is no {name!r} on the actual side")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _judge(leaf: Leaf, other: Leaf, standard: Optional[str], settings: Dict[str, Any]) -> Result:
    try:
        target, golden = leaves.tensor_of(leaf), leaves.tensor_of(other)
        if leaves.is_number(other.value):
            golden = leaves.spread(golden, target.shape)
        elif leaves.is_number(leaf.value):
            target = leaves.spread(target, golden.shape)
        if target.shape != golden.shape:
            result = Result("FAIL", "failed", 2, f"shapes differ: {leaves.shape_text(target)} "
                                                 f"against {leaves.shape_text(golden)}")
        else:
            given = tuple(not leaves.is_tensor(side.value) for side in (leaf, other))
            result = _judge_tensors(target, golden, standard, settings, given)
    except (Error, TypeError) as error:
        if isinstance(error, Error) and error.code == "ARG":
            raise
        return Result("ERROR", "unreadable", 2, str(error))
    result.tensors = target, golden
    types = [target.dtype, golden.dtype]
    result.dtype = types[0] if types[0] == types[1] else " / ".join(types)
    result.shape = leaves.shape_text(target)
    if types[0] != types[1] and all(leaves.is_tensor(side.value) for side in (leaf, other)):
        result.reason += "; dtypes differ"
    return result


def _judge_tensors(target: Tensor, golden: Tensor, standard: Optional[str],
                   settings: Dict[str, Any], given: Tuple[bool, ...]) -> Result:
    told = dict(settings)
    usual = standard in (None, "allclose")
    exact = False
    if usual:
        rtol, atol = tolerances(target, golden, (given[0], given[1]))
        exact = "rtol" not in told and "atol" not in told and rtol == 0
        rtol, atol = told.setdefault("rtol", rtol), told.setdefault("atol", atol)
    word, rule, _ = judge(target, golden, standard or "allclose", assignments(told))
    metrics = compare(target, golden, ["cosine", "max_abs", "max_rel", "max_ulp", "not_close",
                                       "count", "integer_differences", "max_abs_index"],
                      rtol=told.get("rtol", 1e-3), atol=told.get("atol", 1e-5),
                      equal_nan=bool(told.get("equal_nan", not usual)))
    if exact and word == "pass" and metrics["integer_differences"]:
        word = "fail"  # beyond what float64 tells apart
        metrics["not_close"] = metrics["integer_differences"]
    counts = {"pass": ("PASS", "passed", 0), "suspicious": ("SUSPICIOUS", "suspicious", 1),
              "fail": ("FAIL", "failed", 2)}
    result = Result(*counts[word], reason=rule)
    if usual and metrics["not_close"] and word == "fail":
        result.reason, result.headline = _close_words(metrics, told, exact, target.dtype)
    result.metrics = metrics
    if usual:
        result.tolerance = (float(told["rtol"]), float(told["atol"]),
                            bool(told.get("equal_nan", False)))
    return result


def _close_words(metrics: Dict[str, Any], told: Dict[str, Any], exact: bool,
                 dtype: str) -> Tuple[str, str]:
    """Why a pair is not close: for a cell, and for a message."""
    off, numbers = metrics["not_close"], metrics["count"]
    noun = "parts (real or imaginary)" if dtype.startswith("complex") else "elements"
    verb = "differs" if off == 1 else "differ"
    share = f"{off} of {numbers} {noun} ({100 * off / numbers:.3g}%) {verb}"
    if exact:
        return f"not_close {off} of {numbers}, must be equal", share + "; these types must be equal"
    return (f"not_close {off} of {numbers}, rtol {told['rtol']:g}, atol {told['atol']:g}",
            f"{share} by more than atol {told['atol']:g} + rtol {told['rtol']:g} * |expected|")


# -- What to tell ----------------------------------------------------------------------------------


def _position(index: int, shape: Tuple[int, ...]) -> str:
    places: List[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.append(place)
    return f"[{', '.join(map(str, reversed(places)))}]"


def _number_text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _ulps(difference: float, expected: float, dtype: str) -> Optional[float]:
    if dtype not in _FLOATS or dtype.startswith("complex"):
        return None
    if not math.isfinite(difference) or not math.isfinite(expected):
        return None
    precision, lowest = _FLOATS[dtype]
    exponent = math.frexp(expected)[1] - 1 if expected else lowest
    return abs(difference) / math.ldexp(1.0, max(exponent, lowest) - precision)


def _unit(target: Tensor, golden: Tensor) -> str:
    """The type whose ULPs count: the coarser floating one. No result of that type could be nearer
    than half an ULP of it."""
    types = [side.dtype for side in (target, golden) if side.dtype in _FLOATS]
    return min(types, key=lambda dtype: _FLOATS[dtype][0]) if types else golden.dtype


def _element_line(title: str, index: int, target: Tensor, golden: Tensor) -> str:
    actual, expected = element(target, index), element(golden, index)
    line = (f"  {title} at {_position(index, target.shape)}: actual {_number_text(actual)}, "
            f"expected {_number_text(expected)}")
    if isinstance(actual, bool) or isinstance(expected, bool):
        return line
    difference = actual - expected
    size = abs(difference)
    line += f", difference {size:.6g}" if isinstance(size, float) else f", difference {size}"
    if isinstance(difference, complex) or isinstance(expected, complex):
        return line
    unit = _unit(target, golden)
    ulps = _ulps(float(difference), float(expected), unit)
    return line if ulps is None else f"{line} ({ulps:.4g} ULP of {unit})"


def _elements(target: Tensor, golden: Tensor, result: Result) -> List[str]:
    lines: List[str] = []
    first: Optional[int] = None
    if result.tolerance and _is_complex(target) == _is_complex(golden):
        rtol, atol, equal_nan = result.tolerance
        first = first_apart(target, golden, rtol, atol, equal_nan)
    if first is not None:
        lines.append(_element_line("first", first, target, golden))
    worst = result.metrics.get("max_abs_index")
    if worst is not None:
        worst //= 2 if _is_complex(target) else 1
        if worst != first and element(target, worst) != element(golden, worst):
            lines.append(_element_line("worst", worst, target, golden))
    return lines


def _hints(target: Tensor, golden: Tensor) -> Iterator[str]:
    if target.shape != golden.shape:
        yield from _shape_hints(target.shape, golden.shape)
        return
    if _is_complex(target) or _is_complex(golden) or not target.count:
        return
    found = compare(target, golden)
    for kind, word in (("nan", "NaN"), ("pos_inf", "+inf"), ("neg_inf", "-inf")):
        actual, expected = found[f"target_{kind}"], found[f"golden_{kind}"]
        if actual and not expected:
            yield f"{word} only in actual, {actual} of {found['count']}"
        elif expected and not actual:
            yield f"{word} only in expected, {expected} of {found['count']}"
    if found["target_nan"] and found["golden_nan"]:
        yield "NaN on both sides; equal_nan=True lets them count as equal"
    if math.isfinite(found["max_abs"]) and found["max_abs"] > 0:
        yield from _number_hints(found, target, golden)


def _shape_hints(actual: Tuple[int, ...], expected: Tuple[int, ...]) -> Iterator[str]:
    if [size for size in actual if size != 1] == [size for size in expected if size != 1]:
        yield "the shapes are the same except for dimensions of size 1: squeeze or unsqueeze one"
    elif sorted(actual) == sorted(expected):
        yield "the same sizes in another order: is one side transposed?"
    elif math.prod(actual) == math.prod(expected):
        yield "the same number of elements: reshape one side"


def _number_hints(found: Dict[str, Any], target: Tensor, golden: Tensor) -> Iterator[str]:
    norm, wanted = found["target_norm"], found["golden_norm"]
    if found["count"] == 1:
        return
    if norm == 0:
        yield "actual is zero everywhere"
    elif wanted == 0:
        yield "expected is zero everywhere"
    elif found["one_minus_cosine"] < 1e-7 and abs(norm / wanted - 1) > 1e-4:
        yield f"actual is {norm / wanted:.6g} times expected, everywhere"
    elif 2 - found["one_minus_cosine"] < 1e-7:
        yield "the sign is the other way round"
    elif _constant(found):
        offset = found["target_mean"] - found["golden_mean"]
        yield f"actual - expected is the same everywhere: {offset:.6g}"
    else:
        yield from _rounding_hint(found, target, golden)


def _constant(found: Dict[str, Any]) -> bool:
    """All errors have one size and one sign."""
    return (found["unequal"] == found["count"] and found["min_abs"] > 0.999 * found["max_abs"]
            and found["error_balance"] == 1)


def _sample(tensor: Tensor) -> List[float]:
    """Up to 256 elements, spread evenly."""
    step = -(-tensor.count // 256)
    return [element(tensor, index) for index in range(0, tensor.count, step)]


def _on_grid(values: List[float], bits: int) -> bool:
    """Whether so many stored mantissa bits are enough for every value."""
    for value in values:
        if math.isfinite(value) and not math.ldexp(math.frexp(value)[0], bits + 1).is_integer():
            return False
    return True


def _rounding_hint(found: Dict[str, Any], target: Tensor, golden: Tensor) -> Iterator[str]:
    """Signs of a coarser type, when neither side is of it: values that it holds exactly, or errors
    of the size that it leaves."""
    sides = [_FLOATS.get(side.dtype, (0, 0))[0] for side in (target, golden)]
    actual = expected = None
    for dtype, also in (("bfloat16", ""), ("float16", " or TF32")):
        bits = _FLOATS[dtype][0]
        if min(sides) <= bits or not found["max_rel"] < 2.0 ** (4 - bits):
            continue
        if actual is None:
            actual, expected = _sample(target), _sample(golden)
        if _on_grid(actual, bits) and not _on_grid(expected, bits):
            yield (f"looks like {dtype} rounding: {dtype} holds every value of actual exactly, but "
                   f"not those of expected; was it computed in {dtype}{also}?")
            return
    for dtype, also in (("float16", " or TF32"), ("bfloat16", "")):
        bits = _FLOATS[dtype][0]
        if min(sides) > bits and 2.0 ** -(bits + 4) < found["max_rel"] <= 1.01 * 2.0 ** -(bits + 1):
            yield (f"looks like {dtype} rounding: no relative error is above 2^-{bits + 1}; was a "
                   f"part computed in {dtype}{also}?")
            return
