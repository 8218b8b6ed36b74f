"""Two captures of the same values: whatever modules are called, the n-th call of one belongs to the
n-th of the other, and an argument by name to the same argument by position."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import List, Type

BUILD = os.environ.get("PLUMB_BUILD", str(Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, os.path.join(BUILD, "python"))

import h5py  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

from plumb import PrecisionDebugger  # noqa: E402

PLUMB = os.path.join(BUILD, "plumb")


class Subclass(nn.Linear):
    pass


class small(nn.Linear):  # noqa: N801
    pass


class Mix(nn.Module):
    """Takes two tensors of one shape."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left - 2 * right


class Model(nn.Module):
    """Two layers that are called again and again, and a head."""

    def __init__(self, kind: Type[nn.Linear], head: Type[nn.Linear], by_name: bool,
                 fault: int = -1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.lm_head = nn.Linear(4, 4), kind(4, 4), head(4, 4)
        self.by_name, self.fault, self.mix = by_name, fault, Mix()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(4):
            x = self.a(input=x) if self.by_name else self.a(x)
            x = self.mix(right=x, left=x + 1) if self.by_name else self.mix(x + 1, x)
            x = self.b(torch.tanh(x) + (1.0 if i == self.fault else 0.0))
        return self.lm_head(x)


MODELS = {"golden": (nn.Linear, nn.Linear, False), "subclass": (Subclass, nn.Linear, False),
          "head": (nn.Linear, Subclass, True), "small": (small, small, True),
          "fault": (Subclass, small, True, 2)}
FORMS = ("h5", "L0", "mix")


def capture(folder: Path, form: str, model: Model) -> None:
    torch.manual_seed(1)
    if form == "h5":
        debugger = PrecisionDebugger(dump_path=str(folder), hook_name="dump", model=model)
        debugger.start()
    else:
        debugger = PrecisionDebugger(dump_path=str(folder), task="statistics", level=form)
        debugger.start(model)
    model(torch.randn(2, 4, requires_grad=True)).sum().backward()
    debugger.stop()
    debugger.step()


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        """Captures in a process of their own: files are finished when it ends."""
        folder = tempfile.TemporaryDirectory(prefix="plumb-pairs-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        subprocess.run([sys.executable, __file__, folder.name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def compare(self, form: str, target: str, golden: str) -> List[str]:
        done = subprocess.run([PLUMB, "compare", str(self.folder / form / target),
                               str(self.folder / form / golden)], stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()

    def test_the_same_values(self) -> None:
        for form in FORMS:
            for other in ("subclass", "head", "small"):
                for pair in ((other, "golden"), ("golden", other)):
                    self.assertRegex(self.compare(form, *pair)[-1],
                                     r"(\d+) compared .*: \1 pass, 0 fail; 0 unmatched")

    def test_a_fault_is_found_where_it_is(self) -> None:
        lines = [line for line in self.compare("h5", "fault", "golden") if " Fail |" in line]
        self.assertEqual([line.split("|")[3].strip() for line in lines[:3]],
                         ["b.Linear.5.forward_input.0", "b.Linear.5.forward_output.0",
                          "a.Linear.6.forward_input.0"])

    def test_the_attribute(self) -> None:
        run = self.folder / "h5" / "head"
        with h5py.File(next(run.glob("*.h5"))) as file:
            calls = {name: int(data.attrs["path_call"]) for name, data in file["1"].items()}
        self.assertEqual(calls["b.Linear.5.forward_output.0"], 2)
        self.assertEqual(calls["b.Linear.5.backward_input.0"], 2)
        self.assertEqual(calls["a.Linear.6.forward_input.input"], 3)
        self.assertEqual(calls["a.Linear.0.forward_params.weight"], 0)
        self.assertEqual(calls["lm_head.Subclass.0.forward_output.0"], 0)
        # It is kept by a conversion.
        copy = self.folder / "copy.h5"
        subprocess.run([PLUMB, "convert", str(run), str(copy)], check=True,
                       stdout=subprocess.DEVNULL)
        with h5py.File(copy) as file:
            group = file["1"] if "1" in file else file
            self.assertEqual(calls, {name: int(data.attrs["path_call"])
                                     for name, data in group.items()})


if __name__ == "__main__":
    for some_form in FORMS:
        for title, options in MODELS.items():
            capture(Path(sys.argv[1]) / some_form / title, some_form, Model(*options))
