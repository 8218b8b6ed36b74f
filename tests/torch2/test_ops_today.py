"""Operators of PyTorch 2 against its own kernels in float64, and against composed formulas where this build has no
kernel; right results in float32 and bfloat16 are not blamed, planted faults are."""

import csv
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # bfloat16 with AMX ends in SIGILL in some virtual machines
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import python_case  # noqa: E402,F401  (puts the package under test into the path)
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import plumb  # noqa: E402
from ops.harness import TORCH  # noqa: E402
from ops.native import BUILD, RAISED, Call, Native  # noqa: E402

aten = torch.ops.aten
Args = Sequence[Any]


def seeded() -> None:
    torch.manual_seed(11)
    torch.set_num_threads(1)


def raised(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return [raised(item) for item in value]
    return value


def listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Ops(unittest.TestCase):
    native = Native()

    def setUp(self) -> None:
        seeded()

    def same(self, name: str, function: Callable[..., Any], args: Args, kwargs: Optional[Dict[str, Any]] = None,
             results: int = 1, rtol: float = 1e-10, as_given: bool = False) -> List[Any]:
        """plumb's reference of float32 arguments against PyTorch's kernel in float64 (as_given: in the types that they
        have, for kernels that take no other); the first results."""
        kwargs = kwargs or {}
        want = listed(function(*(args if as_given else raised(args)),
                               **{k: v if as_given else raised(v) for k, v in kwargs.items()}))
        got, _, _ = self.native.run(Call("Aten", name, args, kwargs), RAISED)
        self.assertGreaterEqual(len(got), min(results, len(want)))
        for k in range(results):
            if want[k] is None:
                self.assertIsNone(got[k])
                continue
            torch.testing.assert_close(got[k].double(), want[k].double(), rtol=rtol, atol=rtol, msg=f"{name} {k}")
        return got

    def right(self, got: Any, op: str, args: Args, kwargs: Optional[Dict[str, Any]] = None) -> None:
        opinion = plumb.judge(got, op, list(args), kwargs)
        self.assertTrue(opinion, f"{op}: a right result is blamed: {opinion}")

    def wrong(self, got: Any, op: str, args: Args, kwargs: Optional[Dict[str, Any]] = None) -> None:
        opinion = plumb.judge(got, op, list(args), kwargs)
        self.assertEqual(opinion.verdict, "fault", f"{op}: a planted fault is not seen: {opinion}")


def needs(*names: str) -> Callable[[Any], Any]:
    """Operators and packages that older PyTorches and Debians lack."""
    missing = [name for name in names if not (hasattr(aten, name) or hasattr(torch, name) or hasattr(F, name) or
                                              importlib.util.find_spec(name) is not None)]
    return unittest.skipIf(bool(missing), f"PyTorch {torch.__version__} has no {', '.join(missing)}")


class Attention(Ops):
    FORWARD = "aten::_scaled_dot_product_flash_attention_for_cpu"
    BACKWARD = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"

    def made(self, dtype: torch.dtype = torch.float32, heads: int = 4) -> List[torch.Tensor]:
        return [torch.randn(2, n, 24, 16).to(dtype) for n in (4, heads, heads)]

    def test_kernel(self) -> None:
        mask = torch.randn(2, 1, 24, 24)
        mask[:, :, 3] = -math.inf
        for kwargs in ({}, {"is_causal": True}, {"attn_mask": mask}, {"scale": 0.3}):
            args = self.made()
            out, lse = self.same("_scaled_dot_product_flash_attention_for_cpu",
                                 aten._scaled_dot_product_flash_attention_for_cpu, args, kwargs, 2)
            more = {k: v for k, v in kwargs.items() if k != "is_causal"}
            back = [torch.randn(2, 4, 24, 16), *args, out.float(), lse.float(), 0.0, bool(kwargs.get("is_causal"))]
            self.same("_scaled_dot_product_flash_attention_for_cpu_backward",
                      aten._scaled_dot_product_flash_attention_for_cpu_backward, back, more, 3)

    @unittest.skipIf(TORCH < (2, 14), "the kernel of PyTorch 2.6 takes keys of all heads only")
    def test_grouped_heads(self) -> None:
        self.same("_scaled_dot_product_flash_attention_for_cpu", aten._scaled_dot_product_flash_attention_for_cpu,
                  self.made(heads=2), {}, 2)

    def test_math(self) -> None:
        mask = torch.rand(24, 24) < 0.5
        mask[5] = False
        for kwargs in ({}, {"is_causal": True}, {"attn_mask": mask}):
            self.same("_scaled_dot_product_attention_math", aten._scaled_dot_product_attention_math, self.made(), kwargs, 2)
        score = torch.randn(3, 6)
        score[1] = -math.inf
        self.same("_safe_softmax", aten._safe_softmax, [score, -1])

    def test_right_and_wrong(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            q, k, v = self.made(dtype)
            for causal in (False, True):
                given, named = [q, k, v], {"is_causal": causal}
                out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=causal)
                self.right([out, lse], self.FORWARD, given, named)
                if dtype == torch.float32:
                    self.wrong([out * 1.001, lse], self.FORWARD, given, named)
                self.wrong([out, lse + 0.05], self.FORWARD, given, named)
                self.wrong([aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=causal, scale=0.26)[0], lse],
                           self.FORWARD, given, named)
                g = torch.randn(2, 4, 24, 16).to(dtype)
                back = [g, q, k, v, out, lse, 0.0, causal]
                found = list(aten._scaled_dot_product_flash_attention_for_cpu_backward(*back))
                self.right(found, self.BACKWARD, back)
                for place in range(3):
                    changed = list(found)
                    changed[place] = changed[place] * (1.001 if dtype == torch.float32 else 1.05)
                    self.wrong(changed, self.BACKWARD, back)
            off = torch.ones(24, 24, dtype=torch.bool).tril(1)  # a causal mask that lets each query see one key too many
            bias = torch.zeros(24, 24, dtype=dtype).masked_fill(~off, -math.inf)
            shifted = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=bias)
            self.wrong(list(shifted), self.FORWARD, [q, k, v], {"is_causal": True})

    def test_gradients_by_out_and_logsumexp(self) -> None:
        """A backward that was given a wrong logsumexp is right about it: the forward is to blame."""
        q, k, v = self.made()
        out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        back = [torch.randn_like(out), q, k, v, out, lse + 0.1, 0.0, False]
        found = list(aten._scaled_dot_product_flash_attention_for_cpu_backward(*back))
        self.right(found, self.BACKWARD, back)


