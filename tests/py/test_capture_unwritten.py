"""Tensors that nobody has written to: marked by the capture, and not judged by anybody."""

import json
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict

from capture_case import PLUMB, CaptureTest

import plumb
import torch


class Unwritten(CaptureTest):
    def record(self, work: Any, name: str = "dump", **settings: Any) -> Path:
        folder = self.root / name
        debugger = plumb.PrecisionDebugger(dump_path=str(folder), task="tensor", level="L1", **settings)
        debugger.start()
        work()
        debugger.stop()
        debugger.step()
        return next(folder.glob("step0/*"))

    def data(self, folder: Path) -> Dict[str, Any]:
        entries: Dict[str, Any] = json.loads((folder / "dump.json").read_text())["data"]
        return entries

    @staticmethod
    def marked(leaf: Dict[str, Any]) -> bool:
        return bool(leaf.get("uninitialised"))

    def test_inputs_are_marked_until_written(self) -> None:
        def work() -> None:
            x = torch.empty_like(torch.randn(4, 4))
            torch.exp(x)                # not written
            torch.exp(x.view(16)[3:])   # nor is a view
            x[:] = 1.0
            torch.exp(x)                # written
            y = torch.empty(5)
            y.numpy()[:] = 3.25         # past the counter of writes
            torch.exp(y)
            z = torch.ones(3).new_empty(3)
            torch.exp(z)
            torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.empty(2, 2))

        data = self.data(self.record(work))
        found = [self.marked(data[f"Torch.exp.{n}.forward"]["input_args"][0]) for n in range(5)]
        self.assertEqual(found, [True, True, False, False, True])
        # What is computed from it is as good.
        self.assertTrue(self.marked(data["Torch.exp.0.forward"]["output"][0]))
        self.assertFalse(self.marked(data["Torch.exp.2.forward"]["output"][0]))

    def test_results_of_garbage_stay_garbage(self) -> None:
        def work() -> None:
            x = torch.empty(4)
            y = torch.exp(x)
            torch.sin(y)           # garbage
            torch.ones_like(y)
            x.add_(1)
            torch.sin(x)           # still
            x.copy_(torch.ones(4))
            torch.sin(x)           # no more

        data = self.data(self.record(work))
        found = [self.marked(data[f"Torch.sin.{n}.forward"]["input_args"][0]) for n in range(3)]
        self.assertEqual(found, [True, True, False])

    def test_memory_that_is_used_again_is_not_marked(self) -> None:
        def work() -> None:
            for _ in range(50):
                torch.empty(64)         # freed at once
                torch.exp(torch.ones(64).cos())

        data = self.data(self.record(work))
        self.assertFalse(any(self.marked(entry["input_args"][0]) for name, entry in data.items()
                             if name.startswith("Torch.exp")))

    def test_nobody_judges_it(self) -> None:
        def work(seed: float) -> Any:
            def run() -> None:
                a = torch.full((8,), seed)  # so that the memory holds something else each time
                del a
                x = torch.empty_like(torch.ones(8))
                torch.exp(x)
                order = torch.empty_like(torch.arange(8))
                order[torch.arange(7, -1, -1)] = torch.arange(8)
                torch.mul(order, 2)
                torch.exp(torch.ones(8))
            return run

        first = self.record(work(1.0), "a")
        second = self.record(work(7e20), "b")
        found = plumb.blame(first, second)
        self.assertTrue(found, str(found))
        reasons = {item["what"]: item["count"] for item in found["not_judged"]}
        self.assertEqual(reasons["uninitialised: input 0"], 2, reasons)
        report = plumb.compare(first, second)
        self.assertTrue(report, report.closing)
        self.assertIn("not judged: uninitialised", report.closing)
        self.assertEqual(report.counts["unjudged"], 3, report.closing)  # exp: in and out; order
        opinions = plumb.compare(first, second, verdict="expected")
        self.assertTrue(opinions, opinions.closing)
        done = subprocess.run([str(PLUMB), "acc_check", "-api_info", str(first / "dump.json"), "-o", str(self.root)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        details = next(self.root.glob("accuracy_checking_details*.csv")).read_text()
        self.assertEqual(details.count("not judged: uninitialised: input 0"), 2, details)

    def test_dumps_of_others_are_known_by_their_names(self) -> None:
        def leaf(value: float) -> Dict[str, Any]:
            return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": value, "Min": value,
                    "Mean": value, "Norm": value, "requires_grad": False}

        folders = []
        for name, value in (("a", 1.0), ("b", 5e9)):
            folder = self.root / name
            folder.mkdir()
            (folder / "dump.json").write_text(json.dumps({
                "task": "statistics", "level": "L1", "framework": "pytorch", "data": {
                    "Tensor.new_empty.0.forward": {"input_args": [leaf(1.0)], "input_kwargs": {},
                                                   "output": [leaf(value)]},
                    "Torch.exp.0.forward": {"input_args": [leaf(1.0)], "input_kwargs": {},
                                            "output": [leaf(2.7)]}}}))
            folders.append(folder)
        report = plumb.compare(*folders)
        self.assertTrue(report, report.closing)
        self.assertIn("1 not judged: uninitialised", report.closing)


if __name__ == "__main__":
    unittest.main()
