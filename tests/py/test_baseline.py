"""--baseline and --write-baseline of blame and acc_check: what is accepted, and what fails."""

import json
import sys
from pathlib import Path
from typing import Any, Dict

sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy as np

from test_blame import BUILD, Case, plumb


class Baseline(Case):
    def setUp(self) -> None:
        super().setUp()
        self.file = self.folder / "known.json"

    def blame(self, *words: Any, status: int) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(plumb("blame", *words, "--format", "json", status=status).stdout)
        return found

    def scale_gradient(self, path: Path, factor: float) -> None:
        name = path.parent / "dump_tensor_data" / "Functional.linear.0.backward.output.1.npy"
        np.save(name, np.load(name) * np.float32(factor))

    def test_accepted(self) -> None:
        bad = self.make("bad", fault=1.001)
        self.blame(bad, status=1)
        done = plumb("blame", bad, "--write-baseline", self.file, status=0)
        self.assertIn("deviations accepted from now on: 1", done.stderr)
        kept = json.loads(self.file.read_text())
        entry, = kept["accepted"]
        self.assertEqual((entry["call"], entry["result"], entry["verdict"], kept["verdict_version"]),
                         ("Functional.layer_norm.0.forward", "output 0", "fault", 2))
        done = plumb("blame", bad, "--baseline", self.file, status=0)
        self.assertIn("1 fault, 1 accepted\n", done.stdout)
        self.assertIn("baseline: accepted: 1, new: 0, worse: 0, gone: 0\n", done.stdout)
        self.assertNotIn("plumb capsule", done.stdout)
        found = self.blame(bad, "--baseline", self.file, status=0)
        self.assertEqual(found["faults"][0]["baseline"], "accepted")
        self.assertEqual({k: found["baseline"][k] for k in ("accepted", "new", "worse", "gone", "changes")},
                         {"accepted": 1, "new": 0, "worse": 0, "gone": 0, "changes": []})

    def test_new_worse_gone(self) -> None:
        plumb("blame", self.make("bad", fault=1.001), "--write-baseline", self.file, status=0)
        same = self.make("same", fault=1.0012)  # not twice as bad
        plumb("blame", same, "--baseline", self.file, status=0)
        done = plumb("blame", self.make("worse", fault=1.003), "--baseline", self.file, status=1)
        self.assertIn("(worse than in the baseline)", " ".join(done.stdout.split()))
        self.assertIn("accepted: 0, new: 0, worse: 1, gone: 0\n  worse: Functional.layer_norm.0.forward, "
                      "output 0: fault, an excess of", done.stdout)
        self.scale_gradient(same, 1.01)
        done = plumb("blame", same, "--baseline", self.file, status=1)
        self.assertIn("accepted: 1, new: 1, worse: 0, gone: 0\n  new: Functional.linear.0.backward, "
                      "gradient 1: fault", done.stdout)
        done = plumb("blame", self.make("right"), "--baseline", self.file, status=0)
        self.assertIn("new: 0, worse: 0, gone: 1\n  gone: Functional.layer_norm.0.forward, output 0: "
                      "now same\n", done.stdout)
        gone = self.make("gone")
        (gone.parent / "dump_tensor_data" / "Functional.layer_norm.0.forward.input.0.npy").unlink()
        done = plumb("blame", gone, "--baseline", self.file, status=0)
        self.assertIn("gone: 1\n  gone: Functional.layer_norm.0.forward, output 0: now not judged\n", done.stdout)

    def test_another_pattern(self) -> None:
        zero = self.make("zero")
        name = zero.parent / "dump_tensor_data" / "Functional.layer_norm.0.forward.output.0.npy"
        value = np.load(name)
        value[:, 5] = 0
        np.save(name, value)
        plumb("blame", zero, "--write-baseline", self.file, status=0)
        found = self.blame(self.make("scaled", fault=1.001), "--baseline", self.file, status=1)
        change, = found["baseline"]["changes"]
        self.assertEqual(change["baseline"], "worse")
        self.assertIn("scaled by 1.001", change["why"])
        self.assertIn("; before: ", change["why"])

    def test_update(self) -> None:
        """Both options: judged by the old one, then the new one has all."""
        bad = self.make("bad", fault=1.001)
        plumb("blame", bad, "--write-baseline", self.file, status=0)
        self.scale_gradient(bad, 1.01)
        plumb("blame", bad, "--baseline", self.file, "--write-baseline", self.file, status=1)
        self.assertEqual(len(json.loads(self.file.read_text())["accepted"]), 2)
        plumb("blame", bad, "--baseline", self.file, status=0)
        text = self.file.read_text()
        for threads in (1, 3):
            plumb("blame", bad, "--write-baseline", self.file, "--threads", threads, status=0)
            self.assertEqual(self.file.read_text(), text)

    def test_refused(self) -> None:
        bad = self.make("bad", fault=1.001)
        plumb("blame", bad, "--write-baseline", self.file, status=0)
        for words, said in ((["--seed", 7], "seed 1234"), (["--arithmetic", "tf32"], "'tf32'")):
            done = plumb("blame", bad, "--baseline", self.file, *words, status=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")
        text = self.file.read_text()
        for other, said in ((text.replace('"verdict_version": 2', '"verdict_version": 99'), "version 99"),
                            (text[:-9], "at byte"), ("[1]", "no baseline"), ("", "known.json"),
                            (text.replace('"fault"', '"rounding"'), "only 'fault'"), ("[" * 5000, "at byte")):
            self.file.write_text(other)
            for command in (["blame", bad], ["acc_check", bad, "-d", "recorded", "-o", self.folder / "o"]):
                done = plumb(*command, "--baseline", self.file, status=2)
                self.assertIn(said, done.stderr)
        self.assertFalse((self.folder / "o").exists())  # refused before anything was run
        plumb("blame", bad, "--baseline", self.folder / "none", status=2)
        done = plumb("blame", bad, "--write-baseline", self.folder / "no" / "folder.json", status=2)
        self.assertIn("1 fault", done.stdout)  # what was found is not lost

    def test_nothing_judged(self) -> None:
        """No baseline of nothing: it would accept whatever comes."""
        path = self.make("empty")
        for file in (path.parent / "dump_tensor_data").iterdir():
            file.unlink()
        plumb("blame", path, "--write-baseline", self.file, status=2)
        self.assertFalse(self.file.exists())

    def check(self, dump: Path, *words: Any, status: int) -> str:
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        return plumb("acc_check", dump, "--no-torch", "-o", out, *words, status=status).stdout

    def test_acc_check(self) -> None:
        bad = self.make("bad", fault=1.001)
        for how in (["-d", "recorded"], ["-d", "recorded", "--verdict", "expected"]):
            self.check(bad, *how, status=1)
            self.check(bad, *how, "--write-baseline", self.file, status=0)
            said = self.check(bad, *how, "--baseline", self.file, status=0)
            self.assertIn("baseline: accepted: 1, new: 0, worse: 0, gone: 0\n", said)
        said = self.check(self.make("worse", fault=1.01), "-d", "recorded", "--baseline", self.file, status=1)
        self.assertIn("  worse: Functional.layer_norm.0.forward.output.0: fault", said)
        said = self.check(self.make("right"), "-d", "recorded", "--baseline", self.file, status=0)
        self.assertIn("gone: 1\n  gone: Functional.layer_norm.0.forward.output.0: now same\n", said)
        # The documented rules decide their part as before.
        self.check(bad, "-d", "recorded", "--verdict", "both", "--baseline", self.file, status=1)

    def test_wrong_options(self) -> None:
        path = self.make("right")
        for words, said in ((["--baseline", self.file], "--verdict"),
                            (["--write-baseline", self.file, "-d", "recorded", "-csv_path", "x.csv"], "-csv_path")):
            done = plumb("acc_check", path, "-o", self.folder / "o", *words, status=2)
            self.assertIn(said, done.stderr)

    def test_python(self) -> None:
        sys.path.insert(0, str(BUILD / "python"))
        import plumb as package
        bad = self.make("bad", fault=1.001).parent
        self.assertFalse(package.blame(bad, write_baseline=self.file))
        self.assertTrue(package.blame(bad, baseline=self.file))
        self.assertFalse(package.blame(self.make("worse", fault=1.01).parent, baseline=self.file))
        with self.assertRaises(package.Error):
            package.blame(bad, baseline=self.file, seed=5)


if __name__ == "__main__":
    import unittest
    unittest.main()
