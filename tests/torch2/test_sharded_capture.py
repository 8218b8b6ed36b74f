"""Training on several processes while something is recorded: bit-identical, nothing raised, and in the dump of
every rank what that rank has, exchanges and computes. Real processes, on gloo."""

import csv
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

from capture_case import BUILD, PLUMB, CaptureTest, Dump, leaves  # noqa: E402

import torch  # noqa: E402

PROGRAM = Path(__file__).with_name("sharded_cases.py")
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
FSDP2 = VERSION >= (2, 8)
LIMIT = 600  # seconds


CASES = ("ddp", "fsdp1", "fsdp1_original", *(("fsdp2",) if FSDP2 else ()), "dtensor", "tensor_parallel", "pipeline",
         "collectives", "functional_collectives", "jagged", "transforms")
FAULTY = ("ddp", "tensor_parallel", *(("fsdp2",) if FSDP2 else ()))
PLACE = tempfile.TemporaryDirectory(prefix="plumb-sharded-")


def tearDownModule() -> None:
    PLACE.cleanup()


class Ran(NamedTuple):
    folder: Path
    said: List[Dict[str, Any]]  # what each rank says of each case and level
    errors: List[str]           # of ranks that failed


@functools.lru_cache(maxsize=None)
def ran(*cases: str, world: int = 2, levels: str = "mix", fault: str = "") -> Ran:
    """Starts processes once for all tests that look at what they leave."""
    folder = Path(tempfile.mkdtemp(dir=PLACE.name))
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    words = [str(folder / "store"), str(folder), "tensor", levels, fault, *cases]
    children = [subprocess.Popen([sys.executable, str(PROGRAM), str(rank), str(world), *words], env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(world)]
    try:
        results = [child.communicate(timeout=LIMIT) for child in children]
    finally:
        for child in children:
            child.kill()
    return Ran(folder, [json.loads(line) for out, _ in results for line in out.splitlines()],
               [error for child, (_, error) in zip(children, results) if child.returncode])


def healthy() -> Ran:
    return ran(*CASES, levels="L0,L1,mix")


class ShardedTest(CaptureTest):
    def dump_of(self, case: str, rank: int = 0, level: str = "mix", of: Optional[Ran] = None) -> Dump:
        found = of or healthy()
        self.assertEqual([], found.errors)
        dump = Dump(found.folder / case / level / "step0" / f"rank{rank}")
        self.assertEqual("", dump.problems())
        return dump

    def listed(self, dump: Dump) -> str:
        path = dump.folder / "not_recorded.txt"
        return path.read_text() if path.exists() else ""


class Same(ShardedTest):
    """Bit-identical, and nothing raised."""

    def check(self, found: Ran, cases: Tuple[str, ...], levels: Tuple[str, ...], world: int) -> None:
        self.assertEqual([], found.errors)
        self.assertEqual({(case, level, rank) for case in cases for level in ("plain", *levels) for rank in range(world)},
                         {(one["case"], one["level"], one["rank"]) for one in found.said})
        for one in found.said:
            with self.subTest(**{key: one[key] for key in ("case", "level", "rank")}):
                self.assertEqual(("", []), (one["error"], one["different"]))
                if one["level"] != "plain":
                    self.assertTrue(self.dump_of(one["case"], one["rank"], one["level"], found).json)

    def test_every_case_at_every_level(self) -> None:
        self.check(healthy(), CASES, ("L0", "L1", "mix"), 2)

    def test_four_processes(self) -> None:
        cases = ("pipeline", "collectives", "dtensor")
        self.check(ran(*cases, world=4), cases, ("mix",), 4)

    def test_a_fault_changes_no_more_with_capture(self) -> None:
        for fault in ("1:1.01", "kernel:1:1.01"):
            for one in ran(*FAULTY, fault=fault).said:
                self.assertEqual(("", []), (one["error"], one["different"]))


class Recorded(ShardedTest):
    def test_a_dtensor_is_its_shard(self) -> None:
        for rank in range(2):
            data = self.dump_of("dtensor", rank).data
            x, weight = data["Tensor.__matmul__.0.forward"]["input_args"]
            self.assertEqual([4, 8], x["shape"])
            self.assertEqual({"placements": ["S(0)"], "mesh": [0, 1], "mesh_dim_names": ["tp"], "shape": [8, 8]},
                             x["dtensor"])
            self.assertEqual((["R"], [8, 8]), (weight["dtensor"]["placements"], weight["shape"]))
            backward = data["Tensor.__matmul__.0.backward"]
            self.assertEqual(["S(0)"], backward["input"][0]["dtensor"]["placements"])
            self.assertIn("Tensor.__neg__.0.forward", data)
            # What redistribute() exchanges is recorded where it happens, with the values that came.
            gathered = data["Distributed.functional_all_gather_into_tensor.0.forward"]
            self.assertEqual([[4, 8], [8, 8]], [gathered[side][0]["shape"] for side in ("input_args", "output")])
            self.assertEqual([0, 1], gathered["exchange"]["group_ranks"])
        halves = [self.dump_of("dtensor", rank) for rank in range(2)]
        name = "Distributed.functional_all_gather_into_tensor.0.forward"
        parts = [dump.tensor(dump.data[name]["input_args"][0]) for dump in halves]
        for dump in halves:
            self.assertTrue(torch.equal(torch.cat(parts), dump.tensor(dump.data[name]["output"][0])))

    def test_shards_are_not_judged_as_if_they_were_all(self) -> None:
        """A row of a linear that is cut is no linear of what one process has: it must not be blamed."""
        for rank in range(2):
            done = subprocess.run([str(PLUMB), "blame", str(healthy().folder / f"tensor_parallel/mix/step0/rank{rank}")],
                                  stdout=subprocess.PIPE, text=True)
            self.assertIn("No call that was judged does worse than rounding", done.stdout)
            self.assertIn("are spread over processes", re.sub(r"\s+", " ", done.stdout))

    def test_collectives_have_group_and_order(self) -> None:
        for rank in range(2):
            dump = self.dump_of("collectives", rank)
            exchanges = {name: entry["exchange"] for name, entry in dump.data.items() if name.startswith("Distributed")}
            self.assertEqual(sorted(range(len(exchanges))), sorted(one["order"] for one in exchanges.values()))
            named = [one["group_ranks"] for one in exchanges.values() if "group_ranks" in one]
            self.assertEqual(
                (1, [[0, 1]]), (len({one["group_id"] for one in exchanges.values()}), named))  # once for each group
            names = [name.split(".")[1] for name in exchanges]
            for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast",
                         "send", "recv", "batch_isend_irecv"):
                self.assertIn(name, names)
            asked = dump.data["Distributed.all_reduce.1.forward"]
            self.assertEqual("torch.ProcessGroup", asked["input_kwargs"]["group"]["type"])
            buffer = dump.data["Distributed.all_gather_into_tensor.0.forward"]
            self.assertIsNone(buffer["input_args"][0])
            self.assertEqual([4, 2], buffer["output"][0]["shape"])
            functional = self.dump_of("functional_collectives", rank).data
            total = functional["Distributed.functional_all_reduce.0.forward"]
            self.assertEqual([0, 1], total["input_args"][2]["group_ranks"])
        both = [self.dump_of("functional_collectives", rank) for rank in range(2)]
        entries = [dump.data["Distributed.functional_all_reduce.0.forward"] for dump in both]
        inputs = [dump.tensor(entry["input_args"][0]) for dump, entry in zip(both, entries)]
        for dump, entry in zip(both, entries):
            self.assertTrue(torch.equal(inputs[0] + inputs[1], dump.tensor(entry["output"][0])))

    def test_gradients_after_they_are_reduced(self) -> None:
        cases = ("ddp", "fsdp1", *(("fsdp2",) if FSDP2 else ()))
        for case in cases:
            dumps = [self.dump_of(case, rank) for rank in range(2)]
            names = [name for name in dumps[0].data if name.startswith("Module.reduced.")]
            self.assertTrue(names, case)
            self.assertEqual(names, [name for name in dumps[1].data if name.startswith("Module.reduced.")])
            if case == "ddp":
                self.assertIn("its all_reduce runs inside", self.listed(dumps[0]))
                for name in names:
                    for key in dumps[0].data[name]:
                        same = [dump.tensor(dump.data[name][key][0]) for dump in dumps]
                        own = [dump.tensor(dump.data[name.replace("reduced.", "", 1)][key][0]) for dump in dumps]
                        self.assertTrue(torch.equal(*same))
                        self.assertFalse(torch.equal(*own), name)
                        self.assertTrue(torch.allclose(same[0], (own[0] + own[1]) / 2, atol=1e-7))
            if case == "fsdp2":
                leaf = dumps[0].data["Module.reduced.norm.LayerNorm.parameters_grad.0"]["weight"][0]
                self.assertEqual((["S(0)"], [4], [8]),
                                 (leaf["dtensor"]["placements"], leaf["shape"], leaf["dtensor"]["shape"]))

    @unittest.skipUnless(FSDP2, "fully_shard() of this PyTorch needs a GPU")
    def test_modules_of_a_sharded_model_have_their_names(self) -> None:
        """Those of the model that is not sharded, so that both runs pair; no call is of PyTorch's own."""
        plain, sharded = ({name.replace("module.", "") for name in self.dump_of(case).data
                           if re.match(r"Module\.(module\.)?(first|norm|last)\b.*forward", name)} for case in ("ddp", "fsdp2"))
        self.assertEqual(plain, sharded)
        self.assertTrue(plain)
        kinds = {name.split(".")[1] for name in self.dump_of("fsdp2").data if name.startswith(("Torch.", "Tensor."))}
        self.assertEqual(set(), kinds & {"split", "narrow", "chunk", "view", "stride"})

    def test_nested_and_transformed(self) -> None:
        data = self.dump_of("jagged").data
        parts = data["Functional.linear.0.forward"]["input_args"][0]
        self.assertEqual([[2, 8], [5, 8], [3, 8]], [leaf["shape"] for leaf in parts])
        self.assertEqual([[2, 16], [5, 16], [3, 16]], [leaf["shape"] for leaf in leaves(data["Functional.linear.0.forward"]["output"])])
        self.assertIn("Functional.scaled_dot_product_attention.0.forward", data)
        data = self.dump_of("transforms").data
        batched = data["Functional.linear.2.forward"]["input_args"]
        self.assertEqual(([4, 8], [4]), (batched[0]["shape"], batched[0]["vmap"]))
        self.assertNotIn("vmap", batched[1])


