"""PyTorch's own samples of its operators (op_db), the same ones each time.

samples(op, dtype) gives the positional and keyword arguments of calls of op.op; most=N takes N of them, spread over
all there are. Tensors are PyTorch's, so whoever runs a sample twice copies them first."""

import contextlib
import random
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import numpy
import torch

sys.path.append(str(Path(__file__).parent))  # expecttest, where the package is not there
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db


class Sample(NamedTuple):
    args: List[Any]
    kwargs: Dict[str, Any]


def name_of(op: Any) -> str:
    """nn.functional.pad/circular; variants of an operator differ in what is behind the slash."""
    return op.name + (f"/{op.variant_test_name}" if op.variant_test_name else "")


def operators() -> List[Any]:
    return sorted(op_db, key=name_of)


@contextlib.contextmanager
def sets_can_be_sampled() -> Iterator[None]:
    """Some samples of PyTorch 1.13 are drawn from a set, which newer versions of Python refuse."""
    before = random.sample
    random.sample = lambda population, k: before(  # type: ignore[assignment]
        sorted(population) if isinstance(population, (set, frozenset)) else population, k)
    try:
        yield
    finally:
        random.sample = before


def samples(op: Any, dtype: torch.dtype, most: Optional[int] = None, requires_grad: bool = False) -> List[Sample]:
    """None of them where PyTorch says that its CPU has no such kernel."""
    if dtype not in op.dtypes:
        return []
    torch.manual_seed(zlib.crc32(name_of(op).encode()))
    random.seed(1)
    numpy.random.seed(1)
    with warnings.catch_warnings(), sets_can_be_sampled():
        warnings.simplefilter("ignore")
        found = [Sample([s.input, *s.args], dict(s.kwargs)) for s in op.sample_inputs("cpu", dtype, requires_grad)]
    if most is None or len(found) <= most:
        return found
    return [found[k * len(found) // most] for k in range(most)]
