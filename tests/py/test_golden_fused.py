"""Fused operators on the inputs of the golden data: plumb against float64 formulas, exactly, and against what
msProbe's benchmark functions gave, to the accuracy of the type that these computed in.

A small set lives in tests/data/golden; with PLUMB_GOLDEN the whole of it is checked.
"""

import json
import os
import sys
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from ops import cases_fused as formula  # noqa: E402
from ops import cases_optim as step  # noqa: E402
from ops.native import OWN, RAISED, Call, Native, Refused  # noqa: E402

DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"

# Where the benchmark is known to be worse than its inputs, or wrong:
COMPUTED_IN_FLOAT32 = {"npu_swiglu", "npu_scaled_masked_softmax", "npu_moe_gating_top_k_softmax"}
IGNORED_ARGUMENTS = {"npu_layer_norm_eval": ("weight", "bias", "eps")}
FAILED_THERE = {"gf23_npu_mish", "gf35_npu_scaled_masked_softmax"}  # no bfloat16; fixed_triu_mask=True
REFUSED = {"gf63_npu_fusion_attention"}  # TND, with four dimensions and without lengths
FLOAT32_STATISTICS = {"npu_rms_norm": (1,)}  # float32 whatever the input, after what rounding that had
NOT_REDUCED = {"npu_rms_norm": 1}  # the helper's gradient of gamma, one for each row
NOT_RESHAPED = {"npu_confusion_transpose"}  # the helper's gradient
# Helpers of the backward that use or sum float32 numbers.
BACKWARD_IN_FLOAT32 = {"npu_rms_norm", "npu_rotary_mul", "npu_scaled_masked_softmax", "npu_swiglu"}

ACCURACY = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, head_num: int, input_layout: str,
              pse: Any = None, atten_mask: Any = None, scale: Optional[float] = None, sparse_mode: int = 0,
              pre_tockens: int = 2147483647, next_tockens: int = 2147483647) -> Any:
    """With the benchmark's rules: its own default of scale, masks of modes without a mask, and bands that count from
    the upper left corner."""
    q = formula.to_heads(query, input_layout, head_num)
    fewer = key.shape[-1] // q.shape[-1]
    k, v = (formula.to_heads(x, input_layout, fewer) for x in (key, value))
    s, t = q.shape[-2], k.shape[-2]
    if atten_mask is None or (sparse_mode in (2, 3, 4) and atten_mask.shape == (2048, 2048)):
        bands = {1: (-s, t), 2: (-s, 0), 3: (-s, t - s)}
        atten_mask = formula.band(s, t, *bands.get(sparse_mode, (-pre_tockens, next_tockens)))
    y, top, total = formula.core(q, k, v, atten_mask, pse, q.shape[-1] ** -0.5 if scale is None else scale)
    return formula.from_heads(y, input_layout), top, total


def rms_norm(x: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-5) -> Any:
    return formula.rms_norm(x, gamma, epsilon)


def group_norm_silu(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, group: int, eps: float) -> Any:
    return formula.group_norm(x, gamma, beta, group, eps, 1.0)


TRUTH: Dict[str, Callable[..., Any]] = {
    "npu_rms_norm": rms_norm, "npu_swiglu": formula.swiglu, "npu_fast_gelu": formula.fast_gelu, "npu_mish": F.mish,
    "npu_linear": F.linear, "npu_layer_norm_eval": formula.layer_norm_eval, "npu_sort_v2": formula.sort_v2,
    "npu_rotary_mul": formula.rotary_mul, "npu_scaled_masked_softmax": formula.masked_softmax,
    "npu_confusion_transpose": formula.confusion, "npu_group_norm_silu": group_norm_silu,
    "npu_moe_gating_top_k_softmax": formula.gating, "npu_apply_adam": step.npu_adam,
    "npu_apply_adam_w": step.npu_adamw, "npu_fusion_attention": attention,
}


def tree(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, list):
        return [tree(item, function) for item in value]
    return {k: tree(v, function) for k, v in value.items()} if isinstance(value, dict) else value


