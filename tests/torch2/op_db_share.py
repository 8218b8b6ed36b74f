"""Which ATen operators of PyTorch's own samples (op_db) plumb has: their number, and the names of the others.

    PYTHONPATH=build/python python3 tests/torch2/op_db_share.py [--types float32 int64] [--most 8]

Each operator of op_db is run on samples of each type, forward and, in floating point, backward; every ATen operator that
PyTorch calls on the way counts once. --most N takes N samples of each, spread over all there are; 0 takes all.
What nobody can check is not counted: operators that only look (sizes, strides) or give memory that is not written.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import torch  # noqa: E402
from op_samples import name_of, operators, samples  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from plumb._core import has_op  # noqa: E402


class Called(TorchDispatchMode):
    """The names of operators that were called, and by which entry of op_db first."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Dict[str, str] = {}
        self.entry = ""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace == "aten":
            self.first.setdefault(function._overloadpacket.__name__, self.entry)
        return function(*args, **(kwargs or {}))


def floats(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of a result that gradients come back from."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from floats(item)


def walk(types: List[torch.dtype], most: int) -> Dict[str, str]:
    called = Called()
    for op in operators():
        called.entry = name_of(op)
        for dtype in types:
            try:
                found = samples(op, dtype, most or None, dtype.is_floating_point and op.supports_autograd)
            except Exception as error:
                print(f"no samples of {name_of(op)} in {dtype}: {error}", file=sys.stderr)
                continue
            for sample in found:
                try:
                    with called:
                        outputs = list(floats(op.op(*sample.args, **sample.kwargs)))
                        if outputs:
                            torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
                except Exception:  # PyTorch's own samples are not all right
                    pass
    return called.first


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", nargs="*", default=["float32", "int64"])
    parser.add_argument("--most", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = walk([getattr(torch, name) for name in options.types], options.most)
    missing: Set[str] = {name for name in first if not has_op("Aten", name)}
    print(f"PyTorch {torch.__version__}: {len(first)} operators, {len(missing)} missing")
    for name in sorted(missing):
        print(f"  {name} (first called by {first[name]})")


if __name__ == "__main__":
    main()