class Flex(Ops):
    def run_flex(self, **named: Any) -> Tuple[Any, List[torch.Tensor]]:
        from torch.nn.attention.flex_attention import flex_attention
        q, k, v = (torch.randn(2, 4, 32, 16) for _ in range(3))
        return flex_attention(q, k, v, **named), [q, k, v]

    def test_masks_and_scores(self) -> None:
        from torch.nn.attention.flex_attention import create_block_mask
        document = torch.arange(32) // 11
        slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
        masks = {"causal": lambda b, h, q, k: q >= k,
                 "window": lambda b, h, q, k: (q >= k) & (q - k <= 5),
                 "document": lambda b, h, q, k: document[q] == document[k],
                 "prefix": lambda b, h, q, k: (q >= k) | (k < 7)}
        scores = {"none": None,
                  "alibi": lambda s, b, h, q, k: s - slopes[h] * (q - k),
                  "softcap": lambda s, b, h, q, k: 3.0 * torch.tanh(s / 3.0),
                  "capped and masked": lambda s, b, h, q, k: torch.where(q >= k, 2.0 * torch.tanh(s / 2.0), -math.inf),
                  "relative": lambda s, b, h, q, k: s + (q - k).abs() * 0.01,
                  "scaled": lambda s, b, h, q, k: s * 1.5}
        judged = 0
        for mask_name, mask in masks.items():
            block = create_block_mask(mask, B=None, H=None, Q_LEN=32, KV_LEN=32, device="cpu", BLOCK_SIZE=16)
            for score_name, score in scores.items():
                out, qkv = self.run_flex(score_mod=score, block_mask=block)
                named = {"score_mod": score, "block_mask": block}
                text = f"{mask_name}, {score_name}"
                self.assertTrue(plumb.judge(out, "flex_attention", qkv, named), text)
                self.assertEqual(plumb.judge(out * 1.001, "flex_attention", qkv, named).verdict, "fault", text)
                judged += 1
        self.assertEqual(judged, 24)
        causal = create_block_mask(masks["causal"], B=None, H=None, Q_LEN=32, KV_LEN=32, device="cpu", BLOCK_SIZE=16)
        late = create_block_mask(lambda b, h, q, k: q >= k - 1, B=None, H=None, Q_LEN=32, KV_LEN=32, device="cpu",
                                 BLOCK_SIZE=16)
        out, qkv = self.run_flex(block_mask=late)
        self.assertEqual(plumb.judge(out, "flex_attention", qkv, {"block_mask": causal}).verdict, "fault")
        other = {"score_mod": lambda s, b, h, q, k: s - (slopes * 1.02)[h] * (q - k)}
        out, qkv = self.run_flex(score_mod=scores["alibi"])
        self.assertEqual(plumb.judge(out, "flex_attention", qkv, other).verdict, "fault")

    def test_sizes(self) -> None:
        """What changes over neither batch nor head is kept once."""
        from torch.nn.attention.flex_attention import create_block_mask
        q = torch.randn(2, 4, 32, 16)
        block = create_block_mask(lambda b, h, q, k: q >= k, B=None, H=None, Q_LEN=32, KV_LEN=32, device="cpu")
        args, named = plumb.flex_arguments(q, q, q, lambda s, b, h, m, n: s + 0.1 * h, block)
        self.assertEqual(list(args[4].shape), [1, 1, 32, 32])
        self.assertEqual(list(named["bias"].shape), [1, 4, 32, 32])

    def test_what_cannot_be_written(self) -> None:
        q = torch.randn(1, 1, 8, 8)
        for score in (lambda s, b, h, m, n: s * s, lambda s, b, h, m, n: s * (1 + m), lambda s, b, h, m, n: torch.relu(s),
                      lambda s, b, h, m, n: s / 0):
            with self.assertRaises(plumb.Error):
                plumb.judge(q, "flex_attention", [q, q, q], {"score_mod": score})


