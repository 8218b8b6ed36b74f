"""The sink of dump.json: one folder a step and rank, whole JSON at any moment.

Entries are written when a call is over, each time with the end of the file, which the next one
replaces: a program that is killed leaves a dump that can be read.
"""

import linecache
import os
import zlib
from typing import Any, Dict, List, Optional, Set, Tuple

from torch import Tensor

from plumb import _core
from plumb._capture import exchange, unwritten
from plumb._capture.config import Config
from plumb._capture.files import JsonFile, write_whole
from plumb._capture.given import as_outputs
from plumb._capture.leaves import NOTHING, Cache, Encoder, Numbers, numbers_of, tensor_leaf
from plumb._capture.sink import (Call, Parameter, Sink, as_lines, buffers_of, parameters_of,
                                settings_of)
from plumb._capture.sketches import Against, SketchFile
from plumb.tensors import view

MOST_BYTES = 200  # of a file's name; the temporary one is longer, and 255 is what there is


def file_name(name: str) -> str:
    """Keys of dicts may be anything: what no file can be called gets a checksum in its name instead."""
    plain = name.replace("/", "_").replace("\0", "_").encode("utf-8", "replace").decode()
    if plain == name and len(name.encode()) <= MOST_BYTES:
        return name
    stem, ending = os.path.splitext(plain)
    short = stem.encode()[:MOST_BYTES - 20].decode("utf-8", "ignore")
    return f"{short}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}{ending}"


class Stacks:
    """Calls with the same stack share one list of lines."""

    def __init__(self) -> None:
        self.found: Dict[Tuple[Any, ...], List[str]] = {}

    def group(self, stack: Tuple[Any, ...]) -> List[str]:
        return self.found.setdefault(stack, [])

    def text(self) -> str:
        groups = [(names, [line_of(code, line) for code, line in stack])
                  for stack, names in self.found.items() if names]
        return _core.json_text({str(i): group for i, group in enumerate(groups)})


def line_of(code: Any, line: int) -> str:
    source = linecache.getline(code.co_filename, line).strip()
    return f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"


class Entry:
    """A call that is not written yet."""
    __slots__ = ("forward", "backward", "stack")

    def __init__(self) -> None:
        self.forward: Dict[str, Any] = {}
        self.backward: Optional[Dict[str, List[Any]]] = None
        self.stack: Optional[List[str]] = None


