"""Capsules: what is in one, that it replays everywhere, and that strangers' dumps cannot abuse it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

sys.path.insert(0, str(Path(__file__).resolve().parent))
import numpy as np

from test_blame import Case, Dump, plumb


class Capsule(Case):
    def take(self, dump: Path, call: str, name: str = "capsule", status: int = 0) -> Path:
        plumb("capsule", dump, call, "-o", self.folder / name, status=status)
        return self.folder / name

    def read(self, folder: Path) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads((folder / "capsule.json").read_text())
        return found

    def test_contents(self) -> None:
        folder = self.take(self.make("bad", fault=1.001), "Functional.layer_norm.0")
        facts = self.read(folder)
        self.assertEqual((facts["capsule"], facts["call"], facts["verdict_version"], facts["source"]),
                         (1, "Functional.layer_norm.0", 2, "File model.py, line 2"))
        self.assertEqual(facts["forward"]["verdict"], "fault")
        self.assertIn("scaled by 1.001", facts["forward"]["pattern"])
        self.assertEqual(facts["tensors"], [{"tensor": "input", "dtype": "torch.float32", "shape": [24, 48]},
                                            {"tensor": "output", "dtype": "torch.float32", "shape": [24, 48]}])
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["capsule.json", "dump.json", "dump_tensor_data", "expected", "stack.json"])
        wanted = np.load(folder / "expected" / "forward.output.0.npy")
        noise = np.load(folder / "expected" / "forward.output.0.noise.npy")
        got = np.load(folder / "dump_tensor_data" / "Functional.layer_norm.0.forward.output.0.npy")
        self.assertEqual((wanted.dtype, wanted.shape, noise.shape), (np.float64, (24, 48), (24, 48)))
        self.assertTrue(np.all(noise > 0) and np.all(noise < 1e-5))
        np.testing.assert_allclose(got / wanted, 1.001, rtol=1e-5)
        text = "".join(p.read_text(errors="replace") for p in folder.rglob("*.json"))
        for name in ("PATH", "HOME"):
            self.assertNotIn(os.environ.get(name, "\0"), text)

    def test_gradients(self) -> None:
        folder = self.take(self.make("right"), "Functional.linear.0")
        self.assertEqual(self.read(folder)["backward"]["verdict"], "rounding")
        names = {p.name for p in (folder / "expected").iterdir()}
        self.assertEqual({n for n in names if "noise" not in n},
                         {"forward.output.0.npy", *(f"backward.output.{k}.npy" for k in range(3))})
        self.assertEqual(len(names), 8)

    def test_round_trip(self) -> None:
        """A capsule says what the dump said, moved or not, and so does a capsule of a capsule."""
        dump = self.make("bad", fault=1.001)
        whole = json.loads(plumb("blame", dump, "--format", "json", status=1).stdout)["faults"][0]
        folder = self.take(dump, "Functional.layer_norm.0")
        shutil.rmtree(dump.parent)
        moved = self.folder / "else where"
        folder.rename(moved)
        again = self.take(moved, "Functional.layer_norm.0", "again")
        for place in (moved, moved / "dump.json", again):
            row, = json.loads(plumb("blame", place, "--format", "json", status=1).stdout)["faults"]
            self.assertEqual({k: row[k] for k in ("call", "why", "worst", "at", "stack")},
                             {k: whole[k] for k in ("call", "why", "worst", "at", "stack")})
        out = self.folder / "out"
        plumb("acc_check", moved / "dump.json", "-d", "recorded", "--no-torch", "-o", out, status=1)
        plumb("acc_check", moved / "dump.json", "--no-torch", "--verdict", "expected", "-o", out, status=0)
        self.assertEqual((moved / "capsule.json").read_text(), (again / "capsule.json").read_text())

    def test_command_of_the_page(self) -> None:
        """What blame prints to replay a call can be given to a shell."""
        dump = self.make("bad", fault=1.001).parent
        odd = self.folder / "it's; a $(dump)"
        dump.rename(odd)
        row, = json.loads(plumb("blame", odd, "--format", "json", status=1).stdout)["faults"]
        build = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build")).resolve()
        done = subprocess.run(["sh", "-c", row["replay"]], cwd=self.folder, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, PATH=f"{build}:{os.environ['PATH']}"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("scaled by 1.001", done.stdout)
        for step in (0, 1):  # of several dumps the right one is named
            where = self.folder / "run" / f"step{step}" / "rank0"
            where.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(self.make("one", fault=1.01 if step else 1.0).parent), where)
        row, = json.loads(plumb("blame", self.folder / "run", "--format", "json", status=1).stdout)["faults"]
        self.assertIn("step1/rank0/dump.json", row["replay"])

    def test_pytest(self) -> None:
        """jprof makes a test of it, with the recorded inputs; functions that plumb does not compute are
        no tests."""
        folder = self.take(self.make("bad", fault=1.001), "Functional.layer_norm.0")
        said = plumb("jprof", folder / "dump.json", status=0).stdout
        self.assertIn("1 test of 1 operator", said)
        for files, inputs in ((folder / "dump_tensor_data", "kept"), (folder / "gone", "generated")):
            if inputs == "generated":
                (folder / "dump_tensor_data").rename(files)
            rows = folder / f"{inputs}.csv"
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "pytests",
                                   "--device=cpu", f"--detail_compare_path={rows}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual("generated ones were used" in done.stdout, inputs == "generated")
            self.assertIn("Functional.layer_norm.0.forward,Functional.layer_norm,torch.float32,\"[24, 48]\"",
                          rows.read_text())

    def test_pytest_of_hostile_names(self) -> None:
        dump = Dump(self.folder / "hostile")
        x = self.numbers(4, 4)
        for call in ("Torch.load.0", "Torch.hub.load.0", "Functional.__import__.0", "Torch.save.1", "os.system.0",
                     "Tensor.__reduce__.0", "Functional.relu.x", "Functional.dropout.0"):
            dump.forward(call, [x], [x])
        path = dump.save()
        done = plumb("jprof", path, status=2)
        self.assertIn("none of its 8 entries is an operator", done.stderr)
        dump.forward("Functional.relu.0", [x], [x])
        plumb("jprof", dump.save(), status=0)
        text = "".join(p.read_text() for p in (self.folder / "hostile" / "pytests").glob("test_*.py"))
        self.assertIn('"Functional.relu"', text)
        for word in ("load", "import", "save", "system", "reduce"):
            self.assertNotIn(word, text)

    def test_hostile_capsules(self) -> None:
        """A capsule that was tampered with is a damaged dump, and nothing leads out of its folder."""
        secret = self.folder / "secret.npy"
        np.save(secret, np.zeros((24, 48), np.float32))
        folder = self.take(self.make("right"), "Functional.layer_norm.0")
        text = (folder / "dump.json").read_text()
        name = "Functional.layer_norm.0.forward.input.0.npy"
        for other in ("../../secret.npy", str(secret), "../expected/forward.output.0.npy"):
            (folder / "dump.json").write_text(text.replace(name, other))
            self.assertEqual(plumb("blame", folder).returncode, 2)
            done = plumb("capsule", folder, "Functional.layer_norm.0", "-o", self.folder / "stolen")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertFalse((self.folder / "stolen").exists())
        link = folder / "dump_tensor_data" / "link.npy"
        link.symlink_to(secret)
        (folder / "dump.json").write_text(text.replace(name, "link.npy"))
        self.assertEqual(plumb("capsule", folder, "Functional.layer_norm.0", "-o", self.folder / "x").returncode, 2)
        self.assertFalse(list(self.folder.glob("x*")))
        for junk in ("{", "[]", "{\"data\": 3}", text[:-20]):
            (folder / "dump.json").write_text(junk)
            self.assertEqual(plumb("blame", folder).returncode, 2)
        (folder / "dump.json").write_text(text)
        (folder / "capsule.json").write_text("\0" * 100)  # nobody takes its word
        plumb("blame", folder, status=0)

    def test_not_judged(self) -> None:
        """A call that plumb cannot compute can be taken out as well; it says so."""
        folder = self.take(self.make("right"), "Torch.frobnicate.0")
        self.assertEqual(self.read(folder)["forward"]["why"], "plumb has no operator frobnicate")
        self.assertEqual(list((folder / "expected").iterdir()), [])
        told = plumb("capsule", self.folder / "right", "Torch.frobnicate.0", "-o", self.folder / "other").stderr
        self.assertEqual(told, "forward: not judged: plumb has no operator frobnicate\n")
        self.take(self.folder / "right", "Functional.nothing.0", "none", status=2)
        self.take(self.folder / "right", "Functional.relu.0", status=2)  # there already


if __name__ == "__main__":
    import unittest
    unittest.main()
