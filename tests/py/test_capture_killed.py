"""What is left of a capture when its program is killed, or its disk is full."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List

BUILD = Path(os.environ["PLUMB_BUILD"]).resolve()

import h5py  # noqa: E402

H5 = "dump/globalrank-0_localrank-0.h5"
START = """
import os, resource, signal, sys, time
import torch
from plumb import PrecisionDebugger
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
x = torch.ones(16, 64)
def say(word):
    print(word, flush=True)
"""
STEPS = """
debugger = PrecisionDebugger(dump_path="dump", hook_name="dump", model=model)
for step in range(2):
    debugger.start()
    model(x)
    debugger.stop()
    debugger.step()
debugger.start()
"""
PER_STEP = 8 * 4  # weight, bias, input, output


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def start(self, script: str) -> "subprocess.Popen[str]":
        env = {**os.environ, "PYTHONPATH": str(BUILD / "python"),
               "PLUMB_H5": str(BUILD / "plumb-h5")}
        process = subprocess.Popen([sys.executable, "-c", START + script],
                                   cwd=self.root, env=env, text=True, start_new_session=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def heard(self, process: "subprocess.Popen[str]", word: str) -> None:
        line = process.stdout.readline()
        self.assertEqual(line.strip(), word, line or process.stderr.read())

    def steps(self) -> Dict[str, List[str]]:
        """step -> names, all of which can be read."""
        with h5py.File(self.root / H5, "r") as file:
            found = {}
            for step, group in file.items():
                for name in group:
                    self.assertEqual(group[name].attrs["dtype"], "torch.float32")
                    group[name][()]
                found[step] = sorted(group)
            return found

    def wait_for(self, step: str, count: int) -> Dict[str, List[str]]:
        """The helper ends a moment after its program."""
        end = time.monotonic() + 20
        while True:
            try:
                found = self.steps()
            except (OSError, RuntimeError, KeyError):  # just being closed
                found = {}
            if len(found.get(step, [])) >= count or time.monotonic() > end:
                return found
            time.sleep(0.05)


class Modules(Case):
    def check_first_two(self, found: Dict[str, List[str]]) -> None:
        for step in ("1", "2"):
            self.assertEqual(len(found[step]), PER_STEP)

    def test_there_after_each_stop(self) -> None:
        process = self.start("""
debugger = PrecisionDebugger(dump_path="dump", hook_name="dump", model=model)
for step in range(3):
    debugger.start()
    model(x)
    debugger.stop()
    say("stopped")
    sys.stdin.readline()
    debugger.step()
""")
        for step in range(1, 4):
            self.heard(process, "stopped")
            found = self.steps()
            self.assertEqual({name: len(tensors) for name, tensors in found.items()},
                             {str(i): PER_STEP for i in range(1, step + 1)})
            process.stdin.write("on\n")
            process.stdin.flush()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(sorted(path.name for path in (self.root / "dump").iterdir()),
                         ["globalrank-0_localrank-0.h5", "globalrank-0_localrank-0_modules.json",
                          "globalrank-0_localrank-0_summary.csv"])

    def test_the_program_is_killed(self) -> None:
        for number in (signal.SIGKILL, signal.SIGTERM, None):
            with self.subTest(signal=number):
                leave = "os._exit(1)" if number is None else "time.sleep(60)"
                process = self.start(STEPS + f"model(x)\ndebugger._sink.writer.flush()\n"
                                             f"say('now')\n{leave}\n")
                self.heard(process, "now")
                if number is not None:
                    os.kill(process.pid, number)
                process.wait()
                found = self.wait_for("3", PER_STEP)
                self.check_first_two(found)
                self.assertEqual(len(found["3"]), PER_STEP)

    def test_everything_is_killed(self) -> None:
        """The helper too: the file is as it was after the last step, at least."""
        process = self.start(STEPS + """

say("now")
while True:
    with torch.no_grad():
        model(x)
""")
        self.heard(process, "now")
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.check_first_two(self.steps())

    def test_a_child_that_lives_on(self) -> None:
        """It holds the way to the helper open."""
        process = self.start(STEPS + """
child = os.fork()
if not child:
    time.sleep(60)
    os._exit(0)
