"""Small training steps on several processes, as a program of one rank: each case plain and recorded.

    sharded_cases.py RANK WORLD STORE FOLDER TASK LEVELS FAULT CASE...

Every case runs once without a debugger and once at each level (comma separated), from the same seed. A line of
JSON says for each what differed, in bits, from the plain run. FAULT: "", or "RANK:FACTOR", which scales the
weight of `norm` there, or "kernel:RANK:FACTOR", which scales what layer_norm gives there. Dumps are
FOLDER/CASE/LEVEL.
"""

import contextlib
import datetime
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

WIDTH, BATCH = 8, 4
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
ALL_TO_ALL = VERSION >= (2, 8)  # gloo has no all_to_all of lists before


class Block(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block()
        self.norm = nn.LayerNorm(WIDTH)
        self.last = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.first(x)))


Made = Tuple[nn.Module, Callable[[], Dict[str, Any]]]


def local(value: Any) -> Any:
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def trained(model: nn.Module, objective: Callable[[], torch.Tensor]) -> Callable[[], Dict[str, Any]]:
    """One step of SGD: the loss, gradients, and weights after it."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Dict[str, Any]:
        loss = objective()
        loss.backward()
        found = {"loss": local(loss.detach())}
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                found[f"{name}.grad"] = local(parameter.grad).clone()
        optimiser.step()
        found.update({name: local(p.detach()).clone() for name, p in model.named_parameters()})
        return found
    return step


def data() -> torch.Tensor:
    """Of this rank."""
    return torch.randn(dist.get_world_size(), BATCH, WIDTH)[dist.get_rank()]


def planted(model: nn.Module, fault: str) -> nn.Module:
    if is_here(fault):
        with torch.no_grad():
            model.norm.weight.mul_(factor_of(fault))
    return model


def is_here(fault: str, kind: str = "") -> bool:
    return fault.startswith(f"{kind}{dist.get_rank()}:")


def factor_of(fault: str) -> float:
    return float(fault.rpartition(":")[2])


def ddp(fault: str) -> Made:
    model = nn.parallel.DistributedDataParallel(Model())
    planted(model.module, fault)
    x = data()
    return model, trained(model, lambda: model(x).square().mean())


def fsdp1(fault: str, **options: Any) -> Made:
    from torch.distributed.fsdp import FullyShardedDataParallel, wrap
    policy = wrap.ModuleWrapPolicy({Block})
    model = FullyShardedDataParallel(planted(Model(), fault), auto_wrap_policy=policy, device_id=torch.device("cpu"),
                                     **options)
    x = data()
    return model, trained(model, lambda: model(x).square().mean())


def fsdp1_original(fault: str) -> Made:
    return fsdp1(fault, use_orig_params=True)


def fsdp2(fault: str) -> Made:
    from torch.distributed.fsdp import fully_shard
    model = Model()
    for block in (model.first, model.last, model.norm):
        fully_shard(block)
    fully_shard(model)
    if is_here(fault):
        with torch.no_grad():
            model.norm.weight.to_local().mul_(factor_of(fault))
    x = data()
    return model, trained(model, lambda: model(x).square().mean())


def mesh() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))


def dtensor(fault: str) -> Made:
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    grid = mesh()
    model = nn.ParameterDict({"a": nn.Parameter(distribute_tensor(torch.randn(8, 8), grid, [Shard(0)])),
                              "b": nn.Parameter(distribute_tensor(torch.randn(8, 8), grid, [Replicate()]))})
    x = DTensor.from_local(data(), grid, [Shard(0)])

    def objective() -> torch.Tensor:
        y = torch.relu(x @ model["b"])
        z = y.redistribute(grid, [Replicate()]) @ model["a"]
        return (z + -y.redistribute(grid, [Replicate()])).sum().redistribute(grid, [Replicate()]).to_local()
    return model, trained(model, objective)


def tensor_parallel(fault: str) -> Made:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    model = planted(Model(), fault)
    parallelize_module(model, mesh(), {"first.up": ColwiseParallel(), "first.down": RowwiseParallel(),
                                       "norm": SequenceParallel(sequence_dim=0, use_local_output=False),
                                       "last.up": ColwiseParallel(), "last.down": RowwiseParallel()})
    torch.manual_seed(7)
    x = torch.randn(BATCH, WIDTH)

    def objective() -> torch.Tensor:
        y = model.norm(model.first(x))
        y = y.full_tensor() if hasattr(y, "full_tensor") else y
        return model.last(y).square().mean()
    return model, trained(model, objective)


def schedule_class() -> Any:
    """1F1B, or GPipe where 1F1B cannot run on gloo: PyTorch before _wait_batch_p2p() keeps only the last of the works
    of a batch, and gloo takes back a send whose work nobody holds, so that the plain program waits for ever."""
    from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, schedules
    return Schedule1F1B if hasattr(schedules, "_wait_batch_p2p") else ScheduleGPipe


def pipeline(fault: str) -> Made:
    from torch.distributed.pipelining import PipelineStage
    rank, world = dist.get_rank(), dist.get_world_size()
    whole = nn.Sequential(*[nn.Sequential(Block(), nn.LayerNorm(WIDTH)) for _ in range(world)])
    part = whole[rank]
    stage = PipelineStage(part, rank, world, torch.device("cpu"))
    schedule = schedule_class()(stage, n_microbatches=world, loss_fn=lambda y, target: (y - target).square().mean())
    torch.manual_seed(7)
    x, target = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)

    def step() -> Dict[str, Any]:
        losses: List[torch.Tensor] = []
        if rank == 0:
            schedule.step(x)
        elif rank == world - 1:
            schedule.step(target=target, losses=losses)
        else:
            schedule.step()
        found = {f"{name}.grad": p.grad.clone() for name, p in part.named_parameters()}
        return {**found, **{f"loss{i}": loss.detach() for i, loss in enumerate(losses)}}
    return part, step


def collectives(fault: str) -> Made:
    rank, world = dist.get_rank(), dist.get_world_size()
    group = dist.new_group(list(range(world)))
    x = torch.randn(world, world, 2)[rank]

    def step() -> Dict[str, Any]:
        found: Dict[str, Any] = {}
        y = x.clone()
        dist.all_reduce(y)
        found["all_reduce"] = y.clone()
        work = dist.all_reduce(y, op=dist.ReduceOp.MAX, group=group, async_op=True)
        work.wait()
        found["max"] = y.clone()
        whole = torch.zeros(world * world, 2)
        dist.all_gather_into_tensor(whole, x)
        part = torch.zeros(1, 2)
        if hasattr(dist, "reduce_scatter_tensor"):
            dist.reduce_scatter_tensor(part, x.clone(), group=group)
        found["whole"], found["part"] = whole, part
        if ALL_TO_ALL:
            several = [torch.zeros(2) for _ in range(world)]
            dist.all_to_all(several, list(x.clone().unbind()))
            found["to_all"] = torch.stack(several)
        single = torch.zeros_like(x)
        dist.all_to_all_single(single, x)
        found["single"] = single
        first = x.clone()
        dist.broadcast(first, src=0)
        found["first"] = first
        got = torch.zeros_like(x)
        if rank % 2 == 0 and rank + 1 < world:
            dist.send(x, rank + 1)
            dist.recv(got, rank + 1)
        elif rank % 2:
            dist.recv(got, rank - 1)
            dist.send(x, rank - 1)
        found["got"] = got
        right = torch.zeros_like(x)
        for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, (rank + 1) % world),
                                           dist.P2POp(dist.irecv, right, (rank - 1) % world)]):
            one.wait()
        found["right"] = right
        dist.barrier()
        objects: List[Any] = [None] * world
        dist.all_gather_object(objects, {"rank": rank})
        assert [one["rank"] for one in objects] == list(range(world))
        return found
    return nn.Module(), step


def functional_collectives(fault: str) -> Made:
    from torch.distributed import _functional_collectives as funcol
    rank, world = dist.get_rank(), dist.get_world_size()
    x = torch.randn(world, world, 2)[rank]

    def step() -> Dict[str, Any]:
        total = funcol.all_reduce(x, "sum", dist.group.WORLD)
        waited = total + 1
        gathered = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
        part = funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)
        name = dist.group.WORLD.group_name
        raw = torch.ops._c10d_functional.all_reduce(x, "max", name)
        raw = torch.ops._c10d_functional.wait_tensor(raw)
        return {"total": waited.clone(), "gathered": gathered * 1, "part": part * 1, "raw": raw}
    return nn.Module(), step


def jagged(fault: str) -> Made:
    model = Block()
    parts = [torch.randn(n, WIDTH) for n in (2, 5, 3)]

    def objective() -> torch.Tensor:
        x = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
        y = model(x)
        q = y.unflatten(-1, [2, WIDTH // 2]).transpose(1, 2)
        z = F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2)
        return sum(part.square().sum() for part in z.unbind())
    return model, trained(model, objective)


def transforms(fault: str) -> Made:
    model = Block()
    x, target = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)

    def step() -> Dict[str, Any]:
        parameters = {name: p.detach() for name, p in model.named_parameters()}

        def loss(weights: Dict[str, torch.Tensor], one: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
            return (torch.func.functional_call(model, weights, (one,)) - wanted).square().mean()
        whole = torch.func.grad(loss)(parameters, x, target)
        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, target)
        jacobian = torch.func.jacrev(lambda one: F.gelu(one).sin())(x[0])
        forward = torch.func.jvp(lambda one: F.gelu(one).sin(), (x,), (target,))
        hessian = torch.func.hessian(lambda one: one.sin().sum())(x[0])
        return {**{f"whole {k}": v for k, v in whole.items()}, **{f"each {k}": v for k, v in each.items()},
                "jacobian": jacobian, "value": forward[0], "tangent": forward[1], "hessian": hessian}
    return model, step


CASES: Dict[str, Callable[[str], Made]] = {
    "ddp": ddp, "fsdp1": fsdp1, "fsdp1_original": fsdp1_original, "fsdp2": fsdp2, "dtensor": dtensor,
    "tensor_parallel": tensor_parallel, "pipeline": pipeline, "collectives": collectives,
    "functional_collectives": functional_collectives, "jagged": jagged, "transforms": transforms,
}
if VERSION < (2, 8):
    del CASES["fsdp2"]  # fully_shard() of those versions needs a GPU


@contextlib.contextmanager
def kernel(fault: str) -> Iterator[None]:
    right = F.layer_norm
    if is_here(fault, "kernel:"):
        F.layer_norm = lambda *args, **kwargs: right(*args, **kwargs) * factor_of(fault)
    try:
        yield
    finally:
        F.layer_norm = right


def run(case: str, level: str, folder: Path, task: str, fault: str) -> Dict[str, Any]:
    torch.manual_seed(3)
    model, step = CASES[case](fault)
    if level == "plain":
        return step()
    from plumb import PrecisionDebugger
    debugger = PrecisionDebugger(task=task, level=level, dump_path=str(folder / case / level), risk_level="ALL")
    debugger.start(model)
    try:
        return step()
    finally:
        debugger.stop()
        debugger.step()


def differing(a: Dict[str, Any], b: Dict[str, Any]) -> List[str]:
    return [name for name in {**a, **b} if name not in a or name not in b or not torch.equal(a[name], b[name])]


def main() -> None:
    rank, world, store, folder, task, levels, fault = sys.argv[1:8]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(world),
                            timeout=datetime.timedelta(seconds=120))
    for case in sys.argv[8:] or CASES:
        plain: Dict[str, Any] = {}
        for level in ("plain", *levels.split(",")):
            said: Dict[str, Any] = {"case": case, "level": level, "rank": int(rank), "different": [], "error": ""}
            try:
                with kernel(fault):
                    found = run(case, level, Path(folder), task, fault)
                plain = plain if level != "plain" else found
                said["different"] = differing(plain, found)
            except Exception:
                said["error"] = traceback.format_exc()
            print(json.dumps(said), flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
