import csv
import hashlib
import math
import os
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import pytest
import torch

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dump")
POWERS = ["1e-%d" % k for k in range(1, 8)]
COLUMNS = ["name", "op_name", "dtype", "shape", "min-val", "max-val", "is_pass", "max"] + POWERS

# rtol and atol of an element; what is not here must be equal.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
NARROW = (torch.float16, torch.bfloat16, torch.float32)


class Spec(NamedTuple):
    """A tensor as it was recorded."""

    dtype: str
    shape: Sequence[int]
    stride: Optional[Sequence[int]]
    low: Any
    high: Any
    file: Optional[str]


class Word(NamedTuple):
    """Something of torch that has a name: a dtype, a layout, a memory format."""

    kind: type
    name: str


class Refused(Exception):
    """This call cannot be made again here."""


DEVICE = object()  # stands for the device that a call runs on


# -- Options and results -----------------------------------------------------------------------


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("recorded operators")
    for name, more in (
            ("--detail_compare_path", {"help": "CSV file for a row a test"}),
            ("--seed", {"type": int, "default": 0, "help": "of generated inputs (default: 0)"}),
            ("--device", {"help": "where the operators run: cpu, cuda, npu, xpu, cuda:1, ... "
                          "(default: the best one present)"})):
        try:
            group.addoption(name, **more)
        except ValueError:  # another plugin has an option of that name
            pass


def best_device() -> str:
    for extension in ("torch_npu", "torch_mlu"):
        try:
            __import__(extension)
        except Exception:
            pass
    for name in ("cuda", "npu", "xpu", "mlu"):
        try:
            if getattr(torch, name).is_available():
                return name
        except Exception:
            pass
    return "cpu"


class Session:
    """What all tests share."""

    def __init__(self, config: Any) -> None:
        self.seed = int(config.getoption("--seed") or 0)
        name = config.getoption("--device") or best_device()
        try:
            self.device = torch.device(name)
            torch.zeros(1, device=self.device).cpu()
        except Exception as error:
            raise pytest.UsageError("the device %s cannot be used: %s" % (name, error))
        self.path = config.getoption("--detail_compare_path")
        self.rows = 0
        self.missing = 0
        if self.path and not hasattr(config, "workerinput"):  # workers of xdist only add rows
            try:
                with open(self.path, "w", newline="") as stream:
                    csv.writer(stream).writerow(COLUMNS)
            except OSError as error:
                raise pytest.UsageError("cannot write %s: %s" % (self.path, error.strerror))

    def write(self, row: Sequence[Any]) -> None:
        """A row is on the disk before the next test begins."""
        self.rows += 1
        if self.path:
            with open(self.path, "a", newline="") as stream:
                csv.writer(stream).writerow(row)


def pytest_configure(config: Any) -> None:
    config.recorded_operators = Session(config)


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    session = config.recorded_operators
    if session.missing:
        terminalreporter.write_line("%d recorded tensors are not in %s: generated ones were used"
                                    % (session.missing, DATA))
    if session.path and session.rows:
        terminalreporter.write_line("%d rows written to %s" % (session.rows, session.path))


# -- Inputs ------------------------------------------------------------------------------------


