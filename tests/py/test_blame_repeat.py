"""blame --repeat: what differs between repeats of the same program is its own noise. Kernels that add up
in another order each time are right; faults that all repeats share, and races, are not. And results
that are other tensors of the run."""

import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy as np

from test_blame import BUILD, Case, Dump, plumb

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def narrow(x: np.ndarray) -> np.ndarray:
    """float32 rounded to the 11 bits of float16's significand, whatever the exponent."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


def atomic_sum(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum over the first axis kept in few bits, in another order each time."""
    total = np.zeros(x.shape[1:], np.float32)
    for k in rng.permutation(len(x)):
        total = narrow(total + x[k])
    return total


class Repeat(Case):
    def record(self, name: str, seed: int, change: Change, drift: float = 0.0) -> Path:
        """One sum whose kernel adds up in any order, then `change` of its result. drift: of the input."""
        rng = np.random.default_rng(1)
        x = rng.standard_normal((96, 20, 24)).astype(np.float32)
        own = np.random.default_rng(seed)
        if drift:
            x = (x * (1 + drift * own.standard_normal(x.shape))).astype(np.float32)
        dump = Dump(self.folder / name)
        dump.forward("Torch.sum.0", [x, 0], [change(atomic_sum(x, own), own)])
        dump.save()
        return dump.folder

    def runs(self, change: Change, n: int = 3, drift: float = 0.0) -> List[Path]:
        return [self.record(f"run{len(list(self.folder.iterdir()))}", 100 + k, change, drift) for k in range(n)]

    def blame(self, runs: List[Path], status: int, *words: Any) -> Dict[str, Any]:
        repeats = ["--repeat", *runs[1:]] if len(runs) > 1 else []
        done = plumb("blame", runs[0], *words, "--format", "json", *repeats, status=status)
        found: Dict[str, Any] = json.loads(done.stdout)
        return found

    def test_right_kernel(self) -> None:
        """A sum in few bits, in any order: cheaper arithmetic or worse alone, its own noise beside repeats."""
        for drift in (0.0, 1e-3):
            for n in (2, 3, 5):
                runs = self.runs(lambda y, rng: y, n, drift)
                alone = self.blame(runs[:1], status=0)
                self.assertNotEqual(alone["suspicious"], [])
                found = self.blame(runs, status=0)
                self.assertEqual(found["verdicts"]["rounding"], 1, (drift, n, found["suspicious"]))
                row, = found["unsteady"]
                self.assertIn("differs between repeats of the same program by as much", row["why"])
        text = plumb("blame", runs[0], "--repeat", *runs[1:], status=0).stdout
        self.assertIn("would be worse than rounding, and differs between repeats of the program as much", text)

    def test_shared_faults(self) -> None:
        """What is wrong in the same way in all repeats stays a fault, however noisy the kernel is."""
        def tile(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            y[:8, :8] = 0
            return y

        def element(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            y[3, 5] += 5
            return y

        faults: Dict[str, Change] = {
            "scale": lambda y, rng: y * np.float32(1.02), "offset": lambda y, rng: y + np.float32(0.5),
            "tile": tile, "element": element, "sign": lambda y, rng: -y,
            "roll": lambda y, rng: np.roll(y, 1, axis=1)}
        for name, change in faults.items():
            for drift in (0.0, 1e-3):
                for n in (2, 4):
                    with self.subTest(name, drift=drift, n=n):
                        found = self.blame(self.runs(change, n, drift), status=1)
                        self.assertEqual(found["unsteady"], [])
                        self.assertIn("the same in the repeat", found["faults"][0]["why"])

    def test_flipping_elements(self) -> None:
        """An element that flips does not excuse another one that does not."""
        def flips(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            y[rng.integers(20), rng.integers(24)] *= np.float32(1.02)
            y[7, 7] += 4
            return y

        row, = self.blame(self.runs(flips, 4), status=1)["faults"]
        self.assertEqual(row["at"], "[7, 7]")

    def test_race(self) -> None:
        """Garbage in other places each time is no rounding, though no two repeats agree."""
        def race(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            y.reshape(-1)[rng.choice(y.size, y.size // 3, replace=False)] = 1e4 * rng.standard_normal()
            return y

        for n in (2, 5):
            row, = self.blame(self.runs(race, n), status=1)["faults"]
            self.assertIn("not reproducible", row["why"])

    def test_no_partner(self) -> None:
        """A repeat without the call, or with another shape of it, excuses nothing."""
        runs = self.runs(lambda y, rng: y + 1, 1)
        other = Dump(self.folder / "other")
        other.forward("Torch.sum.0", [self.numbers(4, 3), 0], [self.numbers(3)])
        other.forward("Torch.sum.1", [self.numbers(4, 3), 0], [self.numbers(3)])
        other.save()
        self.assertEqual(len(self.blame([*runs, other.folder], status=1)["faults"]), 1)
        done = plumb("blame", runs[0], "--repeat", self.folder / "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing", done.stderr)

    def test_modules(self) -> None:
        """Modules are judged by their jump: one that differs between repeats by as much does not jump."""
        def record(name: str, seed: int, noise: float, factor: float = 1.0) -> Path:
            rng, own = np.random.default_rng(3), np.random.default_rng(seed)
            x = rng.standard_normal((16, 32)).astype(np.float32)
            dump = Dump(self.folder / name)
            for k in range(3):
                y = np.tanh(x) * (1 + noise * own.standard_normal(x.shape)) * (factor if k == 1 else 1)
                dump.forward(f"Module.layer{k}.Odd", [x], [y.astype(np.float32)])
                x = y.astype(np.float32)
            dump.save()
            return dump.folder

        golden = record("golden", 0, 0)
        noisy = [record(f"noisy{k}", 10 + k, 5e-6) for k in range(3)]
        self.assertNotEqual(self.blame(noisy[:1], 1, golden)["faults"], [])
        found = self.blame(noisy, 0, golden)
        self.assertEqual(found["faults"], [])
        wrong = [record(f"wrong{k}", 10 + k, 5e-6, 1.01) for k in range(3)]
        row, = self.blame(wrong, 1, golden)["faults"]
        self.assertEqual(row["call"], "Module.layer1.Odd.forward")
        steady = [record(f"steady{k}", 10 + k, 0, 1.01) for k in range(3)]
        row, = self.blame(steady, 1, golden)["faults"]
        self.assertEqual(row["call"], "Module.layer1.Odd.forward")

    def test_steps(self) -> None:
        """Steps of one run are repeats of each other, whatever their numbers; a run is none of itself."""
        for step, path in enumerate(self.runs(lambda y, rng: y, 3, 1e-3)):
            where = self.folder / "run" / f"step{step}" / "rank0"
            where.parent.mkdir(parents=True)
            path.rename(where)
        run = self.folder / "run"
        self.assertEqual(len(self.blame([run / "step0", run / "step1", run / "step2"], 0)["unsteady"]), 1)
        found = self.blame([run, run], 0)
        self.assertEqual((len(found["unsteady"]), len(found["suspicious"])), (0, 3))

    def test_other_inputs(self) -> None:
        """With another batch a wrong formula errs otherwise, which is no noise of the program."""
        runs = []
        for k in range(3):
            x = np.random.default_rng(k).standard_normal((40, 24)).astype(np.float32)
            w = np.random.default_rng(9).standard_normal((32, 24)).astype(np.float32)
            dump = Dump(self.folder / f"batch{k}")
            dump.forward("Functional.linear.0", [x, w], [(x @ w.T * 1.02).astype(np.float32)])
            dump.save()
            runs.append(dump.folder)
        for n in (2, 3):
            row, = self.blame(runs[:n], status=1)["faults"]
            self.assertIn("the repeats have other inputs", row["why"])

    def test_not_finite(self) -> None:
        """NaN in a repeat excuses nothing, and NaN in the run is a fault whatever repeats have."""
        def nan(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            y[2, 3] = np.nan
            return y

        bad, right = self.runs(nan, 2), self.runs(lambda y, rng: y, 2)
        for runs in (bad, [bad[0], *right]):
            self.assertIn("NaN", self.blame(runs, 1)["faults"][0]["why"])
        wrong = self.runs(lambda y, rng: -y, 1)
        self.assertEqual(len(self.blame([*wrong, bad[0]], 1)["faults"]), 1)

    def test_python(self) -> None:
        sys.path.insert(0, str(BUILD / "python"))
        import plumb as package
        runs = self.runs(lambda y, rng: y, 3)
        self.assertEqual(len(package.blame(runs[0], repeat=runs[1:])["unsteady"]), 1)
        self.assertEqual(len(package.blame(runs[0], repeat=str(runs[1]))["unsteady"]), 1)
        with self.assertRaises(package.Error):
            package.blame(runs[0], repeat=[self.folder / "nothing"])


class Stale(Case):
    def blame(self, folder: Path, status: int) -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = json.loads(
            plumb("blame", folder, "--format", "json", status=status).stdout)["faults"]
        return found

    def test_previous_call(self) -> None:
        """Each kind of staleness is named by where the tensor was first; consumers are no explanation."""
        dump = Dump(self.folder / "calls")
        w = self.numbers(32, 32)
        x, z = self.numbers(24, 32), self.numbers(24, 32)
        y = x @ w.T
        dump.forward("Functional.linear.0", [x, w], [y])
        dump.forward("Functional.relu.0", [y], [np.maximum(y, 0)])
        dump.forward("Functional.linear.1", [z, w], [y])       # the previous call's
        dump.forward("Functional.gelu.0", [y], [y])            # nothing was done
        dump.forward("Functional.softmax.0", [z, -1], [np.maximum(y, 0)])  # another operator's
        dump.forward("Functional.tanh.0", [z], [np.tanh(z) * np.float32(1.01)])  # just wrong
        dump.forward("Functional.sigmoid.0", [np.tanh(z) * np.float32(1.01)], [np.zeros_like(z)])
        dump.save()
        equals = {row["call"]: row["equals"] for row in self.blame(dump.folder, 1)}
        self.assertEqual(equals, {"Functional.linear.1.forward": "output 0 of Functional.linear.0.forward",
                                  "Functional.gelu.0.forward": "its input 0",
                                  "Functional.softmax.0.forward": "output 0 of Functional.relu.0.forward",
                                  "Functional.tanh.0.forward": "", "Functional.sigmoid.0.forward": ""})
        text = plumb("blame", dump.folder, status=1).stdout
        self.assertIn("equal to output 0 of Functional.linear.0.forward: stale;", text)
        self.assertIn("equal to its input 0: nothing was computed;", text)

    def test_previous_step(self) -> None:
        w = self.numbers(32, 32)
        before = None
        for step in range(3):
            dump = Dump(self.folder / "run" / f"step{step}" / "rank0")
            x = self.numbers(24, 32)
            y = x @ w.T
            dump.forward("Functional.linear.0", [x, w], [before if step == 2 else y])
            before = y
            dump.save()
        row, = self.blame(self.folder / "run", 1)
        self.assertEqual((row["step"], row["equals"]),
                         (2, "output 0 of Functional.linear.0.forward in step 1"))

    def test_rounded(self) -> None:
        """Another tensor in another type is the same tensor; tiny and constant ones are not looked at."""
        dump = Dump(self.folder / "types")
        x, z = self.numbers(24, 32), self.numbers(24, 32)
        y = np.tanh(x)
        dump.forward("Functional.tanh.0", [x], [y])
        dump.forward("Functional.tanh.1", [z.astype(np.float16)], [y.astype(np.float16)])
        dump.forward("Functional.tanh.2", [z[0, :6]], [y[0, :6]])
        dump.forward("Functional.relu.0", [y[0, :6]], [y[0, :6] + 1])
        dump.forward("Functional.relu.1", [-np.abs(z)], [np.ones_like(z)])
        dump.forward("Functional.tanh.3", [np.ones_like(z)], [np.ones_like(z)])
        dump.save()
        equals = {row["call"]: row["equals"] for row in self.blame(dump.folder, 1)}
        self.assertEqual(equals.pop("Functional.tanh.1.forward"), "output 0 of Functional.tanh.0.forward")
        self.assertEqual(set(equals.values()), {""})
        self.assertEqual(len(equals), 4)


if __name__ == "__main__":
    import unittest
    unittest.main()
