"""Gradients that DistributedDataParallel reduced in C++, judged by what every rank had before; and odd ranks in JUnit
and baselines.

Real trainings on four gloo processes: faults at one rank must be found, and right programs (gradients added up over
steps, compressed by a hook of PyTorch, not reduced at all) must not be blamed."""

import functools
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parent))
from blame_case import PLUMB, blame  # noqa: E402
from ranks_case import run_ranks  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PLACE = tempfile.TemporaryDirectory(prefix="plumb-reduced-")
WORLD = 4

# Each has two steps of one training, since it is the start of the processes that takes time.
KINDS = ("right", "mine", "added", "compressed", "unsynchronised", "one", "own", "lost", "sum")

PROGRAM = """
import contextlib, json, sys, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from plumb import PrecisionDebugger
rank, world, folder, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
config = f"{folder}/config{rank}.json"
json.dump({"task": "tensor", "dump_path": f"{folder}/dump", "rank": [], "step": [], "level": "mix",
           "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, open(config, "w"))
debugger = PrecisionDebugger(config_path=config)

def reduce(kind, bucket):
    tensor = bucket.buffer().clone()
    if kind == "lost" and rank == 2:
        tensor.zero_()
    dist.all_reduce(tensor)
    tensor /= 1 if kind == "sum" else world
    if kind == "one" and rank == 1:
        tensor[3] += 0.25
    done = torch.futures.Future()
    done.set_result(bucket.buffer() if kind == "own" and rank == 3 else tensor)
    return done

for kind in kinds:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    ddp = nn.parallel.DistributedDataParallel(model)
    if kind in ("lost", "one", "own", "sum", "mine"):
        ddp.register_comm_hook(kind, reduce)
    if kind == "compressed":
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(rank + 1)
    for step in range(2):
        debugger.start(model=ddp)
        with ddp.no_sync() if kind == "unsynchronised" else contextlib.nullcontext():
            ddp(torch.randn(5, 6)).square().mean().backward()
        debugger.stop()
        optimizer.step()
        if kind != "added":
            optimizer.zero_grad()
        debugger.step()
"""


def tearDownModule() -> None:
    PLACE.cleanup()


@functools.lru_cache(maxsize=None)
def training() -> Path:
    folder = Path(PLACE.name)
    run_ranks(WORLD, lambda rank: ["-c", PROGRAM, str(rank), str(WORLD), str(folder), *KINDS])
    return folder / "dump"


def trained(kind: str) -> Path:
    """The second step."""
    return training() / f"step{2 * KINDS.index(kind) + 1}"


def reduced(found: Dict[str, Any], what: str) -> List[Dict[str, Any]]:
    return [one for one in found[what] if one["call"].startswith("Module.reduced.")]


class ReducedTest(unittest.TestCase):
    def not_judged(self, found: Dict[str, Any]) -> Dict[str, int]:
        return {one["what"]: one["count"] for one in found["not_judged"]}

    def test_right(self) -> None:
        """All of them are judged, and none is blamed; a hook that takes the mean is as good."""
        for kind in ("right", "mine"):
            found = blame(trained(kind))
            self.assertEqual([], reduced(found, "faults") + reduced(found, "suspicious"))
            self.assertNotIn("reduced", json.dumps(self.not_judged(found)))
            self.assertNotIn("its parameters were not recorded", self.not_judged(found))

    def test_right_in_another_way(self) -> None:
        """Counted, with the reason, and no suspicion."""
        for kind in ("added", "compressed", "unsynchronised"):
            found = blame(trained(kind))
            self.assertEqual([], reduced(found, "faults") + reduced(found, "suspicious"), kind)
            why = "reduced gradients are not the mean of this backward's: added to older ones, or reduced in another way"
            self.assertEqual(2 * WORLD, self.not_judged(found)[why], kind)

    def test_wrong_at_one_rank(self) -> None:
        for kind, rank, word in (("one", 1, ""), ("own", 3, "nothing was exchanged")):
            found = blame(trained(kind), status=1)
            faults = reduced(found, "faults")
            self.assertEqual({rank}, {one["rank"] for one in faults}, kind)
            self.assertIn("ranks 0, 2, 3 got" if rank == 1 else "ranks 0-2 got what is right", faults[0]["why"])
            self.assertIn(word, faults[0]["why"])

    def test_wrong_everywhere(self) -> None:
        """No rank has the mean: it is suspicious, and what it looks like is said."""
        for kind, word in (("lost", "what rank 2 put in is missing"), ("sum", "a sum, where a mean was asked for")):
            found = blame(trained(kind))
            self.assertEqual([], reduced(found, "faults"), kind)
            doubtful = reduced(found, "suspicious")
            self.assertTrue(doubtful, kind)
            for one in doubtful:
                self.assertIn(word, one["why"])


class OddTest(unittest.TestCase):
    """An odd rank is a case of JUnit, and may be accepted."""

    def run_plumb(self, *words: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([PLUMB, "blame", str(ROOT / "examples" / "ranks" / "drift" / "step0"), *map(str, words)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_junit(self) -> None:
        ran = self.run_plumb("--format", "junit")
        self.assertEqual(1, ran.returncode)
        self.assertIn('tests="13" failures="1"', ran.stdout)
        self.assertIn('<failure message="3 ranks have it alike, and this one has not: 0.0149 % apart">', ran.stdout)

    def test_baseline(self) -> None:
        with tempfile.TemporaryDirectory(prefix="plumb-odd-") as folder:
            path = Path(folder) / "known.json"
            self.assertEqual(0, self.run_plumb("--write-baseline", path).returncode)
            self.assertEqual(["odd rank"], [one["result"] for one in json.loads(path.read_text())["accepted"]])
            ran = self.run_plumb("--baseline", path)
            self.assertEqual(0, ran.returncode)
            self.assertIn("baseline: accepted: 1, new: 0, worse: 0, gone: 0", ran.stdout)
            self.assertIn('failures="0"', self.run_plumb("--baseline", path, "--format", "junit").stdout)
            answer = json.loads(self.run_plumb("--baseline", path, "--format", "json").stdout)
            self.assertEqual(["accepted"], [odd["baseline"] for odd in answer["odd"]])
            for change in ({"rank": 2}, {"worst": 1e-6}):
                known = json.loads(path.read_text())
                known["accepted"][0].update(change)
                path.write_text(json.dumps(known))
                ran = self.run_plumb("--baseline", path)
                self.assertEqual(1, ran.returncode, change)
                self.assertIn('failures="1"', self.run_plumb("--baseline", path, "--format", "junit").stdout)


if __name__ == "__main__":
    unittest.main()
