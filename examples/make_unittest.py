"""Makes examples/unittest/dump.json: the ATen operators of one training step of a small network, as
plumb.begin_dump records them. Needs PyTorch and plumb's Python package:

    PYTHONPATH=build/python python3 examples/make_unittest.py
"""

import json
import os
import tempfile
from pathlib import Path

import torch
from torch import nn

import plumb


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 10), nn.Softmax(dim=-1))
    folder = Path(__file__).resolve().parent / "unittest"
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=True)
        model(torch.randn(8, 32)).square().sum().backward()
        plumb.end_dump(clear_context=True)
        dump = json.loads(next(Path("xray_debug").glob("proc_*/dump.json")).read_text())
        os.chdir(folder.parent)
    dump["dump_data_dir"] = None  # no tensors were kept
    folder.mkdir(exist_ok=True)
    (folder / "dump.json").write_text(json.dumps(dump, indent=1) + "\n")


if __name__ == "__main__":
    main()