def listed(value: Any) -> List[torch.Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Golden:
    """One case, loaded."""

    def __init__(self, folder: Path, case: Dict[str, Any]) -> None:
        self.folder, self.id, self.op = folder, case["id"], case["op"]
        self.args, self.kwargs = self.load(case["args"]), self.load(case["kwargs"])
        self.outputs = self.load(case.get("outputs") or [])
        self.grad_output = self.load(case.get("grad_output0"))
        self.grads = self.load(case.get("autograd_grads") or [])
        self.helper = self.load((case.get("explicit_backward") or {}).get("outputs") or [])

    def load(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.load(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "special" in value:
            return torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        if "file" not in value:
            return {key: self.load(item) for key, item in value.items()}
        array = np.load(self.folder / value["file"])
        if value["dtype"] == "torch.bfloat16":
            return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16).reshape(value["shape"])
        return torch.from_numpy(np.array(array)).reshape(value["shape"])

    def without(self, names: Tuple[str, ...]) -> Dict[str, Any]:
        return {k: v for k, v in self.kwargs.items() if k not in names}


def cases() -> List[Golden]:
    roots = [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])
    found: List[Golden] = []
    for root in roots:
        folder = root / "precheck" / "fused"
        found += [Golden(folder, case) for case in json.loads((folder / "manifest.json").read_text())["cases"]]
    return found


class Fused(unittest.TestCase):
    native = Native()

    def run_plumb(self, golden: Golden, kwargs: Dict[str, Any], precision: int) -> Tuple[List[Any], List[Any]]:
        wants = [isinstance(g, torch.Tensor) for g in golden.grads] + [False] * len(golden.args)
        args = [a.clone().requires_grad_(True) if wanted else a for a, wanted in zip(golden.args, wants)]
        grad = golden.grad_output if any(wants) else None
        call = Call("NPU", golden.op, args, kwargs, None if grad is None else grad.double())
        call.c.benchmark_forms = True
        outputs, _, grads = self.native.run(call, precision)
        return outputs, grads

    def run_truth(self, golden: Golden, kwargs: Dict[str, Any]) -> Tuple[List[Any], List[Any]]:
        def raised(t: torch.Tensor) -> torch.Tensor:
            return t.double() if t.is_floating_point() else t

        args, kwargs = tree(golden.args, raised), tree(kwargs, raised)
        args = [a.clone().requires_grad_(True) if isinstance(g, torch.Tensor) else a
                for a, g in zip(args, golden.grads + [None] * len(args))]
        outputs = listed(TRUTH[golden.op](*args, **kwargs))
        if golden.grad_output is not None and outputs[0].requires_grad:
            outputs[0].backward(golden.grad_output.double())
        grads = [a.grad for a in args if isinstance(a, torch.Tensor)]
        return [o.detach() for o in outputs], grads

    def close(self, what: str, got: Any, want: torch.Tensor, accuracy: float) -> None:
        self.assertEqual(list(got.shape), list(want.shape), what)
        if not want.is_floating_point():
            self.assertTrue(torch.equal(got.long(), want.long()), f"{what}: {got} {want}")
            return
        size = want.double().abs().max().item() if want.numel() else 0.0
        worst = (got.double() - want.double()).abs().max().item() if want.numel() else 0.0
        self.assertLessEqual(worst, accuracy * max(size, 1e-30), f"{what}: {worst:g} apart, values up to {size:g}")

    def gradients(self, golden: Golden, grads: List[Any]) -> List[Tuple[Any, torch.Tensor]]:
        """Gradients of the arguments, with those of the golden data."""
        places = [g for a, g in zip(golden.args, golden.grads) if isinstance(a, torch.Tensor)]
        return [(mine, theirs) for mine, theirs in zip(grads, places) if isinstance(theirs, torch.Tensor)]

    def test_formulas(self) -> None:
        """The reference is the formula in float64."""
        for golden in cases():
            if golden.id in REFUSED:
                continue
            with self.subTest(golden.id):
                outputs, grads = self.run_plumb(golden, golden.kwargs, RAISED)
                want, want_grads = self.run_truth(golden, golden.kwargs)
                self.assertEqual(len(outputs), len(want))
                for k, (mine, truth) in enumerate(zip(outputs, want)):
                    self.close(f"{golden.id} output {k}", mine, truth, 1e-13)
                for (mine, _), truth in zip(self.gradients(golden, grads),
                                            [g for g in want_grads if g is not None]):
                    self.close(f"{golden.id} gradient", mine, truth, 1e-12)

    def test_benchmark(self) -> None:
        """What the benchmark gave, in its type's accuracy. It ignores some arguments: so without them."""
        for golden in cases():
            if golden.id in FAILED_THERE | REFUSED:
                continue
            with self.subTest(golden.id):
                kwargs = golden.without(IGNORED_ARGUMENTS.get(golden.op, ()))
                outputs, grads = self.run_plumb(golden, kwargs, RAISED)
                self.assertGreater(len(golden.outputs), 0)
                self.assertEqual(len(outputs), len(golden.outputs))
                for k, (mine, theirs) in enumerate(zip(outputs, golden.outputs)):
                    self.close(f"{golden.id} output {k}", mine, theirs, self.accuracy(golden, theirs.dtype, k))
                for mine, theirs in self.gradients(golden, grads):
                    self.close(f"{golden.id} gradient", mine, theirs, self.accuracy(golden, theirs.dtype, 0) * 4)

    def accuracy(self, golden: Golden, dtype: torch.dtype, output: int) -> float:
        if output in FLOAT32_STATISTICS.get(golden.op, ()):
            return max(ACCURACY[torch.float32], ACCURACY[golden.args[0].dtype])
        if golden.op in COMPUTED_IN_FLOAT32:
            return max(ACCURACY[torch.float32], ACCURACY.get(dtype, 0))
        return ACCURACY.get(dtype, 0)

    def test_backward_helpers(self) -> None:
        seen = 0
        for golden in cases():
            if not golden.helper:
                continue
            with self.subTest(golden.id):
                _, grads = self.run_plumb(golden, golden.kwargs, RAISED)
                for k, theirs in enumerate(golden.helper):
                    if NOT_REDUCED.get(golden.op) == k:
                        theirs = theirs.double().sum(list(range(theirs.dim() - grads[k].dim())))
                    if golden.op in NOT_RESHAPED:
                        theirs = theirs.reshape(grads[k].shape)
                    accuracy = ACCURACY[golden.args[0].dtype] * 4
                    if golden.op in BACKWARD_IN_FLOAT32:
                        accuracy = max(accuracy, ACCURACY[torch.float32] * 4)
                    self.close(f"{golden.id} helper's gradient {k}", grads[k], theirs, accuracy)
                    seen += 1
        self.assertGreater(seen, 0)

    def test_own_types(self) -> None:
        """As a device computes it: the input's type, and close to the formula."""
        for golden in cases():
            if golden.id in REFUSED:
                continue
            with self.subTest(golden.id):
                outputs, _ = self.run_plumb(golden, golden.kwargs, OWN)
                want, _ = self.run_truth(golden, golden.kwargs)
                floats = [t.dtype for t in golden.args if isinstance(t, torch.Tensor) and t.is_floating_point()]
                self.assertEqual(outputs[0].dtype, floats[0])
                for k, (mine, truth) in enumerate(zip(outputs, want)):
                    self.close(f"{golden.id} output {k}", mine, truth, max(ACCURACY.get(mine.dtype, 0),
                                                                          ACCURACY.get(outputs[0].dtype, 0)))

    def test_refused(self) -> None:
        refused = [golden for golden in cases() if golden.id in REFUSED]
        self.assertGreater(len(refused), 0)
        for golden in refused:
            with self.assertRaises(Refused) as caught:
                self.run_plumb(golden, golden.kwargs, RAISED)
            self.assertIn("TND", str(caught.exception))

    def test_defaults_of_the_operator(self) -> None:
        """Without the benchmark's rules: scale 1, no mask without a mask, epsilon 1e-6."""
        q, k = torch.rand(1, 2, 4, 3), torch.rand(1, 2, 5, 3)
        call = Call("NPU", "npu_fusion_attention", [q, k, k, 2, "BNSD"], {"sparse_mode": 2})
        want = torch.softmax(q.double() @ k.double().transpose(-1, -2), -1) @ k.double()
        self.close("attention", self.native.run(call, RAISED)[0][0], want, 1e-13)
        x = torch.rand(3, 4) * 1e-3
        got = self.native.run(Call("NPU", "npu_rms_norm", [x, torch.ones(4)], {}), RAISED)[0][0]
        self.close("rms_norm", got, formula.rms_norm(x.double(), torch.ones(4).double(), 1e-6)[0], 1e-13)


if __name__ == "__main__":
    unittest.main()
