"""What of a call's results is determined, and therefore judged.

Some results are free: which of equal elements an index points to, the order of unique values, the
signs of singular vectors. They are judged by what follows from them: the values that indices point
to, the product of the factors. Some are nobody's business: memory that a kernel keeps for its
backward. And some are no results at all: tensors that the call writes into.

All of it is computed by plumb's own operators: PyTorch's may be the ones under test.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from plumb import _core

Values = List[Any]


class Judged(NamedTuple):
    outputs: Values    # of the kernel
    reference: Values  # what they should be
    labels: List[str]  # what each of them is; "" for an output as it is


class Free(Exception):
    """What is determined of these results cannot be told."""


class Undetermined(Exception):
    """Nothing of the results can be judged; the message says why."""


def _run(name: str, *args: Any, raised: bool = True, **kwargs: Any) -> Any:
    try:
        return _core.run_op("Aten", name, list(args), kwargs, raised=raised)[0][0]
    except (_core.Error, TypeError) as error:
        raise Free(str(error)) from None


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _core.Tensor)


def _is_empty(value: Any) -> bool:
    return not _is_tensor(value) or 0 in value.shape


# -- Indices ---------------------------------------------------------------------------------------


def _gathered(source: Any, index: Any, dim: int) -> Any:
    """The elements of `source` that an index, which may lack the dimension, points to."""
    if not source.shape:
        source = _run("reshape", source, [1], raised=False)
    rank = len(source.shape)
    dim = dim + rank if dim < 0 else dim
    flat = index if len(index.shape) == rank else _run("unsqueeze", index, dim, raised=False)
    found = _run("gather", source, dim, flat, raised=False)
    return _run("reshape", found, list(index.shape), raised=False)


def _index_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    """Values and where they stand: of equal ones any will do."""
    values, index = outputs
    if index.dtype != "int64" or index.shape != reference[1].shape:
        raise Free("no index")
    found = _gathered(call["self"], index, call.get("dim", -1))
    return Judged([values, found], [reference[0], reference[0]], ["", "values at output 1"])


def _pool_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    values, index = outputs
    if index.dtype != "int64" or index.shape != reference[1].shape:
        raise Free("no index")
    size = len(index.shape) - (3 if "3d" in call[""] else 2)
    lead = list(index.shape[:size])
    rows = _run("reshape", call["self"], [*lead, -1], raised=False)
    places = _run("reshape", index, [*lead, -1], raised=False)
    found = _run("reshape", _run("gather", rows, size, places, raised=False), list(index.shape),
                 raised=False)
    return Judged([values, found], [reference[0], reference[0]], ["", "values at output 1"])


# -- Sets ------------------------------------------------------------------------------------------


def _sorted_like(values: Any, counts: Any) -> Tuple[Any, Any]:
    order = _core.run_op("Aten", "argsort", [values], {}, raised=False)[0][0]
    pick = lambda tensor: tensor if _is_empty(tensor) else _run("gather", tensor, 0, order,
                                                                raised=False)
    return pick(values), pick(counts)


def _unique_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    """The values in any order, unless one was asked for; where each element went, and how often
    each value came, if those were asked for."""
    (values, inverse, counts), (right, _, right_counts) = outputs, reference
    got, wanted, labels = [values], [right], [""]
    along = call.get("dim")
    if call.get("return_inverse") and not _is_empty(values):
        if along is None:
            flat = _run("reshape", inverse, [-1], raised=False)
            found = _run("reshape", _run("gather", values, 0, flat, raised=False),
                         list(call["self"].shape), raised=False)
        else:
            found = _run("index_select", values, along, inverse, raised=False)
        got.append(found)
        wanted.append(call["self"])
        labels.append("values at output 1")
    if call.get("return_counts"):
        got.append(counts)
        wanted.append(right_counts)
        labels.append("counts")
    if call[""].startswith("_unique") and not call.get("sorted", True) and not _is_empty(values) \
            and values.shape == right.shape:
        for side in (got, wanted):
            pair = _sorted_like(side[0], side[-1] if call.get("return_counts") else None)
            side[0] = pair[0]
            if call.get("return_counts"):
                side[-1] = pair[1]
        labels[0] = "output 0, sorted"
    return Judged(got, wanted, labels)


# -- Factors ---------------------------------------------------------------------------------------


def _turned(matrix: Any) -> Any:
    return _run("transpose", matrix, -2, -1)


def _size_of(matrix: Any) -> Any:
    """The Frobenius norm of each matrix, at least the smallest positive number: what errors of a
    factorisation are relative to."""
    size = _run("linalg_vector_norm", matrix, 2, [-2, -1], True)
    return _run("clamp", size, 1e-300)


def _square(matrix: Any) -> Tuple[Any, Any]:
    """Columns that should be orthonormal: their products, and the unit matrix."""
    product = _run("matmul", _turned(matrix), matrix)
    unit = _run("expand", _run("eye", product.shape[-1]), list(product.shape))
    return product, unit


def _columns(matrix: Any, n: int) -> Any:
    return _run("narrow", matrix, len(matrix.shape) - 1, 0, n)


def _symmetric(matrix: Any, upper: bool) -> Any:
    half = _run("triu" if upper else "tril", matrix)
    other = _turned(_run("triu", matrix, 1) if upper else _run("tril", matrix, -1))
    return _run("add", half, other)


def _svd_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    u, s, v = outputs
    matrix = call.get("A", call.get("self"))
    size = _size_of(matrix)
    flat = _run("squeeze", size, -1)
    got, wanted, labels = [_run("div", s, flat)], [_run("div", reference[1], flat)], \
        ["singular values, relative to the norm"]
    if call.get("compute_uv", True) and 0 not in matrix.shape:
        n = s.shape[-1]
        scaled = _run("mul", _columns(u, n), _run("unsqueeze", s, -2))
        product = _run("matmul", scaled, _turned(_columns(_turned(v), n)))
        for pair, label in (((_run("div", product, size), _run("div", matrix, size)),
                             "U S Vh, relative to the norm"),
                            (_square(u), "U'U"), (_square(_turned(v)), "V'V")):
            got.append(pair[0])
            wanted.append(pair[1])
            labels.append(label)
    return Judged(got, wanted, labels)


def _eigh_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    w, v = outputs
    matrix = call.get("A", call.get("self"))
    upper = call["upper"] if "upper" in call else str(call.get("UPLO", "L")).upper() == "U"
    matrix = _symmetric(matrix, bool(upper))
    size = _size_of(matrix)
    flat = _run("squeeze", size, -1)
    got, wanted, labels = [_run("div", w, flat)], [_run("div", reference[0], flat)], \
        ["eigenvalues, relative to the norm"]
    asked = call.get("compute_v", call.get("eigenvectors", True))
    if asked and 0 not in matrix.shape:
        product = _run("matmul", _run("mul", v, _run("unsqueeze", w, -2)), _turned(v))
        for pair, label in (((_run("div", product, size), _run("div", matrix, size)),
                             "V diag(w) V', relative to the norm"), (_square(v), "V'V")):
            got.append(pair[0])
            wanted.append(pair[1])
            labels.append(label)
    return Judged(got, wanted, labels)


def _of_complex(rule: "Rule", at: Optional[int]) -> "Rule":
    """plumb does not multiply complex matrices: of their factors only output `at` is judged."""
    def judge(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
        if not any(_is_tensor(value) and value.dtype.startswith("complex") for value in outputs):
            return rule(call, outputs, reference)
        if at is None:
            raise Undetermined("factors of complex matrices are free, and not multiplied")
        return Judged([outputs[at]], [reference[at]], [f"output {at}"])
    return judge


def _eig_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    raise Undetermined("eigenvalues come in any order, eigenvectors in any phase")


def _qr_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    q, r = outputs
    matrix = call.get("A", call.get("self"))
    if call.get("mode") == "r" or 0 in matrix.shape:
        raise Free("nothing to multiply")
    size = _size_of(matrix)
    pairs = [(_run("div", _run("matmul", q, r), size), _run("div", matrix, size)), _square(q),
             (r, _run("triu", r, raised=False))]
    return Judged([pair[0] for pair in pairs], [pair[1] for pair in pairs],
                  ["Q R, relative to the norm", "Q'Q", "R above its diagonal"])


# -- The rest --------------------------------------------------------------------------------------


def _first(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    return Judged(outputs[:1], reference[:1], [""])


def _aminmax_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    """Of a single number PyTorch keeps a dimension that was not there, or does not."""
    if call["self"].shape or not all(value.shape in ((), (1,)) for value in outputs):
        raise Free("nothing special")
    return Judged([_run("reshape", value, list(right.shape), raised=False)
                   for value, right in zip(outputs, reference)], reference, ["", ""])


def _nll_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    """The total weight is for the backward of a mean."""
    n = 2 if call.get("reduction", 1) == 1 else 1
    return Judged(outputs[:n], reference[:n], [""] * n)


def _lengths(value: Any) -> List[int]:
    if not _is_tensor(value):
        return [int(length) for length in value]
    flat = _run("reshape", value, [-1], raised=False)
    return [int(_core.element(flat, k)) for k in range(flat.shape[0])]


def _ctc_judged(call: Dict[str, Any], outputs: Values, reference: Values) -> Judged:
    """Of the alphas those of the input and the target that are there; the rest of that memory holds
    what it held before."""
    got, wanted, labels = [outputs[0]], [reference[0]], [""]
    times, targets = _lengths(call["input_lengths"]), _lengths(call["target_lengths"])
    if len(outputs[1].shape) == 3 and outputs[1].shape == reference[1].shape:
        for side, out in ((outputs[1], got), (reference[1], wanted)):
            for k, (time, target) in enumerate(zip(times, targets)):
                one = _run("select", side, 0, k, raised=False)
                one = _run("narrow", one, 0, 0, time, raised=False)
                out.append(_run("narrow", one, 1, 0, 2 * target + 1, raised=False))
        labels += ["log_alpha"] * len(times)
    return Judged(got, wanted, labels)


Rule = Callable[[Dict[str, Any], Values, Values], Judged]
RULES: Dict[str, Rule] = {
    **dict.fromkeys(("kthvalue", "median.dim", "nanmedian.dim", "mode", "cummax", "cummin"),
                    _index_judged),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d",
                     "adaptive_max_pool3d", "fractional_max_pool2d", "fractional_max_pool3d"),
                    _pool_judged),
    **dict.fromkeys(("_unique", "_unique2", "unique_dim", "unique_consecutive"), _unique_judged),
    **dict.fromkeys(("_linalg_svd", "linalg_svd", "svd"), _of_complex(_svd_judged, 1)),
    **dict.fromkeys(("_linalg_eigh", "linalg_eigh", "symeig"), _of_complex(_eigh_judged, 0)),
    **dict.fromkeys(("linalg_qr", "qr"), _of_complex(_qr_judged, None)),
    **dict.fromkeys(("linalg_eig", "linalg_eigvals", "_linalg_eigvals"), _eig_judged),
    **dict.fromkeys(("log_sigmoid_forward", "_embedding_bag", "_embedding_bag_forward_only"),
                    _first),
    "aminmax": _aminmax_judged,
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _nll_judged),
    **dict.fromkeys(("_ctc_loss", "_ctc_loss.Tensor"), _ctc_judged),
}


def judged(name: str, call: Dict[str, Any], outputs: Sequence[Any],
           reference: Sequence[Any], own: bool) -> Optional[Judged]:
    """What is judged of an operator's results; None: all of them, as they are. `call` has the
    arguments by name. own: the reference is plumb's, which has None where it has no opinion."""
    outputs, reference = list(outputs), list(reference)
    rule = RULES.get(name)
    if rule is not None and len(outputs) == len(reference):
        try:
            return rule({**call, "": name}, outputs, reference)
        except (Free, KeyError, ValueError, TypeError, AttributeError):
            pass  # as they are, then: a kernel that gives something else altogether, say
    if own and len(outputs) == len(reference) and None in reference:
        kept = [k for k, value in enumerate(reference) if value is not None]
        return Judged([outputs[k] for k in kept], [reference[k] for k in kept],
                      [f"output {k}" for k in kept])
    return None


def running_statistics(call: Dict[str, Any]) -> Dict[str, Any]:
    """What batch normalisation leaves in running_mean and running_var, in float64."""
    named = lambda *names: next((call[name] for name in names if name in call), None)
    mean, var = call.get("running_mean"), call.get("running_var")
    if mean is None or var is None:
        return {}
    training = named("training", "use_input_stats")
    if training is False:
        return {"running_mean": mean, "running_var": var}
    momentum = named("momentum", "exponential_average_factor")
    try:
        outputs = _core.run_op("Aten", "_native_batch_norm_legit_functional",
                               [call["input"], None, None, mean, var, True, momentum, 1e-5], {})[0]
    except (_core.Error, TypeError, KeyError):
        return {}
    return {"running_mean": outputs[3], "running_var": outputs[4]}
