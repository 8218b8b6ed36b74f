"""What the tests of reports share: the program, and a report as a program reads it."""

import base64
import hashlib
import html
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np  # noqa: E402
import page_read  # noqa: E402

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")
ROOT = Path(__file__).resolve().parents[2]
TYPES = {"f64": "<f8", "f32": "<f4", "i32": "<i4", "u32": "<u4", "u8": "u1"}
DATA = re.compile(r'<script type="application/octet-stream" id="plumb-data">([A-Za-z0-9+/=\s]*)</script>')
BAD, DOUBT, UNSEEN, GOOD = range(4)


def plumb(*words: Any, cwd: Path = ROOT, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PLUMB, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", **more)


class Page(page_read.Page):
    """One report, with arrays of numpy, and all that is not data as text. Tables go by their number."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.text = path.read_bytes().decode("utf-8")
        blocks = DATA.findall(self.text)
        assert len(blocks) == 1, f"{len(blocks)} blocks of data"
        self.shell = DATA.sub("", self.text)

    def array(self, where: Dict[str, Any]) -> np.ndarray:
        assert where["at"] % 8 == 0
        return np.frombuffer(self.bulk, TYPES[where["type"]], where["n"], where["at"])

    def column(self, title: str, table: int = 0) -> List[Any]:
        """The cells: numbers, texts, None for empty ones."""
        about = self.data["tables"][table]
        column = next(column for column in about["columns"] if column["title"] == title)
        words = self.array(column["words"]) if "words" in column else np.full(about["rows"], -1)
        numbers = self.array(column["numbers"]) if "numbers" in column else np.full(about["rows"], np.nan)
        return [column["dictionary"][word] if word >= 0 else float(number) if word == -1 else None
                for word, number in zip(words, numbers)]

    def titles(self, table: int = 0) -> List[str]:
        return [column["title"] for column in self.data["tables"][table]["columns"]]

    def moods(self, table: int = 0) -> List[int]:
        return self.array(self.data["tables"][table]["mood"]).tolist()

    def plain(self) -> str:
        """What is seen without scripts."""
        found = re.search(r'<pre class="static">(.*?)</pre>', self.shell, re.S)
        assert found
        return html.unescape(found[1])

    def policy(self) -> Tuple[str, List[str]]:
        """The policy of the page, and the hashes that its script and its style have."""
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', self.shell)
        assert policy
        inside = re.findall(r"<(style|script)>(.*?)</\1>", self.shell, re.S)
        assert [name for name, _ in inside] == ["style", "script"]
        return policy[1], [base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
                           for _, text in inside]


def template() -> str:
    return (ROOT / "web" / "dist" / "report.html").read_text("utf-8")