model(x)
debugger._sink.writer.flush()
say(child)
time.sleep(60)
""")
        child = int(process.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        process.kill()
        process.wait()
        self.assertEqual(len(self.wait_for("3", PER_STEP)["3"]), PER_STEP)

    def test_a_full_disk(self) -> None:
        for room in (300_000, 520_000):
            process = self.start(f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n" +
                                 STEPS + "model(x)\ndebugger.stop()\n")
            _, told = process.communicate()
            self.assertEqual(process.returncode, 0, told)
            self.assertIn("could not be recorded", told)
            log = (self.root / "dump/dump_error_info.log").read_text()
            self.assertIn("File too large", log)
            self.assertRegex(log, r"h5: not written after that: [0-9]+")
            (self.root / "dump/dump_error_info.log").unlink()
            found = self.steps()
            self.assertEqual(len(found["1"]), PER_STEP, room)
            self.assertLess(sum(map(len, found.values())), 3 * PER_STEP)
            self.assertGreater(sum(map(len, found.values())), (room - 80_000) // 220_000 * PER_STEP)
            # What is said to be there is: calls with their inputs and outputs.
            calls = {step: sum("output" in name for name in names) for step, names in found.items()}
            there = [count for count in calls.values() if count]
            self.assertIn(f"{len(there)} step{'s'[:len(there) > 1]} with {sum(there)} calls in dump; ", told)

    def test_nothing_is_left_of_a_conversion(self) -> None:
        """Where nobody asked for a file that is whole in between, there is none."""
        process = self.start("""
from plumb import _core
from plumb.tensors import view
writer = _core.Writer()
file = writer.open_h5("whole.h5")
writer.add_h5(file, "x", -1, view(x))
writer.flush()
say("now")
time.sleep(60)
""")
        self.heard(process, "now")
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while list(self.root.iterdir()) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(list(self.root.iterdir()), [])


class Tensors(Case):
    def leaves(self, value: Any) -> List[str]:
        if isinstance(value, dict):
            own = [value["data_name"]] if isinstance(value.get("data_name"), str) else []
            return own + [name for item in value.values() for name in self.leaves(item)]
        if isinstance(value, list):
            return [name for item in value for name in self.leaves(item)]
        return []

    def test_dump_json_names_what_is_there(self) -> None:
        for settings in ('task="tensor", level="L1"',
                         'task="statistics", level="mix", tensor_list=["exp"]'):
            process = self.start(f"""
debugger = PrecisionDebugger(dump_path="dump", {settings})
big = torch.ones(1 << 18)
debugger.start(model)
for i in range(100000):
    torch.exp(big)
    if i == 40:
        say("now")
""")
            self.heard(process, "now")
            process.kill()
            process.wait()
            path = next(self.root.rglob("dump.json"))
            data = json.loads(path.read_text())["data"]
            names = self.leaves(data)
            self.assertGreater(len(names), 4)
            missing = [name for name in names
                       if not (path.parent / "dump_tensor_data" / name).exists()]
            self.assertEqual(missing, [])
            path.unlink()

    def test_operators_too(self) -> None:
        process = self.start("""
import plumb
plumb.begin_dump(X_DUMP_NUM=1000)
big = torch.ones(1 << 18)
for i in range(100000):
    torch.exp(big)
    if i == 20:
        say("now")
""")
        self.heard(process, "now")
        process.kill()
        process.wait()
        path = next(self.root.rglob("dump.json"))
        names = self.leaves(json.loads(path.read_text()))
        self.assertGreater(len(names), 4)
        self.assertEqual([name for name in names if not (path.parent / "dump" / name).exists()], [])

    def test_no_room(self) -> None:
        """An entry that has no room is missing, and the rest is whole JSON."""
        process = self.start("""
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
debugger = PrecisionDebugger(dump_path="dump", task="tensor", level="L1")
debugger.start()
for i in range(40):
    torch.exp(x[0])
debugger.stop()
""")
        _, told = process.communicate()
        self.assertEqual(process.returncode, 0, told)
        path = next(self.root.rglob("dump.json"))
        data = json.loads(path.read_text())["data"]
        self.assertEqual(list(data), [f"Torch.exp.{i}.forward" for i in range(len(data))])
        self.assertGreater(len(data), 2)
        self.assertLess(len(data), 40)
        log = (path.parent / "dump_error_info.log").read_text()
        self.assertIn("\nTorch.exp.30.forward: File too large\n", log)
        self.assertIn(f"1 step with {len(data)} calls in dump; ", told)

    def test_steps_that_have_no_room(self) -> None:
        """Neither counted nor said to be recorded, and the steps behind them are none the worse."""
        process = self.start("""
debugger = PrecisionDebugger(dump_path="dump", task="tensor", level="L1", step=[0, 1, 2])
for i in range(3):
    most = 600 if i == 1 else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    debugger.start()
    torch.exp(x[0])
    debugger.stop()
    debugger.step()
""")
        _, told = process.communicate()
        self.assertEqual(process.returncode, 0, told)
        self.assertIn("2 steps with 2 calls in dump; ", told)
        self.assertIn("step 1 was asked for and never recorded", told)


if __name__ == "__main__":
    unittest.main()
