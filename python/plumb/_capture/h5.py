"""The sink of HDF5 files: one file a rank, a group a step, a dataset a tensor.

    globalrank-{g}_localrank-{l}.h5           /1/blocks.0.norm2.LayerNorm.1.forward_output.0
    globalrank-{g}_localrank-{l}_summary.csv  what `plumb summary` would say of it
    globalrank-{g}_localrank-{l}_modules.json what modules were constructed with

Recorded are modules without modules inside, those with parameters of their own, and those of which
no module inside was called: what others do is done by these, or by functions, which
dump_torch_api=True records as well; dump_containers=True records the others too. The number in a
name counts the calls of that class in the step, so the second layer norm of a block is LayerNorm.1;
of a function it counts the calls of that function; which call of its module a tensor is of is its
attribute path_call. The file is there from the first step on, and whole after each stop() and step,
and also when the program is killed in between.
"""

import math
import os
from collections import Counter
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from torch import Tensor

from plumb import _core
from plumb._capture import exchange
from plumb._capture.files import write_whole
from plumb._capture.given import as_outputs, tensors_in
from plumb._capture.rank import global_rank
from plumb._capture.sink import Call, Sink, as_lines, buffers_of, parameters_of, settings_of
from plumb._capture.wrappers import opened
from plumb.tensors import view

COLUMNS = ["Index", "Step", "Rank", "Module", "Min", "Max", "Mean", "Std"]


def local_rank() -> int:
    text = os.environ.get("LOCAL_RANK", "")
    return int(text) if text.isdigit() else global_rank() or 0


