"""The Writer of the C extension: what it saves and when, no room, forks, the end of the program."""

import os
import tempfile
import unittest

from python_case import Case, run_script

import h5py
import numpy as np
import torch

import plumb
from plumb import _core
from plumb.tensors import view


class TestWriter(Case):
    def test_saves_what_was_there(self) -> None:
        writer = _core.Writer(1 << 16)
        x = torch.zeros(1000)
        for i in range(300):
            x.fill_(i)
            writer.save(self.path(f"{i}.pt"), view(x))
        big = torch.randn(400, 300)
        writer.save(self.path("big.npy"), view(big.t()))
        writer.flush()
        self.assertEqual(writer.errors(), [])
        for i in (0, 7, 299):
            self.assertTrue(torch.equal(torch.load(self.path(f"{i}.pt")),
                                        torch.full((1000,), float(i))))
        self.assertTrue(np.array_equal(np.load(self.path("big.npy")), big.t().numpy()))
        writer.close()
        writer.close()
        writer.save(self.path("late.pt"), view(x))
        self.assertTrue(os.path.exists(self.path("late.pt")))

    def test_the_last_of_a_name_wins(self) -> None:
        for budget in (0, 100_000, 1 << 20):
            writer = _core.Writer(budget)
            for i in range(50):
                size = 100_000 if i % 3 else 10
                writer.save(self.path("same.npy"), view(torch.full((size,), float(i))))
            writer.flush()
            self.assertEqual(np.load(self.path("same.npy"))[0], 49)

    def test_h5(self) -> None:
        writer = _core.Writer()
        first = writer.open_h5(self.path("a.h5"), 3, local_rank=1)
        second = writer.open_h5(self.path("b.h5"))
        self.assertNotEqual(first, second)
        x = torch.randn(6, 7)
        for i in range(20):
            writer.add_h5(first, f"layer.{i}", i % 2, view(x.t()))
            writer.add_h5(second, f"n{i}", -1, view(x.bfloat16()))
        refused = ["layer.0", "layer.0/x", "", "a//b", "/a", "a/", "./a"]
        for name in refused:  # none of these may cost the file
            writer.add_h5(first, name, 0, view(x))
        writer.add_h5(first, "group/x", 0, view(x))
        writer.add_h5(first, "group", 0, view(x))
        writer.add_h5(99, "lost", 0, view(x))
        writer.close_h5(first)
        writer.add_h5(first, "late", 0, view(x))
        writer.close_h5(12345)
        writer.close()
        errors = dict(writer.errors())
        self.assertEqual(sorted(errors), sorted(["group", "late", "lost", *refused]))
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual((file.attrs["globalrank"], file.attrs["localrank"]), (3, 1))
            self.assertEqual(sorted(file), ["0", "1"])
            self.assertTrue(np.array_equal(file["1/layer.3"][()], x.t().numpy()))
        with h5py.File(self.path("b.h5")) as file:
            self.assertEqual(len(file), 20)

    def test_errors_are_collected(self) -> None:
        writer = _core.Writer()
        one = view(torch.ones(1))
        writer.save(self.path("none/x.pt"), one)
        writer.save(self.path("x.doc"), one)
        number = writer.open_h5(self.path("none/x.h5"))
        writer.add_h5(number, "x", 0, one)
        whole = writer.open_h5(self.path("x.h5"))
        writer.flush()
        self.assertEqual([writer.broken_h5(file) for file in (number, whole, 99)], [True, False, False])
        writer.close_h5(number)
        writer.flush()
        errors = writer.errors()
        self.assertEqual([os.path.basename(name) for name, _ in errors],
                         ["x.pt", "x.doc", "x.h5", "x.h5"])
        self.assertEqual(errors[-1][1], "not written after that: 1")
        self.assertIn("No such file", errors[0][1])
        self.assertEqual(writer.errors(), [])
        for i in range(1500):
            writer.save(self.path(f"none/{i}.pt"), one)
        writer.flush()
        errors = writer.errors()
        self.assertEqual(len(errors), 1000)
        self.assertEqual(errors[-1], ("...", "501 more could not be written"))

    def test_hostile_arguments(self) -> None:
        for args in ((None,), ("5",), (-1,), (2**70,), (1, 2)):
            with self.assertRaises((TypeError, plumb.Error)):
                _core.Writer(*args)
        writer = _core.Writer()
        one = view(torch.ones(1))
        for call in (lambda: writer.save(None, one), lambda: writer.save("x.pt", None),
                     lambda: writer.save("x.pt", torch.ones(1)), lambda: writer.save("a\0.pt", one),
                     lambda: writer.save("x.pt"), lambda: writer.add_h5("0", "x", 0, one),
                     lambda: writer.add_h5(0, None, 0, one),
                     lambda: writer.add_h5(0, "x", 2**70, one),
                     lambda: writer.close_h5(None), lambda: writer.open_h5(5),
                     lambda: writer.open_h5("x.h5", "0")):
            with self.assertRaises((TypeError, OverflowError, plumb.Error)):
                call()
        writer.close()
        self.assertEqual(writer.errors(), [])

    def test_full_disk(self) -> None:
        done = run_script("""
import resource, sys, torch
from plumb import _core
from plumb.tensors import view
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
writer = _core.Writer()
number = writer.open_h5(sys.argv[1] + "/x.h5")
writer.add_h5(number, "a", 0, view(torch.ones(100000)))
writer.save(sys.argv[1] + "/x.pt", view(torch.ones(100000)))
writer.save(sys.argv[1] + "/x.npy", view(torch.ones(100000)))
writer.save(sys.argv[1] + "/small.npy", view(torch.ones(100)))
writer.close()
for name, message in writer.errors():
    print(name.rsplit("/")[-1], message)
""", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines())
        self.assertEqual([line.split()[0] for line in lines[-2:]], ["x.npy", "x.pt"])
        self.assertIn(lines[0].split()[0], ("a", "x.h5"))  # told by the send or by the close
        self.assertEqual(len(lines), 3)
        self.assertIn("File too large", lines[1])
        self.assertEqual(os.listdir(self.folder), ["small.npy"])

    def test_budget_bounds_memory(self) -> None:
        done = run_script("""
import resource, sys, torch
from plumb import _core
from plumb.tensors import view
x = torch.ones(1 << 20)
view(x).save(sys.argv[1] + "/first.npy")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
writer = _core.Writer(16 << 20)
for i in range(60):
    writer.save(f"{sys.argv[1]}/{i % 4}.npy", view(x))
writer.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(writer.errors()))
""", self.folder)
        grown, errors = map(int, done.stdout.split())
        self.assertEqual(errors, 0)
        self.assertLess(grown, 26 << 10)  # KiB

    def test_fork_while_writing(self) -> None:
        done = run_script("""
import os, sys, torch
from plumb import _core
torch.set_num_threads(1)  # OpenMP has no threads in the child of a fork, and waits for them
from plumb.tensors import view
folder = sys.argv[1]
writer = _core.Writer(64 << 20)
x = torch.ones(200000)
number = writer.open_h5(folder + "/parent.h5")
children = []
for i in range(40):
    writer.save(f"{folder}/parent{i}.npy", view(x))
    writer.add_h5(number, f"x{i}", 0, view(x))
    if i % 8 == 7:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                writer.save(f"{folder}/child{i}.npy", view(x * i))
                assert os.path.exists(f"{folder}/child{i}.npy")
                writer.add_h5(number, "no", 0, view(x))
                own = writer.open_h5(f"{folder}/child{i}.h5")
                writer.add_h5(own, "yes", 0, view(x))
                writer.flush()
                writer.close()
                assert os.path.exists(f"{folder}/child{i}.h5")
                errors = writer.errors()
                assert len(errors) == 1 and "forked" in errors[0][1], errors
                status = 0
            finally:
                os._exit(status)
        children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
if os.fork() == 0:
    sys.exit(0)  # an ordinary end of a child that never used it
os.wait()
writer.close()
print(writer.errors(), len(os.listdir(folder)))
""", self.folder)
        self.assertEqual(done.stdout, "[0, 0, 0, 0, 0]\n[] 51\n", done.stderr)
        with h5py.File(self.path("parent.h5")) as file:
            self.assertEqual(len(file["0"]), 40)

    def test_end_of_the_program(self) -> None:
        """What waits is written whether the Writer was closed, dropped, or kept to the end."""
        for ending in ("del writer", "sys.keep = writer", "import builtins; builtins.keep = writer",
                       "sys.keep = writer; sys.exit(3)", "sys.keep = writer; raise ValueError"):
            with self.subTest(ending=ending), tempfile.TemporaryDirectory() as folder:
                done = run_script("""
import sys, torch
from plumb import _core
from plumb.tensors import view
writer = _core.Writer()
number = writer.open_h5(sys.argv[1] + "/x.h5")
for i in range(50):
    writer.save(f"{sys.argv[1]}/{i}.npy", view(torch.ones(20000)))
    writer.add_h5(number, f"x{i}", 0, view(torch.ones(2000)))
""" + ending, folder, timeout=600)
                self.assertIn(done.returncode, (0, 1, 3), done.stderr)
                self.assertEqual(len(os.listdir(folder)), 51)


if __name__ == "__main__":
    unittest.main()
