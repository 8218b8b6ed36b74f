"""The names that msProbe's lists of standards and levels and its fused benchmarks speak of are operators of plumb, and
names as a dispatcher writes them are understood."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from ops.native import Native  # noqa: E402

ABSOLUTE = """mul mul_ __mul__ __imul__ __rmul__ add add_ __add__ __iadd__ __radd__ div div_ __div__ __idiv__ divide
    divide_ leaky_relu leaky_relu_ prelu reciprocal reciprocal_ rsqrt rsqrt_ square square_ sub sub_
    rsub __isub__ __sub__"""
BINARY = """abs abs_ absolute absolute_ argmin bitwise_and bitwise_and_ broadcast_to ceil ceil_ equal fill_ flatten
    floor floor_ gather greater greater_ greater_equal greater_equal_ histc isfinite isnan less less_
    less_equal less_equal_ logical_and logical_and_ logical_not logical_not_ logical_or logical_or_
    masked_fill masked_fill_ max_pool3d maximum minimum neg neg_ nonzero not_equal not_equal_ one_hot
    pad relu reshape round round_ select sign sign_ sort tile topk transpose transpose_ tril tril_ triu
    triu_ type_as"""
ULP = """__matmul__ addbmm addbmm_ addmm addmm_ baddbmm baddbmm_ bilinear bmm chain_matmul hspmm linear matmul mm
    mv smm sspaddmm"""
THOUSANDTH = "conv1d conv2d"
# GELU is there in the lists in capitals only, which is no operator's name.
LEVELS = """addmm npu_cross_entropy_loss npu_cross_entropy_loss_backward layer_norm matmul mm index one_hot sum
    npu_rms_norm npu_rms_norm_backward nonzero embedding npu_fusion_attention_grad npu_fusion_attention
    scatter_ scatter_add_"""
FUSED = """npu_fusion_attention npu_fast_gelu npu_swiglu npu_rms_norm npu_rotary_mul npu_scaled_masked_softmax
    npu_linear npu_confusion_transpose npu_apply_adam npu_apply_adam_w npu_layer_norm_eval
    npu_group_norm_silu npu_mish npu_moe_gating_top_k_softmax npu_sort_v2"""
RANDOM = """Functional.gumbel_softmax Functional.fractional_max_pool2d Tensor.bernoulli_ Tensor.cauchy_
    Tensor.exponential_ Tensor.geometric_ Tensor.log_normal_ Tensor.multinomial Tensor.normal_
    Torch.bernoulli Torch.binomial Torch.normal Torch.poisson Aten.rand_like Aten.randn Aten.randint
    Aten.randperm Aten.uniform_ Aten.aten.bernoulli_.float"""
PREFIXES = (None, "Functional", "Tensor", "Torch", "Aten", "NPU")


class Names(unittest.TestCase):
    native = Native()

    def test_lists(self) -> None:
        names = " ".join((ABSOLUTE, BINARY, ULP, THOUSANDTH, LEVELS, FUSED)).split()
        missing = [name for name in names if not any(self.native.find(prefix, name) for prefix in PREFIXES)]
        self.assertFalse(missing)
        self.assertGreater(len(set(names)), 120)

    def test_random(self) -> None:
        for name in RANDOM.split():
            prefix, api = name.split(".", 1)
            self.assertTrue(self.native.is_random(prefix, api), name)

    def test_dispatcher_names(self) -> None:
        def first(prefix: str, name: str) -> str:
            op = self.native.find(prefix, name)
            return op.names.decode().split()[0] if op else ""

        for written in ("add", "add.Tensor", "add_.Scalar", "aten.add.Tensor", "aten::add", "aten::add_.Tensor",
                        "aten.add.out"):
            for prefix in ("", "Aten", "Torch"):
                self.assertEqual(first(prefix, written), "add", written)
        self.assertEqual(first("Torch", "linalg.inv"), "inverse")
        self.assertEqual(first("NPU", "npu::npu_rms_norm.default"), "npu_rms_norm")
        self.assertEqual(first("Aten", "unfold"), first("", "aten.unfold.default"))
        for wrong in ("", ".", "aten.", "aten::", ".Tensor", "add.Tensor.more", "x" * 200, "linalg.nothing",
                      "aten.add_x"):
            self.assertEqual(first("Torch", wrong), "", wrong)


if __name__ == "__main__":
    unittest.main()
