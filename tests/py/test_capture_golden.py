"""What is written has the form of real captures of msProbe, and right numbers in it."""

import json
import math
import os
import sys
import unittest
import zlib
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import CaptureTest, Dump, leaves  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

GOLDEN = Path(os.environ["PLUMB_TEST_DATA"]) / "golden" / "capture"


class Model(nn.Module):
    """The one that the golden captures are of."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.ln, self.fc2 = nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> Any:
        y = self.ln(F.relu(self.fc1(x)) * scale)
        i, z = torch.argmax(y, dim=-1), torch.cat([y, y], dim=-1)[:, 0:4]
        return self.fc2(z), i


def step(model: nn.Module) -> None:
    o, _ = model(torch.randn(3, 8), scale=2.0)
    loss = o.sum() + o.double().mean()
    (o > 0).any()
    o.to(torch.bfloat16).float()
    loss.backward()


def shape_of(value: Any) -> Any:
    """An entry without its numbers: fields in order, dtypes, shapes, which statistics there are."""
    if isinstance(value, dict) and value.get("type") == "torch.Tensor":
        return [(key, item if key in ("type", "dtype", "requires_grad", "data_name") else
                 len(item) if isinstance(item, str) else
                 tuple(item) if isinstance(item, list) else type(item).__name__) for key, item in value.items()]
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else value


def sent(entry: Dict[str, Any]) -> List[Any]:
    """Gradients that go out, whatever their order: the origin has that of the graph, where a weight may be
    transposed, plumb that of the arguments."""
    return sorted((leaf["dtype"], sorted(leaf["shape"])) for leaf in leaves(entry["output"]))


class GoldenTest(CaptureTest):
    def compare(self, case: str, **settings: Any) -> Dump:
        golden = Dump(GOLDEN / case)
        torch.manual_seed(0)
        model = Model()
        with self.capture(model, **settings):
            step(model)
        ours = self.dump()
        self.assertEqual(list(ours.json), list(golden.json))
        for key in ("task", "level", "framework"):
            self.assertEqual(ours.json[key], golden.json[key])
        self.assertEqual(ours.json["dump_data_dir"] is None, golden.json["dump_data_dir"] is None)

        # The origin has no backward of modules on this PyTorch.
        names = [name for name in ours.data if ".backward." not in name or not name.startswith("Module")]
        self.assertEqual(names, list(golden.data))
        for name in names:
            mine, theirs = ours.data[name], golden.data[name]
            if name.endswith("backward"):
                self.assertEqual(list(mine), list(theirs), name)
                self.assertEqual(shape_of(mine["input"]), shape_of(theirs["input"]), name)
                self.assertEqual(sent(mine), sent(theirs), name)
            elif "parameters_grad" in name:
                self.assertEqual({key: shape_of(value) for key, value in sorted(mine.items())},
                                 {key: shape_of(value) for key, value in sorted(theirs.items())}, name)
            else:
                self.assertEqual(list(mine), list(theirs), name)
                self.assertEqual(shape_of(mine), shape_of(theirs), name)
        for file in ("stack.json", "construct.json"):
            self.compare_beside(file, ours.beside(file), golden.beside(file))
        return ours

    def compare_beside(self, file: str, ours: Dict[str, Any], golden: Dict[str, Any]) -> None:
        if file == "construct.json":
            forward = {name: parent for name, parent in golden.items() if "forward" in name}
            self.assertEqual([(name, parent) for name, parent in ours.items() if "forward" in name],
                             list(forward.items()))
            return
        self.assertEqual(list(ours), [str(i) for i in range(len(ours))])
        self.assertEqual(sorted(name for names, _ in ours.values() for name in names),
                         sorted(name for names, _ in golden.values() for name in names))
        for names, lines in ours.values():
            self.assertTrue(all(line.startswith("File ") and ", line " in line and ", in " in line and ", \n " in line
                                for line in lines))
            self.assertFalse([line for line in lines if f"{os.sep}capture{os.sep}" in line])
        for names, lines in ours.values():
            if "Functional.linear.0.forward" in names:
                self.assertIn("return F.linear(", lines[0])
                # PyTorch 2 has a frame more between a module and what calls it.
                self.assertIn(__file__, next(line for line in lines[1:] if "torch/nn/modules/module.py" not in line))

    def test_mix_tensor(self) -> None:
        ours = self.compare("mix_tensor", task="tensor", level="mix")
        files = {leaf["data_name"] for leaf in leaves(ours.data)}
        self.assertEqual(files, set(os.listdir(ours.folder / "dump_tensor_data")))
        for leaf in leaves(ours.data):
            tensor = ours.tensor(leaf)
            self.assertEqual((str(tensor.dtype), list(tensor.shape)), (leaf["dtype"], leaf["shape"]))
            self.assertEqual(tensor.max().item(), leaf["Max"])
            if leaf["Norm"] is not None and leaf["shape"]:
                self.assertAlmostEqual(tensor.double().norm().item(), leaf["Norm"], delta=1e-12 * leaf["Norm"])
        construct = ours.beside("construct.json")
        self.assertEqual(construct["Functional.linear.1.backward"], "Module.fc2.Linear.backward.0")
        self.assertIsNone(construct["Module.fc2.Linear.backward.0"])
        grads = ours.data["Functional.linear.1.backward"]["output"]
        self.assertEqual([leaf["shape"] for leaf in grads], [[3, 4], [2, 4], [2]])

    def test_api_md5(self) -> None:
        ours = self.compare("l1_md5", level="L1", section={"summary_mode": "md5"})
        self.assertEqual(ours.beside("construct.json"), {})

    def test_modules(self) -> None:
        self.compare("l0_stat", level="L0")

    # -- Leaves -------------------------------------------------------------------------------------

    def leaf_of(self, tensor: Any, **settings: Any) -> Dict[str, Any]:
        with self.capture(clean=False, **settings):
            torch.atleast_1d(tensor)
        return self.dump().data["Torch.atleast_1d.0.forward"]["input_args"][0]

    def numbers(self, tensor: torch.Tensor) -> List[Any]:
        leaf = self.leaf_of(tensor)
        self.assertEqual(list(leaf)[3:], ["Max", "Min", "Mean", "Norm", "requires_grad"])
        return [leaf[key] for key in ("Max", "Min", "Mean", "Norm")]

    def test_statistics_by_type(self) -> None:
        values = torch.tensor([1.0, -2.0, 4.0])
        norm = math.sqrt(21)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            self.assertEqual(self.numbers(values.to(dtype)), [4.0, -2.0, 1.0, norm])
        self.assertEqual(self.numbers(values.double()), [4.0, -2.0, None, None])
        self.assertEqual(self.numbers(values.long()), [4, -2, None, None])
        self.assertEqual(self.numbers(torch.tensor([2 ** 62 + 1, 5])), [2 ** 62 + 1, 5, None, None])
        self.assertEqual(self.numbers(values > 0), [True, False, None, None])
        self.assertEqual(self.numbers(torch.tensor(True)), [True, True, None, None])
        self.assertEqual(self.numbers(torch.tensor(2.5)), [2.5] * 4)
        self.assertEqual(self.numbers(torch.tensor(2.5).double()), [2.5] * 4)
        self.assertEqual(self.numbers(torch.tensor(7)), [7] * 4)
        self.assertEqual(self.numbers(torch.tensor([3 + 4j, 0j])), [5.0, 0.0, 2.5, None])
        self.assertEqual(self.numbers(torch.empty(0, 3)), [None] * 4)
        self.assertEqual(self.numbers(torch.empty(2, device="meta")), [None] * 4)
        self.assertEqual(list(self.path.rglob("dump_error_info.log")), [], "a meta tensor has no values to miss")
        inf = self.numbers(torch.tensor([1.0, float("-inf")]))
        self.assertEqual(inf, [1.0, float("-inf"), float("-inf"), float("inf")])
        self.assertTrue(all(math.isnan(x) for x in self.numbers(torch.tensor([1.0, float("nan")]))))

    def test_sums_do_not_overflow(self) -> None:
        many = torch.full((100, 100), 60000.0, dtype=torch.float16)
        self.assertEqual(self.numbers(many), [60000.0, 60000.0, 60000.0, 6e6])

    def test_large_and_strided(self) -> None:
        torch.manual_seed(0)
        base = torch.randn(300, 700)
        for tensor in (base, base.t(), base[::2, 1::3], base[:, :1].expand(300, 50), base.bfloat16().t()):
            highest, lowest, mean, norm = self.numbers(tensor)
            wide = tensor.double()
            self.assertEqual([highest, lowest], [wide.max().item(), wide.min().item()])
            self.assertAlmostEqual(mean, wide.mean().item(), delta=1e-15)
            self.assertAlmostEqual(norm, wide.norm().item(), delta=1e-12 * norm)

    def test_checksums(self) -> None:
        x = torch.arange(6, dtype=torch.float32).view(2, 3).t()
        dense = x.contiguous().numpy().tobytes()
        leaf = self.leaf_of(x, section={"summary_mode": "md5"})
        self.assertEqual(leaf["md5"], f"{zlib.crc32(dense):08x}")
        self.assertEqual(list(leaf)[-2:], ["requires_grad", "md5"])
        leaf = self.leaf_of(x, section={"summary_mode": "xor"})
        total = 0
        for at in range(0, len(dense), 8):
            total ^= int.from_bytes(dense[at:at + 8], "little")
        self.assertEqual(list(leaf), ["type", "dtype", "shape", "requires_grad", "md5"])
        self.assertEqual(leaf["md5"], f"0x{total:016x}")

    def test_structure(self) -> None:
        leaf = self.leaf_of(torch.ones(2), task="structure")
        self.assertEqual(list(leaf), ["type", "dtype", "shape", "requires_grad"])

    def test_numbers_are_those_of_the_moment(self) -> None:
        """An output is looked up when it is the next input, but never after somebody wrote into it."""
        torch.manual_seed(0)
        with self.capture():
            x = torch.randn(64, 64)
            y = torch.exp(x)
            torch.tanh(y)
            y.mul_(2)
            torch.tanh(y)
            y.data.mul_(2)          # not counted as a change by autograd
            torch.tanh(y)
            y.numpy()[:] = 5.0      # nor is this
            torch.tanh(y)
            torch.tanh(y.view(-1))
            y.data[0, 7] = 1e6      # one element among many
            torch.tanh(y)
            y.numpy()[63, 5] = 1e7
            torch.tanh(y)
        data = self.dump().data
        highest = x.exp().max().item()
        seen = [data[f"Torch.tanh.{i}.forward"]["input_args"][0]["Max"] for i in range(7)]
        for got, expected in zip(seen, [highest, 2 * highest, 4 * highest, 5.0, 5.0, 1e6, 1e7]):
            self.assertAlmostEqual(got, expected, delta=1e-4)
        self.assertEqual(data["Tensor.mul_.0.forward"]["input_args"][0]["Max"], seen[0])
        self.assertEqual(data["Tensor.mul_.0.forward"]["output"][0]["Max"], seen[1])

    def test_a_module_that_is_one_function(self) -> None:
        """What is recorded of both is looked at once, unless the script has a turn in between."""
        torch.manual_seed(0)

        def doubles(module: nn.Module, *values: Any) -> None:
            (values[-1] if torch.is_tensor(values[-1]) else values[-1][0]).data.mul_(2)

        def plain(layer: nn.Linear) -> None:
            pass

        def before(layer: nn.Linear) -> None:
            layer.register_forward_pre_hook(doubles)

        def after(layer: nn.Linear) -> None:
            layer.register_forward_hook(doubles)

        def own_forward(layer: nn.Linear) -> None:
            forward = layer.forward

            def both(x: torch.Tensor) -> torch.Tensor:
                x.data.mul_(2)
                y = forward(x)
                y.data.mul_(2)
                return y
            layer.forward = both  # type: ignore[method-assign]

        def own_function(layer: nn.Linear) -> None:
            linear = nn.functional.linear

            def both(x: torch.Tensor, *others: Any) -> torch.Tensor:
                x.data.mul_(2)
                y = linear(x, *others)
                y.data.mul_(2)
                return y
            self.addCleanup(setattr, nn.functional, "linear", linear.function)
            nn.functional.linear = both

        for change, inputs, outputs in ((plain, 1, 1), (before, 2, 1), (after, 1, 2), (own_forward, 2, 2),
                                        (own_function, 2, 2)):
            model = nn.Sequential(nn.Linear(64, 64), nn.Tanh())
            x = torch.randn(64, 64)
            with self.capture(model, level="mix"):
                change(model[0])
                model(x).sum().backward()
            data = self.dump().data
            inner, outer = data["Functional.linear.0.forward"], data["Module.0.Linear.forward.0"]
            for side, times, over in (("input_args", inputs, (outer, inner)), ("output", outputs, (inner, outer))):
                first, second = (entry[side][0]["Norm"] for entry in over)
                self.assertAlmostEqual(second / first, times, 5, (change.__name__, side))
            self.assertEqual(data["Functional.linear.0.backward"]["input"], data["Module.0.Linear.backward.0"]["input"])

    def test_kinds_of_arguments(self) -> None:
        Pair = namedtuple("Pair", "left right")

        @dataclass
        class Both:
            a: torch.Tensor
            b: int

        class Odd(nn.Module):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return {"out": args[0] + 1, "more": Pair(args[0], [2])}

        x = torch.ones(2)
        import numpy
        model = nn.ModuleDict({"odd": Odd()})
        with self.capture(model, level="L0", task="tensor"):
            model["odd"](x, None, True, 1, 2.5, "s", slice(1, None, 2), ..., torch.Size([2]), torch.float16,
                         torch.device("cpu"), torch.channels_last, Pair(x, 3), Both(x, 4), {"a/../b": x},
                         [x, (x, 5)], object(), numpy.float64(1.5), numpy.ones(3, numpy.float32), torch.empty(0),
                         dtype=torch.float32, device=torch.device("cpu"), mask=x)
        entry = self.dump().data["Module.odd.Odd.forward.0"]
        tensor, args = entry["input_args"][0], entry["input_args"]
        self.assertEqual(args[1:12], [
            None, {"type": "bool", "value": True}, {"type": "int", "value": 1}, {"type": "float", "value": 2.5},
            {"type": "str", "value": "s"}, {"type": "slice", "value": [1, None, 2]},
            {"type": "ellipsis", "value": "..."}, {"type": "torch.Size", "value": [2]}, {}, {},
            {"type": "torch.memory_format", "format": "channels_last"}])
        self.assertEqual(args[12]["left"]["data_name"], "Module.odd.Odd.forward.0.input.12.left.pt")
        self.assertEqual(args[13]["b"], {"type": "int", "value": 4})
        self.assertEqual(args[14]["a/../b"]["data_name"], "Module.odd.Odd.forward.0.input.14.a_.._b-b25b93e9.pt")
        self.assertEqual(args[15][1][0]["data_name"], "Module.odd.Odd.forward.0.input.15.1.0.pt")
        self.assertIsNone(args[16])
        self.assertEqual(args[17], {"type": "float64", "value": 1.5})
        self.assertEqual([args[18]["type"], args[18]["Norm"], args[18].get("requires_grad")],
                         ["numpy.ndarray", math.sqrt(3), None])
        self.assertNotIn("data_name", args[19])
        self.assertEqual(entry["input_kwargs"]["dtype"], {"type": "torch.dtype", "value": "torch.float32"})
        self.assertEqual(entry["input_kwargs"]["device"], {"type": "torch.device", "value": "cpu"})
        self.assertEqual(entry["input_kwargs"]["mask"]["data_name"], "Module.odd.Odd.forward.0.kwargs.mask.pt")
        self.assertEqual(entry["output"][0]["out"]["Max"], 2.0)
        self.assertEqual(tensor["data_name"], "Module.odd.Odd.forward.0.input.0.pt")
        self.assertEqual(json.loads((self.dump().folder / "dump.json").read_text()), self.dump().json)


if __name__ == "__main__":
    unittest.main()
