"""What the tests of PrecisionDebugger share."""

import contextlib
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator

import torch

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

from plumb import PrecisionDebugger  # noqa: E402

PLUMB = BUILD / "plumb"


def leaves(value: Any) -> Iterator[Dict[str, Any]]:
    """All tensors in an entry."""
    if isinstance(value, dict) and value.get("type") == "torch.Tensor":
        yield value
    elif isinstance(value, (dict, list)):
        for item in (value.values() if isinstance(value, dict) else value):
            yield from leaves(item)


class Dump:
    """A step folder that was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.json = json.loads((folder / "dump.json").read_text())
        self.data: Dict[str, Any] = self.json["data"]

    def beside(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def tensor(self, leaf: Dict[str, Any]) -> torch.Tensor:
        return torch.load(self.folder / "dump_tensor_data" / leaf["data_name"])

    def problems(self) -> str:
        log = self.folder / "dump_error_info.log"
        return log.read_text() if log.exists() else ""


class CaptureTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        self.made = 0

    def debugger(self, task: str = "statistics", level: str = "L1", risk_level: str = "ALL", section: Any = None,
                 **top: Any) -> PrecisionDebugger:
        """A new capture in a folder of its own."""
        self.made += 1
        self.path = self.root / f"dump{self.made}"
        config = self.root / f"config{self.made}.json"
        config.write_text(json.dumps({"task": task, "level": level, "dump_path": str(self.path),
                                      "risk_level": risk_level, task: section or {}, **top}))
        debugger = PrecisionDebugger(str(config))
        self.addCleanup(debugger._close_quietly)
        return debugger

    def dump(self, step: int = 0) -> Dump:
        folders = list((self.path / f"step{step}").iterdir())
        self.assertEqual(len(folders), 1, folders)
        return Dump(folders[0])

    @contextlib.contextmanager
    def capture(self, model: Any = None, clean: bool = True, **settings: Any) -> Iterator[PrecisionDebugger]:
        """Records what is done inside."""
        debugger = self.debugger(**settings)
        debugger.start(model)
        try:
            yield debugger
        finally:
            debugger.stop()
            debugger.step()
        if clean:
            self.assertEqual(self.dump().problems(), "")
