"""The pages of tensors in a report, against numpy."""

import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Tuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
from report_page import Page, plumb  # noqa: E402

BINS, CELLS, WINDOW, PROFILE, WORST = 64, 64, 16, 256, 20


def difference(target: np.ndarray, golden: np.ndarray) -> np.ndarray:
    """Absolute errors, infinite where only one side is finite."""
    t, g = target.astype(np.float64), golden.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(t - g)
    same = (t == g) | (np.isnan(t) & np.isnan(g))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


def in_ulps(error: np.ndarray, golden: np.ndarray) -> np.ndarray:
    """Units of the last place of the golden value (docs/METRICS.md)."""
    kind = np.finfo(golden.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log2(np.abs(golden.astype(np.float64))))
    exponent = np.where(np.isfinite(exponent), np.maximum(exponent, kind.minexp), 0)
    return error / 2.0 ** (exponent - kind.nmant)


def by_powers(values: np.ndarray, low: int, count: int) -> np.ndarray:
    """How many values are in [2^(low+k), 2^(low+k+1))."""
    powers = np.clip(np.floor(np.log2(values)).astype(int), -96, 31)  # the outermost bins hold the rest
    return np.bincount(powers - low, minlength=count)[:count]


class Tensors(unittest.TestCase):
    maxDiff = None

    def look(self, target: np.ndarray, golden: np.ndarray, *more: str) -> Tuple[Page, Dict[str, Any]]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "a.npz", x=target)
            np.savez(folder / "b.npz", x=golden)
            done = plumb("compare", "a.npz", "b.npz", "--report", "r.html", *more, cwd=folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            page = Page(folder / "r.html")
        self.assertEqual(len(page.data["tensors"]), 1)
        return page, page.data["tensors"][0]

    def check(self, target: np.ndarray, golden: np.ndarray) -> Dict[str, Any]:
        """Everything that numpy can say of a pair of floats."""
        page, tensor = self.look(target, golden)
        self.assertEqual(tensor["shape"], list(target.shape))
        self.assertEqual(tensor["dtypes"], [str(target.dtype), str(golden.dtype)])
        error = difference(target, golden)
        self.values(page, tensor, target, golden)
        self.errors(page, tensor, target, golden, error)
        self.maps(page, tensor, error)
        self.profiles(page, tensor, error)
        self.worst(tensor, target, golden, error)
        self.window(page, tensor, target, golden)
        return tensor

    def values(self, page: Page, tensor: Dict[str, Any], target: np.ndarray, golden: np.ndarray) -> None:
        hist = tensor["histograms"][0]
        self.assertEqual((hist["title"], hist["scale"]), ("values", "linear"))
        both = np.concatenate([target.ravel(), golden.ravel()]).astype(np.float64)
        both = both[np.isfinite(both)]
        self.assertEqual((hist["low"], hist["high"]), (both.min(), both.max()))
        for side, values in zip(hist["sides"], (target, golden)):
            finite = values.astype(np.float64)[np.isfinite(values)]
            scale = BINS / (hist["high"] - hist["low"])
            bins = np.clip(((finite - hist["low"]) * scale).astype(int), 0, BINS - 1)
            self.assertEqual(page.array(side["bins"]).tolist(), np.bincount(bins, minlength=BINS).tolist())
        self.assertEqual({one["label"]: one["counts"] for one in hist["beside"]}, {
            name: [int(test(side).sum()) for side in (target, golden)]
            for name, test in (("NaN", np.isnan), ("+Inf", np.isposinf), ("-Inf", np.isneginf))})

    def errors(self, page: Page, tensor: Dict[str, Any], target: np.ndarray, golden: np.ndarray,
               error: np.ndarray) -> None:
        finite = np.isfinite(error) & np.isfinite(golden) & np.isfinite(target)
        ulps = in_ulps(error, golden)
        hists = {hist["title"]: hist for hist in tensor["histograms"][1:]}
        self.assertEqual(set(hists), {"absolute error", "relative error", "ULP error"})
        for title, wanted in (("absolute error", error), ("ULP error", ulps)):
            hist = hists[title]
            bins = page.array(hist["sides"][0]["bins"])
            self.assertEqual(hist["high"] - hist["low"], len(bins))
            positive = wanted[finite & (wanted > 0)]
            self.assertEqual(bins.tolist(), by_powers(positive, int(hist["low"]), len(bins)).tolist(), title)
            self.assertEqual(bins.sum(), positive.size)
            beside = {one["label"]: one["counts"] for one in hist["beside"]}
            self.assertEqual(beside, {"0": [int((error == 0).sum())], "not finite": [int(np.isinf(error).sum())]})
        hist = hists["relative error"]
        bins = page.array(hist["sides"][0]["bins"])
        usual = finite & (error > 0) & (golden != 0)
        relative = error[usual] / np.abs(golden.astype(np.float64)[usual])
        found = by_powers(relative, int(hist["low"]), len(bins))
        self.assertEqual(bins.tolist(), found.tolist())

    def maps(self, page: Page, tensor: Dict[str, Any], error: np.ndarray) -> None:
        for heat in tensor["maps"]:
            values = page.array(heat["values"]).reshape(heat["size"])
            axes = heat["axes"]
            whole = error.max(axis=tuple(axis for axis in range(error.ndim) if axis not in axes))
            whole = whole.reshape(heat["extent"])
            self.assertEqual(heat["size"], [min(CELLS, extent) for extent in heat["extent"]])
            cells = np.zeros(heat["size"])
            down, across = (np.arange(extent) * size // extent for extent, size in zip(heat["extent"], heat["size"]))
            np.maximum.at(cells, (down[:, None], across[None, :]), whole)
            finite = cells[np.isfinite(cells)]
            self.assertEqual(heat["largest"], finite.max())
            self.assertEqual((values == 255).tolist(), np.isinf(cells).tolist())
            self.assertEqual((values == 0).tolist(), (cells == 0).tolist())
            seen = (values > 0) & (values < 255)
            shown = 2 ** ((values[seen].astype(float) - 254) / 8) * heat["largest"]
            # An eighth of a power of two is the step; what is smaller than the smallest is shown as that.
            ratio = shown / np.maximum(cells[seen], heat["largest"] * 2.0 ** (-253 / 8))
            self.assertTrue((np.abs(np.log2(ratio)) <= 1 / 8).all(), (ratio.min(), ratio.max()))

    def profiles(self, page: Page, tensor: Dict[str, Any], error: np.ndarray) -> None:
        long = [axis for axis in range(error.ndim) if error.shape[axis] > 1]
        self.assertEqual(sorted(profile["axis"] for profile in tensor["profiles"]), long)
        for profile in tensor["profiles"]:
            rows = np.moveaxis(error, profile["axis"], 0).reshape(profile["extent"], -1)
            size = min(PROFILE, profile["extent"])
            cell = np.arange(profile["extent"]) * size // profile["extent"]
            largest, mean = page.array(profile["largest"]), page.array(profile["mean"])
            self.assertEqual(len(largest), size)
            for k in range(size):
                part = rows[cell == k]
                self.assertEqual(largest[k], part.max())
                finite = part[np.isfinite(part)]
                self.assertAlmostEqual(mean[k], finite.mean(), delta=1e-12 * (1 + finite.max()))

    def worst(self, tensor: Dict[str, Any], target: np.ndarray, golden: np.ndarray, error: np.ndarray) -> None:
        flat = error.ravel()
        order = [k for k in np.lexsort((np.arange(flat.size), -flat)) if flat[k] > 0][:WORST]
        self.assertEqual([tuple(one["at"]) for one in tensor["worst"]],
                         [np.unravel_index(k, error.shape) for k in order])
        for one, k in zip(tensor["worst"], order):
            for name, wanted in (("target", target.ravel()[k]), ("golden", golden.ravel()[k]), ("error", flat[k])):
                self.assertEqual(repr(float(one[name])), repr(float(wanted)), (name, one))
            if np.isfinite(flat[k]) and np.isfinite(target.ravel()[k]):
                self.assertEqual(one["ulps"], in_ulps(flat, golden.ravel())[k])

    def window(self, page: Page, tensor: Dict[str, Any], target: np.ndarray, golden: np.ndarray) -> None:
        window = tensor["window"]
        self.assertEqual(window["at"], tensor["worst"][0]["at"])
        place: list = list(window["at"])
        for axis, origin, size in zip(window["axes"], window["origin"], window["size"]):
            self.assertLessEqual(size, WINDOW)
            if axis >= 0:
                self.assertTrue(origin <= window["at"][axis] < origin + size <= target.shape[axis])
                place[axis] = slice(origin, origin + size)
        for name, values in (("target", target), ("golden", golden)):
            wanted = values[tuple(place)].astype(np.float64).ravel()
            np.testing.assert_array_equal(page.array(window[name]), wanted)

    # -- Pairs -----------------------------------------------------------------------------------------

    def draw(self, *shape: int, dtype: Any = np.float32, noise: float = 0.1) -> Tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(sum(shape))
        golden = rng.standard_normal(shape).astype(dtype)
        target = (golden.astype(np.float64) * (1 + noise * rng.standard_normal(shape))).astype(dtype)
        return target, golden

    def test_shapes(self) -> None:
        for shape in ((7,), (300,), (4, 16), (100, 130), (3, 5, 70), (2, 3, 4, 5), (1, 16, 1, 64), (1000, 3)):
            with self.subTest(shape=shape):
                self.check(*self.draw(*shape))

    def test_types(self) -> None:
        for dtype in (np.float16, np.float32, np.float64):
            with self.subTest(dtype=dtype):
                self.check(*self.draw(20, 30, dtype=dtype))

    def test_one_wrong_element(self) -> None:
        golden = np.arange(10000, dtype=np.float32).reshape(100, 100) + 1
        target = golden.copy()
        target[71, 3] += 500
        tensor = self.check(target, golden)
        self.assertEqual(len(tensor["worst"]), 1)
        self.assertEqual(tensor["worst"][0]["at"], [71, 3])

    def test_not_finite(self) -> None:
        target, golden = self.draw(40, 50)
        target[3, 4], target[5, 6], golden[7, 8] = np.nan, np.inf, -np.inf
        target[9, 9] = golden[9, 9] = np.nan  # equal
        tensor = self.check(target, golden)
        self.assertEqual([one["at"] for one in tensor["worst"][:3]], [[3, 4], [5, 6], [7, 8]])
        self.assertEqual([one["error"] for one in tensor["worst"][:3]], ["Infinity"] * 3)
        self.assertEqual(tensor["worst"][0]["target"], "NaN")

    def test_scalar(self) -> None:
        page, tensor = self.look(np.array(3.0, np.float32), np.array(2.0, np.float32))
        self.assertEqual(tensor["shape"], [])
        self.assertEqual(tensor["worst"], [{"at": [], "target": 3, "golden": 2, "error": 1, "ulps": 1 << 22}])
        self.assertEqual(tensor["maps"][0]["size"], [1, 1])

    def test_integers(self) -> None:
        golden = np.arange(64, dtype=np.int32).reshape(8, 8)
        target = golden.copy()
        target[2, 3] = 90
        _, tensor = self.look(target, golden)
        self.assertEqual([(one["at"], one["target"], one["golden"], one["error"]) for one in tensor["worst"]],
                         [([2, 3], 90, 19, 71)])

    def test_flagged_only_and_at_most_200(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            golden = {f"t{k:03d}": np.full(4, 1, np.float32) for k in range(300)}
            target = {name: value * (2 if k % 6 else 1) for k, (name, value) in enumerate(golden.items())}
            np.savez(folder / "a.npz", **target)
            np.savez(folder / "b.npz", **golden)
            plumb("compare", "a.npz", "b.npz", "--report", "r.html", cwd=folder)
            page = Page(folder / "r.html")
        self.assertEqual(len(page.data["tensors"]), 200)
        self.assertEqual(page.counts, {"beyond a limit": 250, "passed": 50})
        places = page.array(page.data["tables"][0]["tensor"])
        self.assertEqual((places >= 0).sum(), 200)
        self.assertTrue(all(page.moods()[row] == 0 for row in np.flatnonzero(places >= 0)))


if __name__ == "__main__":
    unittest.main()
