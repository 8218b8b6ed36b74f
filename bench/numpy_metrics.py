"""plumb's metrics in numpy, written the way one would by hand, to have something to be faster than.

    numpy_metrics.py TARGET GOLDEN {default,all} [PAIRS]

compares the first PAIRS files of two folders of .npy files and prints GB/s over both sides. Values
are taken to float64 first, once: without that the sums would not be plumb's sums.
"""

from __future__ import annotations

import sys
import time
import zlib
from pathlib import Path

import numpy as np


def cosine_and_distances(t: np.ndarray, g: np.ndarray, e: np.ndarray) -> dict[str, float]:
    tt, gg, ee = np.dot(t, t), np.dot(g, g), np.dot(e, e)
    return {
        "cosine": np.dot(t, g) / np.sqrt(tt * gg),
        "euclidean": np.sqrt(ee),
        "relative_euclidean": np.sqrt(ee / gg),
        "rmse": np.sqrt(ee / e.size),
    }


def largest(a: np.ndarray) -> dict[str, float]:
    index = int(a.argmax())
    return {"max_abs": a[index], "max_abs_index": index}


def relative_errors(a: np.ndarray, magnitude: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        r = a / magnitude
    r[(a == 0) & (magnitude == 0)] = 0
    return r


def below(r: np.ndarray, *limits: float) -> dict[str, int]:
    return {f"below_{limit}": np.count_nonzero(r < limit) for limit in limits}


def nonfinite(t: np.ndarray, g: np.ndarray) -> dict[str, int]:
    bad_t, bad_g = ~np.isfinite(t), ~np.isfinite(g)
    return {"mismatch": np.count_nonzero(bad_t != bad_g), "both": np.count_nonzero(bad_t & bad_g)}


def default_metrics(t32: np.ndarray, g32: np.ndarray) -> dict[str, float]:
    """The columns of a plain comparison: cosine, distances, largest errors, two shares."""
    t, g = t32.astype(np.float64).ravel(), g32.astype(np.float64).ravel()
    e = t - g
    a = np.abs(e)
    r = relative_errors(a, np.abs(g))
    values = cosine_and_distances(t, g, e) | largest(a) | nonfinite(t, g)
    return values | {"max_rel": r.max()} | below(r, 5e-3, 1e-3)


def statistics(side: str, x: np.ndarray) -> dict[str, float]:
    return {
        f"{side}_min": x.min(),
        f"{side}_max": x.max(),
        f"{side}_mean": x.mean(),
        f"{side}_std": x.std(ddof=1),
        f"{side}_norm": np.sqrt(np.dot(x, x)),
    }


def softmax_divergence(t: np.ndarray, g: np.ndarray) -> float:
    log_p = g - g.max()
    log_p -= np.log(np.exp(log_p).sum())
    log_q = t - t.max()
    log_q -= np.log(np.exp(log_q).sum())
    return float(np.dot(np.exp(log_p), log_p - log_q))


def log2_histogram(x: np.ndarray) -> np.ndarray:
    exponent = np.frexp(x)[1].clip(-96, 32)
    exponent[x == 0] = -97
    return np.bincount(exponent + 97, minlength=130)


def all_metrics(t32: np.ndarray, g32: np.ndarray) -> dict[str, object]:
    """What `--metrics all` asks for."""
    t, g = t32.astype(np.float64).ravel(), g32.astype(np.float64).ravel()
    e = t - g
    a = np.abs(e)
    magnitude = np.abs(g)
    r = relative_errors(a, magnitude)
    values: dict[str, object] = cosine_and_distances(t, g, e) | largest(a) | nonfinite(t, g)
    values |= {"mean_abs": a.mean(), "min_abs": a[a > 0].min(initial=np.inf)}
    values |= {"max_rel": r.max(), "mean_rel": r.mean()} | below(r, 1e-2, 5e-3, 1e-3, 1e-4)
    values["close"] = np.count_nonzero(a <= 1e-5 + 1e-3 * magnitude)
    values["greater"] = np.count_nonzero(a > 0)
    values["unequal"] = np.count_nonzero(t != g)
    values["above"], values["below"] = np.count_nonzero(e > 0), np.count_nonzero(e < 0)
    for power in range(1, 8):
        values[f"abs_over_1e{power}"] = np.count_nonzero(a > 10.0**-power)
    exponent = np.maximum(np.frexp(g)[1] - 1, -126)
    ulp = np.ldexp(a, 23 - exponent)
    values |= {"max_ulp": ulp.max(), "mean_ulp": ulp.mean()}
    values["ulp_over"] = np.count_nonzero(ulp > 32)
    values |= statistics("target", t) | statistics("golden", g)
    values["kl"] = softmax_divergence(t, g)
    values["bits_differ"] = np.count_nonzero(t32.view(np.uint32) != g32.view(np.uint32))
    values["crc"] = zlib.crc32(t32), zlib.crc32(g32)
    values["histograms"] = [log2_histogram(x) for x in (a, r, ulp)]
    small = magnitude < 1e-6
    values |= {"small": np.count_nonzero(small), "wrong": np.count_nonzero(small & (a > 1e-9))}
    return values


def main() -> None:
    target, golden, which = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    names = sorted(path.name for path in target.glob("*.npy"))
    names = names[: int(sys.argv[4]) if len(sys.argv) > 4 else len(names)]
    metrics = all_metrics if which == "all" else default_metrics
    metrics(np.load(target / names[0]), np.load(golden / names[0]))
    size, start = 0, time.perf_counter()
    for name in names:
        t = np.load(target / name, mmap_mode="r")
        g = np.load(golden / name, mmap_mode="r")
        metrics(t, g)
        size += t.nbytes + g.nbytes
    print(f"{size / (time.perf_counter() - start) / 1e9:.3f}")


if __name__ == "__main__":
    main()
