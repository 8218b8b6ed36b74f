"""acc_check on PyTorch's own operator samples: device torch:cpu, reference plumb's operators. What does not pass is a
fault of plumb, or one of PyTorch's that KNOWN names with its size.

As a test, a few samples of each operator. All of them, and what was found:

    python3 tests/py/test_check_samples.py --all [float32 ...] [--only WORD ...] [--keep FOLDER]
"""

import argparse
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode, resolve_name

sys.path.insert(0, str(Path(__file__).parent))
from dump_model import Recorder, as_outputs  # noqa: E402
from op_samples import name_of, operators, samples  # noqa: E402
from ops.harness import TORCH  # noqa: E402
from torch_runs import BUILD, Result  # noqa: E402

# Where PyTorch 1.13 itself is off, or the operator leaves the result open; everything else is a fault of plumb.
KNOWN = {
    "as_strided_scatter": "PyTorch's gradient of self goes through the elements that src replaced",
    "cov": "PyTorch adds up float32 weights in float32 beside float64 data: off by 4e-6",
    "histogram": "edges of bins that are not in order mean nothing",
    "linspace": "PyTorch's vectors of integers begin from truncated values: off by 1",
    "polygamma": "the first is infinite at negative integers, where PyTorch gives 1e15",
    "special.chebyshev_polynomial_t": "PyTorch takes cos(n acos x), in float32: up to 1e-6 at 0, where it is 0",
    "special.chebyshev_polynomial_u": "as chebyshev_polynomial_t",
    "special.polygamma": "as polygamma",
    "linalg.norm/subgradients_at_zero": "the nuclear and spectral norms of zeros have no derivative",
    "linalg.pinv/hermitian": "samples that are not symmetric, of which only a triangle is read",
}

# What PyTorch 2 differentiates, and plumb does not, like 1.13.
NEWER = {
    "__rpow__": "the gradient of a base that is a tensor",
    "native_group_norm": "gradients that go into mean and 1 / std, which no module has",
    "nextafter": "1 for the first argument, 0 for the second",
}

# In float32, by the documented rules: the right result is close to zero and what is left of it in float32 is noise.
CANCELLED = {
    "corrcoef": "gradients of one variable: 3e-8 instead of 0",
    "linalg.det/singular": "gradients of nearly singular matrices",
    "logcumsumexp": "PyTorch's gradient subtracts logarithms: 4 of 125 elements are off by more than 1e-3",
    "masked.std": "sums of deviations from a mean",
    "masked.var": "sums of deviations from a mean",
    "native_batch_norm": "gradients of constant channels",
    "native_layer_norm": "gradients of constant rows",
    "nn.functional.group_norm": "gradients of constant groups",
    "nn.functional.multi_head_attention_forward": "a gradient of 1e-40, which float32 hardly holds",
    "pca_lowrank": "gradients of its products cancel out: 4e-15 is left of terms of 8e-8",
}

TYPES = ("float64", "float32", "bfloat16", "float16", "int64", "int32", "uint8", "bool", "complex64", "complex128")
PLAIN = (bool, int, float, str, slice, type(None), type(Ellipsis), torch.memory_format)


def api(function: Any) -> Optional[Tuple[str, str]]:
    """Prefix and name as dumps have them."""
    name = resolve_name(function) or ""
    for start, prefix in (("torch.nn.functional.", "Functional"), ("torch._C._nn.", "Functional"),
                          ("torch.Tensor.", "Tensor"), ("torch.functional.", "Torch"), ("torch.", "Torch")):
        if name.startswith(start):
            name = name[len(start):]
            return prefix, name[:-len(".__get__")] if name.endswith(".__get__") else name
    return None


def can_be_recorded(value: Any, name: str = "") -> bool:
    if isinstance(value, (list, tuple)):
        return all(can_be_recorded(item) for item in value)
    if isinstance(value, torch.Tensor):
        return value.layout == torch.strided
    if isinstance(value, (torch.dtype, torch.device)):
        return name in ("dtype", "device")
    return isinstance(value, PLAIN)


