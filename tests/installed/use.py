"""What somebody does with an installed plumb: record a model twice, compare, check its operators.

use.py PROGRAM: the program that came with the package that `import plumb` finds. Says what it saw, and
fails when anything is not as it has to be. Run by tests/installed/try-packages.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import plumb
from plumb import PrecisionDebugger

program = sys.argv[1]


def record(folder: str, fault: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    if fault:
        model[2].weight.data *= 1.01
    debugger = PrecisionDebugger(dump_path=folder, task="tensor", level="mix")
    debugger.start(model)
    model(torch.randn(8, 16)).sum().backward()
    debugger.stop()
    debugger.step()


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env={**os.environ, "COLUMNS": "150"})


def main() -> None:
    print(f"plumb {plumb.__version__} of {plumb.__file__}, PyTorch {torch.__version__}")
    source = Path(__file__).resolve().parents[2]
    assert source not in Path(plumb.__file__).resolve().parents, "this is the source tree's"
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        record("good", False)
        record("bad", True)

        same = run("compare", "good", "good")
        assert same.returncode == 0 and " 0 fail" in same.stdout, same.stdout
        apart = run("compare", "bad", "good")
        assert apart.returncode == 1, apart.stdout
        closing = apart.stdout.splitlines()[-1]
        assert "first failure: Module.2.LayerNorm.forward.0" in closing or "layer_norm" in closing, closing
        print("compare:", closing)

        [dump] = Path("good").rglob("dump.json")
        checked = run("acc_check", str(dump), "-o", "checked")
        assert checked.returncode == 0, checked.stdout
        print("acc_check:", next(line for line in checked.stdout.splitlines() if "pass" in line))
        assert "plumb: " not in checked.stdout, checked.stdout
        calls = [key for key in json.loads(dump.read_text())["data"] if not key.startswith("Module")]
        assert len(calls) >= 6, calls

        # HDF5 goes through the helper program, .xlsx through a library that a wheel has to bring.
        done = run("convert", "good", "good.h5")
        assert Path("good.h5").stat().st_size > 1000, done.stdout
        done = run("compare", "bad", "good", "-o", "table", "--xlsx")
        assert [path.stat().st_size > 1000 for path in Path("table").glob("*.xlsx")] == [True], done.stdout
        assert run("compare", "good.h5", "good.h5").returncode == 0
        assert not plumb.compare(torch.ones(3), torch.tensor([1.0, 2.0, 1.0]))
        with plumb.precision_check():
            torch.nn.functional.softmax(torch.randn(4, 4), dim=-1)
    print("installed plumb: all of it works")


if __name__ == "__main__":
    main()
