"""Makes examples/precision: the details that acc_check writes for a GPU and for an NPU.

Both are PyTorch on the CPU. On the "NPU" gelu is the shortcut x * sigmoid(1.702 x). Needs PyTorch and a
built plumb:

    PATH=build:$PATH python3 examples/make_precision.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
KERNEL = '''
import torch

library = torch.library.Library("aten", "IMPL")
library.impl("gelu", lambda x, approximate="none": x * torch.sigmoid(1.702 * x), "CPU")
'''


def main() -> None:
    target = EXAMPLES / "precision"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "npu_kernel.py").write_text(KERNEL)
        check = ["plumb", "acc_check", str(EXAMPLES / "precheck" / "dump.json"), "-d", "torch:cpu", "-f"]
        for side, more in (("gpu", []), ("npu", ["--import", str(folder / "npu_kernel.py")])):
            subprocess.run([*check, *more, "-o", str(folder / side)],
                           env={**os.environ, "PLUMB_PYTHON": sys.executable})
            details, = (folder / side).glob("accuracy_checking_details_*.csv")
            shutil.copyfile(details, target / f"{side}.csv")


if __name__ == "__main__":
    main()
