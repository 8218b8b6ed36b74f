"""Makes the seeds of fuzz_hdf5_reply from HDF5 files and what the helper says about them.

usage: make_corpus_hdf5.py PLUMB-H5 DIR FILE..."""

import struct
import subprocess
import sys
from pathlib import Path

helper, out = sys.argv[1], Path(sys.argv[2])
out.mkdir(parents=True, exist_ok=True)
for path in map(Path, sys.argv[3:]):
    content = path.read_bytes()
    reply = subprocess.run([helper, "list", path], stdout=subprocess.PIPE, check=True).stdout
    (out / path.stem).write_bytes(struct.pack("<H", len(content)) + content + reply)