class DumpSink(Sink):
    """folder(step) names the folder of a step and rank; it is made here."""

    def __init__(self, config: Config, folder: Any) -> None:
        super().__init__()
        self.config = config
        self.folder_of = folder
        self.writer: Optional[_core.Writer] = None
        self.saves = config.task == "tensor"
        mode = {"structure": "structure", "tensor": "statistics", "sketch": "sketch"}.get(
            config.task, config.summary_mode)
        self.bare = config.task == "structure"
        self.sketches: Optional[SketchFile] = None
        self.against = Against(config.bench_path, config.bench_limit, config.bench_dump) if config.bench_path else None
        self.cache = Cache(numbers_of(mode), mode == "statistics")
        self.encoder = Encoder(self.tensor, self.array, lambda place, error: self.errors.append(
            f"{place}: {str(error).strip() or type(error).__name__}"))
        self.keep = False           # whether tensors of the entry at hand go into files
        self.file: Optional[JsonFile] = None
        self.calls: Set[str] = set()

    # -- Files -------------------------------------------------------------------------------------

    def open(self, step: int) -> None:
        config = self.config
        self.folder = self.folder_of(step)
        os.makedirs(self.folder, exist_ok=True)
        self.data = os.path.join(self.folder, "dump_tensor_data")
        if config.task == "sketch":
            self.sketches = SketchFile(self.folder)
        self.stale = set(os.listdir(self.data)) if self.sketches and os.path.isdir(self.data) else set()
        if self.against:
            self.against.open(os.path.join(*self.folder.split(os.sep)[-2:]), self.folder)
        if self.saves or config.tensor_list or self.against:
            os.makedirs(self.data, exist_ok=True)
            self.writer = self.writer or _core.Writer()
        for name in ("stack.json", "construct.json", "modules.json", "dump_error_info.log"):
            if os.path.exists(os.path.join(self.folder, name)):
                os.remove(os.path.join(self.folder, name))
        debug = config.level == "debug"
        self.file = JsonFile(os.path.join(self.folder, "debug.json" if debug else "dump.json"), {
            "task": config.task, "level": config.level, "framework": "pytorch",
            "dump_data_dir": os.path.abspath(self.data) if self.writer else None})
        self.stacks = Stacks()
        self.construct: Dict[str, Optional[str]] = {}
        self.settings: Dict[str, Dict[str, Any]] = {}  # of modules, by call
        self.grads: Dict[str, Tuple[str, Dict[str, List[Any]]]] = {}
        self.names: Set[str] = set()  # of files of this step
        self.calls: Set[str] = set()  # of entries that the writer has
        self.lost = 0
        self.groups: Set[str] = set()  # of processes, whose ranks this step has named

    def pause(self) -> None:
        for name, entry in self.grads.values():
            self.add(name, entry)
        self.grads.clear()
        self.cache.clear()
        if self.writer:
            self.writer.flush()
            self._note_errors(self.writer)
        if self.config.extra_info and self.config.level != "debug":
            construct = _core.json_text(self.construct)
            write_whole(os.path.join(self.folder, "stack.json"), self.stacks.text())
            write_whole(os.path.join(self.folder, "construct.json"), construct)
        if self.settings:
            write_whole(os.path.join(self.folder, "modules.json"), _core.json_text(self.settings))

    def close(self) -> None:
        if self.file:
            if self.writer:
                self.writer.flush()
            self.file.close()
            self.file = None
        if self.sketches:
            self.sketches.close()
            self.sketches = None
            if self.against:
                self.against.close()

    def forked(self) -> None:
        """In the child of a fork: the files are the parent's."""
        for file in (self.file, self.sketches):
            if file:
                file.close()
        self.file = self.sketches = None

    def told(self) -> str:
        return self.against.told() if self.against else ""

    def end(self) -> None:
        if self.writer:
            self.writer.close()
            self._note_errors(self.writer)
            self.writer = None

    def _note_errors(self, writer: _core.Writer) -> None:
        errors = writer.errors()
        self.errors += as_lines(errors)
        gone = {name for name, _ in errors}
        self.lost += len(gone & self.calls)

    def add(self, name: str, entry: Dict[str, Any]) -> None:
        if self.file:
            self.file.add(name, entry, self.writer)  # which names no tensor that is not there

    def moved(self) -> None:
        self.cache.moment += 1

    # -- Leaves ------------------------------------------------------------------------------------

    def tensor(self, tensor: Tensor, place: str) -> Dict[str, Any]:
        if self.bare:
            return tensor_leaf(tensor, Numbers(None, None))
        try:
            seen = view(tensor)
        except _core.Error as error:
            # Of a meta or sparse tensor the type and shape are all there is; a meta tensor has no values to miss.
            if tensor.device.type != "meta":
                self.errors.append(f"{place}: {error}")
            return tensor_leaf(tensor, Numbers(NOTHING, None))
        numbers = self.cache.of(seen, tensor)
        leaf = tensor_leaf(tensor, numbers)
        if unwritten.holds(tensor):
            leaf["uninitialised"] = True
        if seen.count:
            self.store(leaf, seen, f"{place}.pt", numbers.sketch)
        return leaf

    def store(self, leaf: Dict[str, Any], seen: _core.Tensor, name: str,
              sketch: Optional[_core.Sketch]) -> None:
        """The tensor itself, or its sketch, or both, as far as they are wanted."""
        if not self.keep and sketch is None:
            return
        name = self.unique(name)
        keep = self.keep
        if sketch is not None and self.sketches:
            try:
                self.sketches.add(name, sketch, bool(leaf.get("requires_grad")))
                if self.against and self.against.parts_at(name, seen, sketch, not leaf.get("uninitialised")):
                    keep = True
            except OSError as error:  # what dump.json has of it is kept all the same
                self.errors.append(f"{name}: {error.strerror}")
                return
        checksum = leaf.pop("md5", None)
        leaf["data_name"] = name
        if checksum is not None:
            leaf["md5"] = checksum
        if keep:
            self.writer.save(os.path.join(self.data, name), seen)
        elif name in self.stale:  # of an earlier capture in this folder
            os.unlink(os.path.join(self.data, name))

    def unique(self, name: str) -> str:
        stem, ending = os.path.splitext(file_name(name))
        name, again = f"{stem}{ending}", 1
        while name in self.names:  # {"a.b": x, "a": {"b": y}}
            again += 1
            name = f"{stem}-{again}{ending}"
        self.names.add(name)
        return name

    def array(self, array: Any, place: str) -> Dict[str, Any]:
        """Of numpy: like a tensor, without gradients."""
        leaf: Dict[str, Any] = {"type": "numpy.ndarray", "dtype": array.dtype.name,
                                "shape": list(array.shape)}
        if self.bare:
            return leaf
        leaf.update(NOTHING)
        if array.dtype.kind not in "biufc":
            return leaf
        seen = view(array)
        if seen.count:
            sketch = seen.sketch() if self.sketches else None
            low, high, mean, _, norm = (sketch.stats if sketch else seen.stats())[:5]
            whole = array.dtype.name in ("float16", "float32")
            leaf.update({"Max": high, "Min": low, "Mean": mean if whole else None,
                         "Norm": norm if whole else None})
            self.store(leaf, seen, f"{place}.npy", sketch)
        return leaf

    # -- Calls -------------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        """The next tensors belong to the entry of this name."""
        self.keep = self.saves or any(part in name for part in self.config.tensor_list)

    def arguments(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        call.data = entry = Entry()
        if call.stack is not None:
            entry.stack = self.stacks.group(call.stack)
            call.stack = None
        if not self.wants("forward", "input"):
            return
        name = call.title("forward")
        self.begin(name)
        element = self.encoder.element
        written = exchange.written(call)
        entry.forward["input_args"] = [element(arg, f"{name}.input.{i}") if i not in written else None
                                       for i, arg in enumerate(args)]
        entry.forward["input_kwargs"] = {
            key: element(arg, f"{name}.kwargs.{key}", key) if key not in written else None
            for key, arg in kwargs.items()}
        if call.module is not None:
            # Put in its place by `results`; the values are those before the call.
            entry.forward["parameters"] = {
                key: element(value, f"{name}.parameters.{key}")
                for key, value in parameters_of(call.module)}
            entry.forward["buffers"] = {
                key: element(value, f"{name}.buffers.{key}")
                for key, value in buffers_of(call.module)}
            settings = settings_of(call.module) if self.keep else None
            if settings is not None:
                self.settings[name] = settings

    def results(self, call: Call, args: Tuple[Any, ...], kwargs: Dict[str, Any],
                output: Any) -> None:
        entry = call.data
        name = call.title("forward")
        if call.prefix == exchange.PREFIX and not exchange.gives_result(call):
            output = (*args, *kwargs.values())  # they write into their arguments
        if entry.stack is not None:
            entry.stack.append(name)
            self.enter(name, call, "forward")
        if self.wants("forward", "output"):
            self.begin(name)
            forward = entry.forward
            last = {key: forward.pop(key) for key in ("parameters", "buffers") if key in forward}
            forward["output"] = [self.encoder.element(value, f"{name}.output.{i}")
                                 for i, value in enumerate(as_outputs(output))]
            forward.update(last)
        if not entry.forward.get("buffers", True):
            del entry.forward["buffers"]
        if entry.forward:
            if call.exchange is not None:
                entry.forward["exchange"] = self.group_once(call.exchange)
            self.add(name, entry.forward)
            if self.writer:
                self.calls.add(name)
        entry.forward = {}

    def group_once(self, told: Dict[str, Any]) -> Dict[str, Any]:
        """The ranks of a group stand at its first exchange: with thousands of them they would be most of the file."""
        known = told["group_id"] in self.groups
        self.groups.add(told["group_id"])
        return {key: value for key, value in told.items() if key != "group_ranks" or not known}

    def enter(self, name: str, call: Call, direction: str) -> None:
        """Into construct.json, with those of its parents that are not recorded themselves."""
        if self.config.level == "L1" and call.parent is None:  # the only parents there are compiled regions
            return
        self.construct[name] = call.parent.title(direction) if call.parent else None
        around = call.parent
        while around is not None and around.follow is False:
            self.construct.setdefault(around.title(direction), around.parent.title(direction)
                                      if around.parent else None)
            around = around.parent

    def gradient(self, call: Call, side: str, index: int, grad: Tensor) -> None:
        if not self.wants("backward", side):
            return
        entry = call.data
        if entry.backward is None:
            entry.backward = {"input": [None] * len(call.outputs),
                              "output": [None] * len(call.inputs)}
        name = call.title("backward")
        self.begin(name)
        entry.backward[side][index] = self.encoder.element(grad, f"{name}.{side}.{index}")

    def backward(self, call: Call) -> None:
        entry = call.data
        if entry.backward is None:
            return
        name = call.title("backward")
        if self.config.extra_info:
            self.enter(name, call, "backward")
        self.add(name, {side: leaves for side, leaves in entry.backward.items()
                        if self.wants("backward", side)})
        call.data = None

    def parameter_gradient(self, parameter: Parameter, grad: Tensor, last: bool) -> None:
        path = f"{parameter.module}." if parameter.module else ""
        name = f"Module.{path}{parameter.kind}.parameters_grad.{parameter.number}"
        open_name, entry = self.grads.get(parameter.module, (name, {}))
        if open_name != name:
            self.add(open_name, entry)
            entry = {}
        self.begin(name)
        entry[parameter.name] = [self.encoder.element(grad, f"{name}.{parameter.name}")]
        if last:
            self.grads.pop(parameter.module, None)
            self.add(name, entry)
        else:
            self.grads[parameter.module] = (name, entry)

    def saved(self, name: str, number: int, place: str, value: Any) -> None:
        full = f"{name}.{number}.debug" + (f".{place}" if place else "")
        self.begin(full)
        self.add(full, self.encoder.element(value, full))

    def wants(self, direction: str, side: str) -> bool:
        modes = self.config.data_mode
        return direction in modes and side in modes
