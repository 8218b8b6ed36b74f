#!/usr/bin/env python3
"""Seeds of fuzz_page: the data of a page, and pages.

    fuzz/make_corpus_page.py PAGE.html

PAGE.html: a small report; its data become a seed.
"""
import base64
import json
import re
import struct
import sys
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus" / "page"


def packed(data: bytes) -> bytes:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b'<script id="plumb-data">' + base64.b64encode(squeeze.compress(data) + squeeze.flush()) + b"</script>"


def container(report: object, bulk: bytes = b"") -> bytes:
    text = json.dumps(report).encode()
    head = struct.pack("<I", len(text)) + text
    return head + bytes(-len(head) % 8) + bulk


def main() -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    page = Path(sys.argv[1]).read_text("utf-8")
    block = re.search(r'id="plumb-data">([^<]*)<', page)[1]
    data = zlib.decompress(base64.b64decode(block), -15)
    size, = struct.unpack_from("<I", data)
    report = json.loads(data[4:4 + size])
    report.update(facts=[], reproduce="", made="", notes=[])  # nothing of the machine that made it
    data = container(report, data[4 + size + -(4 + size) % 8:])
    at = {"type": "f64", "at": 0, "n": 1}
    small = {"title": "t", "answer": {"sentence": "s"}, "network": {"names": ["a"], "modules": [""], "words": ["same"], **{
        key: at for key in "module back rank step total local limit band mood word".split()}}, "tensors": [
            {"name": "x", "shape": [2, 2], "worst": [{"at": [1, 1], "target": "NaN", "golden": 1, "error": "Infinity"}],
             "maps": [{"axes": [0, 1], "size": [2, 2], "extent": [2, 2], "largest": 0.5,
                       "values": {"type": "u8", "at": 0, "n": 4}}]}]}
    beyond = json.loads(json.dumps(small).replace('"at": 0', '"at": 9223372036854775807'))
    for name, content in (("real", data), ("small", container(small, bytes(8))), ("beyond", container(beyond, bytes(8))),
                          ("page", packed(container(small, bytes(8)))), ("nothing", packed(b"")),
                          ("long", struct.pack("<I", 0xFFFFFFFF)), ("deep", container(0)[:4] + b"[" * 600)):
        (CORPUS / name).write_bytes(content)


if __name__ == "__main__":
    main()
