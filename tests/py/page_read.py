"""Reads what a page of plumb holds (web/src/data.ts)."""

import base64
import json
import re
import struct
import zlib
from array import array
from pathlib import Path
from typing import Any, Dict, List, Union

CODES = {"f64": "d", "f32": "f", "i32": "i", "u32": "I", "u8": "B"}


class Page:
    def __init__(self, source: Union[str, Path]) -> None:
        """From a file, or from the text of one."""
        text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
        blocks = re.findall(r"<script[^>]*>([A-Za-z0-9+/=\s]{40,})</script>", text)
        assert len(blocks) == 1, "one block of data"
        raw = zlib.decompress(base64.b64decode(blocks[0]), -15)
        size = struct.unpack("<I", raw[:4])[0]
        self.data: Dict[str, Any] = json.loads(raw[4:4 + size])
        self.bulk = raw[4 + size + -(4 + size) % 8:]

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def array(self, where: Dict[str, Any]) -> List[float]:
        values = array(CODES[where["type"]])
        values.frombytes(self.bulk[where["at"]:where["at"] + where["n"] * values.itemsize])
        return values.tolist()

    @property
    def sentence(self) -> str:
        return self.data["answer"]["sentence"]

    @property
    def mood(self) -> int:
        return self.data["answer"]["mood"]

    @property
    def counts(self) -> Dict[str, int]:
        return {count["word"]: count["count"] for count in self.data["counts"]}

    @property
    def names(self) -> List[str]:
        return [table["name"] for table in self.data["tables"]]

    def column(self, table: str, title: str) -> List[Any]:
        """The cells of a column; None where they are empty."""
        one = next(each for each in self.data["tables"] if each["name"] == table)
        column = next(each for each in one["columns"] if each["title"] == title)
        words = self.array(column["words"]) if "words" in column else [-1] * one["rows"]
        numbers = self.array(column["numbers"]) if "numbers" in column else []
        return [None if word == -2 else numbers[row] if word == -1
                else column["dictionary"][int(word)] for row, word in enumerate(words)]

    def moods(self, table: str) -> List[float]:
        return self.array(next(each for each in self.data["tables"]
                               if each["name"] == table)["mood"])
