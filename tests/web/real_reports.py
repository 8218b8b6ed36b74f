#!/usr/bin/env python3
"""Makes real reports: the program compares real files and writes the page.

    real_reports.py PLUMB KIND OUT.html

KIND is one of
    demo          examples/demo: a vision transformer of four blocks, captured twice; one LayerNorm is wrong
    hostile       names, modules, lines, paths and a table that try to be markup and commands; by blame
    odd           a tensor that is NaN on both sides, a complex one, and one with a single error
    opinions      examples/dumps/tensor with second opinions
    transformer   a dump of a transformer of four blocks, by blame; the softmax of block 2 is wrong
    precheck      acc_check over the recorded calls of a model, all of which are right
    device        the same on PyTorch's own device, where gelu leaves the last column at zero
    devices       the pre-check of two devices and what api_precision_compare makes of them
    ranks         16 ranks that exchange tensors; the gelu of rank 11 is wrong
    notebook      two results in a notebook's page, as plumb.report() shows them
    steps         40 steps of a training run, beside an earlier one; a norm jumps in step 27

Needs numpy for hostile, odd, notebook, transformer and ranks, PyTorch for device; nothing else but Python.
"""
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def plumb(program, *words, cwd=ROOT, codes=(0, 1)):
    done = subprocess.run([program, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode not in codes:
        raise SystemExit(f"plumb {' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


# -- Dumps that numpy can make ---------------------------------------------------------------------


class Dump:
    """One dump.json with its tensors, and the modules and lines that its calls come from."""

    def __init__(self, folder):
        self.folder, self.data, self.counts, self.parents, self.lines = folder, {}, {}, {}, {}
        (folder / "dump_tensor_data").mkdir(parents=True)

    def entry(self, thing, place):
        import numpy as np
        if not isinstance(thing, np.ndarray):
            return {"type": type(thing).__name__, "value": thing}
        np.save(self.folder / "dump_tensor_data" / f"{place}.npy", thing)
        exact = thing.astype(np.float64)
        return {"type": "torch.Tensor", "dtype": f"torch.{thing.dtype}", "shape": list(thing.shape),
                "Max": float(exact.max()), "Min": float(exact.min()), "Mean": float(exact.mean()),
                "Norm": float(np.sqrt((exact**2).sum())), "requires_grad": False, "data_name": f"{place}.npy"}

    def call(self, name, inputs, output, module, line=12, **keywords):
        """Records the next call of that name; returns the output."""
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        call = f"{name}.{number}.forward"
        self.data[call] = {
            "input_args": [self.entry(x, f"{call}.input.{i}") for i, x in enumerate(inputs)],
            "input_kwargs": {key: value if isinstance(value, dict) else self.entry(value, f"{call}.input.{key}")
                             for key, value in keywords.items()},
            "output": [self.entry(output, f"{call}.output.0")]}
        self.parents[call] = module
        self.lines[call] = line
        return output

    def write(self):
        dump = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": "dump_tensor_data",
                "data": self.data}
        stack = {str(i): [[call], [f"File model.py, line {line}, in forward, \n y = self.op(x)"]]
                 for i, (call, line) in enumerate(self.lines.items())}
        for name, content in (("dump", dump), ("stack", stack), ("construct", self.parents)):
            (self.folder / f"{name}.json").write_text(json.dumps(content) + "\n", "utf-8")


# Markup, a terminal's escape, marks of direction, a shell's command, an entity.
EVIL = "</script><script>alert(1)</script>\x1b[31m\u202e\u2066$(touch x)'\"&lt;{{7*7}}=cmd|"

# What --import brings to the device: an operator with a fault.
FAULTY = """
import torch

right = torch.nn.functional.gelu


def gelu(*args, **kwargs):
    y = right(*args, **kwargs).clone()
    y[..., -1] = 0
    return y


torch.nn.functional.gelu = gelu
"""


def numbers(*shape, seed):
    import numpy as np
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def gelu(x):
    import math

    import numpy as np
    return np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))), otypes=[np.float64])(x).astype(x.dtype)