class Planted(ShardedTest):
    """A fault of one process is found in the dump of that process, and first where it happens."""

    def compare(self, case: str, fault: str = "1:1.01") -> Dict[int, List[str]]:
        """Rank -> the names of the tensors that differ, in order."""
        good, bad = (found.folder / case / "mix" / "step0" for found in (healthy(), ran(*FAULTY, fault=fault)))
        subprocess.run([str(PLUMB), "compare", str(bad), str(good), "-o", str(self.root / "found")],
                       stdout=subprocess.PIPE, check=False)
        found: Dict[int, List[str]] = {}
        for rank in range(2):
            path, = (self.root / "found").glob(f"*rank{rank}_*.csv")
            with open(path, newline="", encoding="utf-8") as file:
                found[rank] = [row["API Name"] for row in csv.DictReader(file) if re.match(r"[^0N]|0\.", row["MaxAbsErr"])]
        return found

    def test_a_weight_of_one_replica(self) -> None:
        found = self.compare("ddp")
        self.assertRegex(found[1][0], r"^Functional\.layer_norm\.0\.forward\.(input\.2|output\.0)")
        # The other process has it from the reduced gradients only.
        self.assertTrue(found[0])
        self.assertEqual([], [name for name in found[0] if not name.startswith("Module.reduced.") and "add_" not in name])

    def test_a_weight_of_one_tensor_parallel_process(self) -> None:
        found = self.compare("tensor_parallel")
        self.assertRegex(found[1][0], r"^Functional\.layer_norm\.0\.forward")
        self.assertRegex(found[0][0], r"^Distributed\.functional_all_gather_into_tensor\.\d+\.forward\.output")

    @unittest.skipUnless(FSDP2, "fully_shard() of this PyTorch needs a GPU")
    def test_a_shard_of_one_process(self) -> None:
        found = self.compare("fsdp2")
        owners = {rank for rank in found if "Module.norm.LayerNorm.forward.0.parameters.weight" in found[rank]}
        self.assertEqual({1}, owners)
        self.assertRegex(found[1][0], r"^Distributed\.all_gather\w*\.\d+\.forward\.(input|output)")

    def test_a_wrong_kernel_of_one_process(self) -> None:
        for case in FAULTY:
            if case == "tensor_parallel":  # what it has are shards, which blame leaves alone
                continue
            for rank in range(2):
                folder = ran(*FAULTY, fault="kernel:1:1.01").folder
                done = subprocess.run([str(PLUMB), "blame", str(folder / case / "mix" / "step0" / f"rank{rank}"),
                                       "--format", "json"], stdout=subprocess.PIPE, text=True)
                faults = json.loads(done.stdout)["faults"]
                names = [fault["call"] for fault in faults]
                self.assertEqual(["Functional.layer_norm.0.forward"] if rank else [], names[:1], done.stdout[:2000])


if __name__ == "__main__":
    unittest.main()