def generator(seed: int, name: str, place: str, device: torch.device) -> torch.Generator:
    """The same numbers for the same seed, test and argument, whatever else runs."""
    digest = hashlib.sha256(("%d/%s/%s" % (seed, name, place)).encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def limits(spec: Spec) -> Tuple[Any, Any]:
    """A range to draw from, where the recorded one is missing or not finite."""
    low, high = spec.low, spec.high
    good = [isinstance(x, (bool, int, float)) and math.isfinite(x) for x in (low, high)]
    if not good[0]:
        low = high - 1 if good[1] else -1
    if not good[1]:
        high = low + 1 if good[0] else 1
    return min(low, high), max(low, high)


def draw(spec: Spec, count: int, dtype: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """count numbers within the recorded range; both ends are among them when there is room."""
    low, high = limits(spec)
    place = {"device": random.device}
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = int(low), min(int(high), 2**63 - 2)
        values = torch.randint(low, high + 1, (count,), generator=random, **place)
    else:
        values = torch.rand(count, generator=random, dtype=torch.float64, **place)
        values = (values * (high - low) + low).clamp(low, high)
        if dtype.is_complex:  # the range is that of the sizes
            angles = torch.rand(count, generator=random, dtype=torch.float64, **place)
            return torch.polar(values, angles * (2 * math.pi)).to(dtype)
    if count > 1:
        values[0], values[-1] = low, high
    if isinstance(spec.low, float) and spec.low == -math.inf:  # a mask: half of it
        chosen = torch.rand(count, generator=random, dtype=torch.float64, **place) < 0.5
        chosen[:1], chosen[1:][-1:] = True, False
        values = values.masked_fill(chosen, -math.inf)
    return values.to(dtype)


def storage_size(shape: Sequence[int], stride: Sequence[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride))


def with_stride(dense: torch.Tensor, stride: Optional[Sequence[int]]) -> torch.Tensor:
    """The same values, laid out in memory as recorded."""
    if stride is None or list(dense.stride()) == list(stride) or not dense.numel():
        return dense
    if len(stride) != dense.dim() or min(stride) < 0:
        return dense
    shape = dense.shape
    for dim, step in enumerate(stride):
        if step == 0:
            dense = dense.narrow(dim, 0, 1)
    if storage_size(dense.shape, stride) > 16 * dense.numel() + 4096:
        return dense.expand(shape)
    laid = torch.empty_strided(dense.shape, [max(step, 1) for step in stride], dtype=dense.dtype,
                               device=dense.device)
    try:
        return laid.copy_(dense).expand(shape)
    except RuntimeError:  # elements that share memory in other ways
        return dense.expand(shape).contiguous()


def find_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name.rpartition(".")[2], None)
    if not isinstance(dtype, torch.dtype):
        raise Refused("this PyTorch has no %s" % name)
    return dtype


class Maker:
    """Makes the arguments of one call, twice when asked twice."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.values: Dict[str, torch.Tensor] = {}  # on the CPU

    def load(self, spec: Spec) -> Optional[torch.Tensor]:
        if FACTORY != "load" or not spec.file:
            return None
        path = os.path.join(DATA, os.path.basename(spec.file))
        if not os.path.exists(path):
            self.session.missing += 1
            return None
        try:
            value = torch.load(path, map_location="cpu", weights_only=True)
        except TypeError:  # an older PyTorch
            value = torch.load(path, map_location="cpu")
        if list(value.shape) != list(spec.shape) or value.dtype != find_dtype(spec.dtype):
            raise Refused("%s holds another tensor than the recorded one" % path)
        return value

    def tensor(self, spec: Spec, place: str) -> torch.Tensor:
        if place not in self.values:
            value = self.load(spec)
            if value is None:
                device = torch.device("cpu") if CPU_INIT else self.session.device
                try:
                    random = generator(self.session.seed, self.name, place, device)
                except RuntimeError:
                    random = generator(self.session.seed, self.name, place, torch.device("cpu"))
                count = math.prod(spec.shape)
                value = draw(spec, count, find_dtype(spec.dtype), random).reshape(
                    tuple(spec.shape)).cpu()
            self.values[place] = value
        return self.values[place]

    def make(self, item: Any, place: str, device: torch.device, raised: bool) -> Any:
        if isinstance(item, Spec):
            value = self.tensor(item, place)
            if raised and value.dtype in NARROW:
                value = value.to(torch.float64)
            elif raised and value.dtype == torch.complex64:
                value = value.to(torch.complex128)
            value = value.to(device)
            if value is self.values[place]:
                value = value.clone()  # operators may write to their arguments
            return with_stride(value, item.stride)
        if isinstance(item, Word):
            value = getattr(torch, item.name.rpartition(".")[2], None)
            if not isinstance(value, item.kind):
                raise Refused("this PyTorch has no %s" % item.name)
            return torch.float64 if raised and value in NARROW else value
        if item is DEVICE:
            return device
        if isinstance(item, (list, tuple)):
            return [self.make(x, "%s.%d" % (place, i), device, raised) for i, x in enumerate(item)]
        if isinstance(item, dict):
            return {k: self.make(x, "%s.%s" % (place, k), device, raised) for k, x in item.items()}
        return item


# -- One call ----------------------------------------------------------------------------------


def find_operator(op: str) -> Callable:
    found: Any = None
    if re.fullmatch(r"[A-Za-z]\w*\.\w+(\.\w+)?", op) and "__import" not in op:
        found = torch.ops
        for part in op.split("."):
            found = getattr(found, part, None)
    if not type(found).__name__.startswith("OpOverload"):
        raise Refused("this PyTorch has no operator %s" % op)
    return found


def flatten(value: Any, out: List[torch.Tensor]) -> List[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        out.append(value)
    elif isinstance(value, (bool, int, float, complex)):
        out.append(torch.tensor(value))
    elif isinstance(value, (list, tuple)):
        for item in value:
            flatten(item, out)
    return out


def run(operator: Callable, args: Sequence[Any], kwargs: Dict[str, Any]) -> List[torch.Tensor]:
    """What the operator returns, and what it wrote to besides."""
    with torch.no_grad():
        outputs = flatten(operator(*args, **kwargs), [])
    schema = getattr(operator, "_schema", None)
    for i, argument in enumerate(schema.arguments if schema else []):
        alias = getattr(argument, "alias_info", None)
        if alias is not None and alias.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            for tensor in flatten(value, []):
                if not any(tensor is output for output in outputs):
                    outputs.append(tensor)
    return [output.detach().cpu() for output in outputs]


class Verdict:
    """Device against reference, over all outputs of a call."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.counts = [0] * len(POWERS)
        self.problem = ""

    def everything(self, reference: Sequence[torch.Tensor], problem: str) -> None:
        self.largest = math.inf
        self.counts = [sum(tensor.numel() for tensor in reference)] * len(POWERS)
        self.problem = problem

    def add(self, place: int, got: torch.Tensor, wanted: torch.Tensor) -> None:
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            self.everything([wanted], "output %d is %s %s instead of %s %s" % (
                place, got.dtype, list(got.shape), wanted.dtype, list(wanted.shape)))
            return
        if not got.numel():
            return
        wide = torch.complex128 if got.dtype.is_complex else torch.float64
        same = (got == wanted) | ((got != got) & (wanted != wanted))
        a, b = got.to(wide), wanted.to(wide)
        error = (a - b).abs()
        error = torch.where(same, torch.zeros_like(error), error)
        error = torch.where(error != error, torch.full_like(error, math.inf), error)
        self.largest = max(self.largest, float(error.max()))
        for i, power in enumerate(POWERS):
            self.counts[i] += int((error > float(power)).sum())
        off = ~same
        if got.dtype in TOLERANCES:
            # Sums that cancel are as good as their terms: small elements are measured against the
            # size that the output has as a whole.
            size = b.abs()
            finite = size[torch.isfinite(size)]
            scale = finite.square().mean().sqrt() if finite.numel() else torch.zeros(())
            rtol, atol = TOLERANCES[got.dtype]
            off = error > atol + rtol * torch.maximum(size.nan_to_num(0, 0, 0), scale)
        if bool(off.any()) and not self.problem:
            worst = int(torch.where(off, error, torch.full_like(error, -1)).argmax())
            self.problem = "output %d: %d of %d elements are off, most of all element %d: " \
                "%s instead of %s" % (place, int(off.sum()), got.numel(), worst,
                                      got.flatten()[worst].item(), wanted.flatten()[worst].item())


class Call:
    """What the tests get as `aten`."""

    device = DEVICE

    def __init__(self, session: Session) -> None:
        self.session = session

    @staticmethod
    def tensor(dtype: str, shape: Sequence[int], stride: Optional[Sequence[int]] = None,
               low: Any = None, high: Any = None, file: Optional[str] = None) -> Spec:
        return Spec(dtype, shape, stride, low, high, file)

    @staticmethod
    def dtype(name: str) -> Word:
        return Word(torch.dtype, name)

    @staticmethod
    def layout(name: str) -> Word:
        return Word(torch.layout, name)

    @staticmethod
    def memory_format(name: str) -> Word:
        return Word(torch.memory_format, name)

    def skip(self, name: str, op: str, reason: str) -> None:
        self.session.write([name, op, "", "", "", "", "skip", ""] + [""] * len(POWERS))
        pytest.skip(reason)

    def reference(self, operator: Callable, args: Callable, kwargs: Callable,
                  got: Optional[List[torch.Tensor]]) -> List[torch.Tensor]:
        """The CPU's result. Where the device is the CPU itself, the one of float64 inputs, rounded
        to the type of the output; where the CPU has no such kernel, that of a wider type."""
        cpu = torch.device("cpu")
        try:
            plain = run(operator, args(cpu, False), kwargs(cpu, False))
        except RuntimeError as error:
            if "not implemented" not in str(error) or got is None:
                raise
            plain = got
        wider = self.session.device.type == "cpu" or plain is got
        if not wider or not any(x.is_floating_point() or x.is_complex() for x in plain):
            return plain
        try:
            raised = run(operator, args(cpu, True), kwargs(cpu, True))
        except Exception:
            return plain
        if [x.shape for x in raised] != [x.shape for x in plain]:
            return plain
        return [r.to(p.dtype) if p.is_floating_point() or p.is_complex() else p
                for r, p in zip(raised, plain)]

    def check(self, name: str, op: str, args: Sequence[Any] = (),
              kwargs: Optional[Dict[str, Any]] = None) -> None:
        """Runs the call on the device and on the CPU, writes the row, and fails when they differ
        by more than their type allows."""
        maker = Maker(self.session, name)
        named = {k: v for k, v in (kwargs or {}).items() if k != "pin_memory"}

        def make_args(device: torch.device, raised: bool) -> Any:
            return maker.make(list(args), "input", device, raised)

        def make_kwargs(device: torch.device, raised: bool) -> Any:
            return maker.make(named, "kwargs", device, raised)

        got, failure = None, ""
        device = self.session.device
        try:
            operator = find_operator(op)
            inputs = make_args(device, False), make_kwargs(device, False)
        except Exception as reason:  # a type that is not there, a tensor larger than the memory
            self.skip(name, op, "its arguments cannot be made here: %s" % reason)
        try:
            got = run(operator, *inputs)
        except Exception as error:
            failure = "%s: %s" % (type(error).__name__, error)
        try:
            wanted = self.reference(operator, make_args, make_kwargs, got)
        except Exception as error:
            self.skip(name, op, "the CPU cannot run it on these inputs: %s" % error)
        verdict = Verdict()
        if got is None or len(got) != len(wanted):
            verdict.everything(wanted, failure or "another number of outputs than on the CPU")
        else:
            for i, pair in enumerate(zip(got, wanted)):
                verdict.add(i, *pair)
        self.session.write([name, op] + describe(wanted) + [
            "fail" if verdict.problem else "pass", number(verdict.largest)] + verdict.counts)
        if verdict.problem:
            pytest.fail("%s, %s: %s" % (name, op, verdict.problem), pytrace=False)


def number(value: float) -> str:
    return "%d" % value if value == 0 else repr(value)


def describe(outputs: Sequence[torch.Tensor]) -> List[Any]:
    """dtype, shape, min-val and max-val of the first output."""
    if not outputs:
        return ["", "", "", ""]
    first = outputs[0]
    row = [str(first.dtype), str(list(first.shape))]
    if not first.numel():
        return row + ["", ""]
    wide = first.abs() if first.dtype.is_complex else first
    wide = wide.to(torch.float64) if wide.is_floating_point() else wide.to(torch.int64)
    return row + [wide.min().item(), wide.max().item()]


@pytest.fixture
def aten(request: Any) -> Call:
    return Call(request.config.recorded_operators)
