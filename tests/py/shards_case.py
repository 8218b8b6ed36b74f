"""Training on several processes, and its comparison with one: what the tests of shards share."""

import csv
import functools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from capture_case import PLUMB  # noqa: E402
from ranks_case import run_ranks  # noqa: E402


class Compared(NamedTuple):
    rows: List[Dict[str, str]]
    said: str


class Trainings:
    """Runs of a script, each once, in a folder of their own."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.place = tempfile.TemporaryDirectory(prefix="plumb-shards-")

    def cleanup(self) -> None:
        self.place.cleanup()

    @functools.lru_cache(maxsize=None)
    def trained(self, way: str, world: int = 4, fault: str = "") -> Path:
        """The dump of one way to cut the model; fault: the rank that has it."""
        folder = Path(self.place.name) / f"{way}{fault}"
        folder.mkdir()
        run_ranks(world, lambda rank: [str(self.program), way, str(rank), str(world), str(folder / "store"),
                                       str(folder / "dump"), fault])
        return folder / "dump"

    @functools.lru_cache(maxsize=None)
    def compared(self, target: Path, golden: Path, step: int = 0) -> Compared:
        result = Path(tempfile.mkdtemp(dir=self.place.name)) / "result.csv"
        ran = subprocess.run([str(PLUMB), "compare", str(target / f"step{step}"), str(golden / f"step{step}"),
                              str(result), "--shards", "--set", "max_rel=1e9"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        if ran.returncode > 1:
            raise AssertionError(ran.stderr)
        with open(result, encoding="utf-8") as file:
            return Compared(list(csv.DictReader(file)), ran.stdout)
