#!/usr/bin/env python3
"""Draws the pictures of docs/VERDICTS.md from results that plumb judges, and prints what it says of them.

    PYTHONPATH=build/python /usr/bin/python3 docs/pictures/make.py

Writes one SVG for each kind of error beside this file. They read on white pages and on dark ones.
"""

import math
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import torch
import torch.nn.functional as F

import plumb

Tensor = torch.Tensor
Point = Tuple[float, float]
HERE = Path(__file__).resolve().parent

# -- Drawing ---------------------------------------------------------------------------------------

STYLE = """
.page{fill:#fff}.frame{fill:none;stroke:#d0d7de}text{fill:#57606a;font:12px sans-serif}.title{fill:#1f2328;font-weight:bold}
.axis{stroke:#8c959f;fill:none}.band{fill:#ddf4ff}.mark{stroke:#d1242f;stroke-dasharray:4 3;fill:none}
.good{stroke:#0969da}.bad{stroke:#d1242f}.dots{fill:none;stroke-width:3;stroke-linecap:round;stroke-opacity:.6}
.bar-good{fill:#0969da;fill-opacity:.65}.bar-bad{fill:#d1242f;fill-opacity:.65}
@media(prefers-color-scheme:dark){.page{fill:#161b22}.frame{stroke:#30363d}text{fill:#9198a1}.title{fill:#f0f6fc}
.axis{stroke:#6e7681}.band{fill:#12283f}.mark,.bad{stroke:#ff7b72}.good{stroke:#58a6ff}
.bar-good{fill:#58a6ff}.bar-bad{fill:#ff7b72}}"""


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Panel:
    """One plot: data coordinates, axes with a few numbers, and what is drawn in them."""

    def __init__(self, left: float, title: str, x: Tuple[float, float], y: Tuple[float, float],
                 width: float = 300, height: float = 170) -> None:
        self.left, self.top, self.width, self.height = left, 46.0, width, height
        self.x, self.y = x, y
        self.parts = [self._text(left, 30, title, "title")]

    def at(self, x: float, y: float) -> Point:
        return (self.left + (x - self.x[0]) / (self.x[1] - self.x[0]) * self.width,
                self.top + self.height - (y - self.y[0]) / (self.y[1] - self.y[0]) * self.height)

    @staticmethod
    def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
        return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"' +
                (f' class="{kind}"' if kind else "") + f">{escaped(text)}</text>")

    def axes(self, x_name: str, y_name: str, x_marks: Iterable[float], y_marks: Iterable[float]) -> None:
        bottom, right = self.top + self.height, self.left + self.width
        self.parts.append(f'<path class="axis" d="M{self.left} {self.top}V{bottom}H{right}"/>')
        for mark in x_marks:
            self.parts.append(self._text(self.at(mark, 0)[0], bottom + 16, f"{mark:g}", anchor="middle"))
        for mark in y_marks:
            self.parts.append(self._text(self.left - 6, self.at(0, mark)[1] + 4, f"{mark:g}",
                                         anchor="end"))
        self.parts.append(self._text(self.left + self.width / 2, bottom + 34, x_name, anchor="middle"))
        middle = self.top + self.height / 2
        self.parts.append(f'<g transform="rotate(-90 {self.left - 40:.0f} {middle:.0f})">' +
                          self._text(self.left - 40, middle, y_name, anchor="middle") + "</g>")

    def band(self, low: float, high: float) -> None:
        x, y = self.at(self.x[0], high)
        self.parts.append(f'<rect class="band" x="{x:.0f}" y="{y:.1f}" width="{self.width}" '
                          f'height="{self.at(0, low)[1] - y:.1f}"/>')

    def level(self, y: float, kind: str = "axis") -> None:
        self.line([(self.x[0], y), (self.x[1], y)], kind)

    def line(self, points: Sequence[Point], kind: str) -> None:
        path = "L".join("{:.1f} {:.1f}".format(*self.at(*point)) for point in points)
        self.parts.append(f'<path class="{kind}" d="M{path}"/>')

    def dots(self, points: Iterable[Point], kind: str) -> None:
        path = "".join("M{:.1f} {:.1f}h0".format(*self.at(*point)) for point in points)
        self.parts.append(f'<path class="dots {kind}" d="{path}"/>')

    def bars(self, counts: Sequence[float], edges: Sequence[float], kind: str) -> None:
        path = ""
        for count, low, high in zip(counts, edges, edges[1:]):
            (x, y), (right, bottom) = self.at(low, count), self.at(high, self.y[0])
            if count:
                path += f"M{x:.1f} {bottom:.1f}V{y:.1f}H{right:.1f}V{bottom:.1f}z"
        self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def map(self, values: Tensor, most: float) -> None:
        """Cells in five steps of red (above) and blue (below); equal neighbours are one piece."""
        steps = torch.clamp((values / most * 5).round(), -5, 5).int()
        rows, columns = values.shape
        wide, high = self.width / columns, self.height / rows
        paths: Dict[int, str] = {}
        for r in range(rows):
            first = 0
            for c in range(1, columns + 1):
                if c < columns and steps[r, c] == steps[r, first]:
                    continue
                step = int(steps[r, first])
                paths[step] = paths.get(step, "") + (
                    f"M{self.left + first * wide:.1f} {self.top + r * high:.1f}"
                    f"h{(c - first) * wide:.1f}v{high:.1f}h{(first - c) * wide:.1f}z")
                first = c
        for step, path in sorted(paths.items()):
            if step:
                kind = "bar-bad" if step > 0 else "bar-good"
                self.parts.append(f'<path class="{kind}" style="fill-opacity:{abs(step) / 5:g}" d="{path}"/>')
        self.parts.append(f'<rect class="axis" x="{self.left}" y="{self.top}" width="{self.width}" '
                          f'height="{self.height}"/>')
        bottom = self.top + self.height + 16
        self.parts.append(self._text(self.left, bottom, "column 0"))
        self.parts.append(self._text(self.left + self.width, bottom, f"{columns - 1}", anchor="end"))
        self.parts.append(self._text(self.left - 6, self.top + 10, "row 0", anchor="end"))
        self.parts.append(self._text(self.left - 6, self.top + self.height, f"{rows - 1}", anchor="end"))

    def note(self, text: str, line: int = 0) -> None:
        self.parts.append(self._text(self.left, self.top + self.height + 34 + 16 * line, text))