class H5Sink(Sink):
    takes_inner = True

    def __init__(self, folder: str, taken: Optional[int] = None) -> None:
        """taken: the rank whose file another process writes, which this one was forked from."""
        super().__init__()
        self.folder = os.path.abspath(folder)
        self.taken = taken
        self.writer: Optional[_core.Writer] = None
        self.file = -1                # the writer's number of the open one
        self.files = 0                # that were finished
        self.broken = False           # the open one
        self.stem = ""
        self.rows: List[Tuple[Any, ...]] = []  # of this step
        self.index = -1               # of the last row in the file

    # -- Files -------------------------------------------------------------------------------------

    def open(self, step: int) -> None:
        self.step = step
        self.counts: Counter = Counter()  # calls of a class
        self.described: Set[str] = set()  # modules whose parameters are written
        self.inner: Set[Tuple[str, str]] = set()  # parameters of modules that nobody called
        self.names: Dict[str, int] = {}  # of tensors, and how many came before
        self.ends: List[int] = []        # how many tensors had come at the end of each call
        self.lost = self.whole = 0       # tensors that are in a file that failed
        if self.file >= 0:
            return
        self.rank, local = global_rank() or 0, local_rank()
        # A second file of the same process must not take the place of the first.
        again = f"_{self.files}" if self.files else ""
        child = f"_proc{os.getpid()}" if self.rank == self.taken else ""
        self.stem = f"{self.folder}/globalrank-{self.rank}_localrank-{local}{child}{again}"
        os.makedirs(self.folder, exist_ok=True)
        self.rows, self.index, self.broken = [], -1, False
        self.settings: Dict[str, Dict[str, Any]] = {}  # of modules, by step and call
        with open(self.summary(), "w", encoding="utf-8") as file:
            file.write(",".join(COLUMNS) + "\n")
        self.writer = self.writer or _core.Writer()
        self.file = self.writer.open_h5(f"{self.stem}.h5", self.rank, local)
        self.writer.sync_h5(self.file)

    def pause(self) -> None:
        if self.writer is not None:
            if self.rows and self.file >= 0:
                self.writer.sync_h5(self.file)
            self.writer.flush()
            self._note_errors(self.writer)
        if self.rows:
            text = _core.Table(COLUMNS, self.rows).text(format="csv").partition("\n")[2]
            self.rows = []
            with open(self.summary(), "a", encoding="utf-8") as file:
                file.write(text)
            if self.settings:
                write_whole(f"{self.stem}_modules.json", _core.json_text(self.settings))

    def _note_errors(self, writer: _core.Writer) -> None:
        """A file that fails takes nothing more: what came behind the first tensor that failed is not there."""
        errors = writer.errors()
        self.errors += as_lines(errors)
        if self.file >= 0 and writer.broken_h5(self.file):
            if not self.broken:
                self.whole = min((at for tensor, at in self.names.items() for name, message in errors
                                  if name == tensor or f'"{tensor}"' in message), default=0)
            self.broken = True
            self.lost = sum(end > self.whole for end in self.ends)

    def close(self) -> None:
        self.pause()

    def summary(self) -> str:
        return f"{self.stem}_summary.csv"

    def list_path(self) -> str:
        return f"{self.stem}_not_recorded.txt"

    def end(self) -> None:
        """Nothing more will come."""
        if self.file >= 0:
            self.writer.close_h5(self.file)
            self.file = -1
            self.pause()
            self.files += 1

    # -- Tensors -----------------------------------------------------------------------------------

    def add(self, name: str, tensor: Tensor, call: Call) -> None:
        name = name.replace("/", "_").replace("\0", "_")  # keys of dicts may be anything
        if name in self.names:
            self.errors.append(f"{name}: a second time in step {self.step}; the first is kept")
            return
        self.names[name] = len(self.names)
        found = opened(tensor)
        if found is not None and found.parts[0:1] and not found.parts[0][0]:
            tensor = found.parts[0][1]
        elif found is not None:
            for inner, part in found.parts:
                self.add(f"{name}.{inner}", part, call)
            return
        try:
            seen = view(tensor)
            # The number in the name counts the class; this one counts the module.
            self.writer.add_h5(self.file, name, self.step, seen, call.number if call.kind else -1)
            numbers = [text(value) for value in seen.stats()[:4]]
            self.index += 1
            self.rows.append((self.index, self.step, self.rank, name, *numbers))
        except _core.Error as error:  # a meta or sparse tensor
            self.errors.append(f"{name}: {error}")

    # -- Calls -------------------------------------------------------------------------------------

    def arguments(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        module = call.module
        if self.file < 0:  # it could not be opened, which was told
            return
        if module is None:
            call.data = f"{call.prefix}.{call.name}.{call.number}"
        else:
            index = self.counts[call.kind]
            self.counts[call.kind] += 1
            call.data = f"{call.name}.{call.kind}.{index}" if call.name else f"{call.kind}.{index}"
            settings = settings_of(module)
            if settings is not None:
                self.settings[f"{self.step}/{call.data}.forward"] = settings
            if call.name not in self.described:
                self.described.add(call.name)
                for key, value in parameters_of(module):
                    self.add(f"{call.data}.forward_params.{key}", value, call)
                for key, value in buffers_of(module):
                    self.add(f"{call.data}.forward_buffers.{key}", value, call)
        written = exchange.written(call)
        for place, tensor in places(item for item in (*enumerate(args), *kwargs.items()) if item[0] not in written):
            self.add(f"{call.data}.forward_input.{place}", tensor, call)

    def results(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any],
                output: Any) -> None:
        if call.data is not None:
            for place, tensor in places(enumerate(as_outputs(output))):
                self.add(f"{call.data}.forward_output.{place}", tensor, call)
            self.ends.append(len(self.names))

    def inner_parameter(self, call: Call, name: str, value: Tensor) -> None:
        if call.data is not None and (call.name, name) not in self.inner:
            self.inner.add((call.name, name))
            self.add(f"{call.data}.forward_params.{name}", value, call)

    def gradient(self, call: Call, side: str, index: int, grad: Tensor) -> None:
        if call.data is not None:
            place = (call.outputs if side == "input" else call.inputs)[index]
            self.add(f"{call.data}.backward_{side}.{place}", grad, call)


def places(items: Any) -> Iterator[Tuple[str, Tensor]]:
    for name, value in items:
        found: List[Tuple[str, Tensor]] = []
        tensors_in(value, str(name), found)
        yield from found


def text(value: Any) -> str:
    """A number as `plumb summary` has it."""
    if value is None:
        return ""
    number = float(value)
    return "NaN" if math.isnan(number) else repr(number)