def transformer(folder, device):
    """Four blocks of width 32 in float32. The reference rounds each result once; the device computes in float32
    throughout, and forgets the last column of the scores in the softmax of block 2."""
    import numpy as np
    dump = Dump(folder)
    work = np.float32 if device else np.float64

    def linear(x, out, seed, module, line):
        weight = numbers(out, x.shape[-1], seed=seed) / np.float32(np.sqrt(x.shape[-1]))
        bias = numbers(out, seed=seed + 1) / np.float32(10)
        y = (x.astype(work) @ weight.T.astype(work) + bias.astype(work)).astype(x.dtype)
        return dump.call("Functional.linear", [x, weight, bias], y, module, line)

    def norm(x, seed, module, line):
        weight, bias = 1 + numbers(32, seed=seed) / np.float32(10), numbers(32, seed=seed + 1) / np.float32(10)
        wide = x.astype(np.float64)
        y = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
        y = (y.astype(work) * weight.astype(work) + bias.astype(work)).astype(x.dtype)
        return dump.call("Functional.layer_norm", [x, [32], weight, bias, 1e-5], y, module, line)

    def softmax(x, wrong, module, line):
        wide = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        total = wide[..., :-1] if wrong else wide
        y = (wide / total.sum(-1, keepdims=True)).astype(x.dtype)
        return dump.call("Functional.softmax", [x], y, module, line, dim=-1)

    def matmul(a, b, module, line):
        return dump.call("Torch.matmul", [a, b], (a.astype(work) @ b.astype(work)).astype(a.dtype), module, line)

    x = numbers(2, 16, 32, seed=1)
    for block in range(4):
        top, seed = f"Module.layers.{block}.Block.forward.0", 100 * (block + 1)
        attention = f"Module.layers.{block}.attention.Attention.forward.0"
        feed = f"Module.layers.{block}.feed_forward.FeedForward.forward.0"
        dump.parents.update({top: None, attention: top, feed: top})
        y = norm(x, seed, top, 31)
        q, k, v = (linear(y, 32, seed + 10 * i, attention, 40 + i) for i in (1, 2, 3))
        q, k, v = (z.reshape(2, 16, 4, 8).transpose(0, 2, 1, 3).copy() for z in (q, k, v))
        scores = matmul(q, (k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(8))).copy(), attention, 44)
        scores = softmax(scores, device and block == 2, attention, 45)
        y = matmul(scores, v, attention, 46).transpose(0, 2, 1, 3).reshape(2, 16, 32).copy()
        y = linear(y, 32, seed + 40, attention, 47)
        x = dump.call("Torch.add", [x, y], x + y, top, 32)
        y = linear(norm(x, seed + 50, top, 33), 64, seed + 60, feed, 52)
        y = dump.call("Functional.gelu", [y], gelu(y), feed, 53)
        y = linear(y, 32, seed + 70, feed, 54)
        x = dump.call("Torch.add", [x, y], x + y, top, 34)
    dump.write()


def ranks(folder, wrong=-1, count=16):
    """Each rank computes on its own part, twice, and adds up what all of them have."""
    import numpy as np
    group = {"type": "torch.ProcessGroup", "group_ranks": list(range(count)), "group_id": "default"}
    dumps = [Dump(folder / "step0" / f"rank{rank}") for rank in range(count)]
    x = [numbers(4, 8, seed=10 + rank) for rank in range(count)]
    for layer in range(2):
        weight = numbers(8, 8, seed=50 + layer) / 3
        module = f"Module.layers.{layer}.Layer.forward.0"
        for rank, dump in enumerate(dumps):
            y = (x[rank].astype(np.float64) @ weight.T.astype(np.float64)).astype(np.float32)
            y = dump.call("Functional.linear", [x[rank], weight], y, module, 21)
            z = gelu(y)
            if rank == wrong and layer == 0:
                z = (z * np.float32(1.25)).astype(np.float32)
            x[rank] = dump.call("Functional.gelu", [y], z, module, 22)
        total = np.sum(np.stack(x).astype(np.float64), axis=0).astype(np.float32)
        for rank, dump in enumerate(dumps):
            dump.call("Distributed.all_reduce", [x[rank]], total, module, 23, group=group)
            x[rank] = dump.call("Torch.mul", [total, 0.0625], total * np.float32(0.0625), module, 24)
    for dump in dumps:
        dump.write()


def steps(folder, jump=-1, count=40):
    """Statistics of three calls that shrink slowly and waver."""
    dice = random.Random(3)
    for step in range(count):
        data = {}
        for layer in range(3):
            size = (layer + 1) * (1 - step / 100) * (1 + dice.gauss(0, 0.004))
            if layer == 1 and 0 <= jump <= step:
                size *= 4
            data[f"Functional.linear.{layer}.forward"] = {"input_args": [], "input_kwargs": {}, "output": [
                {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": size, "Min": -size / 2,
                 "Mean": size / 8, "Norm": 2 * size, "requires_grad": False}]}
        place = folder / f"step{step}" / "rank0"
        place.mkdir(parents=True)
        (place / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch",
                                                     "dump_data_dir": None, "data": data}), "utf-8")


def notebook(program, folder, out):
    """A page as notebooks make of a saved one: outputs in their cells, in order, between others."""
    sys.path.insert(0, str(Path(program).parent / "python"))
    import plumb as package
    transformer(folder / "device", True)
    transformer(folder / "reference", False)
    results = [package.compare(str(EXAMPLES / "demo" / "target"), str(EXAMPLES / "demo" / "golden")),
               package.blame(str(folder / "device"), str(folder / "reference"))]
    cells = "".join(f'<div class="cell"><pre>In [{k}]: plumb.report(result)</pre><div class="output">'
                    f'{package.report(result)._repr_html_()}</div></div>\n' for k, result in enumerate(results))
    Path(out).write_text('<!DOCTYPE html><html><head><meta charset="utf-8"><title>Notebook</title></head><body>'
                         f'<h1 id="top">Notebook</h1>{cells}<p>The end</p></body></html>', "utf-8")


# -- Reports ---------------------------------------------------------------------------------------


def make(program, kind, out):
    with tempfile.TemporaryDirectory(prefix="plumb-real-") as name:
        folder = Path(name)
        if kind == "demo":
            plumb(program, "compare", "examples/demo/target", "examples/demo/golden", "--report", out)
        elif kind == "hostile":
            import numpy as np
            x = np.arange(12, dtype=np.float32).reshape(3, 4)
            dump = Dump(folder / "a'b <b>c")
            dump.call("Torch.mul", [x, 2.0], x * 3, EVIL)
            dump.call("Torch.evil<img src=x onerror=alert(1)>", [x], x, EVIL[::-1])
            dump.call("Torch.mul", [x, 2.0], np.full_like(x, np.nan), "Module." + "deep." * 400 + "M.forward.0")
            dump.lines["Torch.mul.0.forward"] = EVIL
            dump.write()
            plumb(program, "blame", "a'b <b>c", "--report", out, cwd=folder)
        elif kind == "odd":
            import numpy as np
            x = np.arange(12, dtype=np.float32).reshape(3, 4)
            one = x.copy()
            one[1, 2] = 99
            np.savez(folder / "a.npz", nothing=x * np.nan, parts=x + 1j, one=one)
            np.savez(folder / "b.npz", nothing=x * np.nan, parts=x + 9j, one=x)
            plumb(program, "compare", "a.npz", "b.npz", "--report", out, cwd=folder)
        elif kind == "opinions":
            plumb(program, "compare", "examples/dumps/tensor/npu", "examples/dumps/tensor/gpu", "--verdict", "both",
                  "--report", out)
        elif kind == "transformer":
            transformer(folder / "device", True)
            transformer(folder / "reference", False)
            plumb(program, "blame", "device", "reference", "--report", out, cwd=folder)
        elif kind == "precheck":
            plumb(program, "acc_check", "-api_info", EXAMPLES / "precheck" / "dump.json", "-o", folder)
            tables = sorted(path.name for path in folder.glob("accuracy_checking_*.csv"))
            plumb(program, "report", *tables, "-o", out, "--title", "Pre-check of a model", cwd=folder)
        elif kind == "device":
            # Names that are short: they are in a picture of the page.
            shutil.copytree(EXAMPLES / "precheck", folder / "model")
            (folder / "faulty.py").write_text(FAULTY, "utf-8")
            plumb(program, "acc_check", "model/dump.json", "-d", "torch:cpu", "--import", "faulty.py", "--verdict", "both",
                  "-o", "results", "--report", "model.html", cwd=folder)
            shutil.move(folder / "model.html", out)
        elif kind == "devices":
            plumb(program, "api_precision_compare", "-npu", EXAMPLES / "precision" / "npu.csv", "-gpu",
                  EXAMPLES / "precision" / "gpu.csv", "-o", folder)
            result = sorted(path.name for path in folder.glob("*.csv"))
            plumb(program, "report", *result, EXAMPLES / "precision" / "npu.csv", EXAMPLES / "precision" / "gpu.csv",
                  "-o", out, "--title", "Pre-check of two devices", cwd=folder)
        elif kind == "ranks":
            ranks(folder / "npu", wrong=11)
            ranks(folder / "gpu")
            plumb(program, "compare", "npu", "gpu", "--verdict", "both", "--report", out, cwd=folder)
        elif kind == "notebook":
            notebook(program, folder, out)
        elif kind == "steps":
            steps(folder / "today", jump=27)
            steps(folder / "last_week")
            plumb(program, "report", "--steps", "today", "last_week", "-o", out, cwd=folder)
        else:
            raise SystemExit(f"there is no kind '{kind}'")


if __name__ == "__main__":
    make(str(Path(sys.argv[1]).resolve()), sys.argv[2], str(Path(sys.argv[3]).resolve()))
