"""The HDF5 form of PrecisionDebugger: names, order and types in the file, and what commands say."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, os.path.join(BUILD, "python"))

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from plumb import PrecisionDebugger  # noqa: E402
from plumb._capture import debugger as module  # noqa: E402

STEM = "globalrank-0_localrank-0"


class Attention(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(size, 3 * size)
        self.proj = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.proj((q @ k.transpose(-1, -2)).softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size)
        self.attn = Attention(size)
        self.norm2 = nn.LayerNorm(size)
        self.act = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.act(self.norm2(x))


class Visual(nn.Module):
    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, size)
        self.blocks = nn.ModuleList([Block(size) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return x


class Pair(nn.Module):
    """Takes and gives all sorts of things."""

    def forward(self, x: Any, scale: Any = None, **more: Any) -> Any:
        return x[0] * scale, [x[1], {"key": x[0] + 1, "a/b": x[1]}], more["flag"]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="plumb-h5-")
        self.path = os.path.join(self.folder, "dump")
        torch.manual_seed(0)

    def tearDown(self) -> None:
        self.finish()
        shutil.rmtree(self.folder)

    def finish(self) -> None:
        """What leaving the program does."""
        module._close_all()

    def debugger(self, model: nn.Module, **more: Any) -> PrecisionDebugger:
        settings: Dict[str, Any] = {"dump_path": self.path, "hook_name": "dump", "rank": [0],
                                    "step": [1],
                                    "model": model, "dump_torch_api": False}
        settings.update(more)
        return PrecisionDebugger(**settings)

    def read(self, name: str = f"{STEM}.h5") -> Dict[str, Dict[str, Tuple[str, np.ndarray]]]:
        """step -> name -> (dtype, values), in creation order."""
        with h5py.File(os.path.join(self.path, name), "r", track_order=True) as file:
            self.assertEqual((file.attrs["globalrank"], file.attrs["localrank"]), (0, 0))
            found: Dict[str, Dict[str, Tuple[str, np.ndarray]]] = {}
            for step, group in file.items():
                names: List[str] = []
                group.id.links.iterate(lambda link: names.append(link.decode()),
                                       idx_type=h5py.h5.INDEX_CRT_ORDER)
                found[step] = {key: (str(group[key].attrs["dtype"]),
                                     group[key][()]) for key in names}
            return found

    def plumb(self, *words: str) -> str:
        done = subprocess.run([os.path.join(BUILD, "plumb"), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=self.folder,
                              env={**os.environ, "PLUMB_H5": os.path.join(BUILD, "plumb-h5")})
        return done.stdout


class Names(Case):
    def test_modules(self) -> None:
        model = Visual()
        tokens = torch.arange(4)
        debugger = self.debugger(model)
        debugger.start()
        output = model(tokens)
        output.sum().backward()
        debugger.stop()
        debugger.step()
        self.finish()
        found = self.read()
        self.assertEqual(list(found), ["1"])
        forward = [name for name in found["1"] if "backward" not in name]
        block = lambda i, norm, linear: [  # noqa: E731
            f"blocks.{i}.norm1.LayerNorm.{norm}.forward_params.weight",
            f"blocks.{i}.norm1.LayerNorm.{norm}.forward_params.bias",
            f"blocks.{i}.norm1.LayerNorm.{norm}.forward_input.0",
            f"blocks.{i}.norm1.LayerNorm.{norm}.forward_output.0",
            f"blocks.{i}.attn.qkv.Linear.{linear}.forward_params.weight",
            f"blocks.{i}.attn.qkv.Linear.{linear}.forward_params.bias",
            f"blocks.{i}.attn.qkv.Linear.{linear}.forward_input.0",
            f"blocks.{i}.attn.qkv.Linear.{linear}.forward_output.0",
            f"blocks.{i}.attn.proj.Linear.{linear + 1}.forward_params.weight",
            f"blocks.{i}.attn.proj.Linear.{linear + 1}.forward_params.bias",
            f"blocks.{i}.attn.proj.Linear.{linear + 1}.forward_input.0",
            f"blocks.{i}.attn.proj.Linear.{linear + 1}.forward_output.0",
            f"blocks.{i}.norm2.LayerNorm.{norm + 1}.forward_params.weight",
            f"blocks.{i}.norm2.LayerNorm.{norm + 1}.forward_params.bias",
            f"blocks.{i}.norm2.LayerNorm.{norm + 1}.forward_input.0",
            f"blocks.{i}.norm2.LayerNorm.{norm + 1}.forward_output.0",
            f"blocks.{i}.act.GELU.{i}.forward_input.0",
            f"blocks.{i}.act.GELU.{i}.forward_output.0"]
        self.assertEqual(forward,
                         ["embed.Embedding.0.forward_params.weight",
                          "embed.Embedding.0.forward_input.0",
                                   "embed.Embedding.0.forward_output.0", *block(0, 0, 0),
                          *block(1, 2, 2)])
        dtype, values = found["1"]["embed.Embedding.0.forward_input.0"]
        self.assertEqual((dtype, values.tolist()), ("torch.int64", [0, 1, 2, 3]))
        dtype, values = found["1"]["embed.Embedding.0.forward_params.weight"]
        self.assertEqual(dtype, "torch.float32")
        self.assertTrue(np.array_equal(values, model.embed.weight.detach().numpy()))
        # The last GELU gets the gradient of a sum.
        self.assertTrue((found["1"]["blocks.1.act.GELU.1.backward_input.0"][1] == 1).all())
        self.assertIn("blocks.0.norm1.LayerNorm.0.backward_output.0", found["1"])

    def test_parameters_once_a_step(self) -> None:
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        debugger = self.debugger(model, step=[])
        for _ in range(2):
            debugger.start()
            for _ in range(3):
                model(torch.ones(1, 2))
            debugger.step()
        self.finish()
        for step in self.read().values():
            names = list(step)
            self.assertEqual([name for name in names if "params" in name],
                             ["0.Linear.0.forward_params.weight", "0.Linear.0.forward_params.bias"])
            self.assertEqual([name for name in names if name.startswith("1.")],
                             [f"1.ReLU.{i}.forward_{side}.0" for i in range(3)
                              for side in ("input", "output")])

    def test_nested(self) -> None:
        model = nn.ModuleDict({"pair": Pair()})
        debugger = self.debugger(model)
        debugger.start()
        with torch.no_grad():
            model["pair"]((torch.ones(2), torch.zeros(3)), scale=torch.tensor(2.0), flag=True)
        self.finish()
        self.assertEqual(list(self.read()["1"]), [
            "pair.Pair.0.forward_input.0.0", "pair.Pair.0.forward_input.0.1",
            "pair.Pair.0.forward_input.scale",
            "pair.Pair.0.forward_output.0", "pair.Pair.0.forward_output.1.0",
            "pair.Pair.0.forward_output.1.1.key",
            "pair.Pair.0.forward_output.1.1.a_b"])

    def test_types(self) -> None:
        """What HDF5 lacks is kept bit by bit."""
        model = nn.ModuleList([nn.Identity()])
        debugger = self.debugger(model)
        debugger.start()
        values = torch.tensor([1.0, -2.5, float("nan"), float("inf")])
        types = (torch.bfloat16, torch.float16, torch.float64, torch.complex64)
        for dtype in types:
            model[0](values.to(dtype))
        model[0](torch.tensor([True, False]))
        model[0](torch.zeros(0, 3))
        model[0](torch.eye(4)[:, ::2])
        model[0](torch.ones(2, device="meta"))
        self.finish()
        found = self.read()["1"]
        for i, dtype in enumerate(types):
            self.assertEqual(found[f"0.Identity.{i}.forward_output.0"][0], str(dtype))
        name, bits = found["0.Identity.0.forward_input.0"]
        self.assertEqual(bits.dtype, np.uint16)
        self.assertEqual(bits.tolist(),
                         values.to(torch.bfloat16).view(torch.int16).numpy().view("u2").tolist())
        self.assertEqual(found["0.Identity.4.forward_input.0"][1].tolist(), [True, False])
        self.assertEqual(found["0.Identity.5.forward_input.0"][1].shape, (0, 3))
        self.assertTrue(np.array_equal(found["0.Identity.6.forward_input.0"][1], np.eye(4)[:, ::2]))
        self.assertNotIn("0.Identity.7.forward_input.0", found)
        with open(os.path.join(self.path, "dump_error_info.log")) as file:
            self.assertIn("meta", file.read())

    def test_functions(self) -> None:
        model = nn.Sequential(nn.Linear(2, 2), nn.Softmax(-1))
        debugger = self.debugger(model, dump_torch_api=True)
        debugger.start()
        with torch.no_grad():
            torch.add(model(torch.ones(1, 2)), 1)
        self.finish()
        names = list(self.read()["1"])
        self.assertIn("Functional.linear.0.forward_input.1", names)
        self.assertIn("Functional.softmax.0.forward_output.0", names)
        self.assertIn("Torch.add.0.forward_output.0", names)
        inside = [names.index(name) for name in (
            "0.Linear.0.forward_input.0", "Functional.linear.0.forward_input.0",
            "0.Linear.0.forward_output.0")]
        self.assertEqual(inside, sorted(inside))


class Steps(Case):
    def run_again(self, times: int, **more: Any) -> nn.Module:
        """As the page does it: constructed inside the call, again and again, and never stopped."""
        model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        for i in range(times):
            debugger = self.debugger(model, **more)
            debugger.start()
            with torch.no_grad():
                model(torch.full((1, 2), float(i)))
        return model

    def test_constructed_again(self) -> None:
        self.run_again(3, step=[])
        self.finish()
        found = self.read()
        self.assertEqual(list(found), ["1", "2", "3"])
        self.assertEqual([step["0.Linear.0.forward_input.0"][1][0, 0] for step in found.values()],
                         [0, 1, 2])

    def test_chosen_steps(self) -> None:
        self.run_again(4, step=[3])
        self.finish()
        found = self.read()
        self.assertEqual(list(found), ["3"])
        self.assertEqual(found["3"]["0.Linear.0.forward_input.0"][1][0, 0], 2)

    def test_other_rank(self) -> None:
        self.run_again(2, rank=[1])
        self.finish()
        self.assertFalse(os.path.exists(self.path))

    def test_there_after_the_last_step(self) -> None:
        """Servers are killed, not left: the file does not wait for that."""
        self.run_again(2, step=[1])
        self.assertEqual(list(self.read()), ["1"])

    def test_left_program(self) -> None:
        script = textwrap.dedent("""
            import torch
            from plumb import PrecisionDebugger
            model = torch.nn.Sequential(torch.nn.Linear(2, 2))
            for _ in range(2):
                PrecisionDebugger(dump_path="dump", hook_name="dump", model=model).start()
                model(torch.ones(1, 2))
            raise SystemExit(3)
            """)
        done = subprocess.run([sys.executable, "-c", script], cwd=self.folder,
                              stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "python"),
                                   "PLUMB_H5": os.path.join(BUILD, "plumb-h5")})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(list(self.read()), ["1", "2"])


class Unnoticed(Case):
    def train(self, recorded: bool) -> List[torch.Tensor]:
        torch.manual_seed(0)
        model = Visual()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            if recorded:
                self.debugger(model, step=[], dump_torch_api=True).start()
            loss = nn.functional.dropout(model(torch.arange(4)), 0.1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss.detach(), *[p.detach() for p in model.parameters()], torch.rand(1)]

    def test_same_bits(self) -> None:
        for a, b in zip(self.train(False), self.train(True)):
            self.assertTrue(torch.equal(a, b))

    def test_no_place_to_write(self) -> None:
        with open(self.path, "w"):
            pass
        model = nn.Sequential(nn.Linear(2, 2))
        self.debugger(model).start()
        self.assertEqual(model(torch.ones(1, 2)).shape, (1, 2))
        self.finish()


class Commands(Case):
    def record(self, name: str, fault: float = 0) -> str:
        torch.manual_seed(0)
        model = Visual()
        if fault:
            model.blocks[1].norm1.register_forward_hook(lambda module, args, output: output + fault)
        self.path = os.path.join(self.folder, name)
        self.debugger(model).start()
        with torch.no_grad():
            model(torch.arange(4))
        self.finish()
        return os.path.join(self.path, f"{STEM}.h5")

    def test_summary(self) -> None:
        file = self.record("gpu")
        table = self.plumb("summary", file)
        self.assertIn("| Index | Step | Rank | Module  ", table)
        self.assertRegex(table,
                         r"\|     0 \|    1 \|    0 \| embed.Embedding.0.forward_params.weight +\|")
        self.plumb("summary", file, "sum.csv")
        with open(os.path.join(self.folder, "sum.csv")) as told, \
                open(os.path.join(self.path, f"{STEM}_summary.csv")) as written:
            self.assertEqual(list(csv.reader(told)), list(csv.reader(written)))

    def test_summary_of_several_steps(self) -> None:
        """Each step adds its rows."""
        model = nn.Sequential(nn.Linear(2, 2))
        for step in (1, 2, 3):
            debugger = self.debugger(model, step=[])
            debugger.start()
            model(torch.full((1, 2), float(step)))
            debugger.stop()
            debugger.step()
            with open(os.path.join(self.path, f"{STEM}_summary.csv")) as written:
                rows = list(csv.reader(written))
            self.assertEqual(len(rows), 1 + 4 * step)
        self.finish()
        self.plumb("summary", os.path.join(self.path, f"{STEM}.h5"), "sum.csv")
        with open(os.path.join(self.folder, "sum.csv")) as told:
            self.assertEqual(list(csv.reader(told)), rows)

    def test_compare_names_the_first_failure(self) -> None:
        text = self.plumb("compare", self.record("xpu", 0.1), self.record("gpu"))
        rows = [line.split("|")[3].strip() for line in text.splitlines() if "Fail |" in line]
        self.assertEqual(rows[0], "blocks.1.norm1.LayerNorm.2.forward_output.0")
        self.assertIn("first failure: blocks.1.norm1.LayerNorm.2.forward_output.0", text)


if __name__ == "__main__":
    unittest.main()
