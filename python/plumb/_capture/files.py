"""Files that are whole at any moment."""

import contextlib
import os
from typing import Any, Dict, Optional

from plumb import _core


def write_whole(path: str, text: str) -> None:
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


class GrowingFile:
    """Each piece is written with the end of the file, which the next one replaces."""

    def __init__(self, path: str, begin: bytes, end: bytes) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.end = end
        self.at = self.body = 0
        try:
            self.write(begin)
        except OSError:
            self.close()
            os.unlink(path)
            raise
        self.body = self.at

    def write(self, text: bytes) -> None:
        try:
            self._put(text + self.end)
        except OSError:  # a full disk has room for the end that was there
            with contextlib.suppress(OSError):
                self._put(self.end)
                os.ftruncate(self.file, self.at + len(self.end))
            raise
        self.at += len(text)

    def _put(self, text: bytes) -> None:
        os.lseek(self.file, self.at, os.SEEK_SET)
        done = 0
        while done < len(text):
            done += os.write(self.file, text[done:] if done else text)

    def close(self) -> None:
        os.close(self.file)


class JsonFile(GrowingFile):
    """{"task": ..., "data": {...}} with entries added one by one."""

    def __init__(self, path: str, header: Dict[str, Any]) -> None:
        text = _core.json_text({**header, "data": {}})
        super().__init__(path, text[:text.rindex("{") + 1].encode(), b"\n }\n}")

    def add(self, name: str, value: Any, writer: Optional[_core.Writer] = None) -> None:
        """With a writer, once it has written all that it was given before."""
        text = f"{_core.json_text(name)}: {_core.json_text(value, 2)}"
        if writer is not None:
            writer.add_entry(self.file, self.body, f"\n  {text}")
            return
        self.write(f"{'' if self.at == self.body else ','}\n  {text}".encode())
