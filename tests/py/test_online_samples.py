"""The online check over PyTorch's own operator samples: no kernel of a stock PyTorch may be blamed, but for those that
docs/KERNELS.md lists with their errors.

As a test, a few samples of each operator. All of them, and what was found, as rows for that list:

    python3 tests/py/test_online_samples.py --all [--seed N] [--reference] [float32 ...] [--only WORD ...]
"""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PLUMB_BUILD", ROOT / "build"))
sys.path.insert(0, str(BUILD / "python"))
sys.path.insert(0, str(Path(__file__).parent))

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import op_samples
import plumb
import plumb.tensors

BACKWARD = ("float64",)  # types whose gradients are walked too
TYPES = ("float32", "float64", "int64", "bfloat16")
MOST = 8  # samples of an operator, in the test
SLACK = 8.0  # processors differ; so much above a listed error is still that error
Key = Tuple[str, str]  # type, operator


class Walk(NamedTuple):
    counts: Dict[str, int]
    alarms: List[Dict[str, Any]]  # lines of the log
    said: str                     # the account


class Known(NamedTuple):
    error: float  # largest |a-b|; NaN: a special value
    why: str


def known_kernels() -> Dict[Key, Known]:
    """Rows `| float32 | `cdist` | 4.1e-05 | why |` of the list."""
    found: Dict[Key, Known] = {}
    for line in (ROOT / "docs" / "KERNELS.md").read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").replace("\\|", "").split("|")]
        if len(cells) == 4 and line.startswith("|") and isinstance(getattr(torch, cells[0], None), torch.dtype):
            error = float("nan") if "instead of" in cells[2] else float(cells[2])
            found[(cells[0], cells[1])] = Known(error, cells[3])
    return found


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [copied(item) for item in value] if type(value) is list else value


def run_backward(result: Any, sample: op_samples.Sample) -> None:
    """The gradients of all results, for random cotangents."""
    outputs = [out for out in tensors(result) if out.requires_grad]
    leaves = [leaf for leaf in tensors(list(sample)) if leaf.requires_grad]
    if outputs and leaves:
        torch.autograd.grad(outputs, leaves, [torch.randn_like(out) for out in outputs], allow_unused=True)


def run_sample(op: Any, sample: op_samples.Sample, backward: bool, counts: Dict[str, int]) -> None:
    counts["samples"] += 1
    try:
        with plumb.precision_check():
            result = op(*sample.args, **sample.kwargs)
            if backward:
                run_backward(result, sample)
            elif op.inplace_variant is not None:
                op.inplace_variant(copied(sample.args[0]), *sample.args[1:], **sample.kwargs)
    except Exception:  # what it does not take, in place say, or without a graphics card
        counts["refused by PyTorch"] += 1


def samples_of(op: Any, dtype: torch.dtype, backward: bool, most: Optional[int], seed: int,
               reference: bool) -> List[op_samples.Sample]:
    numpy.random.seed(seed)
    if not reference and not seed:
        return op_samples.samples(op, dtype, most, backward)
    torch.manual_seed(seed)
    inputs = op.reference_inputs if reference else op.sample_inputs
    with op_samples.sets_can_be_sampled():
        return [op_samples.Sample([s.input, *s.args], dict(s.kwargs)) for s in inputs("cpu", dtype, backward)]


def walk(name: str, most: Optional[int] = None, seed: int = 0, reference: bool = False,
         words: Tuple[str, ...] = ()) -> Walk:
    """Every operator that takes the type, on `most` samples each."""
    dtype, backward, counts = getattr(torch, name), name in BACKWARD, Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = Path(folder) / "log"
        plumb.enable_precision_check(path=log, log_format="jsonl", log_once=False, max_checks=1 << 40,
                                     save_failures=False)
        for op in op_samples.operators():
            grad = backward and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
            if dtype not in op.supported_dtypes("cpu") or words and not any(
                    word in op_samples.name_of(op) for word in words):
                continue
            counts["operators"] += 1
            for sample in samples_of(op, dtype, grad, most, seed, reference):
                run_sample(op, sample, grad, counts)
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            table = plumb.disable_precision_check()
        counts["calls checked"] = sum(row[table.columns.index("Checked")] for row in table)
        alarms = [json.loads(line) for line in log.read_text().splitlines()]
        return Walk(counts, [{**alarm, "type": name} for alarm in alarms], stderr.getvalue())


def out_of_place(op: str) -> str:
    name, dot, overload = op.partition(".")
    return (name[:-1] if name.endswith("_") else name) + dot + overload


def is_known(alarm: Dict[str, Any], known: Dict[Key, Known]) -> bool:
    found = known.get((alarm["type"], out_of_place(alarm["op"])))
    if found is None:
        return False
    if "error" in alarm:  # a special value is known as such
        return alarm["error"] == "special_value_mismatch" and found.error != found.error
    return found.error != found.error or alarm["max_abs_diff"] <= SLACK * found.error


