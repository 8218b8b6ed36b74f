"""What processes exchange: which functions do, in which group and order, and results that come later.

Functions of torch.distributed write into their arguments; asynchronous ones are over when somebody has
waited for them. Functional collectives (torch.ops._c10d_functional, with which DTensor works) return
tensors that are there after wait_tensor. Either is written when it is over, with the number that it had
when it began.
"""

import functools
import inspect
import types
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from plumb._capture.leaves import group_id, group_ranks
from plumb._capture.sink import Call

PREFIX = "Distributed"
FUNCTIONAL = "functional_"  # before the names of functional collectives
SPACES = ("_c10d_functional", "_c10d_functional_autograd")
WAIT = "wait_tensor"

# What functions of torch.distributed take, beside tensors.
TAKEN = (torch.distributed.P2POp, torch.distributed.ProcessGroup) if torch.distributed.is_available() else ()

# Of msProbe, and without the argument by which others are known.
KNOWN = frozenset("""
all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single _all_gather_base
batch_isend_irecv broadcast gather irecv isend recv reduce reduce_scatter reduce_scatter_tensor
_reduce_scatter_base scatter send
""".split())


@functools.lru_cache(maxsize=None)
def collectives() -> FrozenSet[str]:
    """The functions of this PyTorch's torch.distributed that exchange tensors."""
    found = set(KNOWN)
    for name, function in vars(torch.distributed).items():
        if type(function) is types.FunctionType and not name.startswith("_") and "object" not in name and "barrier" not in name:
            if "async_op" in inspect.signature(function).parameters:
                found.add(name)
    return frozenset(found)


def gives_result(call: Call) -> bool:
    """Whether what was exchanged is what the call returns, not its arguments."""
    return call.name.startswith(FUNCTIONAL)


# Arguments that are written and not read: what was in them before is nothing.
WRITTEN: Dict[str, Tuple[Any, ...]] = {
    "all_gather": (0, "tensor_list"), "all_gather_coalesced": (0, "output_tensor_lists"),
    "gather": (1, "gather_list"), "scatter": (0, "tensor"), "reduce_scatter": (0, "output"),
    "all_to_all": (0, "output_tensor_list"), "all_to_all_single": (0, "output"), "recv": (0, "tensor"),
    "irecv": (0, "tensor"), **{name: (0, "output_tensor") for name in (
        "all_gather_into_tensor", "all_gather_single", "_all_gather_base")},
    **{name: (1, "gather_tensor") for name in ("gather_into_tensor", "gather_single")},
    **{name: (0, "output") for name in ("reduce_scatter_tensor", "reduce_scatter_single", "_reduce_scatter_base")},
}


def written(call: Call) -> Tuple[Any, ...]:
    """Places of such arguments, by position and by name."""
    return WRITTEN.get(call.name, ()) if call.prefix == PREFIX else ()


def resolved(args: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Arguments of a functional collective: the last is the name of a group."""
    c10d = torch.distributed.distributed_c10d
    if args and isinstance(args[-1], str) and hasattr(c10d, "_resolve_process_group"):
        return (*args[:-1], c10d._resolve_process_group(args[-1]))
    return args


def group_in(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The group of a call; None: that of all processes."""
    distributed = torch.distributed
    for value in (*args, *kwargs.values()):
        if isinstance(value, distributed.ProcessGroup):
            return value
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], distributed.P2POp):
            return value[0].group
    return None


def tensors_of(output: Any) -> Iterator[Tensor]:
    for one in output if isinstance(output, (list, tuple)) else (output,):
        if isinstance(one, Tensor):
            yield one


def is_work(output: Any) -> bool:
    if isinstance(output, list):
        return bool(output) and all(is_work(item) for item in output)
    return hasattr(output, "wait") and hasattr(output, "is_completed")


class Begun(NamedTuple):
    call: Call
    works: List[Any]          # that are waited for; or
    tensors: Dict[int, Tensor]  # by address
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    output: Any


class Exchanges:
    """Those of one recorder: their order, and which are not over."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.begun: List[Begun] = []
        self.arrived: List[Tensor] = []  # while the recorder was busy
        self.new_step()

    def new_step(self) -> None:
        self.count = 0  # that have begun

    def number(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Any, ...]:
        """Its arguments, with the group of a functional collective for its name."""
        call.exchange = {"order": self.count}
        self.count += 1
        if gives_result(call):
            args = resolved(args)
        ranks = group_ranks(group_in(args, kwargs))
        call.exchange.update(group_ranks=ranks, group_id=group_id(ranks))
        return args

    def begin(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any], output: Any) -> bool:
        """Whether its result comes later."""
        if call.prefix != PREFIX:
            return False
        if is_work(output):
            works = list(output) if isinstance(output, list) else [output]
            self.begun.append(Begun(call, works, {}, args, kwargs, None))
            return True
        if gives_result(call):
            tensors = {tensor.data_ptr(): tensor for tensor in tensors_of(output)}
            self.begun.append(Begun(call, [], tensors, args, kwargs, output))
            return True
        return False

    def work_done(self, work: Any) -> None:
        """After wait(): now the arguments hold what was exchanged."""
        recorder = self.recorder
        if recorder.busy() or recorder.local.quiet or not self.begun:
            return
        with recorder.lock, recorder.quietly():
            self._write(self._waited_work(work))

    def tensor_done(self, tensor: Any) -> None:
        """After wait_tensor(). What the recorder itself waits for is written after what it is at."""
        recorder = self.recorder
        if not self.begun or not isinstance(tensor, Tensor):
            return
        if recorder.busy():
            self.arrived.append(tensor)
            return
        with recorder.lock, recorder.quietly():
            try:
                self._write(self._waited_tensor(tensor))
            except Exception:
                recorder.problem(WAIT)

    def flush_arrived(self) -> None:
        while self.arrived:
            self._write(self._waited_tensor(self.arrived.pop()))

    def finish(self) -> None:
        """Before recording stops."""
        with self.recorder.quietly():
            self.flush_arrived()
            left, self.begun = self.begun, []
            for one in left:
                if one.works and all(member.is_completed() for member in one.works):
                    self._write(one)
                else:
                    self.recorder.note(f"{one.call.title('forward')}: nobody waited for it before stop()")

    def _waited_work(self, work: Any) -> Optional[Begun]:
        """The exchange that is over with it."""
        for one in self.begun:
            left = [member for member in one.works if member is not work]
            if len(left) < len(one.works):
                one.works[:] = left
                if all(member.is_completed() for member in left):
                    self.begun.remove(one)
                    return one
                return None
        return None

    def _waited_tensor(self, tensor: Tensor) -> Optional[Begun]:
        address = tensor.data_ptr()
        for one in self.begun:
            if address in one.tensors:
                del one.tensors[address]
                if not one.tensors:
                    self.begun.remove(one)
                    return one
                return None
        return None

    def _write(self, begun: Optional[Begun]) -> None:
        if begun is None:
            return
        call, recorder = begun.call, self.recorder
        try:
            recorder.sink.results(call, begun.args, begun.kwargs, begun.output)
            recorder.calls += 1
        except Exception:
            recorder.problem(f"{call.prefix}.{call.name}.{call.number}")
