"""A process with a PyTorch that nobody has changed, which runs single operators on the CPU.

The online check asks it where the program has put its own kernel in the place of the native one.
Started as `python3 -I clean_worker.py REQUESTS ANSWERS PATH`: two open files, and the folder that
torch is imported from. A message is its size in eight bytes, then what torch.save made of it.
"""

import io
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

HEAD = struct.Struct("<Q")
START_SECONDS, CALL_SECONDS = 120.0, 30.0
MOST_FAILURES = 3


# Batch normalisation changes these, if it has a momentum; the schemas of PyTorch do not all say so.
# Operators with such names have one too, and only read them.
UNTOLD_CHANGES = ("running_mean", "running_var")
MOMENTUM = ("momentum", "exponential_average_factor")
READERS = ("_no_training", "_no_update", "_functional")


def is_told(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def written_names(func: Any) -> Set[str]:
    """The arguments of its schema that an operator may write into."""
    schema = func._schema.arguments
    moves = not func._schema.name.endswith(READERS) \
        and any(argument.name in MOMENTUM for argument in schema)
    return {argument.name for argument in schema
            if is_told(argument) or moves and argument.name in UNTOLD_CHANGES}


def written(func: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments that a call may write into, by name."""
    schema, names = func._schema.arguments, written_names(func)
    found = {argument.name: kwargs.get(argument.name) for argument in schema
             if argument.name in names}
    found.update((argument.name, value) for argument, value in zip(schema, args)
                 if argument.name in names)
    return {name: value for name, value in found.items() if value is not None}


def observed(func: Any, result: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> List[Any]:
    """What a call gave: its results, or, where it returns none, the arguments that it changed."""
    if result is None or (isinstance(result, (tuple, list)) and not result):
        return list(written(func, args, kwargs).values())
    return list(result) if isinstance(result, (tuple, list)) else [result]


def find_operator(torch: Any, name: str) -> Any:
    """The operator of a full name: "aten::add.Tensor", "aten::mm"."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), base), overload or "default")


# -- In the process --------------------------------------------------------------------------------


def read_exactly(source: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = os.read(source, min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def answer(torch: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    try:
        torch.set_num_threads(request["threads"])
        func = find_operator(torch, request["op"])
        with torch.no_grad():
            result = func(*request["args"], **request["kwargs"])
        return {"outputs": observed(func, result, request["args"], request["kwargs"]),
                "written": written(func, request["args"], request["kwargs"])}
    except Exception as error:  # whatever the operator says is the answer
        first = str(error).strip().split("\n", 1)[0]
        return {"error": f"{type(error).__name__}: {first}"}


def serve(requests: int, answers: int) -> None:
    import torch
    while True:
        try:
            (size,) = HEAD.unpack(read_exactly(requests, HEAD.size))
            request = torch.load(io.BytesIO(read_exactly(requests, size)), weights_only=False)
        except EOFError:
            return
        buffer = io.BytesIO()
        torch.save(answer(torch, request), buffer)
        data = HEAD.pack(buffer.tell()) + buffer.getvalue()
        while data:
            data = data[os.write(answers, data):]


# -- In the program --------------------------------------------------------------------------------


class WorkerError(Exception):
    """The worker died, hung or could not be started."""


def how_it_ended(process: subprocess.Popen) -> str:
    """Of a process that has closed its files, and is about to end if it has not."""
    try:
        code = process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return "it closed its files"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    advice = " (an instruction that this machine does not have; in a virtual machine set " \
             "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)" if -code == signal.SIGILL else ""
    return f"it was ended by {name}{advice}"


class CleanWorker:
    """Starts the process when it is first asked. Thread-safe; a forked child gets its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: Optional[subprocess.Popen] = None
        self.owner = 0
        self.failures = 0
        self.requests = self.answers = -1

    def run(self, op: str, args: Tuple[Any, ...],
            kwargs: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
        """The outputs of the native operator on CPU tensors, and what it wrote into. RuntimeError:
        the operator refused; WorkerError: there is no answer, after a limited time."""
        import torch
        buffer = io.BytesIO()
        torch.save({"op": op, "args": args, "kwargs": kwargs,
                    "threads": torch.get_num_threads()}, buffer)
        with self.lock:
            data = self._ask(HEAD.pack(buffer.tell()) + buffer.getvalue())
        reply = torch.load(io.BytesIO(data), weights_only=False)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["outputs"], reply["written"]

    def close(self) -> None:
        with self.lock:
            self._stop()

    def _ask(self, data: bytes) -> bytes:
        seconds = CALL_SECONDS
        if self.process is None or self.owner != os.getpid():
            if self.failures >= MOST_FAILURES:
                raise WorkerError("the process with a clean PyTorch failed too often")
            self._start()
            seconds = START_SECONDS
        end = time.monotonic() + seconds
        try:
            self._send(data, end)
            (size,) = HEAD.unpack(self._receive(HEAD.size, end))
            return self._receive(size, end)
        except (OSError, EOFError, TimeoutError) as error:
            why = str(error) if isinstance(error, TimeoutError) else how_it_ended(self.process)
            self.failures += 1
            self._stop()
            raise WorkerError(f"the process with a clean PyTorch gave no answer: {why}") from None

    def _start(self) -> None:
        import torch
        self._forget()
        theirs, self.requests = os.pipe()
        self.answers, back = os.pipe()
        os.set_blocking(self.requests, False)
        folder = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", os.path.abspath(__file__), str(theirs), str(back), folder],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=(theirs, back))
            self.owner = os.getpid()
        except OSError as error:
            self.failures += 1
            self._forget()
            raise WorkerError(f"no process with a clean PyTorch can be started: {error}") from None
        finally:
            os.close(theirs)
            os.close(back)

    def _send(self, data: bytes, end: float) -> None:
        view = memoryview(data)
        while view:
            self._wait([], [self.requests], end)
            view = view[os.write(self.requests, view[:1 << 16]):]

    def _receive(self, size: int, end: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait([self.answers], [], end)
            piece = os.read(self.answers, min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    @staticmethod
    def _wait(reads: List[int], writes: List[int], end: float) -> None:
        left = end - time.monotonic()
        if left <= 0 or not any(select.select(reads, writes, [], left)):
            raise TimeoutError("it took too long")

    def _stop(self) -> None:
        process = self.process if self.owner == os.getpid() else None
        self._forget()
        if process is not None:
            process.kill()
            process.wait()

    def _forget(self) -> None:
        for number in (self.requests, self.answers):
            if number >= 0:
                os.close(number)
        self.requests = self.answers = -1
        self.process = None


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    serve(int(sys.argv[1]), int(sys.argv[2]))