class Watch(TorchFunctionMode):  # type: ignore[misc]
    """Records the calls of PyTorch that a sample makes, which are several where its function is a lambda."""

    def __init__(self, recorder: Recorder, found: Counter) -> None:
        super().__init__()
        self.recorder, self.found = recorder, found
        self.names: List[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = api(function)
        plain = can_be_recorded(list(args)) and all(can_be_recorded(v, k) for k, v in kwargs.items())
        if not name or not plain or name[1] in ("requires_grad", "dtype", "shape", "device", "layout", "grad_fn"):
            self.found["calls that no dump can hold"] += not plain
            return function(*args, **kwargs)
        result = self.recorder.call(*name, function, list(args), kwargs)
        self.names.append(f"{'.'.join(name)}.{self.recorder.calls['.'.join(name)] - 1}")
        return result


def record(folder: Path, dtype: torch.dtype, most: Optional[int], words: List[str]) -> Tuple[Path, Dict[str, str], Any]:
    """The dump, which operator a call belongs to, and counts."""
    recorder, found, owners = Recorder(folder, "tensor"), Counter(), {}  # type: ignore[var-annotated]
    for op in operators():
        name = name_of(op)
        if words and not any(word in name for word in words):
            continue
        grad = op.supports_autograd and dtype in op.backward_dtypes and (dtype.is_floating_point or dtype.is_complex)
        for sample in samples(op, dtype, most, grad):
            found["samples"] += 1
            watch = Watch(recorder, found)
            try:
                with watch:
                    outputs = as_outputs(op.op(*sample.args, **sample.kwargs))
                outputs = [out for out in outputs if isinstance(out, torch.Tensor) and out.requires_grad]
                if outputs:
                    torch.autograd.backward(outputs, [torch.randn(o.shape, dtype=o.dtype) for o in outputs])
            except Exception as error:
                recorder.waiting.clear()
                found["samples that PyTorch refuses"] += 1
                found[f"refused {name}: {str(error).splitlines()[0][:90]}"] += 1
            owners.update(dict.fromkeys(watch.names, name))
    found["operators"] = len(set(owners.values()))
    return recorder.write(), owners, found


def check(dump: Path) -> Result:
    out = dump.parent / "out"
    return Result(subprocess.run([str(BUILD / "plumb"), "acc_check", str(dump), "-d", "torch:cpu", "-o", str(out)],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


class Findings:
    """Rows of a check that say error, by operator."""

    def __init__(self, dtype: str, folder: Path, most: Optional[int] = None, words: Optional[List[str]] = None) -> None:
        self.known = {**KNOWN, **(NEWER if TORCH >= (2, 0) else {}), **(CANCELLED if dtype != "float64" else {})}
        self.dump, self.owners, self.found = record(folder, getattr(torch, dtype), most, words or [])
        self.result = check(self.dump)
        self.errors: Dict[str, List[List[str]]] = {}
        self.skips: Counter = Counter()
        for row in self.result.details:
            call = row[0].rsplit(".", 3)[0]
            owner = self.owners.get(call, call)
            self.found["outputs"] += 1
            self.found["by PyTorch's own reference"] += "reference by PyTorch" in row[-2]
            if row[-3] == "error":
                self.errors.setdefault(owner, []).append(row)
            elif row[-3] == "SKIP":
                self.skips[f"{owner}: {row[-2]}"] += 1
        for call, row in self.result.rows.items():
            self.found[row[0]] += 1

    def why(self, owner: str) -> Optional[str]:
        return self.known.get(owner) or self.known.get(owner.partition("/")[0])

    def unexplained(self) -> List[str]:
        return [f"{rows[0][0]}: {rows[0][-2]}" for owner, rows in self.errors.items() if not self.why(owner)]

    def tell(self) -> None:
        for text, count in sorted(self.found.items()):
            print(f"  {count:6} {text}")
        for text, count in sorted(self.skips.items()):
            print(f"  SKIP {count:4} {text}")
        for owner, rows in sorted(self.errors.items()):
            known = f" (known: {self.why(owner)})" if self.why(owner) else ""
            print(f"  ERROR {owner}: {len(rows)}, such as {rows[0][0]}: {rows[0][-2]}{known}")


class Samples(unittest.TestCase):
    def walk(self, dtype: str, most: int) -> None:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            findings = Findings(dtype, Path(folder), most)
        self.assertEqual(findings.unexplained(), [])
        self.assertGreater(findings.found["pass"], 500 if dtype.startswith("float") else 200)
        self.assertGreater(findings.found["operators"], 300 if dtype.startswith("float") else 200)

    def test_float32(self) -> None:
        self.walk("float32", 2)

    def test_float64(self) -> None:
        self.walk("float64", 2)

    def test_int64(self) -> None:
        self.walk("int64", 1)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("types", nargs="*", default=TYPES)
    parser.add_argument("--most", type=int)
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    for dtype in options.types:
        with tempfile.TemporaryDirectory() as folder:
            print(dtype, flush=True)
            Findings(dtype, (options.keep or Path(folder)) / dtype, options.most, options.only).tell()


if __name__ == "__main__":
    if "--all" in sys.argv:
        main()
    else:
        unittest.main()
