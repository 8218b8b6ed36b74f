"""What acc_check leaves behind: no room and no permission for it, and the tensors of calls that did
not pass."""

import json
import os
import re
import resource
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict

import check_dump as make
from check_case import BUILD, PLUMB, Folder, check, rows, tables
from check_dump import backward, forward, tensor
from rights import full_disk, without_rights

STAMP = re.compile(r"\d{14}")


class Room(Folder):
    """No room, no permission: a message, what was finished stays, and can be gone on with."""

    def test_read_only_folder(self) -> None:
        path = self.dump(make.mixture(5))
        closed = self.out("closed")
        path.chmod(0o644)
        program, how = without_rights(PLUMB, self.folder)
        os.chmod(closed, 0o555)
        for out in (closed, closed / "deeper"):
            done = check(path, "-o", out, program=program, **how)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Aplumb: .*closed.*Permission denied\n\Z")
        self.assertEqual(list(closed.iterdir()), [])

    def test_error_data_without_permission(self) -> None:
        path = self.dump(make.mixture(60))
        closed, out = self.out("closed"), self.out("out")
        os.chmod(out, 0o777)
        config = self.folder / "config.json"
        config.write_text(json.dumps({"acc_check": {"white_list": [], "black_list": [],
                                                    "error_data_path": str(closed)}}))
        for readable in (path, config):
            readable.chmod(0o644)
        program, how = without_rights(PLUMB, self.folder)
        os.chmod(closed, 0o555)
        more = ["-save_error_data", "-config", str(config)]
        done = check(path, "-o", out, *more, program=program, **how)
        self.assertEqual(done.returncode, 2)
        self.assertIn("Permission denied", done.stderr)
        result, = out.glob("*result*.csv")
        self.assertIn(f"-csv_path {result}", done.stderr)
        self.assertLess(0, len(rows(out)))
        os.chmod(closed, 0o777)
        self.assertIn(check(path, "-csv_path", result, *more).returncode, (0, 1))
        whole = self.out("whole")
        check(path, "-o", whole)
        self.assertEqual(tables(out), tables(whole))

    def test_error_data_path_is_no_folder(self) -> None:
        config = self.folder / "config.json"
        config.write_text(json.dumps({"acc_check": {"error_data_path": str(self.folder / "no")}}))
        done = check(self.dump({}), "-o", self.folder / "out", "-save_error_data", "-config", config)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("error_data_path is no folder", done.stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_a_file_in_place_of_the_folder(self) -> None:
        path = self.dump({})
        done = check(path, "-o", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("is not a folder", done.stderr)

    def resume_after(self, out: Path, done: "subprocess.CompletedProcess[str]", word: str,
                     path: Path) -> None:
        self.assertEqual(done.returncode, 2)
        self.assertIn(word, done.stderr)
        result, = out.glob("*result*.csv")
        self.assertIn(f"-csv_path {result}", done.stderr)
        self.assertLess(0, len(rows(out)))
        self.assertIn(check(path, "-csv_path", result).returncode, (0, 1))
        whole = self.out("whole")
        check(path, "-o", whole)
        self.assertEqual(tables(out), tables(whole))

    def test_largest_file(self) -> None:
        path, out = self.dump(make.mixture(300)), self.out("out")

        def no_room() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        done = check(path, "-o", out, preexec_fn=no_room, restore_signals=False)
        self.resume_after(out, done, "File too large", path)

    def test_full_disk(self) -> None:
        path, out = self.dump(make.mixture(300)), self.out("out")
        done = check(path, "-o", out, env=full_disk(BUILD, 60000))
        self.resume_after(out, done, "No space left", path)

    def test_full_disk_from_the_start(self) -> None:
        path, out = self.dump(make.mixture(5)), self.out("out")
        done = check(path, "-o", out, env=full_disk(BUILD, 0))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("No space left", done.stderr)
        self.assertEqual(list(out.iterdir()), [])


class ErrorData(Folder):
    def test_files_are_what_was_computed(self) -> None:
        import torch
        data: Dict[str, Any] = {}
        # Too few digits for the reference: never a pass.
        make.add(data, "Functional.linear.0",
                 forward(tensor([30, 64], "bfloat16", grad=True), tensor([8, 64], "bfloat16"),
                         bias=tensor([8], "bfloat16", grad=True)),
                 backward(tensor([30, 8], "bfloat16")))
        make.add(data, "Torch.cat.1", forward([tensor([2, 3]), tensor([4, 3])]))
        make.add(data, "Torch.stack.2", forward(tensors=[tensor([9], "float16")] * 2, out=tensor(
            [2, 9], "float16")), backward(tensor([2, 9], "float16")))
        out = self.out("out")
        done = check(self.dump(data), "-o", out, "-save_error_data", cwd=out)
        folder, = out.glob("ut_error_data*")
        self.assertIn(f"./{folder.name}", done.stdout)
        self.assertIn(STAMP.search(folder.name).group(),  # type: ignore
                      next(out.glob("*result*")).name)
        files = {path.name[:-3]: torch.load(path) for path in folder.iterdir()}
        linear = {name[len("Functional.linear.0."):]: file for name, file in files.items()
                  if name.startswith("Functional.linear.0.")}
        shapes = {name: (str(file.dtype)[6:], list(file.shape)) for name, file in linear.items()}
        self.assertEqual(shapes, {
            "forward.input.0": ("bfloat16", [30, 64]),
            "forward.input.1": ("bfloat16", [8, 64]),
            "forward.kwargs.bias.0": ("bfloat16", [8]),
            "forward.output.bench.0": ("float64", [30, 8]),
            "forward.output.device.0": ("bfloat16", [30, 8]),
            "backward.input.0": ("bfloat16", [30, 8]),
            "backward.output.bench.0": ("float64", [30, 64]),
            "backward.output.device.0": ("bfloat16", [30, 64]),
            "backward.output.bench.2": ("float64", [8]),
            "backward.output.device.2": ("bfloat16", [8]),
        })
        wide = {name: file.double() for name, file in linear.items()}
        wanted = (wide["forward.input.0"] @ wide["forward.input.1"].T +
                  wide["forward.kwargs.bias.0"])
        torch.testing.assert_close(wide["forward.output.bench.0"], wanted)
        torch.testing.assert_close(wide["backward.output.bench.0"],
                                   wide["backward.input.0"] @ wide["forward.input.1"])
        # A list counts its tensors; a pass leaves nothing.
        self.assertEqual(sorted(name for name in files if "stack" in name),
                         ["Torch.stack.2.forward.kwargs.out.0"] +
                         [f"Torch.stack.2.forward.kwargs.tensors.{k}" for k in (0, 1)] +
                         ["Torch.stack.2.forward.output.bench.0",
                          "Torch.stack.2.forward.output.device.0"])
        self.assertFalse([name for name in files if "cat" in name])
        for path in folder.iterdir():
            told = subprocess.run([PLUMB, "info", "--format", "csv", str(path)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  check=True).stdout
            self.assertIn(str(files[path.name[:-3]].dtype)[6:], told)

    def test_every_type(self) -> None:
        """What torch.save writes and plumb_pt_write writes are read as the same."""
        import torch
        data: Dict[str, Any] = {}
        types = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                 "float64"]
        for k, dtype in enumerate(types):
            low, high = (False, True) if dtype == "bool" else (1, 9)
            make.add(data, f"Torch.stack.{k}", forward(
                tensors=[tensor(shape, dtype, low, high) for shape in ([2, 3, 1],)],
                out=tensor([1, 2, 3, 1], dtype, low, high)), backward(None))
            make.add(data, f"Torch.stack.{k}0", forward(
                tensors=[tensor([], dtype, low, high)], out=tensor([1], dtype, low, high)), backward(None))
            make.add(data, f"Torch.stack.{k}00", forward(
                tensors=[tensor([0, 4], dtype, low, high)], out=tensor([1, 0, 4], dtype, low, high)),
                backward(None))
        out = self.out("out")
        check(self.dump(data), "-o", out, "-save_error_data", cwd=out)
        folder, = out.glob("ut_error_data*")
        for k, dtype in enumerate(types):
            for tail, shape in (("", [2, 3, 1]), ("0", []), ("00", [0, 4])):
                file = torch.load(folder / f"Torch.stack.{k}{tail}.forward.kwargs.tensors.0.pt")
                self.assertEqual((str(file.dtype), list(file.shape)), (f"torch.{dtype}", shape))
                self.assertTrue(file.is_contiguous())
                result = torch.load(folder / f"Torch.stack.{k}{tail}.forward.output.device.0.pt")
                self.assertTrue(torch.equal(result[0], file))


if __name__ == "__main__":
    unittest.main()
