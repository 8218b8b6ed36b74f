"""A report as a program reads it: the page, and the data in it as web/src/data.ts describes them."""

import base64
import hashlib
import html
import json
import os
import re
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

PLUMB = str(Path(os.environ["PLUMB_BUILD"]) / "plumb")
ROOT = Path(__file__).resolve().parents[2]
TYPES = {"f64": "<f8", "f32": "<f4", "i32": "<i4", "u32": "<u4", "u8": "u1"}
DATA = re.compile(r'<script type="application/octet-stream" id="plumb-data">([A-Za-z0-9+/=\s]*)</script>')
BAD, DOUBT, UNSEEN, GOOD = range(4)


def plumb(*words: Any, cwd: Path = ROOT, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PLUMB, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", **more)


class Page:
    """One report. The parts of `data` are as in web/src/data.ts."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_bytes().decode("utf-8")
        blocks = DATA.findall(self.text)
        assert len(blocks) == 1, f"{len(blocks)} blocks of data"
        self.shell = DATA.sub("", self.text)  # all but the data
        unpacked = zlib.decompress(base64.b64decode(blocks[0], validate=False), -15)
        size, = struct.unpack_from("<I", unpacked)
        self.data: Dict[str, Any] = json.loads(unpacked[4:4 + size].decode("utf-8"))
        self.bulk = unpacked[(4 + size + 7) // 8 * 8:]

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

    def counts(self) -> Dict[str, int]:
        return {count["word"]: count["count"] for count in self.data["counts"]}

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
