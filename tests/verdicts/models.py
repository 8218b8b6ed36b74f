#!/usr/bin/python3
"""Whole models: what plumb blame says about right runs and about runs with one planted fault.

    models.py [--type bfloat16] [--fast] [--keep FOLDER]

A transformer of four blocks is recorded, forward and backward, with right variants (another order of
summation, fused or plain attention, float32 in place of bfloat16), where no call may be blamed, and
with faults in one call each, which has to be named first. Prints a table; exit code 1 when a right run
is blamed or a fault is missed."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple
from unittest import mock

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, str(BUILD / "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import plumb  # noqa: E402

WIDTH, HEADS, LENGTH, BATCH, WORDS, BLOCKS = 64, 4, 32, 2, 100, 4


class Block(torch.nn.Module):
    def __init__(self, attention: str) -> None:
        super().__init__()
        self.attention = attention
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.reshape(BATCH, LENGTH, HEADS, -1).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, dim=-1))
        if self.attention == "fused":
            y = F._scaled_dot_product_attention(q, k, v)[0] if hasattr(
                F, "_scaled_dot_product_attention") else F.scaled_dot_product_attention(q, k, v)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5
            y = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    def __init__(self, attention: str) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        self.blocks = torch.nn.ModuleList(Block(attention) for _ in range(BLOCKS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def halves(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
    """A linear layer that adds up its terms in another order, and rounds once."""
    n = x.shape[-1] // 2
    y = x.float()[..., n:] @ weight.float()[:, n:].t() + x.float()[..., :n] @ weight.float()[:, :n].t()
    return (y if bias is None else y + bias.float()).to(x.dtype)


def record_here(folder: str, dtype: torch.dtype, attention: str, variant: str) -> None:
    """One step of training. What is patched is patched before the capture comes in: to it, the fault
    is in the kernel."""
    patch: Tuple[Any, str, Callable[..., Any]] = (F, "linear", halves if variant == "halves" else F.linear)
    for about, owner, name, number, wrong in faults():
        if about == variant:
            patch = (owner, name, nth(getattr(owner, name), number, wrong))
    torch.manual_seed(0)
    model = Model(attention).to(dtype)
    words = torch.randint(0, WORDS, (BATCH, LENGTH))
    with mock.patch.object(*patch):
        debugger = plumb.PrecisionDebugger(task="tensor", level="L1", dump_path=folder)
        debugger.start(model=model)
        logits = model(words)
        F.cross_entropy(logits.view(-1, WORDS).float(), words.roll(1, 1).view(-1)).backward()
        debugger.stop()
        debugger.step()


def record(folder: Path, dtype: torch.dtype, attention: str = "plain", variant: str = "right") -> None:
    """The same in a process of its own: a capture keeps the functions that it found first."""
    subprocess.run([sys.executable, __file__, "--record", str(folder), str(dtype).split(".")[1], attention,
                    variant], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def nth(function: Callable[..., Any], n: int, wrong: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which call n is replaced by wrong(function, ...)."""
    calls = [0]

    def patched_function(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return wrong(function, *args, **kwargs) if calls[0] == n + 1 else function(*args, **kwargs)
    return patched_function


def with_change(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    """A fault that changes the result. The gradient is that of the right function, as where only the
    kernel of the forward is wrong."""
    def wrong(function: Callable[..., Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        y = function(*args, **kwargs)
        with torch.no_grad():
            off = change(y.detach().clone())
            y.data.copy_(off)
        return y
    return wrong


def zero_tile(y: torch.Tensor) -> torch.Tensor:
    y[..., :16, 16:32] = 0
    return y


def one_row_negative(y: torch.Tensor) -> torch.Tensor:
    y[0, 5] = -y[0, 5]
    return y


def one_element(y: torch.Tensor) -> torch.Tensor:
    y.view(-1)[77] *= 1.5
    return y


def one_nan(y: torch.Tensor) -> torch.Tensor:
    y[1, 3, 7] = float("nan")
    return y


def truncated(y: torch.Tensor) -> torch.Tensor:
    return (y.float() * (1 - 2 ** -7)).to(y.dtype)


def faults() -> List[Tuple[str, Any, str, int, Callable[..., Any]]]:
    """What it is, where, which call of it, and how."""
    return [
        ("layer norm scaled by 1.03", F, "layer_norm", 3, with_change(lambda y: y * 1.03)),
        ("layer norm scaled by 1.003", F, "layer_norm", 2,
         with_change(lambda y: (y.double() * 1.003).to(y.dtype))),
        ("layer norm with another epsilon", F, "layer_norm", 0,
         lambda f, x, shape, w, b, eps: f(x, shape, w, b, 0.05)),
        ("linear without its bias", F, "linear", 6, lambda f, x, w, b=None: f(x, w)),
        ("a tile of a linear is zero", F, "linear", 9, with_change(zero_tile)),
        ("last terms of a linear are missing", F, "linear", 4,
         lambda f, x, w, b=None: f(x[..., :-3], w[:, :-3], b)),
        ("softmax along another axis", torch, "softmax", 1, lambda f, x, dim: f(x, dim=-2)),
        ("a row of a linear has the other sign", F, "linear", 1, with_change(one_row_negative)),
        ("one element of a gelu", F, "gelu", 2, with_change(one_element)),
        ("NaN in a layer norm", F, "layer_norm", 5, with_change(one_nan)),
        ("matrix product off by a unit", torch, "matmul", 3, with_change(truncated)),
        ("embedding of the next word", F, "embedding", 0,
         lambda f, x, w, *more, **named: f((x + 1) % WORDS, w, *more, **named)),
    ]


def blame(target: Path, *golden: Path) -> Dict[str, Any]:
    done = subprocess.run([str(BUILD / "plumb"), "blame", str(target), *map(str, golden), "--format", "json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"plumb blame: {done.stderr}")
    found: Dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if found["faults"] else 0)
    return found


def prefix_of(owner: Any) -> str:
    return "Functional" if owner is F else "Torch"


def run(folder: Path, dtype: torch.dtype, fast: bool) -> int:
    bad = 0
    record(folder / "right", dtype)
    record(folder / "halves", dtype, variant="halves")
    rights = [("against itself in another order of summation", "right", "halves"),
              ("in another order of summation, alone", "halves", None)]
    if not fast:
        record(folder / "fused", dtype, "fused")
        record(folder / "wide", torch.float32)
        rights += [("fused attention", "fused", "right"), ("against float32", "right", "wide")]
    for about, target, golden in rights:
        found = blame(folder / target, *([folder / golden] if golden else []))
        judged = found["calls"] - found["verdicts"]["not judged"]
        fine = not found["faults"] and judged > 0
        bad += not fine
        print(f"{'right' if fine else 'BLAMED':8} {about}: {judged} of {found['calls']} calls judged"
              + "".join(f"\n           {f['call']}: {f['why']}" for f in found["faults"]))
    for about, owner, name, number, _ in faults()[::3 if fast else 1]:
        where = folder / about.replace(" ", "_")
        record(where, dtype, variant=about)
        found = blame(where, folder / "right")
        wanted = f"{prefix_of(owner)}.{name}.{number}.forward"
        first = found["faults"][0]["call"] if found["faults"] else "nothing"
        others = sorted({f["call"] for f in found["faults"]} -
                        {wanted, wanted.replace("forward", "backward")})
        fine = first == wanted and not others
        bad += not fine
        print(f"{'named' if fine else 'MISSED':8} {about}: {first}"
              + (f": {found['faults'][0]['why'][:90]}" if found["faults"] else "")
              + (f"; also {', '.join(others)}" if others else ""))
    print(f"{bad} wrong")
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--type", default="bfloat16")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--record", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    if options.record:
        folder, dtype, attention, variant = options.record
        return record_here(folder, getattr(torch, dtype), attention, variant)
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory())
        sys.exit(1 if run(Path(folder), getattr(torch, options.type), options.fast) else 0)


if __name__ == "__main__":
    main()
