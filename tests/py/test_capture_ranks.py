"""Several processes: each has its folder, and what they exchange is recorded before and after."""

import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parent))
import torch  # noqa: E402
from capture_case import BUILD, PLUMB, CaptureTest, Dump  # noqa: E402

CHILD = r"""
import sys
import torch
import torch.distributed as dist
from torch import nn
from plumb import PrecisionDebugger

rank, store, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
debugger = PrecisionDebugger(task="tensor", level="mix", dump_path=path)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
original = dist.all_reduce
debugger.start(model)
out = model(torch.full((1, 3), rank + 1.0))
out.sum().backward()
x = torch.full((2,), rank + 1.0)
dist.all_reduce(x)
work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
torch.exp(torch.ones(2))
work.wait()
parts = [torch.zeros(2) for _ in range(2)]
dist.all_gather(parts, x * (rank + 1))
group = dist.new_group([0, 1])
dist.broadcast(x, src=0, group=group)
other = torch.zeros(2)
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x + rank, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)])
for work in works:
    work.wait()
lost = torch.zeros(1)
late = dist.isend(torch.ones(1), 1) if rank == 0 else dist.irecv(lost, 0)
late.wait()
debugger.stop()
assert dist.all_reduce is original
debugger.step()
assert other.tolist() == (x + 1 - rank).tolist(), other
print("gradient", [p.grad.flatten().tolist() for p in model.parameters()])
dist.barrier()
"""


class RanksTest(CaptureTest):
    def run_ranks(self) -> List[str]:
        self.path = self.root / "dump"
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "GLOO_SOCKET_IFNAME": "lo"}
        children = [subprocess.Popen([sys.executable, "-c", CHILD, str(rank), str(self.root / "store"), str(self.path)],
                                     env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    for rank in range(2)]
        said = [child.communicate(timeout=600) for child in children]
        for child, (_, error) in zip(children, said):
            self.assertEqual(child.returncode, 0, error)
            self.assertIn("1 step with", error)
        return [out for out, _ in said]

    def test_two_processes(self) -> None:
        said = self.run_ranks()
        self.assertEqual(said[0], said[1])
        self.assertEqual(sorted(path.name for path in (self.path / "step0").iterdir()), ["rank0", "rank1"])
        for rank in range(2):
            self.check_rank(rank, Dump(self.path / "step0" / f"rank{rank}"))
        text = subprocess.run([str(PLUMB), "info", str(self.path)], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        self.assertIn("Distributed.all_reduce.1.forward.output.0", text)

    def values(self, dump: Dump, leaf: Dict[str, Any]) -> List[float]:
        return dump.tensor(leaf).tolist()

    def check_rank(self, rank: int, dump: Dump) -> None:
        self.assertEqual(dump.problems(), "")
        data = dump.data
        self.assertIn("Module.module.0.Linear.forward.0", data)
        self.assertIn("Module.module.0.Linear.parameters_grad.0", data)

        first = data["Distributed.all_reduce.0.forward"]
        self.assertEqual(self.values(dump, first["input_args"][0]), [rank + 1.0] * 2)
        self.assertEqual(self.values(dump, first["output"][0]), [3.0] * 2)

        self.assertEqual(first["exchange"], {"order": 0, "group_ranks": [0, 1], "group_id": "77849d8c"})

        # What came later than the call is written when the script has waited for it.
        names = list(data)
        self.assertLess(names.index("Torch.exp.0.forward"), names.index("Distributed.all_reduce.1.forward"))
        second = data["Distributed.all_reduce.1.forward"]
        self.assertEqual(second["input_kwargs"]["async_op"], {"type": "bool", "value": True})
        self.assertEqual(second["input_kwargs"]["op"], {"type": "torch.distributed.ReduceOp", "value": "RedOpType.MAX"})
        self.assertEqual(len(second["output"]), 3)

        gathered = data["Distributed.all_gather.0.forward"]
        self.assertIsNone(gathered["input_args"][0])  # what was there before means nothing
        self.assertEqual([self.values(dump, leaf) for leaf in gathered["output"][0]], [[3.0] * 2, [6.0] * 2])

        group = data["Distributed.broadcast.0.forward"]["input_kwargs"]["group"]
        self.assertEqual(group["type"], "torch.ProcessGroup")
        self.assertEqual(group["group_ranks"], [0, 1])
        self.assertRegex(group["group_id"], "^[0-9a-f]{8}$")

        exchange = data["Distributed.batch_isend_irecv.0.forward"]
        send, receive = exchange["input_args"][0]
        self.assertEqual([send["class_type"], send["op"], send["peer"], receive["op"]],
                         ["torch.distributed.P2POp", "isend", 1 - rank, "irecv"])
        self.assertEqual(send["group_id"], group["group_id"])
        self.assertEqual(self.values(dump, exchange["output"][0][1]["tensor"]), [3.0 + 1 - rank] * 2)
        self.assertIn("Distributed.isend.0.forward" if rank == 0 else "Distributed.irecv.0.forward", data)

    def test_rank_from_the_environment(self) -> None:
        os.environ["RANK"] = "5"
        self.addCleanup(os.environ.pop, "RANK")
        with self.capture():
            torch.exp(torch.ones(2))
        self.assertEqual(self.dump().folder.name, "rank5")

    def test_no_rank(self) -> None:
        with self.capture():
            torch.exp(torch.ones(2))
        self.assertEqual(self.dump().folder.name, f"proc{os.getpid()}")


if __name__ == "__main__":
    unittest.main()
