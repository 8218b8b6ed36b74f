"""What the tests of the C extension of the Python package share."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("PLUMB_BUILD", Path(__file__).resolve().parents[2] / "build"))
sys.path.insert(0, str(BUILD / "python"))


def run_script(text: str, *args: str, timeout: float = 600) -> "subprocess.CompletedProcess[str]":
    """A Python of its own, with the package under test."""
    start = f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r})\n"
    return subprocess.run([sys.executable, "-c", start + text, *args], timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)
