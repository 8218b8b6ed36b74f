"""What only PyTorch 2 has, in dumps: types without a storage of their own, and calls under vmap."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "py"))

import torch  # noqa: E402
from capture_case import BUILD  # noqa: E402

import plumb  # noqa: E402

PLUMB = str(BUILD / "plumb")
TYPES = [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                                           "float8_e8m0fnu", "uint16", "uint32", "uint64") if hasattr(torch, name)]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        torch.manual_seed(0)

    def record(self, name: str, run: Callable[[Any], Any], level: str = "L1") -> str:
        debugger = plumb.PrecisionDebugger(dump_path=str(self.root / name), task="tensor", level=level)
        self.addCleanup(debugger._close_quietly)
        debugger.start()
        run(debugger)
        debugger.stop()
        debugger.step()
        debugger._close_quietly()
        found, = glob.glob(str(self.root / name / "step0" / "*"))
        return found

    def plumb(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([PLUMB, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Types(Case):
    def test_saved(self) -> None:
        """As torch.save would, whatever the type and the strides; read by both."""
        values = [torch.arange(1, 25).reshape(4, 6).to(dtype) for dtype in TYPES]
        values += [value.t() for value in values] + [value[1, 2] for value in values]

        def run(debugger: Any) -> None:
            for number, value in enumerate(values):
                debugger.save(value, f"v{number}", save_backward=False)
        folder = self.record("a", run, "debug")
        saved = [torch.load(path, weights_only=True)
                 for path in glob.glob(f"{folder}/dump_tensor_data/*.pt")]
        self.assertEqual(len(saved), len(values), os.listdir(folder))
        for value in values:
            self.assertTrue(any(one.dtype == value.dtype and one.shape == value.shape and
                                torch.equal(one.double(), value.double()) for one in saved), value)
        done = self.plumb("compare", folder, self.record("b", run, "debug"))
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        self.assertIn(f"{len(values)} pass, 0 fail", done.stdout)


class Transforms(Case):
    def test_vmap(self) -> None:
        """A call under vmap sees one of the tensors that are recorded: it is counted, not judged."""
        weight, x = torch.randn(8, 6), torch.randn(5, 6)
        per_sample = torch.func.vmap(torch.func.grad(
            lambda w, row: torch.nn.functional.linear(row, w).tanh().sum()), in_dims=(None, 0))
        folder = self.record("vmap", lambda _: (per_sample(weight, x), torch.tanh(x)))
        done = self.plumb("blame", folder)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("called under vmap", done.stdout)
        self.assertNotIn("fault", done.stdout)


if __name__ == "__main__":
    unittest.main()