class Norms(Ops):
    @needs("_fused_rms_norm")
    def test_fused(self) -> None:
        x, w = torch.randn(4, 6, 32), torch.randn(32)
        for weight in (w, None):
            self.same("_fused_rms_norm", aten._fused_rms_norm, [x, [32], weight, 1e-5], {}, 2)
            self.same("rms_norm", aten.rms_norm, [x, [32], weight, 1e-5])
        for dtype in (torch.float32, torch.bfloat16):
            args = [x.to(dtype), [32], w.to(dtype), 1e-5]
            got = list(aten._fused_rms_norm(*args))
            self.right(got, "aten::_fused_rms_norm", args)
            self.right(F.rms_norm(*args), "rms_norm", args)
            self.wrong([got[0], got[1] * 1.01], "aten::_fused_rms_norm", args)
            self.wrong(F.rms_norm(args[0], [32], args[2], 0.1), "rms_norm", args)
            self.wrong(F.rms_norm(args[0], [32], args[2] * 1.05, 1e-5), "rms_norm", args)
        small = [x * 1e-3, [32], w, 1e-5]
        self.wrong(F.rms_norm(small[0], [32], w, 1e-6), "rms_norm", small)

    def test_backward_by_formula(self) -> None:
        x, w, g = torch.randn(4, 6, 32), torch.randn(32), torch.randn(4, 6, 32)
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        ax, aw = x.double().requires_grad_(), w.double().requires_grad_()
        F.rms_norm(ax, [32], aw, 1e-5).backward(g.double())
        args = [g, x, [32], rstd, w, [True, True]]
        got, _, _ = self.native.run(Call("Aten", "_fused_rms_norm_backward", args, {}), RAISED)
        torch.testing.assert_close(got[0], ax.grad, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(got[1], aw.grad, rtol=1e-6, atol=1e-6)
        found = [ax.grad.float(), aw.grad.float()]
        self.right(found, "aten::_fused_rms_norm_backward", args)
        self.wrong([found[0] * 1.001, found[1]], "aten::_fused_rms_norm_backward", args)
        self.wrong([found[0], found[1] * 1.001], "aten::_fused_rms_norm_backward", args)


class Products(Ops):
    @needs("_grouped_mm")
    def test_grouped(self) -> None:
        ends = torch.tensor([3, 3, 8], dtype=torch.int32)
        for a, b, offs in ((torch.randn(8, 16), torch.randn(3, 16, 8), ends),
                           (torch.randn(3, 8, 16), torch.randn(3, 16, 8), None)):
            for dtype in (torch.float32, torch.bfloat16):
                args = [a.to(dtype), b.to(dtype), offs]
                got = torch._grouped_mm(args[0], args[1], offs=offs)
                self.right(got, "aten::_grouped_mm", args)
                self.wrong(got * (1.001 if dtype == torch.float32 else 1.05), "aten::_grouped_mm", args)
                if offs is not None:
                    moved = torch._grouped_mm(args[0], args[1], offs=torch.tensor([4, 4, 8], dtype=torch.int32))
                    self.wrong(moved, "aten::_grouped_mm", args)
                    swapped = torch._grouped_mm(args[0], args[1][[2, 1, 0]].contiguous(), offs=offs)
                    self.wrong(swapped, "aten::_grouped_mm", args)

    @needs("_grouped_mm")
    def test_grouped_in_float64(self) -> None:
        """Where PyTorch has no such kernel, checks of modules compute it by plain products."""
        from plumb._passcheck.wide import grouped_mm
        ends = torch.tensor([4, 4, 16], dtype=torch.int32)
        for a, b, offs in ((torch.randn(16, 8), torch.randn(3, 8, 16), ends),
                           (torch.randn(3, 16, 8), torch.randn(8, 16), ends),
                           (torch.randn(8, 16), torch.randn(16, 8), ends),
                           (torch.randn(3, 8, 16), torch.randn(3, 16, 8), None)):
            exact = grouped_mm(a.double(), b.double(), offs)
            torch.testing.assert_close(torch._grouped_mm(a, b, offs=offs).double(), exact, rtol=1e-4, atol=1e-4)

    @needs("_grouped_mm")
    def test_grouped_gradients(self) -> None:
        ends = torch.tensor([3, 3, 8], dtype=torch.int32)
        a, b, g = torch.randn(8, 16), torch.randn(3, 16, 8), torch.randn(8, 8)
        x, w = a.clone().requires_grad_(), b.clone().requires_grad_()
        out = torch._grouped_mm(x, w, offs=ends)
        out.backward(g)
        self.assertTrue(plumb.judge(out.detach(), "aten::_grouped_mm", [a, b, ends], grad_outputs=g,
                                    got_grads=[x.grad, w.grad]))
        self.assertFalse(plumb.judge(out.detach(), "aten::_grouped_mm", [a, b, ends], grad_outputs=g,
                                     got_grads=[x.grad, w.grad * 1.001]))

    def test_scaled(self) -> None:
        """8-bit floats: by rows where this build's CPU kernel can do it, otherwise by the composed formula."""
        f8 = torch.float8_e4m3fn
        a, b = torch.randn(16, 32).to(f8), torch.randn(16, 32).to(f8).t()
        rows = torch.rand(16, 1) + 0.5, torch.rand(1, 16) + 0.5
        one = torch.tensor(0.5), torch.tensor(2.0)
        for sa, sb in (rows, one):
            args, named = [a, b, sa, sb], {"out_dtype": torch.bfloat16}
            right = ((a.float() * sa) @ (b.float() * sb)).bfloat16()
            self.right(right, "aten::_scaled_mm", args, named)
            try:
                self.right(torch._scaled_mm(*args, **named), "aten::_scaled_mm", args, named)
            except RuntimeError as error:
                self.assertRegex(str(error), "primitive|only available for these backends")
            self.wrong(right * 1.05, "aten::_scaled_mm", args, named)
            self.wrong(((a.float()) @ (b.float() * sb)).bfloat16(), "aten::_scaled_mm", args, named)
        blocks = torch.rand(1, 2) + 0.5
        left, wide = torch.randn(4, 256).to(f8), torch.randn(8, 256).to(f8).t()
        args, named = [left, wide, torch.rand(4, 2) + 0.5, torch.rand(2, 1) + 0.5], {"out_dtype": torch.bfloat16}
        right = ((left.float() * args[2].repeat_interleave(128, 1)) @
                 (wide.float() * args[3].repeat_interleave(128, 0))).bfloat16()
        self.right(right, "aten::_scaled_mm", args, named)
        self.wrong(right, "aten::_scaled_mm", [left, wide, args[2] * blocks, args[3]], named)

    @needs("_dyn_quant_pack_4bit_weight")
    def test_integers(self) -> None:
        w, scale = torch.randint(-128, 127, (16, 32), dtype=torch.int8), torch.rand(16)
        for dtype in (torch.float32, torch.bfloat16):
            args = [torch.randn(4, 32).to(dtype), w, scale.to(dtype)]
            got = aten._weight_int8pack_mm(*args)
            self.right(got, "aten::_weight_int8pack_mm", args)
            self.wrong(got * (1.001 if dtype == torch.float32 else 1.05), "aten::_weight_int8pack_mm", args)
        codes, pairs = torch.randint(0, 16, (32, 64), dtype=torch.int32), torch.rand(2, 32, 2)
        packed = aten._convert_weight_to_int4pack_for_cpu(codes, 8)
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(4, 64).to(dtype)
            got = aten._weight_int4pack_mm_for_cpu(x, packed, 32, pairs.to(dtype))
            args = [x, codes, 32, pairs.to(dtype)]
            self.right(got, "aten::_weight_int4pack_mm_for_cpu", args)
            self.wrong(got * (1.001 if dtype == torch.float32 else 1.05), "aten::_weight_int4pack_mm_for_cpu", args)
        with self.assertRaises(plumb.Error):  # packed: nothing says how
            plumb.judge(got, "aten::_weight_int4pack_mm_for_cpu", [x, packed, 32, pairs])
        k, n = 64, 8
        weight = torch.randint(0, 255, (n, k // 2), dtype=torch.uint8)
        for block, scales in ((k, torch.rand(n) * 0.1), (32, (torch.rand(n * k // 32) * 0.1).bfloat16())):
            packed = aten._dyn_quant_pack_4bit_weight(weight, scales, torch.randn(n), block, k, n)
            args = [torch.randn(3, k), packed, block, k, n]
            got = aten._dyn_quant_matmul_4bit(*args)
            self.right(got, "aten::_dyn_quant_matmul_4bit", args)
            self.wrong(got * 1.01, "aten::_dyn_quant_matmul_4bit", args)
        x, y = (torch.randint(-128, 127, s, dtype=torch.int8) for s in ((17, 32), (32, 16)))
        exact = x.int() @ y.int()
        self.right(exact, "aten::_int_mm", [x, y])
        self.wrong(exact + 1, "aten::_int_mm", [x, y])
        got = torch._int_mm(x, y)  # saturates on processors (or with a setting of oneDNN) without VNNI
        (self.right if torch.equal(got, exact) else self.wrong)(got, "aten::_int_mm", [x, y])


class Lists(Ops):
    def some(self) -> List[torch.Tensor]:
        return [torch.rand(3, 4) + 0.5, torch.rand(5) + 0.5]

    def test_foreach(self) -> None:
        """Every _foreach operator of this PyTorch, its forms of one list, of two lists and of a list and a number."""
        names = sorted({s.name[6:] for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::_foreach_")
                        and not s.name.endswith("_")})
        known = [name for name in names if self.native.find("Aten", name)]
        self.assertEqual(names, known)
        looked = 0
        for name in names:
            function = getattr(aten, name)
            for args in ([self.some()], [self.some(), self.some()], [self.some(), 1.5], [self.some(), [1.5, 2.5]],
                         [self.some(), self.some(), self.some()], [self.some(), self.some(), 0.3], [2.0, self.some()]):
                if name == "_foreach_mm":
                    args = [[torch.rand(3, 4), torch.rand(2, 5)], [torch.rand(4, 2), torch.rand(5, 3)]]
                elif name in ("_foreach_acos", "_foreach_asin"):
                    args = [[x - 1 for x in args[0]]] if isinstance(args[0], list) else args
                try:
                    want = function(*raised(args))
                except (RuntimeError, TypeError, IndexError):
                    continue  # PyTorch has no such form
                if want is None or (name == "_foreach_copy" and len(args) > 2):  # a tensor taken for non_blocking
                    continue
                got, _, _ = self.native.run(Call("Aten", name, args, {}), RAISED)
                for a, b in zip(got, want):
                    torch.testing.assert_close(a.double(), b, rtol=1e-12, atol=1e-12, equal_nan=True, msg=name)
                looked += 1
        self.assertGreater(looked, 60)

    def test_optimizers(self) -> None:
        """What the fused kernels leave in their arguments; a decay left out, and a step counted twice, are seen."""
        steps = [torch.tensor(4.0), torch.tensor(4.0)]
        adam = dict(lr=0.01, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False)
        plain = dict(lr=0.05, lr_decay=0.1, weight_decay=0.1, eps=1e-8, maximize=False)
        sgd = dict(weight_decay=0.1, momentum=0.9, lr=0.05, dampening=0.0, nesterov=True, maximize=False,
                   is_first_step=False)
        for name, lists, named in (("_fused_adam_", 4, adam), ("_fused_adamw_", 4, adam), ("_fused_adagrad_", 3, plain),
                                   ("_fused_sgd_", 3, sgd)):
            made = [self.some() for _ in range(lists)]
            extra = [[], steps] if lists == 4 else [steps] if name == "_fused_adagrad_" else []
            before = [[x.clone() for x in one] for one in made]

            def ran(**changed: Any) -> List[torch.Tensor]:
                work = [[x.clone() for x in one] for one in before]
                getattr(aten, name)(*work, *extra, **{**named, **changed})
                return [x for one in work for x in one]

            self.right(ran(), f"aten::{name}", [*before, *extra], named)
            self.wrong(ran(weight_decay=0.0), f"aten::{name}", [*before, *extra], named)
            self.wrong(ran(lr=named["lr"] * 1.001), f"aten::{name}", [*before, *extra], named)
            if extra:
                late = [torch.tensor(5.0), torch.tensor(5.0)]
                extra = [late if one is steps else one for one in extra]
                done = ran()
                extra = [steps if one is late else one for one in extra]
                self.wrong(done, f"aten::{name}", [*before, *extra], named)


class Fused(Ops):
    """Forms of Transformers as it calls them; those of vLLM, Megatron and flash-attn are in cases_serving.py."""

    @needs("transformers")
    def test_rotary(self) -> None:
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
        angle = torch.outer(torch.arange(10.0), 1 / 10000 ** (torch.arange(0, 16, 2) / 16))
        cos, sin = (torch.cat([f(angle)] * 2, -1)[None] for f in (torch.cos, torch.sin))
        for dtype in (torch.float32, torch.bfloat16):
            args = [torch.randn(2, 4, 10, 16).to(dtype), torch.randn(2, 2, 10, 16).to(dtype), cos.to(dtype), sin.to(dtype)]
            got = list(apply_rotary_pos_emb(*args))
            self.right(got, "apply_rotary_pos_emb", args)
            self.wrong([got[0] * (1.001 if dtype == torch.float32 else 1.05), got[1]], "apply_rotary_pos_emb", args)
            off = list(apply_rotary_pos_emb(args[0], args[1], args[2].roll(1, 1), args[3].roll(1, 1)))
            self.wrong(off, "apply_rotary_pos_emb", args)

    def test_gate(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(6, 32).to(dtype)
            a, b = x.chunk(2, -1)
            self.right(F.silu(a) * b, "silu_and_mul", [x])
            self.wrong(F.silu(b) * a, "silu_and_mul", [x])
            self.wrong(F.gelu(a) * b, "silu_and_mul", [x])


class OtherLibraries(Ops):
    """Operators that vLLM registers, recorded by begin_dump: found by their names; of what returns nothing, what it
    wrote is compared where the call can be run, and nothing is said of it where the dump does not have it."""

    CODE = """
import torch, plumb
lib = torch.library.Library("_C", "DEF")
lib.define("rms_norm(Tensor! result, Tensor input, Tensor weight, float epsilon) -> ()")
lib.define("fused_add_rms_norm(Tensor! input, Tensor! residual, Tensor weight, float epsilon) -> ()")
lib.impl("rms_norm", lambda o, x, w, e: None, "CPU")
lib.impl("fused_add_rms_norm", lambda x, r, w, e: None, "CPU")
given = [torch.randn(3, 4), torch.randn(3, 8), torch.randn(3, 8), torch.randn(8)]
plumb.begin_dump(X_DUMP_NUM=10, X_DUMP_OUTPUT=True)
torch.ops._C.rms_norm(given[2], given[1], given[3], 1e-5)
torch.ops._C.fused_add_rms_norm(given[1], given[2], given[3], 1e-5)
torch._foreach_add_(given, 1.0)
plumb.end_dump()
"""

    def checked(self, folder: str, *more: str) -> List[List[str]]:
        dump = next(Path(folder).rglob("dump.json"))
        out = Path(folder) / f"out{len(more)}"
        subprocess.run([str(BUILD / "plumb"), "acc_check", str(dump), "--no-torch", "-o", str(out), *more], check=True,
                       stdout=subprocess.DEVNULL)
        with next(out.glob("accuracy_checking_result_*.csv")).open(newline="") as file:
            return list(csv.reader(file))[1:]

    def test_names(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", self.CODE], cwd=folder, check=True, stderr=subprocess.DEVNULL,
                           env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
            self.assertEqual([row[1] for row in self.checked(folder)], ["pass"] * 3)
            recorded = self.checked(folder, "-d", "recorded")
        self.assertEqual([row[1] for row in recorded], ["SKIP"] * 3)
        for row in recorded:
            self.assertIn("what it wrote is not recorded", row[3])


class Others(Ops):
    @needs("linear_cross_entropy")
    def test_kernels(self) -> None:
        x, n = torch.rand(5, 1) * 2 - 1, torch.arange(6)
        for kind in ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
                     "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
                     "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
                     "laguerre_polynomial_l", "legendre_polynomial_p"):
            self.same(f"special_{kind}", getattr(torch.special, kind), [x, n])
        a, b = torch.randn(2, 4, 4), torch.randn(2, 4, 3)
        self.same("_linalg_det", aten._linalg_det, [a])
        self.same("_linalg_slogdet", aten._linalg_slogdet, [a], {}, 2)
        self.same("_linalg_solve_ex", aten._linalg_solve_ex, [a, b])
        self.same("_chunk_cat", aten._chunk_cat, [[torch.randn(5, 2), torch.randn(3, 4)], 0, 2])
        self.same("masked_scatter_backward", aten.masked_scatter_backward,
                  [torch.randn(3, 4), torch.rand(3, 4) < 0.5, [14]])
        w, target = torch.randn(5, 4), torch.randint(0, 5, (6,))
        self.same("linear_cross_entropy", F.linear_cross_entropy, [torch.randn(6, 4), w, target],
                  {"reduction": "sum", "label_smoothing": 0.1})


if __name__ == "__main__":
    unittest.main()
