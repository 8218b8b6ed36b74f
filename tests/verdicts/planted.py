"""What the suite plants: for each operator the results, or the gradients, of right implementations, faults
in them, and cheaper arithmetic."""

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

import faults
import gradients
import kinds
import operators
import plumb
from kinds import Kind, same
from operators import Case, raised
from rules import Item

Tensor = torch.Tensor
Named = Dict[str, Tensor]


# -- Cases -----------------------------------------------------------------------------------------


def chosen(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Tuple[str, ...],
           spread: str = "normal") -> Iterator[Tuple[str, Case, Kind, int]]:
    for name in types:
        kind = kinds.kind_of(name)
        for large in (False, True):
            for seed in seeds:
                for title, case in operators.cases(kind, large, seed, spread):
                    if wanted and title not in wanted and case.op not in wanted:
                        continue
                    size = "large" if large else "small"
                    yield f"{name} {size} {seed} {title}", case, kind, seed


def items(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Tuple[str, ...]) -> Iterator[Item]:
    """Outputs."""
    for where, case, kind, seed in chosen(types, seeds, wanted):
        yield from outputs(where, case, kind, seed)


def backward_items(types: Tuple[str, ...], seeds: Tuple[int, ...], wanted: Tuple[str, ...],
                   every: bool) -> Iterator[Item]:
    """Gradients; every: each fault in each gradient of a call, else in one of them."""
    for where, case, kind, seed in chosen(types, seeds, wanted):
        yield from grads(where, case, kind, seed, every)


def _without_onednn(run: Callable[[], Any]) -> Any:
    with torch.backends.mkldnn.flags(enabled=False):
        return run()


def _distinct(found: Named, exact: Tensor) -> Named:
    """Without results that are number for number those of another, and without ways that overflow on
    the way: NaN or an infinity where the type holds the exact result is not right. The first of them is
    what other rules compare with."""
    kept: Named = {}
    for name, got in found.items():
        overflowed = bool((~torch.isfinite(got) & torch.isfinite(exact)).any())
        if not overflowed and not any(same(got, other) for other in kept.values()):
            kept[name] = got
    return kept or {"float64": exact}


def first_of(found: Named) -> Tensor:
    return next(iter(found.values()))


def _attempt(run: Callable[[], Any]) -> Optional[Any]:
    try:
        return run()
    except RuntimeError:  # PyTorch has no kernel of this type, or numpy no gradient
        return None


# -- Outputs ---------------------------------------------------------------------------------------


def _double(inputs: Tuple[Any, ...]) -> List[Any]:
    return [value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
            for value in inputs]


def exact_output(case: Case) -> Tensor:
    return case.run(*_double(case.inputs), **case.kwargs)


def right_outputs(case: Case, kind: Kind) -> Named:
    wide = [raised(value, kind) for value in case.inputs]
    found = {name: kind.store(run(*wide, **case.kwargs))
             for name, run in (("float32", case.run), *case.variants.items())}

    def own() -> Tensor:
        return case.run(*case.inputs, **case.kwargs)
    if not kind.eight:
        for name, got in (("PyTorch", _attempt(own)),
                          ("PyTorch without oneDNN", _attempt(lambda: _without_onednn(own)))):
            if got is not None:
                found[name] = got
    return _distinct(found, kind.store(exact_output(case)))


def _is_nearest(got: Tensor, exact: Tensor, kind: Kind) -> bool:
    """Whether no number of the type is nearer to the exact result, in any element."""
    best = kind.store(exact)
    alike = (got == best) | (torch.isnan(got) & torch.isnan(best))
    return bool((alike | ((got.double() - exact).abs() <= (best.double() - exact).abs())).all())


def _distance(got: Tensor, exact: Tensor) -> Tuple[float, float]:
    """The root mean square of the errors and the largest, beside the size of each result."""
    size = exact.abs() + float(torch.nan_to_num(exact.abs(), 0.0, 0.0, 0.0).mean()) + 1e-300
    error = ((got.double() - exact) / size).flatten()
    error = error[torch.isfinite(error)].abs()
    return (float((error * error).mean().sqrt()), float(error.max())) if error.numel() else (0.0, 0.0)


def _why_hidden(got: Tensor, right: Named, exact: Tensor, kind: Kind) -> str:
    """Why no judge could tell it from a right result: it is one, or it is no farther from the exact
    result than one that was computed in float32 (float64), on average and at most."""
    if any(same(got, other) for other in right.values()):
        return "a right result"
    if _is_nearest(got, exact, kind):
        return "the exact result, rounded"
    if not torch.equal(torch.isfinite(got), torch.isfinite(kind.store(exact))):
        return ""
    own = _distance(got, exact)
    for name, other in right.items():
        if not name.startswith("PyTorch"):
            mean, most = _distance(other, exact)
            if own[0] <= mean and own[1] <= most:
                return f"no farther from the exact result than the right one by '{name}'"
    return ""


def planted(where: str, right: Named, exact: Tensor, wrong: Iterator[faults.Fault], kind_of_item: str,
            case: Case, kind: Kind, *of_gradient: Any) -> Iterator[Item]:
    """Items; "none" for what is a right result after all."""
    for fault in wrong:
        hidden = _why_hidden(fault.got, right, exact, kind)
        is_right = hidden and not hidden.startswith("no farther")
        item = Item("none" if is_right else kind_of_item, f"{where}: {fault.name}", case, fault.got,
                    fault.pattern, first_of(right), kind, *of_gradient)
        yield item._replace(hidden=hidden)


