"""Verdicts of the pre-check on devices of PyTorch: planted faults that it must find, and right results that it must not
blame."""

import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

import torch

sys.path.insert(0, str(Path(__file__).parent))
from check_dump import add, backward, forward, save, tensor, value  # noqa: E402
from torch_runs import Folder, Result  # noqa: E402


class Checked(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.data: Dict[str, Any] = {}

    def call(self, name: str, *args: Any, grads: Any = None, **kwargs: Any) -> None:
        add(self.data, name, forward(*args, **kwargs), backward(*grads) if grads else None)

    def stored(self, name: str, values: torch.Tensor) -> Dict[str, Any]:
        """A tensor with values of its own."""
        folder = self.folder / "dump_tensor_data"
        folder.mkdir(exist_ok=True)
        torch.save(values, folder / f"{name}.pt")
        kind = str(values.dtype).rpartition(".")[2]
        return tensor(list(values.shape), kind, grad=values.is_floating_point(), data_name=f"{name}.pt")

    def run_it(self, *options: str, brings: str = "", device: str = "torch:cpu") -> Result:
        if brings:
            (self.folder / "brings.py").write_text("import torch\nimport torch.nn.functional as F\n" + brings)
            options += ("--import", "brings.py")
        dump = save(self.folder / "dump.json", self.data, dump_data_dir=str(self.folder / "dump_tensor_data"))
        return self.check(dump, "-d", device, *options)

    def status(self, result: Result, name: str) -> List[str]:
        return result.rows[name][:2]

    def messages(self, result: Result, name: str) -> Dict[str, str]:
        return {row[0][len(name) + 1:]: row[-2] for row in result.details if row[0].startswith(name + ".")}


class Imports(Checked):
    """The user's functions are what is checked, and never the reference."""

    def test_fault_where_plumb_has_no_operator(self) -> None:
        c = tensor([8], "complex64", 0.0, 2.0)
        self.call("Torch.fft.fft.0", tensor([8]))
        self.call("Torch.linalg.inv.0", tensor([3, 3], "complex64", 0.0, 2.0))
        self.call("Torch.mul.0", c, c)
        brings = """
def seven(x, *args, **kwargs):
    return torch.full(x.shape, 7, dtype=torch.complex64)
torch.fft.fft = torch.linalg.inv = seven
"""
        for device in ("torch:cpu", "cpu"):
            result = self.run_it(brings=brings, device=device)
            self.assertEqual(self.status(result, "Torch.linalg.inv.0")[0], "error", device)
            self.assertEqual(self.status(result, "Torch.mul.0")[0], "pass", device)
            if device != "cpu":  # which has an fft of its own
                self.assertEqual(self.status(result, "Torch.fft.fft.0")[0], "error")

    def test_users_npu_operator_wins(self) -> None:
        x = tensor([4, 8])
        self.call("NPU.npu_swiglu.0", x)
        self.call("NPU.npu_fast_gelu.0", x)
        result = self.run_it()
        for name in self.data:
            name = name.rpartition(".")[0]
            self.assertEqual(self.status(result, name)[0], "pass")
            self.assertIn("plumb's formula", self.messages(result, name)["forward.output.0"])
        for brings in ("def npu_swiglu(x, dim=-1):\n    return x[..., :4] + 7\n",
                       "class NPU:\n    @staticmethod\n    def npu_swiglu(x, dim=-1):\n        return x[..., :4] + 7\n"):
            result = self.run_it(brings=brings)
            self.assertEqual(self.status(result, "NPU.npu_swiglu.0")[0], "error")
            self.assertNotIn("formula", self.messages(result, "NPU.npu_swiglu.0")["forward.output.0"])
            self.assertEqual(self.status(result, "NPU.npu_fast_gelu.0")[0], "pass")


class Complex(Checked):
    def test_absolute_value_is_rounded(self) -> None:
        c = tensor([500], "complex64", 0.0, 2.0, grad=True)
        for name in ("Torch.abs.0", "Torch.absolute.0", "Tensor.abs.0"):
            self.call(name, c, grads=[tensor([500])])
        self.call("Torch.neg.0", c, grads=[c])
        self.assertEqual(self.run_it().not_passed(), {})
        wrong = self.run_it(brings="abs = lambda x: x.real.abs()\nabs.__module__ = 'brings'\ntorch.abs = abs\n")
        self.assertEqual(self.status(wrong, "Torch.abs.0")[0], "error")

    def test_real_absolute_value_is_exact(self) -> None:
        self.call("Torch.abs.0", tensor([500]))
        brings = "def nearly(x):\n    return x.abs() * 1.0000002\ntorch.abs = nearly\n"
        self.assertEqual(self.status(self.run_it(brings=brings), "Torch.abs.0")[0], "error")


class Autocast(Checked):
    """Operands of several types, as a dump under autocast has them."""

    def call_as(self, kind: str, name: str, *args: Any, grads: Any = None, **kwargs: Any) -> None:
        add(self.data, name, forward(*args, output=[tensor([1], kind)], **kwargs), backward(*grads) if grads else None)

    def wrong(self, result: Result) -> List[str]:
        return [name for name, row in result.rows.items() if {"error", "SKIP"} & set(row[:2])]

    def calls(self) -> None:
        # Small integers: PyTorch's sums in bfloat16 are coarse, but of those they are exact.
        def whole(shape: Any, dtype: torch.dtype) -> Dict[str, Any]:
            return self.stored(f"t{len(list(self.folder.glob('*/*.pt')))}", torch.randint(-2, 3, shape).to(dtype))

        low, high = (lambda *s: whole(s, torch.bfloat16)), (lambda *s: whole(s, torch.float32))
        self.call_as("bfloat16", "Functional.linear.0", low(4, 64), high(8, 64), high(8), grads=[low(4, 8)])
        self.call_as("bfloat16", "Functional.linear.1", high(4, 64), high(8, 64), bias=low(8), grads=[low(4, 8)])
        self.call_as("bfloat16", "Torch.matmul.0", low(4, 64), high(64, 3), grads=[low(4, 3)])
        self.call_as("bfloat16", "Tensor.__matmul__.0", high(4, 64), low(64, 3), grads=[low(4, 3)])
        self.call_as("bfloat16", "Functional.conv2d.0", low(2, 3, 6, 6), high(4, 3, 3, 3), high(4), grads=[low(2, 4, 4, 4)])
        self.call_as("bfloat16", "Torch.baddbmm.0", low(2, 3, 3), high(2, 3, 4), low(2, 4, 3), grads=[low(2, 3, 3)])
        self.call_as("bfloat16", "Torch.einsum.0", value("ij,jk->ik"), high(5, 6), low(6, 7), grads=[low(5, 7)])
        self.call_as("float32", "Functional.layer_norm.0", low(4, 8), [value(8)], high(8), high(8), grads=[high(4, 8)])
        self.call_as("float32", "Functional.mse_loss.0", low(4, 8), high(4, 8), grads=[high()])
        self.call_as("float32", "Functional.binary_cross_entropy_with_logits.0", low(4, 8), tensor([4, 8], low=0.0, high=1.0),
                     grads=[high()])
        self.call_as("float32", "Functional.softmax.0", low(4, 8), dim=value(1), grads=[high(4, 8)])
        self.call_as("float32", "Functional.softmax.1", low(4, 8), dim=value(1), grads=[high(4, 8)],
                     dtype={"type": "torch.dtype", "value": "torch.float32"})

    def test_right_ones_pass(self) -> None:
        self.calls()
        for device in ("cpu", "torch:cpu"):
            result = self.run_it("--no-torch", device=device)
            self.assertEqual(self.wrong(result), [], [device, result.not_passed()])
            types = {row[0].rpartition(".forward.")[0]: row[2] for row in result.details if ".forward." in row[0]}
            for name in self.data:
                name = name.rpartition(".")[0]
                recorded = self.data[f"{name}.forward"]["output"][0]["dtype"]
                self.assertEqual(types[name], recorded, (device, name))

    def test_faults_are_found(self) -> None:
        self.calls()
        result = self.run_it(brings="right = F.linear\ndef linear(x, w, b=None, bias=None):\n"
                                    "    return right(x, w.roll(1, 1), b if bias is None else bias)\nF.linear = linear\n")
        self.assertEqual(self.wrong(result), ["Functional.linear.0", "Functional.linear.1"])


class Ties(Checked):
    """Which of several equal elements is chosen is nobody's fault."""

    # Chooses the last of equals, where PyTorch and plumb take the first or whichever comes.
    LAST = """
def turned(x, dim):
    return x.flip(dim)
def back(i, x, dim):
    return x.shape[dim] - 1 - i
sort, topk, argmax, median, cummax, kth = torch.sort, torch.topk, torch.argmax, torch.median, torch.cummax, torch.kthvalue
top = torch.max
class Names:
    @staticmethod
    def sort(x, dim=-1, descending=False):
        v, i = sort(turned(x, dim), dim=dim, descending=descending, stable=True)
        i = back(i, x, dim)
        return x.gather(dim, i), i
    @staticmethod
    def argsort(x, dim=-1, descending=False):
        return Names.sort(x, dim, descending)[1]
    @staticmethod
    def topk(x, k, dim=-1):
        v, i = Names.sort(x, dim, True)
        return v.narrow(dim, 0, k), i.narrow(dim, 0, k)
    @staticmethod
    def argmax(x, dim=None):
        return x.numel() - 1 - argmax(x.flatten().flip(0)) if dim is None else back(argmax(x.flip(dim), dim), x, dim)
    @staticmethod
    def max(x, dim):
        i = Names.argmax(x, dim)
        return x.gather(dim, i.unsqueeze(dim)).squeeze(dim), i
for name in ("sort", "argsort", "topk", "argmax", "max"):
    setattr(torch, name, getattr(Names, name))
"""

    def calls(self) -> None:
        torch.manual_seed(3)
        x = self.stored("x", torch.randint(-3, 4, (9, 40)).float())
        y = self.stored("y", torch.randint(-3, 4, (9, 40)))
        z = self.stored("z", torch.tensor([0.0, -0.0, 1.0, -0.0, 0.0, -1.0]).repeat(3, 4))
        self.call("Torch.sort.0", x, grads=[tensor([9, 40]), None])
        self.call("Torch.sort.1", y, dim=value(0), descending=value(True))
        self.call("Torch.sort.2", z, grads=[tensor([3, 24]), None])
        self.call("Torch.argsort.0", x)
        self.call("Torch.argsort.1", z, value(1))
        self.call("Torch.topk.0", x, value(5), grads=[tensor([9, 5]), None])
        self.call("Torch.topk.1", z, value(20), grads=[tensor([3, 20]), None])
        self.call("Torch.argmax.0", x)
        self.call("Torch.argmax.1", y, dim=value(0))
        self.call("Torch.max.0", x, value(1), grads=[tensor([9]), None])

    def test_other_choices_pass(self) -> None:
        self.calls()
        self.assertEqual(self.run_it().not_passed(), {})
        result = self.run_it(brings=self.LAST)
        self.assertEqual(result.not_passed(), {})
        self.assertIn("choices among equals",
                      self.messages(result, "Torch.argsort.0")["forward.output.0"])

    def test_unique_in_any_order(self) -> None:
        x = self.stored("x", torch.randint(-3, 4, (9, 40)).float())
        self.call("Torch.unique.0", x, sorted=value(False), return_inverse=value(True), return_counts=value(True))
        self.call("Torch.unique.1", x, value(False))
        self.assertEqual(self.run_it().not_passed(), {})
        brings = """
right = torch.unique
def unique(x, sorted=True, return_inverse=False, return_counts=False):
    values, inverse, counts = right(x, True, True, True)
    inverse = CHANGE
    return (values.flip(0), inverse, counts.flip(0)) if return_inverse else values.flip(0)
torch.unique = unique
"""
        turned = brings.replace("CHANGE", "values.numel() - 1 - inverse")
        self.assertEqual(self.run_it(brings=turned).not_passed(), {})
        wrong = brings.replace("CHANGE", "inverse")
        self.assertEqual(list(self.run_it(brings=wrong).not_passed()), ["Torch.unique.0"])

    def test_topk_in_any_order(self) -> None:
        x = self.stored("x", torch.randn(4, 300).round(decimals=1))
        self.call("Torch.topk.0", x, value(40), value(-1), value(True), value(False), grads=[tensor([4, 40]), None])
        self.call("Tensor.topk.0", x, value(7), dim=value(1), largest=value(False), sorted=value(False),
                  grads=[tensor([4, 7]), None])
        self.assertEqual(self.run_it().not_passed(), {})
        brings = """
right = torch.topk
def topk(x, k, dim=-1, largest=True, sorted=True):
    v, i = right(x, k, dim, largest)
    return v.flip(-1), CHANGE
torch.topk = topk
"""
        self.assertEqual(self.run_it(brings=brings.replace("CHANGE", "i.flip(-1)")).not_passed(), {})
        wrong = self.run_it(brings=brings.replace("CHANGE", "i"))
        self.assertEqual(list(wrong.not_passed()), ["Torch.topk.0"])

    def test_wrong_choices_do_not(self) -> None:
        self.calls()
        for change in ("i = i.roll(1, -1)",                      # neighbours, most of them equal
                       "i[..., 1] = i[..., 0]",                  # one twice
                       "i = torch.where(i > 20, i - 20, i)"):    # other halves
            brings = self.LAST + f"""
def wrong(x, dim=-1, descending=False):
    i = Names.argsort(x, dim, descending)
    {change}
    return i
torch.argsort = wrong
"""
            self.assertEqual(list(self.run_it(brings=brings).not_passed()), ["Torch.argsort.0", "Torch.argsort.1"], change)

    def test_gradient_goes_to_what_was_chosen(self) -> None:
        self.calls()
        brings = self.LAST + """
def wrong(x, k, dim=-1):
    v, i = topk(x, k, dim)
    return v, Names.topk(x, k, dim)[1]
torch.topk = wrong
"""
        self.assertEqual(list(self.run_it(brings=brings).not_passed()), ["Torch.topk.0", "Torch.topk.1"])

    def test_stable_sort_has_no_choice(self) -> None:
        x = self.stored("x", torch.randint(-3, 4, (9, 40)).float())
        self.call("Torch.sort.0", x, stable=value(True))
        self.assertEqual(self.run_it().not_passed(), {})
        brings = self.LAST + "torch.sort = lambda x, stable: Names.sort(x)\ntorch.sort.__module__ = 'brings'\n"
        self.assertEqual(list(self.run_it(brings=brings).not_passed()), ["Torch.sort.0"])


class Dropped(Checked):
    """What dropout leaves is judged, though not what it drops."""

    KINDS = ("dropout", "alpha_dropout", "dropout2d", "dropout3d", "feature_alpha_dropout")

    def setUp(self) -> None:
        super().setUp()
        x = tensor([40, 50, 2, 3, 2], grad=True)
        for kind in self.KINDS:
            self.call(f"Functional.{kind}.0", x, p=value(0.3), training=value(True), grads=[x])
        zeros = self.stored("zeros", torch.relu(torch.randn(200, 30)))
        self.call("Functional.dropout.1", zeros, p=value(0.5), training=value(True), grads=[tensor([200, 30])])
        self.call("Functional.dropout.2", tensor([3, 2], grad=True), p=value(0.5), grads=[tensor([3, 2])])
        self.call("Functional.dropout.3", x, p=value(0.5), training=value(False), grads=[x])
        self.call("Torch.native_dropout.0", x, value(0.5), value(True), grads=[x, None])

    def test_right_ones_pass(self) -> None:
        for device in ("torch:cpu", "cpu"):
            result = self.run_it(device=device)
            self.assertEqual(result.not_passed(), {}, device)
            rows = {row[0]: row for row in result.details}
            for name in self.data:
                self.assertTrue(rows[f"{name}.output.0"][-2], name)

    def faulty(self, body: str, *names: str) -> None:
        brings = f"""
right = F.dropout
def dropout(x, p=0.5, training=True, inplace=False):
    mask = (torch.rand_like(x) >= p).to(x.dtype) if training else torch.ones_like(x)
    {body}
F.dropout = dropout
"""
        result = self.run_it(brings=brings)
        bad = result.not_passed()
        self.assertEqual(list(bad), [f"Functional.dropout.{n}" for n in names], body)
        for name, row in bad.items():
            self.assertTrue(row[2], name)
            self.assertTrue([r for r in result.details if r[0].startswith(name) and r[-3] == "error"])

    def test_right_one_of_the_users(self) -> None:
        self.faulty("return x * mask / (1 - p) if training else x")

    def test_scale_forgotten(self) -> None:
        self.faulty("return x * mask", "0", "1", "2")

    def test_scale_wrong(self) -> None:
        self.faulty("return x * mask / (0.97 - p) if training else x", "0", "1", "2")

    def test_wrong_share(self) -> None:
        self.faulty("return right(x, 0.9 * p + 0.25, training) * ((0.75 - 0.9 * p) / (1 - p)) if training else x", "0", "1")

    def test_another_mask_backward(self) -> None:
        self.faulty("other = mask.flatten().roll(1).view_as(mask)\n"
                    "    return (x * mask / (1 - p)).detach() + (x - x.detach()) * other / (1 - p) if training else x",
                    "0", "1", "2")

    def test_one_wrong_element(self) -> None:
        self.faulty("y = x * mask / (1 - p)\n    y.view(-1)[5:40] += 0.5\n    return y if training else x", "0", "1", "2")

    def test_channels_dropped_in_part(self) -> None:
        result = self.run_it(brings="""
def dropout2d(x, p=0.5, training=True, inplace=False):
    return F.dropout(x, p, training)
F.dropout2d = dropout2d
""")
        self.assertEqual(list(result.not_passed()), ["Functional.dropout2d.0"])
        self.assertIn("in part", result.rows["Functional.dropout2d.0"][2])


class DroppedInside(Checked):
    """Attention and recurrent layers are compared without the dropout inside them."""

    def test_attention_and_layers(self) -> None:
        x = tensor([2, 3, 6, 8], grad=True)
        public = hasattr(torch.nn.functional, "scaled_dot_product_attention")  # since PyTorch 2
        attention = "Functional.scaled_dot_product_attention" if public else "Functional._scaled_dot_product_attention"
        self.call(f"{attention}.0", x, x, x, None, value(0.3))
        self.call(f"{attention}.1", x, x, x, dropout_p=value(0.3))
        self.call("NPU.npu_fusion_attention.0", x, x, x, value(3), value("BNSD"), scale=value(0.3), keep_prob=value(0.8),
                  grads=[x, None, None, None])
        y = tensor([6, 2, 8], grad=True)
        part = lambda *shape: tensor(list(shape), grad=True)
        self.call("Functional.multi_head_attention_forward.0", y, y, y, value(8), value(2), part(24, 8), part(24), None,
                  None, value(False), value(0.4), part(8, 8), part(8), grads=[y, tensor([2, 6, 6])])
        weights = [part(5, 8), part(5, 5), part(5), part(5), part(5, 5), part(5, 5), part(5), part(5)]
        self.call("Torch.rnn_tanh.0", y, part(2, 2, 5), weights, value(True), value(2), value(0.5), value(True),
                  value(False), value(False), grads=[part(6, 2, 5), part(2, 2, 5)])
        result = self.run_it()
        self.assertEqual(result.not_passed(), {})
        for name in self.data:
            if name.endswith("forward"):
                self.assertIn("without its dropout", self.messages(result, name[:-8])["forward.output.0"])
        wrong = self.run_it(brings="right = torch.rnn_tanh\ndef rnn_tanh(x, *args):\n"
                                   "    return right(x.roll(1, 0), *args)\ntorch.rnn_tanh = rnn_tanh\n")
        self.assertEqual(list(wrong.not_passed()), ["Torch.rnn_tanh.0"])


class Moved(Checked):
    """What capture leaves out by default is checked where a dump has it."""

    def test_joins_and_transforms(self) -> None:
        x = tensor([4, 6], grad=True)
        self.call("Torch.cat.0", [x, tensor([2, 6], grad=True)], value(0), grads=[tensor([6, 6])])
        self.call("Torch.stack.0", [x, x], grads=[tensor([2, 4, 6])])
        self.call("Tensor.view.0", x, value(24))
        for kind in ("fft", "rfft", "fft2", "fftn", "ihfft"):
            self.call(f"Torch.fft.{kind}.0", x)
        for kind in ("irfft", "hfft", "ifft"):
            self.call(f"Torch.fft.{kind}.0", tensor([4, 6], "complex64", 0.0, 2.0))
        result = self.run_it()
        self.assertEqual(result.not_passed(), {})
        wrong = self.run_it(brings="""
cat = torch.cat
def turned(xs, dim=0):
    return cat(xs[::-1], dim)
def unscaled(x, *args, **kwargs):
    return right(x, *args, **kwargs) * x.shape[-1]
right, torch.cat, torch.fft.ifft = torch.fft.ifft, turned, unscaled
""")
        self.assertEqual(list(wrong.not_passed()), ["Torch.cat.0", "Torch.fft.ifft.0"])


class Buffers(Checked):
    """Running statistics and other tensors that a call changes."""

    def setUp(self) -> None:
        super().setUp()
        x, c = tensor([6, 5, 4, 4], grad=True), lambda low=-1.0: tensor([5], low=low, high=2.0)
        for kind in ("batch_norm", "instance_norm"):
            flag = {"training" if kind == "batch_norm" else "use_input_stats": value(True)}
            self.call(f"Functional.{kind}.0", x, c(), c(0.5), c(), c(), momentum=value(0.2), **flag, grads=[x])
        self.call("Functional.batch_norm.1", x, c(), c(0.5), training=value(False), grads=[x])
        self.call("Functional.batch_norm.2", x, running_mean=c(), running_var=c(0.5), training=value(True))
        self.call("Functional.embedding.0", tensor([7], "int64", 0, 3), tensor([4, 6], grad=True), max_norm=value(1.5),
                  grads=[tensor([7, 6])])
        self.call("Tensor.add_.0", x, tensor([6, 5, 4, 4]), grads=[x])

    def test_right_ones_pass(self) -> None:
        for device in ("torch:cpu", "cpu"):
            result = self.run_it(device=device)
            self.assertEqual(result.not_passed(), {}, device)
            said = self.messages(result, "Functional.batch_norm.2")
            self.assertEqual(list(said), [f"forward.output.{k}" for k in range(3)])
            self.assertIn("running_mean as the call left it", said["forward.output.1"])
            self.assertIn("argument 2 as", self.messages(result, "Functional.batch_norm.0")["forward.output.2"])
            self.assertEqual(len(self.messages(result, "Functional.batch_norm.1")), 1 + 3)
            self.assertEqual(len(self.messages(result, "Functional.embedding.0")), 2 + 2)

    def faulty(self, brings: str, *names: str) -> None:
        result = self.run_it(brings=brings)
        self.assertEqual(list(result.not_passed()), list(names), brings)

    def test_statistics_left_alone(self) -> None:
        self.faulty("""
right = F.batch_norm
def batch_norm(x, mean, var, *args, **kwargs):
    return right(x, mean.clone(), var.clone(), *args, **kwargs)
F.batch_norm = batch_norm
""", "Functional.batch_norm.0", "Functional.batch_norm.2")

    def test_biased_variance(self) -> None:
        self.faulty("""
right = F.batch_norm
def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    old = running_var.clone()
    y = right(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if training:
        n = x.numel() / x.shape[1] / 8
        running_var.data.copy_((running_var - (1 - momentum) * old) * ((n - 1) / n) + (1 - momentum) * old)
    return y
F.batch_norm = batch_norm
""", "Functional.batch_norm.0", "Functional.batch_norm.2")

    def test_another_input_overwritten(self) -> None:
        self.faulty("""
right = torch.Tensor.add_
def add_(x, other):
    y = right(x, other)
    other.data.zero_()
    return y
torch.Tensor.add_ = add_
""", "Tensor.add_.0")

    def test_self_never_written(self) -> None:
        self.faulty("torch.Tensor.add_ = lambda x, other: x + other\n", "Tensor.add_.0")


class Types(Checked):
    """A result of another type than the recorded one is wrong, whatever its values are."""

    def setUp(self) -> None:
        super().setUp()
        x, half = tensor([6, 5], grad=True), tensor([6, 5], "bfloat16")
        long, yes = tensor([6, 5], "int64", 0, 4), tensor([6, 5], "bool", False, True)
        dtype = {"type": "torch.dtype", "value": "torch.float64"}
        pair = [tensor([6]), tensor([6], "int64", 0, 4)]
        for name, args, kwargs, output in (
                ("Torch.exp.0", [x], {}, [x]), ("Torch.abs.0", [long], {}, [long]),
                ("Torch.isnan.0", [x], {}, [yes]), ("Functional.relu.0", [half], {}, [half]),
                ("Torch.sum.0", [x], {"dtype": dtype}, [tensor([], "float64")]),
                ("Torch.max.0", [x, value(1)], {}, pair), ("Functional.dropout.0", [x], {"p": value(0.5)}, [x]),
                ("Torch.fft.fft.0", [x], {}, [tensor([6, 5], "complex64")]),
                # what autocast may have done on the machine of the dump is not the device's fault
                ("Torch.mul.0", [x, tensor([6, 5])], {}, [half]),
                # nothing is known about what stands behind a dict, or was not recorded
                ("Torch.max.1", [x, value(1)], {}, [{"values": pair[0]}, half]), ("Torch.cos.0", [x], {}, [])):
            self.call(name, *args, output=output, grads=[x] if name == "Torch.exp.0" else None, **kwargs)

    def test_right_ones_pass(self) -> None:
        for device in ("torch:cpu", "cpu"):
            self.assertEqual(self.run_it(device=device).not_passed(), {}, device)

    def test_others_do_not(self) -> None:
        result = self.run_it(brings="""
def other(function, dtype):
    def run(*args, **kwargs):
        out = function(*args, **kwargs)
        if isinstance(out, torch.Tensor):
            return out.to(dtype)
        return out[0], out[1].to(dtype)
    return run
torch.exp = other(torch.exp, torch.float64)
torch.abs = other(torch.abs, torch.int32)
torch.isnan = other(torch.isnan, torch.uint8)
F.relu = other(F.relu, torch.float32)
torch.sum = other(torch.sum, torch.float32)
torch.max = other(torch.max, torch.int32)
F.dropout = other(F.dropout, torch.float64)
torch.fft.fft = other(torch.fft.fft, torch.complex128)
""")
        self.assertEqual(list(result.not_passed()), [name for name in result.rows if name not in (
            "Torch.mul.0", "Torch.max.1", "Torch.cos.0")])
        self.assertEqual(self.status(result, "Torch.exp.0"), ["error", "pass"])
        self.assertEqual(result.rows["Torch.exp.0"][2],
                         "forward.output.0: the device returned torch.float64, the recorded call torch.float32")
        self.assertEqual(result.rows["Torch.max.0"][2],
                         "forward.output.1: the device returned torch.int32, the recorded call torch.int64")
        self.assertEqual(self.run_it("--rules", "msprobe").rows.keys(), result.rows.keys())


class Surplus(Checked):
    """Results that nobody expects are no pass, and none is left out in silence."""

    def test_more_results_than_recorded(self) -> None:
        x = tensor([6, 5], grad=True)
        self.call("Torch.exp.0", x, output=[x], grads=[x])
        self.call("Torch.exp.1", x)
        self.call("Torch.exp.2", x, output=[x, x])
        self.call("Torch.exp.3", x, output=[[x], x])
        self.call("Torch.cos.0", x, output=[x])
        result = self.run_it(brings="right = torch.exp\n"
                                    "def exp(x):\n    return right(x), x * 7\n"
                                    "torch.exp = exp\n")
        self.assertEqual(list(result.not_passed()), ["Torch.exp.0"])
        self.assertEqual(self.messages(result, "Torch.exp.0")["forward.output.1"],
                         "the device returned more results than the reference and the recorded call")
        for n in (1, 2, 3):
            said = self.messages(result, f"Torch.exp.{n}")
            self.assertEqual(list(said), ["forward.output.0", "forward.output.1"])
            self.assertEqual(said["forward.output.1"], "the operator does not determine this output")
        self.assertEqual(list(self.run_it().not_passed()), [])


class OfAten(Checked):
    """Calls of ATen that depend on what is not in a dump, or have arguments of rare kinds."""

    def setUp(self) -> None:
        super().setUp()
        x = tensor([2, 4, 4])
        kinds = {"dtype": {"type": "torch.dtype", "value": "torch.float32"},
                 "layout": {"type": "torch.layout", "value": "torch.strided"},
                 "device": {"type": "torch.device", "value": "cpu"}, "pin_memory": value(False)}
        self.call("Aten._local_scalar_dense.default.0", tensor([]), output=[value(1.5)])
        self.call("Aten._local_scalar_dense.0", tensor([1], "int64", 3, 9), output=[value(4)])
        self.call("Tensor.item.0", tensor([1, 1], "bool", True, True))
        self.call("Tensor.item.1", tensor([], "complex64"))
        self.call("Aten._reshape_alias.default.0", x, [value(n) for n in (2, 2, 8)], [value(n) for n in (1, 16, 2)],
                  output=[tensor([2, 2, 8])])
        self.call("Aten.ones_like.default.0", x, **kinds, output=[x])

    def test_right_ones_pass(self) -> None:
        for device in ("torch:cpu", "cpu"):
            result = self.run_it(device=device)
            self.assertEqual({name: row[0] for name, row in result.rows.items()}, dict.fromkeys(result.rows, "pass"))

    def test_unknown_layout(self) -> None:
        self.data["Aten.ones_like.default.0.forward"]["input_kwargs"]["layout"]["value"] = "torch.load"
        row = self.run_it().rows["Aten.ones_like.default.0"]
        self.assertEqual(row[0], "SKIP")
        self.assertIn("has no layout torch.load", row[2])


if __name__ == "__main__":
    unittest.main()