def save(name: str, *panels: Panel) -> None:
    width, height = (760 if len(panels) > 1 else 400), 268
    body = "\n".join(part for panel in panels for part in panel.parts)
    text = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img">\n<style>{STYLE}</style>\n'
            f'<rect class="page" width="{width}" height="{height}" rx="8"/>'
            f'<rect class="frame" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>\n'
            f"{body}\n</svg>\n")
    (HERE / f"{name}.svg").write_text(text, encoding="ascii")


# -- Data ------------------------------------------------------------------------------------------


def normal(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


class Product(NamedTuple):
    """A product of matrices in bfloat16, exact and right."""
    a: Tensor
    b: Tensor
    exact: Tensor
    right: Tensor


def product(m: int, k: int, n: int) -> Product:
    a, b = normal(m, k, seed=1).bfloat16(), normal(k, n, seed=2).bfloat16()
    return Product(a, b, a.double() @ b.double(), (a.float() @ b.float()).bfloat16())


def units(got: Tensor, exact: Tensor) -> Tensor:
    """Errors in units in the last place of bfloat16, positive away from zero."""
    unit = 2.0 ** (torch.floor(torch.log2(exact.abs())) - 7)
    return (got.double() - exact) / unit * torch.sign(exact)


def say(name: str, opinion: Any) -> None:
    print(f"{name}:\n    {opinion.verdict}: {opinion.why}")


def scatter(left: float, title: str, errors: Tensor, kind: str) -> Panel:
    panel = Panel(left, title, (0, 1), (-1, 1))
    panel.band(-0.5, 0.5)
    panel.level(0)
    some = errors.flatten()[:700].tolist()
    panel.dots([((k + 0.5) / len(some), value) for k, value in enumerate(some)], kind)
    panel.axes("700 elements", "error, units in the last place", [], [-1, -0.5, 0, 0.5, 1])
    return panel


def means(left: float, title: str, errors: Tensor, kind: str) -> Panel:
    """Means of 256 elements each; a right one is within 3 standard deviations."""
    groups = errors.flatten().reshape(-1, 256).mean(1).tolist()
    allowed = 3 / math.sqrt(12 * 256)
    panel = Panel(left, title, (0, 1), (-0.25, 0.25))
    panel.band(-allowed, allowed)
    panel.level(0)
    panel.dots([((k + 0.5) / len(groups), value) for k, value in enumerate(groups)], kind)
    panel.axes(f"means of 256 elements each, {len(groups)} of them", "mean error", [], [-0.2, -0.1, 0, 0.1, 0.2])
    return panel


# -- The pictures ----------------------------------------------------------------------------------


def right() -> None:
    p = product(128, 512, 256)
    say("right", plumb.judge(p.right, "mm", (p.a, p.b)))
    errors = units(p.right, p.exact)
    save("right", scatter(66, "right: each error is at most half a unit", errors, "good"),
         means(440, "and the mean of many is about zero", errors, "good"))


def scale() -> None:
    p = product(128, 512, 256)
    got = (p.exact * 1.0005).bfloat16()
    say("scale", plumb.judge(got, "mm", (p.a, p.b)))
    errors = units(got, p.exact)
    save("scale", scatter(66, "scaled by 1.0005: each looks like rounding", errors, "bad"),
         means(440, "but all of them lean away from zero", errors, "bad"))


def tile() -> None:
    p = product(48, 96, 64)
    got = p.right.clone()
    got[16:32, 32:48] = 0
    say("tile", plumb.judge(got, "mm", (p.a, p.b)))
    panel = Panel(66, "error of each element: a tile is zero", (0, 1), (0, 1), 310, 170)
    panel.map(got.double() - p.exact, float(p.exact.abs().max()) / 2)
    panel.note("red: too large, blue: too small; the others only round")
    save("tile", panel)


def terms() -> None:
    a, b = normal(32, 96, seed=1), normal(96, 44, seed=2)
    short = a.clone()
    short[:, -2:] = 0
    got = short @ b
    say("terms", plumb.judge(got, "mm", (a, b)))
    error = got.double() - a.double() @ b.double()
    left = Panel(66, "error: looks like noise, but has rank 2", (0, 1), (0, 1))
    left.map(error, float(error.abs().max()) / 2)
    left.note("each row is a mix of the same two rows")
    again = Panel(440, "beside the product without its last 2 terms", (0, 1), (0, 1))
    again.map(got.double() - short.double() @ b.double(), float(error.abs().max()) / 2)
    again.note("nothing is left")
    save("terms", left, again)


def epsilon() -> None:
    sizes = torch.logspace(-2, 0.5, 96)[:, None]
    x = normal(96, 256, seed=1) * sizes
    weight, bias = 1 + normal(256, seed=2, scale=0.2), normal(256, seed=3)
    got = F.layer_norm(x, [256], weight, bias, 1e-3)
    say("epsilon", plumb.judge(got, "layer_norm", (x, [256], weight, bias)))
    wide, rest = x.double(), bias.double()
    y = F.layer_norm(wide, [256], weight.double(), rest) - rest
    factors = (((got.double() - rest) * y).sum(1) / (y * y).sum(1)).tolist()
    variances = wide.var(1, unbiased=False).log10().tolist()
    panel = Panel(66, "scale of each row, by its variance", (-4.2, 1.2), (0, 1.1))
    panel.level(1)
    marks = [-4.2 + 0.09 * k for k in range(61)]
    panel.line([(v, math.sqrt((10 ** v + 1e-5) / (10 ** v + 1e-3))) for v in marks], "mark")
    panel.dots(zip(variances, factors), "bad")
    panel.axes("variance of the row, power of ten (dashed: eps 0.001)", "scale", [-4, -3, -2, -1, 0, 1], [0, 0.5, 1])
    save("epsilon", panel)


def accumulator() -> None:
    p = product(48, 64, 48)
    total = torch.zeros(48, 48, dtype=torch.bfloat16)
    for k in range(64):
        total = (total.float() + p.a[:, k, None].float() * p.b[k].float()).bfloat16()
    say("accumulator", plumb.judge(total, "mm", (p.a, p.b)))
    edges = [-6 + 0.25 * k for k in range(49)]

    def counts(got: Tensor) -> List[float]:
        return torch.histc(units(got, p.exact).float(), 48, -6, 6).tolist()
    most = 1.05 * max(counts(p.right))
    panel = Panel(66, "2304 sums: right (blue), kept in bfloat16 (red)", (-6, 6), (0, most))
    panel.bars(counts(p.right), edges, "bar-good")
    panel.bars(counts(total), edges, "bar-bad")
    panel.axes("error, units in the last place", "elements", [-6, -3, 0, 3, 6], [0, 200, 400])
    save("accumulator", panel)


PICTURES: Tuple[Callable[[], None], ...] = (right, scale, tile, terms, epsilon, accumulator)

if __name__ == "__main__":
    for draw in PICTURES:
        draw()
