#!/usr/bin/python3
"""The second opinion of the pass check: right passes are not blamed, wrong ones are found, in
float32 and bfloat16, in Python and by the command."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, List, Tuple

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from torch import fx, nn

import planted_passes as planted
import plumb

TYPES = (torch.float32, torch.bfloat16)


def judged(module: nn.Module, rewrite: planted.Pass, value: torch.Tensor, **more: Any) -> Any:
    return plumb.numeric_check(module, rewrite(module), value, verdict="expected", **more)


def everything(dtype: torch.dtype) -> List[Tuple[str, nn.Module, planted.Pass, torch.Tensor, bool]]:
    """(name, module, pass, input, whether it is right)."""
    block, x = planted.block(dtype)
    conv, image = planted.conv(dtype)
    return [*((name, block, one, x, True) for name, one in planted.right_passes()),
            *((name, block, one, x, False) for name, one in planted.wrong_passes(dtype)),
            ("batch norm folded", conv, planted.fold_bn(1e-3), image, True),
            ("batch norm folded with another eps", conv, planted.fold_bn(1e-5), image, False),
            ("batch norm folded without its mean", conv, planted.fold_bn(1e-3, 0), image, False)]


class Planted(unittest.TestCase):
    def test_in_python(self):
        for dtype in TYPES:
            blamed, missed, right = [], [], 0
            # Gradients take most of the time, and the command judges them in both types.
            kinds = ["output", "gradient"] if dtype is torch.bfloat16 else ["output"]
            for name, module, one, value, fine in everything(dtype):
                report = judged(module, one, value, compare=kinds)
                right += fine
                if fine and not report:
                    blamed.append((name, report.summary()))
                if not fine and report:
                    missed.append((name, report.summary()))
            self.assertGreaterEqual(right, 18)
            self.assertEqual((blamed, missed), ([], []), dtype)

    def test_by_the_command(self):
        for dtype in TYPES:
            blamed, missed = [], []
            for name, module, one, value, fine in everything(dtype):
                done = by_command(module, one(module), value)
                if done.returncode != (0 if fine else 1):
                    (blamed if fine else missed).append((name, done.stdout[-600:] + done.stderr))
            self.assertEqual((blamed, missed), ([], []), dtype)

    def test_the_rules_cannot_tell(self):
        """Why there is a second opinion: within 1e-4 is met by neither, or by both."""
        block, x = planted.block(torch.bfloat16)
        right = dict(planted.right_passes())["product split by terms"]
        self.assertFalse(plumb.numeric_check(block, right(block), x, 1))
        self.assertTrue(judged(block, right, x))
        self.assertFalse(plumb.numeric_check(block, right(block), x, 1, verdict="both"))

    def test_steps_in_16_bits_are_cheaper_arithmetic(self):
        block, x = planted.block(torch.float32)
        for (name, one), word in zip(planted.cheap_passes(), ("bf16-store", "f16-store")):
            report = judged(block, one, x)
            self.assertTrue(report, report)
            self.assertIn("cheaper arithmetic", report.words, name)
            rows = [row for row in report.rows if row.opinion.verdict == "cheaper arithmetic"]
            self.assertFalse(any(row.opinion.allowed for row in rows))
            report = judged(block, one, x, arithmetic=word)
            rows = [row for row in report.rows if row.opinion.verdict == "cheaper arithmetic"]
            self.assertTrue(all(row.opinion.allowed for row in rows), report)


def by_command(before: nn.Module, after: nn.Module, value: Any,
               *more: str) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, side, "graph.json") for side in ("before", "after")]
        for path, module in zip(paths, (before, after)):
            os.mkdir(os.path.dirname(path))
            plumb.export_graph(module, value, path)
        return subprocess.run([str(BUILD / "plumb"), "numeric_check", *paths,
                               "--verdict", "expected", *more], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)


class Answers(unittest.TestCase):
    def setUp(self) -> None:
        self.block, self.x = planted.block(torch.float32)
        self.wrong = dict(planted.wrong_passes(torch.float32))

    def test_rows_and_columns(self):
        report = judged(self.block, self.wrong["scaled by 1.001"], self.x)
        output = next(row for row in report.rows if row.kind == "output")
        self.assertEqual(output.opinion.verdict, "fault")
        self.assertIn("scaled by 1.001", output.opinion.pattern)
        self.assertIn(output, report.faults)
        self.assertIn("FAULT: ", report.summary())
        self.assertIn("another formula", report.summary())
        self.assertEqual(report.num_iterations, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            report.save(path)
            with open(path, newline="", encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
        self.assertEqual(list(rows[0])[-4:], ["Result", "Reason", "Verdict", "Why"])
        self.assertEqual({row["Verdict"] for row in rows if row["Kind"] == "output"}, {"fault"})

    def test_without_the_option_nothing_changes(self):
        report = plumb.numeric_check(self.block, self.wrong["no bias"](self.block), self.x, 1)
        self.assertNotIn("Verdict", str(report))
        self.assertTrue(all(row.opinion is None for row in report.rows))
        with self.assertRaises(ValueError):
            plumb.numeric_check(self.block, self.block, self.x, arithmetic="tf32")
        with self.assertRaises(ValueError):
            plumb.numeric_check(self.block, self.block, self.x, verdict="perhaps")

    def test_both(self):
        report = plumb.numeric_check(self.block, self.wrong["another eps"](self.block), self.x, 2,
                                     verdict="both")
        self.assertFalse(report)
        self.assertIn("FAULT: ", report.summary())
        self.assertIn("of later iterations not judged", report.summary())

    def test_nothing_judged_is_no_success(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).train()
        report = plumb.numeric_check(module, module, torch.randn(4, 8), verdict="expected",
                                     compare=["output"])
        self.assertFalse(report)
        self.assertIn("NOT JUDGED: 0 results judged", report.summary())
        self.assertIn("draws at random", report.summary())

    def test_a_module_that_has_no_float64(self):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if x.dtype is torch.float64:
                    raise RuntimeError("a kernel of float32 only")
                return x * 2

        class Uses(nn.Module):
            def forward(self, x):
                return Own.apply(x)

        report = plumb.numeric_check(Uses(), Uses(), torch.randn(4, 8), verdict="expected")
        self.assertFalse(report)
        self.assertIn("a kernel of float32 only", report.summary())

    def test_which_pass_and_which_node(self):
        def shift(graph: fx.GraphModule) -> None:
            for node in graph.graph.nodes:
                if node.target is torch.matmul:
                    with graph.graph.inserting_after(node):
                        more = graph.graph.call_function(torch.mul, (node, 1.0005))
                    node.replace_all_uses_with(more)
                    more.args = (node, 1.0005)
                    break
            graph.recompile()

        def reorder(graph: fx.GraphModule) -> None:
            graph.recompile()

        report = plumb.numeric_check(self.block.bfloat16(), [reorder, shift, reorder],
                                     self.x.bfloat16(), verdict="expected")
        self.assertEqual(report.bad_pass_name, "shift", report)
        self.assertEqual(report.bad_passes, [1])
        traced = fx.symbolic_trace(self.block)
        other = fx.symbolic_trace(self.wrong["another eps"](self.block))
        report = plumb.numeric_check(traced, other, self.x.bfloat16(), verdict="expected",
                                     follow=True)
        self.assertEqual(report.first_node, "layer_norm", report.summary())

    def test_running_statistics(self):
        conv, image = planted.conv(torch.float32)
        conv.train()
        report = plumb.numeric_check(conv, conv, image, verdict="expected")
        self.assertTrue(report, report)
        other = planted.conv(torch.float32)[0].train()
        other.bn.momentum = 0.2
        report = plumb.numeric_check(conv, other, image, verdict="expected")
        self.assertIn(("buffer", "bn.running_var"), [(row.kind, row.name) for row in report.faults])

    def test_decisions_that_turn_are_ties(self):
        class Chooser(nn.Module):
            def __init__(self, order: int) -> None:
                super().__init__()
                self.order = order

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = x * 3
                z = (y + 1) + x if self.order else y + (1 + x)
                return z.argmax(-1)

        x = (torch.arange(4096).reshape(64, 64) % 7 / 7 + torch.rand(64, 64) / 300).bfloat16()
        report = plumb.numeric_check(Chooser(0), Chooser(1), x, verdict="expected")
        row = next(row for row in report.rows if row.kind == "output")
        self.assertIn(row.opinion.verdict, ("tie", "same"), report)
        class Least(Chooser):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return (x * 4 + 1).argmin(-1)
        self.assertFalse(plumb.numeric_check(Chooser(0), Least(0), x, verdict="expected"))


class Command(unittest.TestCase):
    def setUp(self) -> None:
        self.block, self.x = planted.block(torch.bfloat16)

    def test_names_the_node(self):
        wrong = dict(planted.wrong_passes(torch.bfloat16))["another eps"]
        done = by_command(self.block, wrong(self.block), self.x, "--follow", "--format", "json")
        rows = json.loads(done.stdout)
        rows = rows["rows"] if isinstance(rows, dict) else rows
        nodes = {row["Name"]: row["Verdict"] for row in rows if row["Kind"] == "node"}
        self.assertEqual([name for name, word in nodes.items() if word == "fault"], ["layer_norm"])
        self.assertIn("inherited", nodes.values())
        self.assertIn("first node that is a fault: layer_norm", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_options(self):
        cheap = dict(planted.cheap_passes())["product in bfloat16"]
        block, x = planted.block(torch.float32)
        done = by_command(block, cheap(block), x)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("first with cheaper arithmetic", done.stdout)
        done = by_command(block, block, x, "--arithmetic", "bf15")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bf15", done.stderr)
        done = subprocess.run([str(BUILD / "plumb"), "numeric_check", "a", "b",
                               "--arithmetic", "tf32"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--arithmetic needs --verdict", done.stderr)


if __name__ == "__main__":
    unittest.main()
