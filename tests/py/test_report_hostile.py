"""Reports of names that want to be markup or script, and reports of many calls."""

import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from report_page import PLUMB, Page, plumb, template  # noqa: E402

NAMES = [
    "</script><img src=x onerror=alert(1)>",
    "<!--plumb:data--><!--plumb:static-->",
    "--><script>alert(2)</script><!--",
    "\"'`&amp;&lt;&#60;script&#62;",
    "\u202egnp.sth\u2066\u2069",
    "line\nbreak\r\ttab",
    "javascript:alert(3)",
    "%3Cscript%3E${alert(4)}{{alert(5)}}",
    "]]></style><style>*{display:none}</style>",
    "=cmd|' /C calc'!A0",
    "__proto__", "constructor",
    "long" * 2500,
]
MARKUP = re.compile(r"<(img|script|style|iframe|svg|a|b)\b", re.I)


def write_npz(path: Path, tensors: Dict[Any, np.ndarray]) -> None:
    """Names as they are, also those that numpy would not write."""
    with zipfile.ZipFile(path, "w") as file:
        for name, value in tensors.items():
            with tempfile.TemporaryFile() as member:
                np.save(member, value)
                member.seek(0)
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), member.read())


def write_safetensors(path: Path, names: List[bytes], values: np.ndarray) -> None:
    """Names are bytes, which need not be UTF-8; quotes and controls are escaped, as JSON wants it. One
    value for all of them, or one for each."""
    if values.ndim == 1:
        values = np.stack([values] * len(names))
    shape = b",".join(b"%d" % extent for extent in values.shape[1:])
    size = values[0].nbytes
    entries = []
    for place, name in enumerate(names):
        quoted = b"".join(b"\\u%04x" % c if c < 32 or c in b'"\\' else bytes([c]) for c in name)
        entries.append(b'"%s":{"dtype":"F32","shape":[%s],"data_offsets":[%d,%d]}' % (
            quoted, shape, place * size, (place + 1) * size))
    head = b"{" + b",".join(entries) + b"}"
    path.write_bytes(struct.pack("<Q", len(head)) + head + values.tobytes())


