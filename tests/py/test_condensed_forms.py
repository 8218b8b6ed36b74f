"""Condensed files of earlier versions, made here as these made them."""

import base64
import json
import unittest
from pathlib import Path
from typing import Callable

import numpy as np

from condensed_case import Folder, Tensors
from sketches import codes_of, divided, first_sketch, wide_sketch


def floats(sums: np.ndarray) -> str:
    return base64.b64encode(sums.astype("<f4").tobytes()).decode()


class OlderForms(Folder):
    """Files that earlier versions left are still compared, by all that they have."""

    def rewritten(self, tensors: Tensors, form: int, change: Callable[[dict, np.ndarray], None]) -> Path:
        """A condensed dump whose files say that they are of a form, changed tensor by tensor."""
        folder = self.dump(tensors, "all")
        for path in folder.iterdir():
            text = json.loads(path.read_text("utf-8"))
            text["plumb_condensed"] = form
            for tensor in text["tensors"]:
                change(tensor, tensors[tensor["name"]])
            path.write_text(json.dumps(text), "utf-8")
        return folder

    def form_2(self, tensors: Tensors) -> Path:
        """The sketch of version 1, and no hash."""

        def change(tensor: dict, values: np.ndarray) -> None:
            del tensor["hash"]
            exponent, sums = first_sketch(values.astype(np.float64).ravel())
            tensor["sketch"] = {"version": 1, "exponent": exponent, "sums": floats(sums)}

        return self.rewritten(tensors, 2, change)

    def form_3(self, tensors: Tensors) -> Path:
        """The sketch of version 2: sums as float32."""

        def change(tensor: dict, values: np.ndarray) -> None:
            exponent, sums, blocks = wide_sketch(values.astype(np.float64).ravel(), values.shape, version=2)
            axes = [{"axis": axis, "block": length, "sums": floats(table)}
                    for (axis, length), table in zip(divided(values.shape, version=2), blocks)]
            tensor["sketch"] = {"version": 2, "exponent": exponent, "sums": floats(sums), "axes": axes}
            tensor.update({"nan": 0, "pos_inf": 0, "neg_inf": 0})

        return self.rewritten(tensors, 3, change)

    def form_4(self, tensors: Tensors) -> Path:
        """The same with fewer digits: integers of 16, 12 and 24 bits."""

        def change(tensor: dict, values: np.ndarray) -> None:
            exponent, sums, blocks = wide_sketch(values.astype(np.float64).ravel(), values.shape, version=2)
            shift, codes = codes_of(sums, 15)
            lost = np.ldexp(sums.astype(np.float64), -shift) - np.ldexp(codes, -15)
            rests = np.clip(np.rint(np.ldexp(lost.reshape(4, 64).sum(0), 25)), -2048, 2047)
            by, folds = codes_of(np.concatenate([table.ravel() for table in blocks]), 23)
            data = b"".join(sum((int(code) & (1 << width) - 1) << width * i for i, code in enumerate(some))
                            .to_bytes(len(some) * width // 8, "little")
                            for some, width in ((codes, 16), (rests, 12), (folds, 24)))
            tensor["sketch"] = {"version": 3, "exponents": [exponent + shift, exponent + by],
                                "axes": [[axis, len(table), length] for (axis, length), table
                                         in zip(divided(values.shape, version=2), blocks)],
                                "sums": base64.b85encode(data).decode()}
            tensor.update({"nan": 0, "pos_inf": 0, "neg_inf": 0})

        return self.rewritten(tensors, 4, change)

    def test_forms_3_and_4(self) -> None:
        """Their sketches compare with each other and with values: equal ones to the bit. Those of today are others."""
        rng = np.random.default_rng(6)
        values = rng.standard_normal((64, 256)).astype(np.float32)
        other = values.copy()
        other[16:20] *= np.float32(1.001)
        truth = float(np.linalg.norm(other - values) / np.linalg.norm(values))
        for old in (self.form_3({"x": values}), self.form_4({"x": values})):
            for same in (self.form_3, self.form_4, self.dump):
                row = self.compare(same({"x": values}), old)["x"]
                self.assertEqual((row["Result"], row["Distance (estimate)"]), ("PASS", "0%"), row)
                for target, golden in ((same({"x": other}), old), (old, same({"x": other}))):
                    row = self.compare(target, golden)["x"]
                    self.assertAlmostEqual(float(row["Distance (estimate)"].rstrip("%")) / 100, truth, delta=0.3 * truth)
                    self.assertEqual(row["Differs At"], "axis 0: 16-19 (1 of 16 blocks)")
            self.assertIn("hashes of all bytes are equal", self.compare(self.dump({"x": values}, "all"), old)["x"]["Err_message"])
            row = self.compare(self.dump({"x": other}, "all"), old)["x"]
            self.assertEqual(row["Distance (estimate)"], "N/A", row)
            self.assertIn("sketches of versions 4 and 2, which cannot be compared", row["Err_message"])

    def test_form_2(self) -> None:
        rng = np.random.default_rng(5)
        values = rng.standard_normal(4096).astype(np.float32)
        other = values[::-1].copy()  # the same statistics
        old = self.form_2({"x": values})
        self.assertEqual(self.compare(self.dump({"x": values}), old)["x"]["Result"], "PASS")
        for target in (self.dump({"x": other}), self.form_2({"x": other})):
            row = self.compare(target, old)["x"]
            self.assertEqual(row["Result"], "FAIL", row)
            self.assertIn("by the sketches", row["Err_message"])
            self.assertAlmostEqual(float(row["Distance (estimate)"].rstrip("%")), 141, delta=20)
            self.assertEqual(row["Differs At"], "")
        row = self.compare(self.dump({"x": other}, "all"), old)["x"]  # other sketches: no distance, but a checksum
        self.assertEqual((row["Result"], row["Distance (estimate)"]), ("N/A", "N/A"), row)
        self.assertIn("the checksums differ", row["Err_message"])
        self.assertIn("the checksums are equal", self.compare(self.dump({"x": values}, "all"), old)["x"]["Err_message"])


if __name__ == "__main__":
    unittest.main()