def bits(value: Any) -> List[Any]:
    """By which results are the same, NaN and all."""
    found = []
    for tensor in tensors(value):
        plain = tensor.detach()
        plain = plain.to_dense() if plain.layout is not torch.strided else plain
        found.append((plain.dtype, plain.shape, plumb.tensors.view(plain.resolve_conj()).crc32()))
    return found


class Nothing(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def run_once(op: Any, sample: op_samples.Sample, backward: bool, block: Any) -> Any:
    """What it gives, gradients too, or how it refuses."""
    torch.manual_seed(0)
    args = [copied(value).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else copied(value)
            for value in sample.args]
    try:
        with block:
            result = op(*args, **sample.kwargs)
            found = bits(result)
            leaves = [leaf for leaf in tensors(args) if leaf.requires_grad]
            outputs = [out for out in tensors(result) if out.requires_grad]
            if backward and outputs and leaves:
                found += bits([grad for grad in torch.autograd.grad(
                    outputs, leaves, [torch.randn_like(out) for out in outputs], allow_unused=True)
                    if grad is not None])
            return found
    except Exception as error:
        return type(error)


class Unchanged(unittest.TestCase):
    """Results and gradients of a watched program are those of the program, bit for bit. Under any dispatch mode
    PyTorch itself takes another way for a few gradients (prod, linalg.eig)."""

    def test_float32_with_gradients(self) -> None:
        counts, changed = Counter(), []
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plumb.enable_precision_check(path=Path(folder) / "log", save_failures=False)
            for op in op_samples.operators():
                if "empty" in op.name or torch.float32 not in op.supported_dtypes("cpu"):  # whatever lay there
                    continue
                counts["operators"] += 1
                backward = op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu")
                for sample in op_samples.samples(op, torch.float32, 2, backward):
                    plain = run_once(op, sample, backward, contextlib.nullcontext())
                    if plain != run_once(op, sample, backward, contextlib.nullcontext()):
                        counts["never the same"] += 1  # without anybody watching
                        continue
                    counts["samples"] += 1
                    watched = run_once(op, sample, backward, plumb.precision_check())
                    if plain != watched and watched == run_once(op, sample, backward, Nothing()):
                        counts["another way under any mode"] += 1
                    elif plain != watched:
                        changed.append(op_samples.name_of(op))
            with contextlib.redirect_stderr(io.StringIO()):
                plumb.disable_precision_check()
        self.assertEqual(changed, [])
        self.assertGreater(counts["operators"], 400)
        self.assertGreater(counts["samples"], 800)
        self.assertLess(counts["never the same"], 10)
        self.assertLess(counts["another way under any mode"], 10)


class Samples(unittest.TestCase):
    def check(self, name: str) -> None:
        found = walk(name, MOST)
        self.assertNotIn("went wrong", found.said)
        self.assertGreater(found.counts["operators"], 400)
        self.assertGreater(found.counts["calls checked"], 1000)
        known = known_kernels()
        unknown = [alarm for alarm in found.alarms if not is_known(alarm, known)]
        self.assertEqual(unknown, [])

    def test_float32(self) -> None:
        self.check("float32")

    def test_float64_with_gradients(self) -> None:
        self.check("float64")

    def test_int64(self) -> None:
        self.check("int64")

    def test_bfloat16(self) -> None:
        self.check("bfloat16")

    def test_a_wrong_kernel_is_seen(self) -> None:
        library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl("tanh", lambda x: torch.sigmoid(x), "CPU")
        try:
            found = walk("float32", 2, words=("tanh",))
        finally:
            library.m = None
        self.assertIn("tanh", {alarm["op"] for alarm in found.alarms if not is_known(alarm, known_kernels())})


def told(alarms: List[Dict[str, Any]], known: Dict[Key, Known]) -> bool:
    """A row for each operator that was blamed; whether all are known."""
    worst: Dict[Key, Dict[str, Any]] = {}
    for alarm in alarms:
        key, size = (alarm["type"], out_of_place(alarm["op"])), lambda a: a.get("max_abs_diff", float("inf"))
        if key not in worst or size(alarm) > size(worst[key]):
            worst[key] = alarm
    for key, alarm in sorted(worst.items()):
        error = f"{alarm['max_abs_diff']:.1e}" if "max_abs_diff" in alarm else alarm["message"]
        why = known[key].why if key in known else f"?? {alarm}"
        print(f"| {key[0]} | `{key[1]}` | {error} | {why} |")
    return all(is_known(alarm, known) for alarm in alarms)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", action="store_true", help="PyTorch's larger sets of samples")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("types", nargs="*", default=TYPES)
    given = parser.parse_args()
    known, fine = known_kernels(), True
    for name in given.types:
        found = walk(name, None, given.seed, given.reference, tuple(given.only))
        operators = {alarm["op"] for alarm in found.alarms}
        print(f"{name}{' forward and backward' if name in BACKWARD else ''}: "
              + ", ".join(f"{value} {key}" for key, value in found.counts.items())
              + f", {len(found.alarms)} alarms of {len(operators)} kernels")
        fine &= told(found.alarms, known) and "went wrong" not in found.said
        sys.stdout.flush()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main()) if "--all" in sys.argv else unittest.main()