def outputs(where: str, case: Case, kind: Kind, seed: int) -> Iterator[Item]:
    right = right_outputs(case, kind)
    for name, got in right.items():
        yield Item("right", f"{where}: {name}", case, got, "", first_of(right), kind)
    wide = [raised(value, kind) for value in case.inputs]

    def called(wrong: Iterator[faults.WrongCall]) -> Iterator[faults.Fault]:
        for call in wrong:
            yield faults.Fault(call.name, kind.store(call.run(*wide)), call.pattern)

    exact = exact_output(case)
    for kind_of_item, wrong in (("fault", faults.results(first_of(right), kind, seed)),
                                ("fault", called(faults.calls(case))),
                                ("cheaper", faults.cheaper(exact, kind)),
                                ("cheaper", called(faults.cheaper_calls(case, kind)))):
        yield from planted(where, right, exact, wrong, kind_of_item, case, kind)


# -- Gradients -------------------------------------------------------------------------------------


def output_gradient(case: Case, kind: Kind, seed: int) -> Tensor:
    wide = [raised(value, kind) for value in case.inputs]
    return operators.gradient_of(tuple(case.run(*wide, **case.kwargs).shape), kind, seed)


def exact_gradients(case: Case, g: Tensor) -> Tuple[Tensor, ...]:
    return gradients.through(case.run, g.double(), _double(case.inputs), case.kwargs)


def right_gradients(case: Case, kind: Kind, g: Tensor) -> List[Named]:
    """For each tensor among the arguments the gradients that right implementations give."""
    wide, wide_g = [raised(value, kind) for value in case.inputs], raised(g, kind)
    ways: Dict[str, Callable[[], Any]] = {
        "float32": lambda: gradients.through(case.run, wide_g, wide, case.kwargs),
        **{f"through {name}": (lambda run: lambda: gradients.through(run, wide_g, wide, case.kwargs))(run)
           for name, run in case.variants.items()},
        **{f"formula, {name}": (lambda run: lambda: run(wide_g, *wide, **case.kwargs))(run)
           for name, run in case.gradients.items()},
    }
    found = {name: [kind.store(grad) for grad in got] for name, run in ways.items()
             for got in [_attempt(run)] if got is not None}
    if not kind.eight:
        def own() -> Any:
            return gradients.through(case.run, g, case.inputs, case.kwargs)
        for name, got in (("PyTorch", _attempt(own)),
                          ("PyTorch without oneDNN", _attempt(lambda: _without_onednn(own)))):
            if got is not None:
                found[name] = list(got)
    return [_distinct({name: got[part] for name, got in found.items()}, kind.store(exact))
            for part, exact in enumerate(exact_gradients(case, g))]


def wrong_gradients(case: Case, kind: Kind, g: Tensor, exact: Tuple[Tensor, ...],
                    ) -> Iterator[Tuple[int, faults.Fault]]:
    """Gradients of wrong calls, of wrong formulas, and of an output gradient that lost its end, each with
    the number of the argument. Where the formula gives the right gradient of an argument all the same,
    as float64 shows, there is no fault."""
    def found(g: Tensor, inputs: Any) -> Iterator[Tuple[str, Tuple[Tensor, ...]]]:
        for call in faults.calls(case):
            yield call.name, gradients.through(call.run, g, inputs, {})
        for name, run in faults.backward_calls(case, g):
            yield name, run(*inputs, **case.kwargs)
        yield "last of the output gradient", gradients.through(case.run, faults.dropped(g, 1, 0), inputs,
                                                               case.kwargs)

    wide = [raised(value, kind) for value in case.inputs]
    for (name, got), (_, double) in zip(found(raised(g, kind), wide), found(g.double(),
                                                                           _double(case.inputs))):
        for part, right in enumerate(exact):
            if not torch.allclose(double[part], right, rtol=1e-9, atol=1e-9 * float(right.abs().max())):
                yield part, faults.Fault(name, kind.store(got[part]), "")


def grads(where: str, case: Case, kind: Kind, seed: int, every: bool) -> Iterator[Item]:
    g = output_gradient(case, kind, seed)
    right = right_gradients(case, kind, g)
    for part, found in enumerate(right):
        for name, got in found.items():
            yield Item("right", f"{where} gradient {part}: {name}", case, got, "", first_of(found),
                       kind, g, part)
    exact = exact_gradients(case, g)
    wrong = list(wrong_gradients(case, kind, g, exact))
    for part, found in enumerate(right):
        simple = list(faults.results(first_of(found), kind, seed))
        if not every:
            simple = simple[part::len(right)]
        formulas = (fault for at, fault in wrong if at == part)
        for kind_of_item, bad in (("fault", iter(simple)), ("fault", formulas),
                                  ("cheaper", faults.cheaper(exact[part], kind))):
            yield from planted(f"{where} gradient {part}", found, exact[part], bad, kind_of_item, case,
                               kind, g, part)


# -- plumb's opinion ----------------------------------------------------------------------------------


def judge(item: Item) -> Any:
    inputs = [item.type.hand(value) for value in item.case.inputs]
    got = item.type.hand(item.got)
    if item.part is None:
        return plumb.judge(got, item.case.op, inputs, item.case.kwargs)
    of_parts = [None] * len(gradients.leaves(item.case.inputs))
    of_parts[item.part] = got
    opinion = plumb.judge(None, item.case.op, inputs, item.case.kwargs,
                          grad_outputs=item.type.hand(item.g), got_grads=of_parts)
    return next(part for part in opinion.parts if part.name == f"gradient {item.part}")
