"""Makes examples/precheck/dump.json: what a small language model calls in one training step."""

import json
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "py"))
from dump_model import Recorder  # noqa: E402
from small_models import Gpt, words  # noqa: E402


def main() -> None:
    folder = ROOT / "examples" / "precheck"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(0)
    step = words(Gpt(drop=0.0))
    with Recorder(folder) as recorder:
        step()
    path = recorder.write()
    dump = json.loads(path.read_text())
    path.write_text(json.dumps(dump, indent=1) + "\n")


if __name__ == "__main__":
    main()
