"""What the tests of acc_check as a program share."""

import csv
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List, Tuple

import check_dump as make
from rights import make_folder

BUILD = Path(os.environ["PLUMB_BUILD"])
PLUMB = str(BUILD / "plumb")


def check(dump: Path, *more: str, command: str = "acc_check", program: str = PLUMB, **how: Any
          ) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, command, "--no-torch", "-api_info", str(dump), *map(str, more)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=600, **how)


def tables(folder: Path) -> Tuple[bytes, bytes]:
    """The result and its details, of the only run in a folder. A kill right at the start may leave a
    details file that has no result yet; nobody resumes that one."""
    result, = folder.glob("accuracy_checking_result_*.csv")
    details = folder / result.name.replace("_result_", "_details_")
    return result.read_bytes(), details.read_bytes()


def rows(folder: Path) -> Dict[str, List[str]]:
    """The result rows by API."""
    text = tables(folder)[0].decode("utf-8")
    return {row[0]: row[1:] for row in list(csv.reader(text.splitlines()))[1:]}


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = make_folder("plumb-check-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def dump(self, data: Dict[str, Any], **more: Any) -> Path:
        return make.save(self.folder / "dump.json", data, **more)

    def out(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder
