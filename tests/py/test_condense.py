"""plumb condense beside a writer, under kill -9, without room or permission; and what it leaves."""

import base64
import csv
import io
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
import zlib
from pathlib import Path
from typing import Callable, Dict, List

import numpy as np

from rights import NOBODY, full_disk, make_folder, preload, without_rights
from sketches import codes_of, content_hash, packed, wide_sketch

BUILD = Path(os.environ["PLUMB_BUILD"])
PLUMB = str(BUILD / "plumb")
ENDING = ".condensed.json"


def condense(folder: Path, *more: str, program: str = PLUMB, **how) -> subprocess.CompletedProcess:
    return subprocess.run([program, "condense", str(folder), "--settle", "0.05", *more],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          **how)


def kept(path: Path) -> List[dict]:
    """The tensors of a condensed file."""
    return json.loads(path.read_text("utf-8"))["tensors"]


def near(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= 1e-12 * max(abs(a), abs(b))


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not true() and time.monotonic() < end:
        time.sleep(0.02)


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = make_folder("plumb-condense-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def make(self, folder: Path, count: int, size: int = 1000, seed: int = 1) -> Dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        made = {}
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(count):
            made[f"t{i}"] = rng.standard_normal(size).astype(np.float32)
            np.save(folder / f"t{i}.npy", made[f"t{i}"])
        return made

    def check(self, tensor: dict, array: np.ndarray) -> None:
        """The kept numbers are those of numpy."""
        wide = array.astype(np.float64).ravel()
        self.assertEqual(tensor["shape"], list(array.shape))
        self.assertEqual(tensor["crc32"], f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}")
        with np.errstate(all="ignore"):
            for key, value in (("min", wide.min()), ("max", wide.max()), ("mean", wide.mean()),
                               ("norm", np.sqrt(math.fsum(wide ** 2)) if np.isfinite(wide).all()
                                else np.linalg.norm(wide))):
                self.assertTrue(near(tensor[key], float(value)) or
                                abs(tensor[key] - value) < 1e-12, (key, tensor[key], value))
        self.assertEqual(tensor["hash"], content_hash(np.ascontiguousarray(array).tobytes()))
        self.check_sketch(tensor["sketch"], np.where(np.isfinite(wide), wide, 0), array.shape)

    def check_sketch(self, sketch: dict, numbers: np.ndarray, shape: "tuple[int, ...]") -> None:
        """Of less than a chunk."""
        self.assertEqual(sketch["version"], 4)
        exponent, sums, blocks = wide_sketch(numbers, shape)
        data = base64.b85decode(sketch["sums"])
        count = 2 * sum(map(len, blocks))
        self.assertEqual(len(data), 468 + -(-count * 20 // 32) * 4)
        exponents, found, rests, folds = np.split(
            packed(int.from_bytes(data, "little"), [16] * 2 + [11] * 256 + [14] * 64 + [20] * count), [2, 258, 322])
        shift, codes = codes_of(sums, 10)
        self.assertEqual(exponents[0], exponent + shift if sums.any() else 0)
        np.testing.assert_array_equal(found, codes)
        lost = np.ldexp(sums.astype(np.float64), -shift) - np.ldexp(codes, -10)
        np.testing.assert_allclose(rests, np.clip(np.rint(np.ldexp(lost.reshape(4, 64).sum(0), 22)), -8192, 8191), atol=1)
        if blocks:
            wide = np.concatenate([table.ravel() for table in blocks]).astype(np.float64)
            shift = int(exponents[1]) - exponent
            np.testing.assert_allclose(folds, np.floor(np.ldexp(wide, 19 - shift)), atol=1)
            self.assertGreaterEqual(np.abs(folds).max(), 1 << 18)


class Values(Folder):
    def test_statistics_are_those_of_numpy(self) -> None:
        rng = np.random.default_rng(7)
        arrays = {
            "f64": rng.standard_normal((300, 7)),
            "f32": rng.standard_normal(4097).astype(np.float32),
            "f16": rng.standard_normal((50, 50)).astype(np.float16),
            "i32": rng.integers(-99, 99, 1000).astype(np.int32),
            "bool": rng.integers(0, 2, 7777).astype(bool),
            "fortran": np.asfortranarray(rng.standard_normal((20, 30))),
            "nan": np.array([1.0, np.nan, 2.0] * 1000),
            "inf": np.array([1.0, np.inf, 2.0] * 1000),
        }
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
        done = condense(self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("8 files with 8 tensors condensed: "), done.stdout)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()),
                         sorted(f"{name}.npy{ENDING}" for name in arrays))
        for name, array in arrays.items():
            if name == "nan":
                tensor = kept(self.folder / f"nan.npy{ENDING}")[0]
                self.assertEqual((tensor["nan"], tensor["finite_min"], tensor["finite_max"]),
                                 (1000, 1.0, 2.0))
                self.assertTrue(near(tensor["finite_mean"], 1.5) and
                                near(tensor["finite_norm"], 5000 ** 0.5))
                self.assertTrue(math.isnan(tensor["min"]))
            else:
                self.check(kept(self.folder / f"{name}.npy{ENDING}")[0], np.asarray(array))

    def test_keep(self) -> None:
        self.make(self.folder, 1)
        self.assertEqual(condense(self.folder, "--keep", "crc32,minmax").returncode, 0)
        keys = set(kept(self.folder / f"t0.npy{ENDING}")[0])
        self.assertEqual(keys & {"min", "max", "mean", "std", "norm", "crc32", "hash", "sketch"},
                         {"min", "max", "crc32"})

    def test_small_files_keep_their_values(self) -> None:
        """What would not become smaller is left as it is, however often it is asked for."""
        arrays = {"scalar": np.float64(3.5), "short": np.arange(20.0), "empty": np.zeros((0, 4))}
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
        self.make(self.folder, 1)
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        dry = condense(self.folder, "--dry-run")
        self.assertNotIn("short", dry.stdout)
        self.assertIn("3 files were left alone: condensed they would not be smaller", dry.stdout)
        for wanted in ("1 file with 1 tensor condensed", "nothing was condensed"):
            done = condense(self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(wanted, done.stdout)
            self.assertIn("3 files were left alone: condensed they would not be smaller",
                          done.stdout)
            for name in arrays:
                self.assertEqual((self.folder / f"{name}.npy").read_bytes(), before[f"{name}.npy"])
        # Less to keep is smaller.
        np.save(self.folder / "short.npy", np.arange(100.0))
        done = condense(self.folder, "--keep", "crc32")
        self.assertIn("1 file with 1 tensor condensed", done.stdout)
        for path in self.folder.iterdir():
            self.assertLess(path.stat().st_size, len(before[path.name.replace(ENDING, "")]) + 700)

    def test_big_endian_and_archives(self) -> None:
        a = np.random.default_rng(3).standard_normal((30, 100)).astype(">f4")
        np.savez_compressed(self.folder / "both.npz", a=a, b=np.arange(5))
        self.assertEqual(condense(self.folder).returncode, 0)
        tensors = kept(self.folder / f"both.npz{ENDING}")
        self.assertEqual([t["name"] for t in tensors], ["a", "b"])
        self.check(tensors[0], a.astype("<f4"))


class Safety(Folder):
    WRITER = """
import sys, time, numpy as np
path, pieces, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
array = np.arange(pieces * 1000, dtype=np.float32)
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    for i in range(pieces):
        file.write(array[i * 1000:(i + 1) * 1000].tobytes())
        file.flush()
        time.sleep(pause)
    time.sleep(4 * pause)
    print("closing", flush=True)
    sys.stdin.readline()
"""

    def watch(self) -> "subprocess.Popen[str]":
        """A plumb that watches the folder and has condensed first.npy in it."""
        np.save(self.folder / "first.npy", np.zeros(1000))
        watcher = subprocess.Popen([PLUMB, "condense", str(self.folder), "--watch", "--settle", "0.05"],
                                   stdout=subprocess.PIPE, text=True)
        wait_until(lambda: not (self.folder / "first.npy").exists())
        return watcher

    def test_a_file_that_is_being_written_is_not_touched(self) -> None:
        path = self.folder / "slow.npy"
        watcher = self.watch()
        # Complete from the fifth pause on, and unchanged for longer than it takes to settle; open.
        writer = subprocess.Popen([sys.executable, "-c", self.WRITER, str(path), "5", "0.1"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(writer.stdout.readline(), "closing\n")
        for _ in range(3):
            time.sleep(0.1)
            self.assertEqual(path.stat().st_size, 128 + 5 * 4000)
            self.assertFalse(path.with_name(path.name + ENDING).exists())
        writer.communicate("\n")
        wait_until(lambda: not path.exists())
        watcher.send_signal(signal.SIGTERM)
        out, _ = watcher.communicate()
        self.assertEqual(watcher.returncode, 0)
        self.assertIn("2 files with 2 tensors condensed", out)
        self.assertFalse(path.exists())
        self.check(kept(path.with_name(path.name + ENDING))[0], np.arange(5000, dtype=np.float32))

    def test_one_pass_leaves_an_open_file_alone(self) -> None:
        self.make(self.folder, 2)
        with open(self.folder / "t0.npy", "r+b"):
            done = condense(self.folder)
            self.assertEqual(done.returncode, 0)
            self.assertIn("1 file with 1 tensor condensed", done.stdout)
            self.assertIn("1 file was left alone: still open for writing", done.stdout)
            self.assertTrue((self.folder / "t0.npy").exists())
        self.assertIn("1 file with", condense(self.folder).stdout)

    def test_a_shared_mapping_is_a_writer(self) -> None:
        array = np.lib.format.open_memmap(self.folder / "m.npy", mode="w+", dtype=np.float32,
                                          shape=(5000,))
        array[:] = 1
        array.flush()
        self.assertIn("left alone: still open", condense(self.folder).stdout)
        self.assertTrue((self.folder / "m.npy").exists())

    def test_nothing_is_lost_to_kill(self) -> None:
        calm, wild = self.folder / "calm", self.folder / "wild"
        made = self.make(calm, 40, 20000)
        shutil.copytree(calm, wild)
        self.assertEqual(condense(calm).returncode, 0)
        dice = random.Random(5)
        for _ in range(30):
            process = subprocess.Popen([PLUMB, "condense", str(wild), "--settle", "0.02"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.02 + dice.random() * 0.06)
            process.kill()
            process.wait()
            for name in made:
                original = wild / f"{name}.npy"
                if original.exists():
                    np.testing.assert_array_equal(np.load(original), made[name])
                else:
                    self.check(kept(wild / f"{name}.npy{ENDING}")[0], made[name])
        self.assertEqual(condense(wild).returncode, 0)
        self.assertEqual({p.name: p.read_bytes() for p in wild.iterdir()},
                         {p.name: p.read_bytes() for p in calm.iterdir()})

    def test_what_a_kill_left_is_cleaned_up(self) -> None:
        made = self.make(self.folder, 1)
        # Both forms, the condensed one of an earlier file of that name; and a temporary file.
        (self.folder / f"t0.npy{ENDING}").write_text("{}")
        (self.folder / f".t0.npy{ENDING}.999999999-0.tmp").write_text("half")
        self.assertEqual(condense(self.folder).returncode, 0)
        self.assertEqual(os.listdir(self.folder), [f"t0.npy{ENDING}"])
        self.check(kept(self.folder / f"t0.npy{ENDING}")[0], made["t0"])

    def originals_are_intact(self, folder: Path, made: Dict[str, np.ndarray]) -> None:
        self.assertEqual(sorted(os.listdir(folder)), sorted(f"{name}.npy" for name in made))
        for name, array in made.items():
            np.testing.assert_array_equal(np.load(folder / f"{name}.npy"), array)

    def test_writing_fails(self) -> None:
        made = self.make(self.folder, 3)

        def no_room() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

        done = condense(self.folder, preexec_fn=no_room, restore_signals=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("left alone: "), 3)
        self.originals_are_intact(self.folder, made)

    @unittest.skipUnless(os.geteuid() == 0, "only root mounts a disk; the next test does without")
    def test_really_full_disk(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=True)
        try:
            made = self.make(disk, 2, 3000)
            with open(disk / "rest.txt", "wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
            done = condense(disk)
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)
            (disk / "rest.txt").unlink()
            self.originals_are_intact(disk, made)
            self.assertEqual(condense(disk).returncode, 0)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_full_disk(self) -> None:
        made = self.make(self.folder, 2, 3000)
        done = condense(self.folder, env=full_disk(BUILD, 100))
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)
        self.originals_are_intact(self.folder, made)
        self.assertEqual(condense(self.folder).returncode, 0)

    def test_allocations_that_fail(self) -> None:
        """Whichever it is: what is left undone is told, and the exit code says so."""
        source, count = self.folder / "source", self.folder / "count"
        made = self.make(source / "inner", 2)
        work = self.folder / "work"

        def attempt(**settings: str) -> subprocess.CompletedProcess:
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(source, work)
            return condense(work, "--threads", "1", env=preload(BUILD, "no_memory", **settings))

        self.assertEqual(attempt(PLUMB_TEST_COUNT=str(count)).returncode, 0)
        total = int(count.read_text())
        self.assertGreater(total, 10)
        for settings in ({}, {"PLUMB_TEST_FROM": "1"}):
            for number in range(0, total, 3 if settings else 1):
                done = attempt(PLUMB_TEST_FAIL=str(number), **settings)
                left = [path for path in work.rglob("*.npy")]
                self.assertIn(done.returncode, (0, 1, 2), (number, done.stderr))
                self.assertEqual(done.returncode == 0, not left, (number, done.stdout, done.stderr))
                if left:
                    self.assertIn("memory", done.stderr)
                for name, array in made.items():
                    path = work / "inner" / f"{name}.npy"
                    if path.exists():
                        np.testing.assert_array_equal(np.load(path), array)
                    else:
                        self.assertEqual(len(kept(path.with_name(path.name + ENDING))), 1)

    def test_read_only_folder(self) -> None:
        folder = self.folder / "readonly"
        made = self.make(folder, 2)
        program, how = without_rights(PLUMB, self.folder)
        if os.geteuid() == 0:
            for path in [folder, *folder.iterdir()]:
                os.chown(path, NOBODY, NOBODY)
        os.chmod(folder, 0o555)
        try:
            done = condense(folder, program=program, **how)
        finally:
            os.chmod(folder, 0o755)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("Permission denied"), 2)
        self.originals_are_intact(folder, made)

    @unittest.skipUnless(os.geteuid() == 0, "an ordinary user has no files of another one")
    def test_files_of_others(self) -> None:
        """No lease without ownership, and no look into the owner's processes."""
        folder = self.folder / "others"
        made = self.make(folder, 1)
        os.chmod(folder, 0o777)
        os.chmod(folder / "t0.npy", 0o644)
        program, how = without_rights(PLUMB, self.folder)
        done = condense(folder, program=program, **how)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot tell whether it is still being written", done.stderr)
        self.originals_are_intact(folder, made)

    def test_damage_is_left_alone(self) -> None:
        made = self.make(self.folder, 1)
        (self.folder / "cut.npy").write_bytes((self.folder / "t0.npy").read_bytes()[:1000])
        (self.folder / "more.npy").write_bytes((self.folder / "t0.npy").read_bytes() + b"more")
        (self.folder / "text.npy").write_text("hello")
        (self.folder / "note.txt").write_text("hello")
        np.save(self.folder / "object.npy", np.array([None, {}], dtype=object))
        done = condense(self.folder)
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        for name, why in (("cut", "cut short"), ("more", "4 bytes follow"), ("text", "none that"),
                          ("object", "object")):
            self.assertTrue(any(f"/{name}.npy: " in line and why in line for line in lines), name)
        self.assertEqual(lines[-1], "plumb: 4 could not be condensed")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(
            ["cut.npy", "more.npy", "note.txt", "object.npy", f"t0.npy{ENDING}", "text.npy"]))
        self.check(kept(self.folder / f"t0.npy{ENDING}")[0], made["t0"])

    def test_two_at_once(self) -> None:
        first = self.watch()
        try:
            done = condense(self.folder)
        finally:
            first.send_signal(signal.SIGTERM)
            first.communicate()
        self.assertEqual(first.returncode, 0)
        self.assertEqual(done.returncode, 2)
        self.assertIn("another plumb is condensing this folder", done.stderr)

    def test_watch_finds_new_folders_and_ends_on_a_signal(self) -> None:
        watcher = self.watch()
        made = self.make(self.folder / "new" / "inner", 3)
        expected = {self.folder / "new" / "inner" / f"{name}.npy{ENDING}" for name in made}
        wait_until(lambda: set((self.folder / "new" / "inner").iterdir()) == expected)
        watcher.send_signal(signal.SIGINT)
        out, _ = watcher.communicate(timeout=600)
        self.assertEqual(watcher.returncode, 0)
        self.assertIn("4 files with 4 tensors condensed", out)
        self.assertEqual(set((self.folder / "new" / "inner").iterdir()), expected)


class Comparing(Folder):
    """A condensed dump is a run like any other."""

    def rows(self, target: Path, golden: Path, *more: str) -> List[Dict[str, str]]:
        done = subprocess.run([PLUMB, "compare", str(target), str(golden), "--format", "csv", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def check_row(self, row: Dict[str, str], a: np.ndarray, b: np.ndarray) -> None:
        a, b = a.astype(np.float64), b.astype(np.float64)
        for title, relative, f in (("Max diff", "MaxRelativeErr", np.max),
                                   ("Min diff", "MinRelativeErr", np.min),
                                   ("Mean diff", "MeanRelativeErr", np.mean),
                                   ("L2norm diff", "NormRelativeErr", np.linalg.norm)):
            difference = float(f(a) - f(b))
            self.assertAlmostEqual(float(row[title]), difference, delta=1e-11)
            percent = float(row[relative].rstrip("%"))
            self.assertAlmostEqual(percent, abs(difference / float(f(b))) * 100, delta=1e-4)

    def test_statistics_mode(self) -> None:
        a, b, full = self.folder / "a", self.folder / "b", self.folder / "full"
        target = self.make(a, 3, seed=3)
        golden = self.make(b, 3, seed=4)
        shutil.copytree(b, full)
        for folder in (a, b):
            self.assertEqual(condense(folder).returncode, 0)
        for other in (b, full):
            rows = self.rows(a, other)
            self.assertEqual([row["API Name"] for row in rows], ["t0", "t1", "t2"])
            for row in rows:
                name = row["API Name"]
                self.check_row(row, target[name], golden[name])
                self.assertEqual(row["Result"], "FAIL")
        self.assertEqual({row["Result"] for row in self.rows(b, full)}, {"PASS"})
        self.assertEqual({float(row["Max diff"]) for row in self.rows(full, b)}, {0.0})

    def test_checksums_only(self) -> None:
        a, b = self.folder / "a", self.folder / "b"
        self.make(a, 2)
        self.make(b, 2)
        condense(a, "--keep", "crc32")
        rows = self.rows(a, b)
        self.assertEqual([row["NPU MD5"] for row in rows], [row["BENCH MD5"] for row in rows])
        self.assertEqual({row["Result"] for row in rows}, {"PASS"})

    def test_ranges_of_a_script(self) -> None:
        """NAME_min_max.npy and NAME_min_max.npz, as the TorchAir guide makes them."""
        a, b = self.folder / "a", self.folder / "b"
        a.mkdir()
        made = self.make(b, 1)
        x = made["t0"]
        np.save(a / "t0_min_max", [x.min(), x.max()])
        for folder, last in ((a, 2.0), (b, 2.5)):
            np.savez(folder / "Add.add_1.2.3.170000_min_max.npz", inputs=[[x.min(), x.max()], [1, last]],
                     outputs=[])
        rows = {row["API Name"]: row for row in self.rows(a, b)}
        self.assertEqual(rows["t0"]["Result"], "PASS")
        self.assertEqual((float(rows["t0"]["Max diff"]), rows["t0"]["Mean diff"]), (0, "N/A"))
        self.assertEqual(rows["Add.add_1.2.3.input.0"]["Result"], "PASS")
        self.assertEqual(float(rows["Add.add_1.2.3.input.1"]["Max diff"]), -0.5)
        self.assertEqual(rows["Add.add_1.2.3.input.1"]["Result"], "FAIL")
        self.assertEqual(len(rows), 3)
        # They are not condensed once more.
        self.assertIn("nothing was condensed", condense(a).stdout)

    def dump(self, folder: Path, scale: float) -> None:
        """A dump.json tree with two tensors."""
        (folder / "dump_tensor_data").mkdir(parents=True)
        data = {}
        for i in range(2):
            x = np.linspace(1, 2 + i, 1000, dtype=np.float32) * np.float32(scale)
            name = f"Functional.relu.{i}.forward.output.0.npy"
            np.save(folder / "dump_tensor_data" / name, x)
            data[f"Functional.relu.{i}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [
                {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1000],
                 "Max": float(x.max()), "Min": float(x.min()), "Mean": float(x.mean()),
                 "Norm": float(np.linalg.norm(x)), "requires_grad": False, "data_name": name}]}
        (folder / "dump.json").write_text(json.dumps(
            {"task": "tensor", "level": "L1", "framework": "pytorch",
             "dump_data_dir": str(folder / "dump_tensor_data"), "data": data}))

    def test_dump_json(self) -> None:
        a, b = self.folder / "a", self.folder / "b"
        self.dump(a, 1.05)
        self.dump(b, 1)
        half = self.folder / "half"
        shutil.copytree(a, half)
        one = half / "dump_tensor_data" / "Functional.relu.0.forward.output.0.npy"
        shutil.move(one, self.folder / one.name)
        self.assertEqual(condense(half).returncode, 0)
        shutil.move(self.folder / one.name, one)
        self.assertEqual(condense(a).returncode, 0)
        for golden in (b, half):
            for row in self.rows(a, golden):
                self.assertAlmostEqual(float(row["MaxRelativeErr"].rstrip("%")),
                                       5 if golden == b else 0, places=4)
        rows = self.rows(half, b)  # one by data, one by statistics
        self.assertEqual([row["Result"] for row in rows], ["FAIL", "FAIL"])
        self.assertTrue(any("by statistics" in row["Err_message"] for row in rows) or
                        any("by data" in row["Err_message"] for row in rows))


if __name__ == "__main__":
    unittest.main()
