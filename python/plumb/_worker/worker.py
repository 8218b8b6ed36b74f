"""Runs operators of PyTorch for the plumb program: one process a worker, started and watched by it.

Needs the standard library and torch only, and is started as `python3 worker.py FOLDER` (which it may
write to) with three open files: 3 is the memory that is shared with plumb, 4 a socket for messages, 5 a pipe that plumb holds
open for as long as it lives. A message is its size in four bytes, then JSON. The first one says
which device, how many threads, which modules of the user; each further one is a call. Tensors stand
in the shared memory, and messages say where. Whatever a call raises is the answer to that call.
"""

import contextlib
import ctypes
import fcntl
import importlib
import importlib.util
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

MEMORY, CONTROL, LIFE = 3, 4, 5
VERSION = 1
ALIGN = 64
SEED = 1234
RESULT_LIMIT = 1 << 20  # results of one call
TEXT_LIMIT = 400

F_SETSIG = 10  # of Linux; fcntl has no name for it
SCRATCH = sys.argv[1:2]  # the folder that it may write to


# -- Messages ----------------------------------------------------------------------------------


class Channel:
    def __init__(self, number: int) -> None:
        self.socket = socket.socket(fileno=number)

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                os._exit(0)  # plumb has closed its end
            data += piece
        return bytes(data)

    def receive(self) -> bytes:
        (size,) = struct.unpack("<I", self.read(4))
        return self.read(size)

    def send(self, message: Dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        self.socket.sendall(struct.pack("<I", len(data)) + data)


class Refusal(Exception):
    """What the worker itself says no to; its text is the whole message."""


def told(error: BaseException) -> str:
    """The last line of a traceback: the type, and the first line of what it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0][:TEXT_LIMIT].replace("\0", " ") if lines else ""
    text = text.encode("utf-8", "backslashreplace").decode()
    if isinstance(error, Refusal):
        return text
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return (isinstance(error, MemoryError) or "out of memory" in text
            or "allocate memory" in text or "not enough memory" in text)


# -- Shared memory -----------------------------------------------------------------------------


class Memory:
    """The file behind descriptor 3; only ever grows."""

    def __init__(self) -> None:
        self.map: Optional[mmap.mmap] = None
        self.size = 0

    def reach(self, size: int) -> None:
        if size > self.size:
            # Tensors may still lie in the old mapping; it goes when the last of them does.
            self.size = os.fstat(MEMORY).st_size
            self.map = mmap.mmap(MEMORY, self.size)

    def grow(self, start: int, end: int) -> None:
        """Room from start to end, really there: a page that cannot be had later is a signal."""
        try:
            os.posix_fallocate(MEMORY, start, max(1, end - start))
        except OSError as error:
            raise MemoryError(f"no room for {end - start} bytes of results") from error
        self.reach(end)

    def tensor(self, dtype: Any, shape: List[int], at: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(self.map, dtype=dtype, count=count, offset=at).view(shape)


# -- Which function a name means ---------------------------------------------------------------

# A dump is a file that a stranger may have written, and torch reaches the whole of Python
# (torch.os, torch.load, ...). So names lead to operators, and to nothing else, unless the user
# named the module.
PARTS = ("linalg", "fft", "special", "sparse", "nested", "nn.functional")
PYTHON_PARTS = {"torch.functional", "torch.nn.functional", "torch.linalg", "torch.fft",
                "torch.special", "torch.sparse", "torch.nested", "torch._tensor", "torch._lowrank",
                "torch._lobpcg", "torch._linalg_utils"}
WRITE_FILES = {"from_file", "save"}
NO_METHODS = {"__setstate__", "__reduce__", "__reduce_ex__", "__new__", "__init__",
              "__init_subclass__", "__torch_function__", "__torch_dispatch__", "share_memory_"}


def registered() -> Set[str]:
    """Names of all operators: "aten::add"."""
    return {schema.name for schema in torch._C._jit_get_all_schemas()}


class Names:
    """`brought` are the operators that the user's modules registered."""

    def __init__(self, device: Any, modules: List[Any], brought: Set[str] = frozenset()) -> None:
        self.device = device
        self.modules = modules
        self.brought = brought
        self.formulas: Any = None
        self.note: Optional[str] = None  # of what was found last

    def find(self, prefix: str, name: str) -> Callable[..., Any]:
        self.note = None
        for space, meant in (("aten::", "Aten"), ("aten.", "Aten"), ("npu::", "NPU"),
                             ("npu.", "NPU")):
            if name.startswith(space):
                prefix, name = meant, name[len(space):]
        finders = {"Functional": self.functional, "Tensor": self.method, "Torch": self.plain,
                   "VF": self.variable, "Aten": self.aten, "NPU": self.npu}
        function = None
        if WRITE_FILES.isdisjoint(name.split(".")):
            function = finders[prefix](name) if prefix in finders else self.own(prefix, name)
        if function is None and not prefix:
            known = [f"{p}.{name}" for p in ("Torch", "Functional", "Tensor", "Aten")
                     if finders[p](name) is not None]
            if known:
                raise Refusal(f"PyTorch needs to know which {name} is meant: {' or '.join(known)}")
        if function is None:
            raise Refusal(f"PyTorch {torch.__version__} has no {prefix}.{name}")
        return function

    def operator(self, owner: Any, name: str) -> Optional[Callable[..., Any]]:
        function = getattr(owner, name, None)
        if not callable(function) or isinstance(function, type):
            return None
        home = getattr(function, "__module__", None) or ""
        if home in PYTHON_PARTS or home in [module.__name__ for module in self.modules]:
            return function
        built_in = type(function) is type(torch.add) and home.partition(".")[0] == "torch"
        return function if built_in and home != "torch._C" else None  # where the tools of PyTorch are

    def functional(self, name: str) -> Optional[Callable[..., Any]]:
        return self.operator(torch.nn.functional, name)

    def plain(self, name: str) -> Optional[Callable[..., Any]]:
        part, _, last = name.rpartition(".")
        if not part:
            function = self.operator(torch, last)
            known = hasattr(torch._C._VariableFunctions, last)
            return function if known or type(function) is not type(torch.add) else None
        if part not in PARTS:
            return None
        owner = torch
        for word in part.split("."):
            owner = getattr(owner, word, None)
        return self.operator(owner, last)

    def variable(self, name: str) -> Optional[Callable[..., Any]]:
        return None if hasattr(object, name) else getattr(torch._C._VariableFunctions, name, None)

    def method(self, name: str) -> Optional[Callable[..., Any]]:
        if name in NO_METHODS:
            return None
        if name in ("cuda", "npu", "xpu"):
            return lambda tensor, *_, **__: tensor.to(self.device)
        if name == "item":  # a float with its type, to be judged by it
            return lambda tensor: (tensor.reshape(()) if tensor.is_floating_point() or tensor.is_complex()
                                   else tensor.item())
        for owner in torch.Tensor.__mro__:
            if owner is object or name not in vars(owner):
                continue
            if callable(getattr(torch.Tensor, name)):
                return getattr(torch.Tensor, name)
            return lambda tensor: getattr(tensor, name)
        return None

    def packet(self, space: str, name: str) -> Optional[Callable[..., Any]]:
        """aten and add.Tensor; without an overload PyTorch chooses by the arguments."""
        word, _, overload = name.partition(".")
        try:
            found = getattr(getattr(torch.ops, space), word)
            found = getattr(found, overload) if overload else found
        except (AttributeError, RuntimeError):
            return None
        return found if is_operator(found) else None

    def aten(self, name: str) -> Optional[Callable[..., Any]]:
        word = name.partition(".")[0]
        if word == "_local_scalar_dense":
            return self.method("item")
        if word == "_reshape_alias":  # whose strides are those of the memory that was recorded
            return lambda tensor, size, _: tensor.view(size)
        return self.packet("aten", name)

    def npu(self, name: str) -> Optional[Callable[..., Any]]:
        """The user's operator, else the device's own, else the formula in the types of the call."""
        own = self.own("npu", name) or self.own("NPU", name)
        if own is None and "torch_npu" in sys.modules and self.device.type == "npu":
            own = self.of_npu(name) or self.packet("npu", name)
        if own is not None:
            return own
        if self.formulas is None:
            self.formulas = load_file(Path(__file__).with_name("worker_npu.py"), "worker_npu")
        formula = self.formulas.find(name)
        if formula is not None:
            self.note = f"{self.device} has no {name}: plumb's formula of it ran there"
        return formula

    @staticmethod
    def of_npu(name: str) -> Optional[Callable[..., Any]]:
        """Operators are in torch_npu beside much that is none, and that it imported."""
        found = vars(sys.modules["torch_npu"]).get(name)
        home = getattr(found, "__module__", None) or ""
        written = isinstance(found, type(told)) and name.startswith("npu_") and home.startswith("torch_npu")
        return found if written or is_operator(found) else None

    def own(self, prefix: str, name: str) -> Optional[Callable[..., Any]]:
        """What the user's modules brought: PREFIX.NAME is a function of a module of that name, of
        a class or module in one, of any of them, or an operator that one registered. What a module
        imported from elsewhere is not its own: through torch alone the whole of Python is in reach."""
        words = [prefix, *name.split(".")]
        if not self.modules or any(not word.isidentifier() or word.startswith("__") for word in words):
            return None
        for module in self.modules:
            starts: List[Any] = [module] if module.__name__.rpartition(".")[2] == prefix else []
            if prefix in vars(module) and is_of(module, vars(module)[prefix]):
                starts.append(vars(module)[prefix])
            for owner in [*starts, module]:
                for word in words[1:]:
                    owner = vars(owner).get(word) if hasattr(owner, "__dict__") else None
                    owner = owner.__func__ if isinstance(owner, (staticmethod, classmethod)) else owner
                    if owner is None or not is_of(module, owner):
                        break
                else:
                    if callable(owner) and not isinstance(owner, (type, type(sys))):
                        return owner
        return self.packet(prefix, name) if f"{prefix}::{words[1]}" in self.brought else None


def is_operator(thing: Any) -> bool:
    """One of torch.ops, of all its kinds of arguments or of one."""
    return type(thing).__module__ == "torch._ops" and type(thing).__name__.startswith("OpOverload")


def is_of(module: Any, thing: Any) -> bool:
    """Whether the module defines it: a function or class, an object of such a class, a module of
    the same package."""
    name = module.__name__
    if isinstance(thing, type(sys)):
        return thing.__name__.startswith(name + ".")
    if isinstance(thing, torch.jit.ScriptFunction):
        return thing.qualified_name.startswith(f"__torch__.{name}.")
    home = vars(thing).get("__module__") if isinstance(thing, type) else getattr(thing, "__module__", None)
    return isinstance(home, str) and (home == name or home.startswith(name + "."))


def load_file(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# -- A call ------------------------------------------------------------------------------------

# Operators that return nothing: which of their arguments hold what they computed.
WRITTEN = {"_fused_adam_": (0, 1, 2, 3), "_fused_adamw_": (0, 1, 2, 3), "_fused_sgd_": (0, 1, 2),
           "_fused_adagrad_": (0, 1, 2), "rotary_embedding": (1, 2), "fused_add_rms_norm": (0, 1),
           **dict.fromkeys(("silu_and_mul", "mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul", "fatrelu_and_mul",
                            "swigluoai_and_mul", "gelu_new", "gelu_fast", "gelu_quick", "rms_norm"), (0,)),
           "_amp_foreach_non_finite_check_and_unscale_": (0, 1)}

RAISED = {"float16": "float64", "bfloat16": "float64", "float32": "float64",
          "complex32": "complex128", "complex64": "complex128", "float8_e4m3fn": "float64",
          "float8_e5m2": "float64"}


def dtype_named(name: str) -> Any:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Refusal(f"PyTorch {torch.__version__} has no type {name}")
    return dtype


def layout_named(name: str) -> Any:
    layout = getattr(torch, name.rpartition(".")[2], None)
    if not isinstance(layout, torch.layout):
        raise Refusal(f"PyTorch {torch.__version__} has no layout {name}")
    return layout


class Call:
    """The arguments of a request as PyTorch takes them."""

    def __init__(self, memory: Memory, device: Any, request: Dict[str, Any]) -> None:
        self.memory, self.device = memory, device
        self.raised: bool = request["raise"]
        self.wants_grads = bool(request["grads"])
        self.leaves: List[Any] = []  # that get a gradient; None for other tensors
        self.given: List[Tuple[Any, Any, int]] = []  # each tensor, as it was, as it is passed, its version
        self.args = [self.value(arg) for arg in request["args"]]
        self.arg_leaves = len(self.leaves)
        self.kwargs = {name: self.value(arg) for name, arg in request["kwargs"].items()}
        if self.kwargs.get("memory_format", 0) is None:
            del self.kwargs["memory_format"]
        if isinstance(self.kwargs.get("device"), (str, int)):
            self.kwargs["device"] = device
        if isinstance(self.kwargs.get("layout"), str):
            self.kwargs["layout"] = layout_named(self.kwargs["layout"])
        if request["name"] in ("__getitem__", "__setitem__"):  # dumps write tuples as lists
            self.args[1:2] = [tuple(i) if isinstance(i, list) else i for i in self.args[1:2]]
        self.grads = [None if grad is None else self.loaded(grad) for grad in request["grads"]]

    def loaded(self, info: Dict[str, Any]) -> Any:
        tensor = self.memory.tensor(dtype_named(info["dtype"]), info["shape"], info["at"])
        if self.raised:
            tensor = tensor.to(self.dtype(info["dtype"]))
        return tensor.to(self.device)

    def dtype(self, name: str) -> Any:
        return dtype_named(RAISED.get(name, name) if self.raised else name)

    def tensor(self, info: Dict[str, Any]) -> Any:
        tensor = self.loaded(info)
        leaf = bool(info["grad"]) and self.wants_grads
        self.leaves.append(tensor.requires_grad_() if leaf else None)
        # No leaf, so that operators may write into it; and what they wrote is to be seen.
        passed = tensor.clone() if leaf or self.device.type == "cpu" else tensor
        self.given.append((tensor, passed, passed._version))
        return passed

    def value(self, arg: Any) -> Any:
        if isinstance(arg, list):
            return [self.value(item) for item in arg]
        if not isinstance(arg, dict):
            return arg
        ((kind, of),) = arg.items()
        if kind == "tensor":
            return self.tensor(of)
        if kind == "dtype":
            return self.dtype(of)
        if kind == "slice":
            return slice(*of)
        if kind == "ellipsis":
            return Ellipsis
        if kind == "device":
            return self.device
        if kind == "integer":
            return int(of)
        if kind == "complex":
            return complex(*of)
        what = f"of type {of}" if of else "of a type that was not recorded"
        raise Refusal(f"an argument {what} cannot be rebuilt from the dump")

    def written(self, name: str) -> Any:
        """What a function that returned nothing has computed."""
        name = name.partition(".")[0]
        if name in WRITTEN:
            places = WRITTEN[name] + ((4,) if self.kwargs.get("amsgrad") else ())
            return [self.args[k] for k in places if k < len(self.args)]
        if name.endswith("_") and self.args:
            return self.args[0]
        return None

    def changed(self, outputs: List[Any]) -> List[Any]:
        """Tensors that the call has written into and does not return, as it left them; None for others."""
        returned = {id(out) for out in outputs}
        return [now if id(now) not in returned and (now._version != version or differs(was, now)) else None
                for was, now, version in self.given]

    def backward(self, outputs: List[Any]) -> List[Any]:
        pairs = [(out, grad) for out, grad in zip(outputs, self.grads)
                 if grad is not None and isinstance(out, torch.Tensor) and out.requires_grad]
        wanted = [leaf for leaf in self.leaves if leaf is not None]
        if not pairs or not wanted:
            return [None] * len(self.leaves)
        for out, grad in pairs:
            if grad.numel() != out.numel():
                raise Refusal(f"a gradient of {grad.numel()} elements for {out.numel()} of output")
        given = [grad.reshape(out.shape).to(out.dtype) for out, grad in pairs]
        got = iter(torch.autograd.grad([out for out, _ in pairs], wanted, given,
                                       allow_unused=True))
        return [None if leaf is None else next(got) for leaf in self.leaves]


def differs(was: Any, now: Any) -> bool:
    if was is now or was.shape != now.shape or was.numel() == 0:
        return False
    was, now = was.detach(), now.detach()
    return not torch.equal(was, now) and not bool(((was == now) | ((was != was) & (now != now))).all())


def flattened(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flattened(item)
    else:
        yield value


def stored(value: Any) -> Any:
    """A result that has plain elements."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    if value.is_quantized:
        return value.dequantize()
    if value.device.type == "meta":
        raise Refusal("a result without values (on the device meta)")
    return value if value.layout == torch.strided else value.to_dense()


@contextlib.contextmanager
def looking_into(folder: str) -> Iterator[None]:
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is imported, by something unusual
        return True


class Worker:
    def __init__(self, channel: Channel, setup: Dict[str, Any]) -> None:
        self.channel = channel
        self.memory = Memory()
        torch.set_num_threads(setup["threads"])
        with contextlib.suppress(RuntimeError):
            torch.set_num_interop_threads(1)
        warnings.simplefilter("ignore")
        before = registered() if setup["imports"] else set()
        modules = [self.imported(name) for name in setup["imports"]]
        brought = registered() - before if modules else set()
        self.device = self.opened(setup["device"], setup["jit"])
        self.names = Names(self.device, modules, brought)
        self.own_memory = data_bytes()
        self.kept: Optional[int] = None  # bytes that calls leave to the next; not known before the first
        # Accelerators are reached through files.
        sandbox = load_file(Path(__file__).with_name("worker_sandbox.py"), "worker_sandbox")
        plain = self.device.type == "cpu"
        sandbox.enter(SCRATCH, ["/dev/null" if plain else "/dev"], plain)

    @staticmethod
    def imported(name: str) -> Any:
        """By name, from the current folder where Python has no such module, or as a file. The
        current folder may be a stranger's: it is looked into for a module that the user named
        there, with what that one needs, and never again."""
        try:
            if name.endswith(".py"):
                path = Path(name).resolve()
                with looking_into(str(path.parent)):
                    return load_file(path, path.stem)
            if is_installed(name.partition(".")[0]):
                return importlib.import_module(name)
            with looking_into(os.getcwd()):
                return importlib.import_module(name)
        except BaseException as error:
            raise Refusal(f"--import {name}: {told(error)}") from error

    @staticmethod
    def opened(name: str, jit: bool) -> Any:
        try:
            if name.startswith("npu"):
                torch_npu = importlib.import_module("torch_npu")
                torch_npu.npu.set_compile_mode(jit_compile=jit)
            device = torch.device(name)
            torch.zeros(1, device=device)
            return device
        except BaseException as error:
            raise Refusal(f"device {name}: {told(error)}") from error

    # ---- Random numbers ----

    def random_state(self) -> List[Any]:
        states = [torch.get_rng_state()]
        module = getattr(torch, self.device.type, None)
        if self.device.type != "cpu" and hasattr(module, "get_rng_state"):
            states.append(module.get_rng_state(self.device))
        return states

    def run_forward(self, function: Callable[..., Any], call: Call, name: str) -> Any:
        torch.manual_seed(SEED)
        before = self.random_state()
        result = function(*call.args, **call.kwargs)
        drawn = any(not torch.equal(a, b) for a, b in zip(before, self.random_state()))
        if drawn and "dropout" not in name:
            raise Refusal("the results are random: there is nothing to compare")
        in_place = name.partition(".")[0].endswith("_") and not name.endswith("__")
        if result is None or (in_place and call.args and isinstance(call.args[0], torch.Tensor)):
            return call.written(name)  # what counts, whatever else came back
        return result

    # ---- Results ----

    def run(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if self.device.type == "cpu":
            if self.kept is None:
                self.kept = keep_freed(min(request["memory"] // 8, 256 << 20))
            limit_memory(self.own_memory + self.kept + request["memory"])
        self.memory.reach(request["free"])
        call = Call(self.memory, self.device, request)
        function = self.names.find(request["prefix"], request["name"])
        normal = torch.get_default_dtype()
        grad_mode = torch.enable_grad() if call.wants_grads else torch.no_grad()
        try:
            if call.raised:
                torch.set_default_dtype(torch.float64)
            with grad_mode:
                result = self.run_forward(function, call, request["name"])
                outputs = list(flattened(result))
                changed = call.changed(outputs)
                grads = call.backward(outputs)
        finally:
            torch.set_default_dtype(normal)
        if len(outputs) > RESULT_LIMIT:
            raise Refusal(f"{len(outputs)} results are too many")
        values = self.write([stored(value) for value in outputs + grads + changed], request)
        behind = len(outputs) + len(grads)
        reply = {"outputs": values[:len(outputs)], "grads": values[len(outputs):behind],
                 "arg_grads": call.arg_leaves, "tuple": isinstance(result, (list, tuple, dict))}
        if any(value is not None for value in changed):
            reply["written"] = values[behind:]
        if self.names.note:
            reply["note"] = self.names.note
        return reply

    def write(self, values: List[Any], request: Dict[str, Any]) -> List[Any]:
        start = at = request["free"]
        places: List[Tuple[Any, int]] = []
        for value in values:
            places.append((value, at))
            if isinstance(value, torch.Tensor):
                at += -(-value.numel() * value.element_size() // ALIGN) * ALIGN
        if at > request["limit"]:
            raise MemoryError(f"{at - start} bytes of results, {request['limit'] - start} allowed")
        if at > start:
            self.memory.grow(start, at)
        return [self.write_one(value, place) for value, place in places]

    def write_one(self, value: Any, at: int) -> Any:
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).rpartition(".")[2]
            if value.numel():
                self.memory.tensor(value.dtype, list(value.shape), at).copy_(value)
            return {"tensor": {"dtype": dtype, "shape": list(value.shape), "at": at}}
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return value if -1 << 63 <= value < 1 << 63 else {"other": "int"}
        if isinstance(value, float):
            return {"float": value}
        if isinstance(value, (torch.dtype, torch.device)):
            return str(value)
        return {"other": type(value).__name__}

    def is_spoilt(self) -> bool:
        """After some faults of an accelerator nothing works any more in this process."""
        if self.device.type == "cpu":
            return False
        try:
            (torch.zeros(1, device=self.device) + 1).cpu()
            return False
        except BaseException:
            return True

    def answer(self, request: bytes) -> Dict[str, Any]:
        try:
            return self.run(json.loads(request))
        except BaseException as error:
            kind = "memory" if is_out_of_memory(error) else "call"
            if isinstance(error, Refusal):
                kind = "refused"
            return {"error": told(error), "kind": kind}

    def serve(self) -> None:
        self.channel.send({"ready": VERSION, "torch": str(torch.__version__)})
        while True:
            reply = self.answer(self.channel.receive())
            spoilt = "error" in reply and self.is_spoilt()
            self.channel.send(reply)
            if spoilt:
                os._exit(0)  # plumb starts another


# -- Starting ----------------------------------------------------------------------------------


def data_bytes() -> int:
    """What this process has for itself already, as RLIMIT_DATA counts it."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 4 << 30


def keep_freed(size: int) -> int:
    """Up to so many bytes that calls have freed stay with this process: tensors come and go, and pages that are
    fetched and cleared anew cost more than most calls compute. Where malloc takes no advice, none are: 0."""
    trim_threshold, mmap_threshold, most = -1, -3, 32 << 20  # of glibc; more than `most` it refuses
    with contextlib.suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).mallopt
        if advise(mmap_threshold, most) and advise(trim_threshold, size):
            return size
    return 0


def limit_memory(size: int) -> None:
    """A tensor that is too large is then an exception and not the end of the process."""
    with contextlib.suppress(ValueError, OSError):
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (size, most))


def live_and_die_with_plumb() -> None:
    """The kernel ends this process when the last writer of the pipe is gone, whatever it is busy
    with. (The death signal of prctl would come when the thread that started it ends.) And when
    memory runs out, this process goes before others."""
    fcntl.fcntl(LIFE, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(LIFE, F_SETSIG, int(signal.SIGKILL))
    fcntl.fcntl(LIFE, fcntl.F_SETFL, fcntl.fcntl(LIFE, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        if not os.read(LIFE, 1):
            os._exit(0)  # it was gone before
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def main() -> None:
    global torch
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path and str(Path(path).resolve()) != here]
    for number in (MEMORY, CONTROL, LIFE):
        os.set_inheritable(number, False)
    live_and_die_with_plumb()
    sys.dont_write_bytecode = True
    for name in ("TMPDIR", "TEMP", "TMP"):
        os.environ.update({name: folder for folder in SCRATCH})
    channel = Channel(CONTROL)
    setup = json.loads(channel.receive())
    for library in ("OMP", "OPENBLAS", "MKL"):  # results must not depend on who set what before
        os.environ[f"{library}_NUM_THREADS"] = str(setup["threads"])
    os.environ.setdefault("UCX_HANDLE_ERRORS", "none")  # else the last words of a crash are its drawing of the stack
    try:
        import torch
    except BaseException as error:
        channel.send({"error": told(error), "kind": "torch"})
        return
    try:
        worker = Worker(channel, setup)
    except BaseException as error:
        channel.send({"error": told(error), "kind": "setup"})
        return
    worker.serve()


if __name__ == "__main__":
    main()
