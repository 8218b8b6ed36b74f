"""Checkpoints: what passes, fails and is suspicious, by values of every kind."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Tuple

import numpy as np

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")
TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32",
         "uint8": "U8", "bool": "BOOL"}


class ConfigCheck(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def save(self, name: str, array: np.ndarray) -> str:
        header = json.dumps({"w": {"dtype": TYPES[str(array.dtype)], "shape": array.shape,
                                   "data_offsets": [0, array.nbytes]}}).encode()
        path = self.folder / name
        path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())
        return str(path)

    def check(self, first: np.ndarray, second: np.ndarray, *more: str) -> Tuple[str, str]:
        """"pass", "suspicious" or "fail", and all that was said."""
        done = subprocess.run([PLUMB, "config_check", "-c", self.save("a.safetensors", first),
                               self.save("b.safetensors", second), *more],
                              stdout=subprocess.PIPE, text=True, timeout=600)
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual(done.returncode, int("PASS" not in done.stdout))
        if done.returncode:
            return "fail", done.stdout
        return "suspicious" if "suspicious" in done.stdout else "pass", done.stdout

    def assert_verdict(self, wanted: str, first: np.ndarray, second: np.ndarray,
                       words: str = "") -> None:
        for pair in ((first, second), (second, first)):
            verdict, said = self.check(*pair)
            self.assertEqual(verdict, wanted, said)
            self.assertIn(words, said)

    def test_same_infinities(self) -> None:
        """As masks have them."""
        mask = np.triu(np.full((8, 8), -np.inf, np.float32), 1)
        self.assert_verdict("pass", mask, mask)
        self.assertNotIn("NaN", self.check(mask, mask)[1])
        self.assert_verdict("pass", np.full(4, np.inf, np.float32), np.full(4, np.inf, np.float32))
        self.assert_verdict("fail", mask, mask.T.copy(), "not finite")
        self.assert_verdict("fail", mask, -mask, "not finite")
        ones = np.where(np.isinf(mask), mask, np.float32(1))
        self.assert_verdict("pass", ones, ones)
        self.assert_verdict("fail", ones, np.where(np.isinf(mask), mask, np.float32(2)))
        self.assertEqual(self.check(mask, mask, "--rules", "msprobe")[0], "fail")

    def test_nan(self) -> None:
        values = np.arange(1, 9, dtype=np.float32)
        other = values.copy()
        other[3] = np.nan
        self.assert_verdict("fail", other, other, "not finite")
        self.assert_verdict("fail", other, values)
        self.assert_verdict("fail", other, other[::-1].copy())

    def test_nothing(self) -> None:
        self.assert_verdict("pass", np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32))
        self.assert_verdict("fail", np.zeros((0, 4), np.float32), np.zeros((0, 5), np.float32))

    def test_float64(self) -> None:
        """What float32 cannot hold."""
        for scale in (1e300, 1e-300):
            values = scale * np.arange(1, 9)
            self.assert_verdict("pass", values, values)
            self.assert_verdict("fail", values, -values)
            self.assert_verdict("fail", values, np.zeros(8))

    def test_integers(self) -> None:
        for kind in ("int64", "int32", "uint8"):
            values = np.arange(100).astype(kind)
            other = values.copy()
            other[99] = 98
            self.assert_verdict("pass", values, values)
            self.assert_verdict("suspicious", values, other, "integers that are not the same")
            self.assert_verdict("fail", values, values[::-1].copy())
        large = np.array([2 ** 60, 5])
        self.assert_verdict("pass", large, large)
        self.assert_verdict("suspicious", large, large + [1, 0], "integers that are not the same")

    def test_kinds(self) -> None:
        values = np.arange(1, 9)
        self.assert_verdict("suspicious", values, values.astype(np.float32),
                            "integers on one side only")
        self.assert_verdict("pass", values, values.astype(np.int32))
        self.assert_verdict("pass", values.astype(np.float64), values.astype(np.float16))
        self.assert_verdict("pass", values > 3, (values > 3).astype(np.uint8))


if __name__ == "__main__":
    unittest.main()
