"""What several processes of plumb-mpi cost on one machine, beside plumb with two threads.

All runs do the same work on the same two processors: one comparison of many pairs that stay in the page cache. So more
processes can only cost, and the table says what. Starting and ending MPI takes the same whatever there is to do, and stands
in columns of its own: it is that of a command that only prints its help.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import numpy as np

FILES = 4  # of each side, with values of their own; all other names are links to them
GOAL = {1: 1 / 0.9, 2: 1 / 0.9}
GOAL_MANY = 1.2


class Taken(NamedTuple):
    """Seconds of the clock, and of processors."""
    wall: float
    cpu: float


class Way(NamedTuple):
    """A program with its launcher, and how many processes and threads it gets."""
    name: str
    start: Tuple[str, ...]
    processes: int = 0  # 0: no MPI
    threads: int = 1


def find_ways(build: Path, counts: List[int]) -> List[Way]:
    found = []
    for name, launcher in (("Open MPI", ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]), ("MPICH", ["mpirun.mpich"])):
        for program in (build / "plumb-mpi", build / "plumb-mpi-mpich"):
            if not shutil.which(launcher[0]) or not program.exists():
                continue
            linked = subprocess.run(["ldd", str(program)], stdout=subprocess.PIPE, text=True, check=True).stdout
            if ("libmpich" in linked) == (name == "MPICH"):
                found += [Way(name, (*launcher, "-n", str(n), str(program)), n, 2 if n == 1 else 1) for n in counts]
    return found


def make(folder: Path, numbers: int) -> None:
    """The files that have values of their own: a result, and one with small errors."""
    random = np.random.default_rng(1)
    for side in ("right", "wrong"):
        (folder / f"{side}.files").mkdir()
        (folder / side).mkdir()
    for k in range(FILES):
        values = random.standard_normal(numbers, dtype=np.float32)
        np.save(folder / "right.files" / f"{k}.npy", values)
        values *= 1 + np.float32(1e-6) * (np.arange(numbers, dtype=np.float32) % 7)
        np.save(folder / "wrong.files" / f"{k}.npy", values)


def name_pairs(folder: Path, pairs: int) -> None:
    for side in ("right", "wrong"):
        for k in range(pairs):
            path = folder / side / f"{k}.npy"
            if not path.exists():
                os.link(folder / f"{side}.files" / f"{k % FILES}.npy", path)


def run(command: List[str], folder: Path) -> Tuple[Taken, bytes]:
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(folder)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()}")
    return Taken(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stdout


def compare(way: Way, folder: Path) -> Tuple[Taken, bytes]:
    return run([*way.start, "compare", "wrong", "right", "--metrics", "all", "--threads", str(way.threads)], folder)


def median(values: List[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def least(runs: List[Taken]) -> Taken:
    return Taken(min(one.wall for one in runs), min(one.cpu for one in runs))


def show(way: Way, plain: List[Taken], took: List[Taken], start: Taken) -> bool:
    """One row; whether the goal is met, by processor time without the start of MPI."""
    base = Taken(median([one.wall for one in plain]), median([one.cpu for one in plain]))
    own = Taken(median([one.wall for one in took]), median([one.cpu for one in took]))
    goal, work = GOAL.get(way.processes, GOAL_MANY), (own.cpu - start.cpu) / base.cpu
    print(f"| {way.name} | {way.processes}{' (2 threads)' if way.threads > 1 else ''} | {own.wall / base.wall:.2f} | "
          f"{own.cpu / base.cpu:.2f} | {start.wall:.2f} s | {start.cpu:.2f} s | {(own.wall - start.wall) / base.wall:.2f} | "
          f"{work:.2f} | {goal:.2f} |", flush=True)
    return work <= goal


def measure(options: argparse.Namespace) -> int:
    build = Path(options.build).resolve()
    ways = find_ways(build, options.processes)
    if not ways:
        raise SystemExit(f"there is no plumb-mpi in {build}, or no mpirun for it")
    plain_way = Way("plumb", (str(build / "plumb"),), threads=2)
    root = Path(tempfile.mkdtemp(dir=options.scratch))
    met = True
    try:
        make(root, options.numbers)
        name_pairs(root, FILES)
        compare(plain_way, root)  # into the page cache
        pairs = int(FILES * max(2 * options.seconds / compare(plain_way, root)[0].cpu, 1))
        name_pairs(root, pairs)
        plain, wanted = [], b""
        took: Dict[Way, List[Taken]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for k, way in enumerate(ways):
                if k % 4 == 0:
                    taken, wanted = compare(plain_way, root)
                    plain.append(taken)
                taken, got = compare(way, root)
                took[way].append(taken)
                if got != wanted:
                    raise SystemExit(f"{way.name} with {way.processes} processes: other bytes than plumb --threads 2")
        wall, cpu = median([one.wall for one in plain]), median([one.cpu for one in plain])
        print(f"{pairs} pairs of {options.numbers:,} float32; plumb --threads 2: {wall:.2f} s, {cpu:.2f} s of processors "
              f"({len(plain)} runs, from {min(one.cpu for one in plain):.2f} to {max(one.cpu for one in plain):.2f})\n")
        print("| | processes | time | processor time | start of MPI, time | processor time | time without | processor time without | goal |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for way in ways:
            start = least([run([*way.start, "--help"], root)[0] for _ in range(3)])
            met = show(way, plain, took[way], start) and met
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print("\nall bytes are equal" + ("" if met else "; not all are within their goals"))
    return 0 if met else 1


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8, 16], metavar="N", help="numbers of processes")
    parser.add_argument("--seconds", type=float, default=15, help="that plumb --threads 2 takes (default: 15)")
    parser.add_argument("--numbers", type=int, default=20_000_000, help="float32 of a tensor (default: 20 million)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each (default: 1)")
    parser.add_argument("--build", default="build", help="the folder of the programs")
    parser.add_argument("--scratch", help="where the files are made")