class Hostile(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name).resolve()

    def sound(self, page: Page) -> None:
        """The page is the template but for three places, which hold nothing but escaped text."""
        policy, hashes = page.policy()
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'sha256-"))
        for one in hashes:
            self.assertIn(f"'sha256-{one}'", policy)
        parts = re.split(r"<!--plumb:(?:title|static|data)-->", template())
        self.assertEqual(len(parts), 4)
        rest = page.text
        for k, part in enumerate(parts):
            self.assertIn(part, rest)
            before, _, rest = rest.partition(part)
            if k < 3:
                before = re.sub(r"</?p>", "", before)  # paragraphs of the plain answer
                self.assertNotIn("<", before)
                self.assertNotIn(">", before)
                self.assertFalse(re.search(r"&(?!(amp|lt|gt|quot|#\d+|#x[0-9a-fA-F]+);)", before), before[:200])
                self.assertFalse(re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", before))
            else:
                self.assertRegex(before, r"\A[A-Za-z0-9+/=\n]*\Z")
        self.assertEqual(rest, "")

    def compare(self, a: str, b: str, *more: str) -> Page:
        done = plumb("compare", a, b, "--report", "r.html", *more, cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr[:2000])
        page = Page(self.folder / "r.html")
        self.sound(page)
        return page

    def titled(self, page: Page) -> List[str]:
        """What the table calls its rows."""
        return next(page.column(title) for title in ("API Name", "NPU Name", "Module (Bench/Target)", "Name")
                    if title in page.titles())

    def test_names_in_npz(self) -> None:
        golden = np.ones(4, np.float32)
        names = [name for name in NAMES if len(name) < 60000]
        write_npz(self.folder / "a.npz", {name: golden * 2 for name in names})
        write_npz(self.folder / "b.npz", {name: golden for name in names})
        page = self.compare("a.npz", "b.npz")
        self.assertEqual(page.counts, {"beyond a limit": len(names)})
        found = [tensor["name"] for tensor in page.data["tensors"]]
        for name in ("</script><img src=x onerror=alert(1)>", "__proto__", "=cmd|' /C calc'!A0", "long" * 2500):
            self.assertIn(name, found)
        self.assertIn("</script><img src=x onerror=alert(1)>", page.plain())  # as text
        self.assertEqual(len(MARKUP.findall(page.shell)), len(MARKUP.findall(template())) - 1)  # the block of data

    def test_each_name_as_the_answer(self) -> None:
        """The first failure is named in the plain text of the page, too."""
        for name in NAMES:
            with self.subTest(name=name[:40]):
                write_safetensors(self.folder / "a.safetensors", [name.encode()], np.full(3, 2, np.float32))
                write_safetensors(self.folder / "b.safetensors", [name.encode()], np.ones(3, np.float32))
                page = self.compare("a.safetensors", "b.safetensors")
                self.assertEqual(len(page.data["tensors"]), 1)

    def test_names_of_files(self) -> None:
        for side, value in (("a", 2), ("b", 1)):
            (self.folder / side).mkdir()
            for name in ("<img src=x onerror=alert(1)>", "'\"&amp;", "\u202etxt", "new\nline"):
                np.save(self.folder / side / f"{name}.npy", np.full(3, value, np.float32))
            Path(os.fsdecode(bytes(self.folder / side) + b"/\xff\xfe<b>.npy")).write_bytes(
                (self.folder / side / "\u202etxt.npy").read_bytes())
        page = self.compare("a", "b")
        self.assertEqual(page.counts, {"beyond a limit": 5})
        self.assertIn("<img src=x onerror=alert(1)>", [tensor["name"] for tensor in page.data["tensors"]])

    def test_names_that_are_no_utf8(self) -> None:
        names = [b"\xff\xfe\x80 broken", b"half \xe2\x82", b"surrogate \xed\xa0\x80", b"<script>\xc0\xbc</script>", b"good"]
        write_safetensors(self.folder / "a.safetensors", names, np.full(4, 2, np.float32))
        write_safetensors(self.folder / "b.safetensors", names, np.ones(4, np.float32))
        done = plumb("compare", "a.safetensors", "b.safetensors", "--report", "r.html", cwd=self.folder)
        if done.returncode == 2:  # refused is fine; half a page is not
            self.assertRegex(done.stderr, r"(?i)utf|name|safetensors")
            return
        page = Page(self.folder / "r.html")  # all of it is UTF-8
        self.sound(page)
        self.assertEqual(len(page.data["tensors"]), len(names))

    def test_names_in_safetensors(self) -> None:
        names = [name.encode("utf-8") for name in NAMES]
        write_safetensors(self.folder / "a.safetensors", names, np.full(4, 2, np.float32))
        write_safetensors(self.folder / "b.safetensors", names, np.ones(4, np.float32))
        page = self.compare("a.safetensors", "b.safetensors")
        self.assertEqual(len(page.data["tensors"]), len(names))

    def test_paths_and_titles(self) -> None:
        """The command, the folder and the title are strangers' text as well."""
        name = "<img src=x onerror=alert(1)> '$(id)'"
        write_npz(self.folder / f"{name}.npz", {"x": np.full(3, 2, np.float32)})
        write_npz(self.folder / "b.npz", {"x": np.ones(3, np.float32)})
        page = self.compare(f"{name}.npz", "b.npz")
        self.assertEqual(dict(page.data["facts"])["target"], f"{name}.npz")
        done = subprocess.run(["sh", "-c", page.data["reproduce"].replace("plumb ", f"'{PLUMB}' ", 1)],
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1, done.stderr)  # the command is quoted as a shell wants it

        (self.folder / "t.csv").write_text('Name,Result\n"</script><img src=x onerror=alert(1)>",FAIL\n', "utf-8")
        done = plumb("report", "t.csv", "-o", "r.html", "--title", "</title><script>alert(1)</script>",
                     cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = Page(self.folder / "r.html")
        self.sound(page)
        self.assertEqual(page.data["title"], "</title><script>alert(1)</script>")
        self.assertEqual(page.column("Name"), ["</script><img src=x onerror=alert(1)>"])

    def test_names_in_dumps(self) -> None:
        for side, value in (("a", 2), ("b", 1)):
            data = {}
            for k, name in enumerate(NAMES[:9]):
                tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": value, "Min": value,
                          "Mean": value, "Norm": value, "requires_grad": False}
                data[f"Functional.{name}.{k}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [tensor]}
            (self.folder / side).mkdir()
            (self.folder / side / "dump.json").write_text(json.dumps(
                {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}), "utf-8")
            for name in ("stack", "construct"):
                (self.folder / side / f"{name}.json").write_text(json.dumps(
                    {} if name == "stack" else {call: f"Module.<script>{call}.X.forward.0" for call in data}), "utf-8")
        page = self.compare("a", "b")
        self.assertEqual(len(page.data["network"]["names"]), 9)


class Large(unittest.TestCase):
    CALLS = 10_000

    def test_ten_thousand_calls(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rng = np.random.default_rng(7)
            golden = rng.standard_normal((self.CALLS, 8, 16)).astype(np.float32)
            scale = np.where(np.arange(self.CALLS) < self.CALLS // 2, 1e-6, 0.1)[:, None, None]
            target = (golden * (1 + scale * rng.standard_normal(golden.shape))).astype(np.float32)
            target[:self.CALLS // 2] = golden[:self.CALLS // 2] * np.float32(1 + 1e-6)
            names = [b"model.layers.%d.block.%d.forward_output.0" % divmod(k, 100) for k in range(self.CALLS)]
            write_safetensors(folder / "a.safetensors", names, target)
            write_safetensors(folder / "b.safetensors", names, golden)

            def cost(*more: str) -> float:
                """Processor seconds, the least of three."""
                found = []
                for _ in range(3):
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    done = plumb("compare", "a.safetensors", "b.safetensors", *more, cwd=folder)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
                return min(found)
            plain, with_page = cost("t.csv"), cost("t.csv", "--report", "r.html")
            size = (folder / "r.html").stat().st_size
            page = Page(folder / "r.html")
        print(f"10,000 calls: {size / 1e6:.2f} MB; {with_page:.2f} s instead of {plain:.2f} s ({with_page / plain:.1f} times)")
        self.assertEqual(page.counts, {"beyond a limit": 5000, "passed": 5000})
        self.assertEqual(len(page.data["tensors"]), 200)
        self.assertEqual(page.data["tables"][0]["rows"], self.CALLS)
        self.assertEqual(len(page.data["network"]["names"]), self.CALLS)
        self.assertLess(size, 20_000_000)
        self.assertLess(with_page, 10 * plain + 2)


if __name__ == "__main__":
    unittest.main()
