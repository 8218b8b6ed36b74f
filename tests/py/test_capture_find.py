"""From a script to an answer: two captures, one of a model with a fault, and what plumb says of them."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).parent))
import gpt_model  # noqa: E402
import torch  # noqa: E402
from capture_case import PLUMB, CaptureTest, Dump  # noqa: E402
from torch import nn  # noqa: E402

CONFIG = gpt_model.Config(layers=2, context=12)
Fault = Callable[[gpt_model.GPT], None]


def scaled(model: gpt_model.GPT) -> None:
    with torch.no_grad():
        model.blocks[1].mlp.fc.weight.mul_(1.01)


def wrong_gelu(model: gpt_model.GPT) -> None:
    class GELU(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.sigmoid(1.5 * x)
    model.blocks[0].mlp.act = GELU()


def run(*words: object) -> str:
    done = subprocess.run([str(PLUMB), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "COLUMNS": "200"})
    if done.returncode not in (0, 1):
        raise AssertionError(f"plumb {' '.join(map(str, words))}: {done.stdout}")
    return done.stdout


class FindTest(CaptureTest):
    def record(self, dtype: torch.dtype, fault: Fault = lambda model: None, **settings: object) -> Path:
        model, ids = gpt_model.make(CONFIG, dtype=dtype)
        fault(model)
        with self.capture(model, risk_level="FOCUS", **settings):
            gpt_model.loss(model, ids).backward()
        return self.path

    def first_failure(self, target: Path, golden: Path) -> str:
        text = run("compare", "-tp", target / "step0", "-gp", golden / "step0", "-o", self.root / "out")
        found = re.search(r"first failure: (\S+)", text)
        self.assertIsNotNone(found, text)
        self.assertIn("; 0 unmatched", text)
        return found[1]

    def module_of(self, row: str) -> str:
        """The module that a row is about, or that its call was made in."""
        if row.startswith("Module."):
            return row
        call = re.match(r".*?\.(forward|backward)", row)[0]
        return self.dump().beside("construct.json")[call]

    def test_a_scaled_weight(self) -> None:
        for dtype in (torch.float32, torch.bfloat16):
            for task in ("statistics", "tensor"):
                for level in ("L0", "mix", "L1"):
                    with self.subTest(f"{dtype} {task} {level}"):
                        golden = self.record(dtype, task=task, level=level)
                        target = self.record(dtype, scaled, task=task, level=level)
                        row = self.first_failure(target, golden)
                        # Statistics of bfloat16 may show it where the values stop cancelling.
                        late = task == "statistics" and dtype == torch.bfloat16
                        if level == "L1":
                            self.assertRegex(row, r"^Functional\.(linear\.6|%s)\.forward" % ("gelu.1" if late else ""))
                        else:
                            self.assertRegex(self.module_of(row), r"^Module\.blocks\.1\.mlp\.(fc\.Linear|%s)\.forward" %
                                             ("act.GELU" if late else ""))

    def test_a_wrong_activation(self) -> None:
        for task in ("statistics", "tensor"):
            golden = self.record(torch.float32, task=task, level="L0")
            row = self.first_failure(self.record(torch.float32, wrong_gelu, task=task, level="L0"), golden)
            self.assertEqual(row, "Module.blocks.0.mlp.act.GELU.forward.0.output.0")

    def test_the_same_twice(self) -> None:
        for task, section in (("tensor", {}), ("statistics", {"summary_mode": "md5"})):
            paths = [self.record(torch.bfloat16, task=task, level="mix", section=section) for _ in range(2)]
            text = run("compare", "-tp", paths[0] / "step0", "-gp", paths[1] / "step0", "-o", self.root / "out")
            self.assertIn("0 fail", text)

    def test_other_commands_read_it(self) -> None:
        for task in ("tensor", "statistics", "structure"):
            self.record(torch.float32, task=task, level="L1")
            self.assertIn("Functional.linear.8.forward.output.0", run("info", self.path))
        self.record(torch.float32, task="tensor", level="L1")
        dump: Dump = self.dump()
        self.assertIn("Functional.linear.8.forward.output.0", run("summary", self.path, "--wide"))
        text = run("acc_check", "-api_info", dump.folder / "dump.json", "-o", self.root / "acc")
        calls = sum(name.endswith(".forward") for name in dump.data)
        self.assertIn(f"{calls} APIs: {calls} pass", text)


if __name__ == "__main__":
    unittest.main()
