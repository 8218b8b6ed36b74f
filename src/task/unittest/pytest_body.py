FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # of the recorded process
DATA = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), DATA))


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


DEVICE = object()  # stands for the device that a call runs on


# -- Options and results -----------------------------------------------------------------------


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("recorded operators")
    for name, more in (
            ("--detail_compare_path", {"help": "CSV file with one row per test"}),
            ("--seed", {"type": int, "default": 0, "help": "of generated inputs (default: 0)"}),
            ("--device", {"help": "where the operators run: cpu, cuda, npu, xpu, cuda:1, ... "
                          "(default: the best one present)"}),
            ("--verdict", {"choices": VERDICTS, "help": "what decides: the tolerances of the types, "
                           "or plumb.judge, which needs plumb's Python package, or both; with the "
                           "last two the file has columns Verdict and Why (default: %s)"
                           % VERDICT})):
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


def visible(cell: Any) -> Any:
    """A text without what moves a terminal's cursor, or does worse: names come out of the dump."""
    if not isinstance(cell, str):
        return cell
    return re.sub("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]",
                  lambda found: ascii(found.group())[1:-1], cell)


def lines(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))


def harmless(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if not isinstance(cell, str) or cell[:1] not in tuple("=+-@\t\r"):
        return cell
    try:
        float(cell)
        return cell
    except ValueError:
        return "'" + cell


VERDICTS = ("rules", "expected", "both")


def find_judge() -> Callable:
    """plumb.judge, which knows what right arithmetic shows for a call."""
    try:
        import plumb
        return plumb.judge
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(
            "--verdict expected and both need plumb's Python package, which %s cannot import (%s); "
            "without the option the tests need PyTorch and pytest only" % (sys.executable, error))


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
        asked = config.getoption("--verdict", None)
        self.verdict = asked if asked in VERDICTS else VERDICT
        self.ask = None if self.verdict == "rules" else find_judge()
        self.columns = COLUMNS + ([] if self.ask is None else ["Verdict", "Why"])
        self.rows = 0
        self.missing = 0
        self.folders: List[str] = []  # of the processes whose tests run
        self.calls: Dict[str, Any] = {}  # what their tests get, by the folder of the tests
        self.replaced: Optional[bool] = None  # kernels of the CPU, when that was looked at
        self.clean = CleanProcess()
        if self.path and not hasattr(config, "workerinput"):  # workers of xdist only add rows
            try:
                with open(self.path, "w", newline="", encoding="utf-8") as stream:
                    csv.writer(stream).writerow(self.columns)
            except OSError as error:
                raise pytest.UsageError("cannot write %s: %s" % (self.path, error.strerror))

    def write(self, row: Sequence[Any], inputs: str = "",
              opinion: Sequence[str] = ("", "")) -> None:
        """A row is on the disk before the next test begins."""
        self.rows += 1
        more = [] if self.ask is None else opinion
        row = [harmless(visible(cell)) for cell in [*row, self.seed, inputs, *more]]
        if self.path:
            with open(self.path, "a", newline="", encoding="utf-8") as stream:
                csv.writer(stream).writerow(row)


def pytest_configure(config: Any) -> None:
    """Tests of several processes share what the first of their folders sets up. Modules of the same
    operator have the same name there: they are told apart by their paths."""
    if not hasattr(config, "recorded_operators"):
        config.recorded_operators = Session(config)
        if getattr(config.option, "importmode", None) == "prepend":
            config.option.importmode = "importlib"
    config.recorded_operators.folders.append(FOLDER)
    config.recorded_operators.calls[os.path.dirname(os.path.realpath(__file__))] = Call


def pytest_unconfigure(config: Any) -> None:
    session = getattr(config, "recorded_operators", None)
    if session is not None:
        session.clean.close()


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    session = config.recorded_operators
    if not isinstance(session, Session):
        return  # another folder's, which says this itself
    if session.missing:
        places = " or ".join(os.path.join(folder, os.path.basename(DATA)) for folder in session.folders)
        terminalreporter.write_line("%d recorded tensors are not in %s: generated ones were used"
                                    % (session.missing, places))
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
        value = read_tensor(path)
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

    def checksum(self) -> str:
        """Of all tensors that the call gets: two devices are compared on the same ones only."""
        crc = 0
        for place, value in sorted(self.values.items()):
            value = value.contiguous()
            crc = zlib.crc32(("%s %s %s" % (place, value.dtype, list(value.shape))).encode(), crc)
            if value.numel():
                size = value.numel() * value.element_size()
                crc = zlib.crc32(ctypes.string_at(value.data_ptr(), size), crc)
        return "%08x" % crc

    def make(self, item: Any, place: str, device: torch.device) -> Any:
        if isinstance(item, Spec):
            value = self.tensor(item, place).to(device)
            if value is self.values[place]:
                value = value.clone()  # operators may write to their arguments
            return with_stride(value, item.stride)
        if isinstance(item, Word):
            value = getattr(torch, item.name.rpartition(".")[2], None)
            if not isinstance(value, item.kind):
                raise Refused("this PyTorch has no %s" % item.name)
            return value
        if item is DEVICE:
            return device
        if isinstance(item, (list, tuple)):
            return [self.make(x, "%s.%d" % (place, i), device) for i, x in enumerate(item)]
        if isinstance(item, dict):
            return {k: self.make(x, "%s.%s" % (place, k), device) for k, x in item.items()}
        return item


# -- One call, here or in a clean process: needs torch and what PROGRAM imports ----------------


POWERS = ["1e-%d" % k for k in range(1, 8)]
COLUMNS = ["name", "op_name", "dtype", "shape", "min-val", "max-val", "is_pass", "max"] + POWERS + [
    "seed", "inputs"]

# rtol and atol of an element; what is not here must be equal.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}

# Where PyTorch's own kernels say that they come from.
NATIVE = re.compile(r"registered at \S*[/\\](ATen|torch[/\\]csrc)[/\\]")


class Refused(Exception):
    """This call cannot be made again here."""


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


def widen(value: Any) -> Any:
    """A copy of arguments, with floating types raised to those of double precision."""
    if isinstance(value, torch.Tensor):
        wide = WIDER.get(value.dtype)
        return with_stride(value.to(wide) if wide else value.clone(), value.stride())
    if isinstance(value, torch.dtype):
        return torch.float64 if value in WIDER and not value.is_complex else value
    if isinstance(value, (list, tuple)):
        return [widen(item) for item in value]
    if isinstance(value, dict):
        return {key: widen(item) for key, item in value.items()}
    return value


# Where calls of level L1 are: plumb writes tests of functions that it computes itself, and no others.
FUNCTIONS = {"Functional": torch.nn.functional, "Torch": torch, "Tensor": torch.Tensor}


def find_function(op: str) -> Callable:
    found: Any = FUNCTIONS[op.partition(".")[0]]
    for part in op.split(".")[1:]:
        found = getattr(found, part, None)
    if not callable(found) or isinstance(found, type):
        raise Refused("this PyTorch has no function %s" % op)
    return found


def find_operator(op: str) -> Callable:
    found: Any = None
    if op.partition(".")[0] in FUNCTIONS:
        return find_function(op)
    if re.fullmatch(r"[A-Za-z]\w*\.\w+(\.\w+)?", op) and "__import" not in op:
        found = torch.ops
        for part in op.split("."):
            found = getattr(found, part, None)
    if not type(found).__name__.startswith("OpOverload"):
        raise Refused("this PyTorch has no operator %s" % op)
    if op.partition(".")[0] in ("prim", "profiler") or names_files(found):
        raise Refused("%s is no operator that only computes" % op)
    return found


def names_files(operator: Any) -> bool:
    """Whether it, or one of its overloads, takes the name of a file: aten.save, aten.from_file,
    image.write_file. A dump says what the name is."""
    if hasattr(operator, "_schema"):
        schemas = [operator._schema]
    else:
        schemas = [getattr(operator, name)._schema for name in operator.overloads()]
    return any("str" in str(argument.type) and re.search("file|path|uri", argument.name)
               for schema in schemas for argument in schema.arguments)


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
            most = float(finite.max()) if finite.numel() else 0.0
            # Squares of large numbers overflow, and nothing is off by more than infinity.
            scale = (finite / most).square().mean().sqrt() * most if most else torch.zeros(())
            rtol, atol = TOLERANCES[got.dtype]
            off = error > atol + rtol * torch.maximum(size.nan_to_num(0, 0, 0), scale)
        if bool(off.any()) and not self.problem:
            worst = int(torch.where(off, error, torch.full_like(error, -1)).argmax())
            self.problem = "output %d: %d of %d elements are off, most of all element %d: " \
                "%s instead of %s" % (place, int(off.sum()), got.numel(), worst,
                                      got.flatten()[worst].item(), wanted.flatten()[worst].item())


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


def reference(operator: Callable, args: Any, kwargs: Any, got: Optional[List[torch.Tensor]],
              wider: bool) -> List[torch.Tensor]:
    """The CPU's result; a wider one is that of float64 inputs, rounded to the type of the output,
    as it always is where the CPU has no kernel for the type itself."""
    raised_args, raised_kwargs = widen(args), widen(kwargs)  # operators may write to the others
    try:
        plain = run(operator, args, kwargs)
    except RuntimeError as error:
        if "not implemented" not in str(error) or got is None:
            raise
        plain, wider = got, True
    if not wider or not any(x.is_floating_point() or x.is_complex() for x in plain):
        return plain
    try:
        raised = run(operator, raised_args, raised_kwargs)
    except Exception:
        return plain
    if [x.shape for x in raised] != [x.shape for x in plain]:
        return plain
    return [r.to(p.dtype) if p.is_floating_point() or p.is_complex() else p
            for r, p in zip(raised, plain)]


def judge(op: str, args: Any, kwargs: Any, got: Optional[List[torch.Tensor]], failure: str,
          wider: bool) -> Dict[str, Any]:
    """What a row says of a call that gave `got` for arguments on the CPU, and what is wrong."""
    try:
        wanted = reference(find_operator(op), args, kwargs, got, wider)
    except Exception as error:
        return {"refused": str(error)}
    verdict = Verdict()
    if got is None or len(got) != len(wanted):
        verdict.everything(wanted, failure or "another number of outputs than on the CPU")
    else:
        for i, pair in enumerate(zip(got, wanted)):
            verdict.add(i, *pair)
    return {"problem": verdict.problem, "row": describe(wanted) + [
        "fail" if verdict.problem else "pass", number(verdict.largest)] + verdict.counts}


def replaced(name: str) -> Optional[bool]:
    """Whether a kernel for the CPU is not PyTorch's own any more; None: that cannot be told."""
    try:
        table = torch._C._dispatch_dump_table(name)
    except (AttributeError, RuntimeError):
        return None
    for line in table.splitlines():
        key, _, origin = line.partition(": ")
        if key in ("CPU", "AutogradCPU", "ADInplaceOrView", "BackendSelect"):
            if not NATIVE.search(origin) and os.path.dirname(torch.__file__) not in origin:
                return True
    return False


def spelled(value: Any) -> Any:
    """Arguments with tuples in the place of what cannot be saved. Arguments have lists only."""
    if isinstance(value, (torch.layout, torch.memory_format)):
        return (str(value).rpartition(".")[2],)
    if isinstance(value, list):
        return [spelled(item) for item in value]
    return {k: spelled(x) for k, x in value.items()} if isinstance(value, dict) else value


def meant(value: Any) -> Any:
    """What was spelled."""
    if isinstance(value, tuple):
        return getattr(torch, value[0])
    if isinstance(value, list):
        return [meant(item) for item in value]
    return {k: meant(x) for k, x in value.items()} if isinstance(value, dict) else value


def serve() -> None:
    """Judges calls that come in on the standard input: sizes in eight bytes, then what torch.save
    made. A line of JSON answers each."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a kernel prints is no answer
    while True:
        size = sys.stdin.buffer.read(8)
        if len(size) < 8:
            return
        data = io.BytesIO(sys.stdin.buffer.read(int.from_bytes(size, "little")))
        try:
            request = torch.load(data, weights_only=False)
        except TypeError:  # an older PyTorch
            data.seek(0)
            request = torch.load(data)
        if replaced(request.pop("name")):
            answer = {"lost": "even a new process of this Python has its kernel replaced"}
        else:
            answer = judge(**meant(request))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# -- A clean process ---------------------------------------------------------------------------

# Where a program has put its own kernels in the place of PyTorch's for the CPU, these must not
# compute the reference, nor the errors. A process that knows nothing of them does it then.

PROGRAM = """import io, json, math, os, re, sys
sys.path.insert(0, sys.argv[1])
import torch
from typing import Any, Callable, Dict, List, Optional, Sequence
# %s
serve()
"""
SECONDS = 300.0  # for one call
MOST_DEATHS = 3


class Unjudged(Exception):
    """Nothing can say whether a result is right; the message says why."""


class CleanProcess:
    """Starts when it is first asked."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen] = None
        self.errors: Any = None
        self.deaths = 0
        self.why = ""

    def start(self) -> subprocess.Popen:
        try:
            with open(__file__, encoding="utf-8") as stream:
                parts = stream.read().split("\n# -- ")
            program = PROGRAM % next(part for part in parts if part.startswith("One call"))
            folder = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
            self.errors = tempfile.TemporaryFile()
            # Extensions that PyTorch loads by itself may bring kernels along.
            environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
            return subprocess.Popen([sys.executable, "-I", "-c", program, folder],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=self.errors, env=environment)
        except OSError as error:
            self.deaths = MOST_DEATHS
            self.why = "it cannot be started: %s" % error
            raise Unjudged(self.why)

    def ask(self, request: Dict[str, Any]) -> Dict[str, Any]:
        if self.deaths >= MOST_DEATHS:
            raise Unjudged(self.why)
        if self.process is None:
            self.process = self.start()
        buffer = io.BytesIO()
        torch.save(spelled(request), buffer)
        timer = threading.Timer(SECONDS, self.process.kill)
        timer.start()
        end = time.monotonic() + SECONDS
        line = b""
        try:
            self.process.stdin.write(buffer.tell().to_bytes(8, "little"))
            self.process.stdin.write(buffer.getbuffer())
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:  # it ended before it had read all
            pass
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.died(time.monotonic() >= end)
        answer = json.loads(line)
        if "lost" in answer:
            raise Unjudged(answer["lost"])
        return answer

    def died(self, late: bool) -> None:
        self.deaths += 1
        code = self.close()
        self.why = "it took more than %g s" % SECONDS if late else "it ended with %s" % code
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").strip()
        if said and not late:
            self.why += ": " + said.splitlines()[-1]
        raise Unjudged(self.why)

    def close(self) -> Optional[int]:
        process, self.process = self.process, None
        if process is None:
            return None
        try:
            process.stdin.close()
        except OSError:
            pass
        try:
            return process.wait(5)  # it ends with its input
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdout.close()


def any_replaced() -> bool:
    """Whether any kernel is replaced: operators are made of others."""
    if not hasattr(torch._C, "_dispatch_dump_table") or \
            not hasattr(torch._C, "_jit_get_all_schemas"):
        return True  # it cannot be told, and a clean process is right in any case
    return any(replaced(full_name(schema)) for schema in torch._C._jit_get_all_schemas()
               if schema.name.startswith("aten::"))


def full_name(schema: Any) -> str:
    """"aten::add.Tensor", "aten::relu"."""
    return schema.name + ("." + schema.overload_name if schema.overload_name else "")


# -- Tests -------------------------------------------------------------------------------------


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

    def title(self, name: str) -> str:
        """The name of the test; where several processes were recorded, with that of its folder."""
        folders = self.session.folders
        if len(folders) < 2:
            return name
        return "%s/%s" % (os.path.relpath(FOLDER, os.path.commonpath(folders)), name)

    def skip(self, name: str, op: str, reason: str) -> None:
        self.session.write([self.title(name), op, "", "", "", "", "skip", ""] + [""] * len(POWERS))
        pytest.skip(lines(reason))

    def judge(self, op: str, args: Any, kwargs: Any, got: Optional[List[torch.Tensor]],
              failure: str) -> Dict[str, Any]:
        """By the CPU, in float64 where the device is the CPU itself."""
        session = self.session
        request = {"op": op, "args": args, "kwargs": kwargs, "got": got, "failure": failure,
                   "wider": session.device.type == "cpu"}
        if not op.startswith("aten."):  # nobody has it but who made it
            return judge(**request)
        schema = getattr(find_operator(op), "_schema", None)
        name = full_name(schema) if schema else op.replace(".", "::", 1)
        if session.replaced is None:
            session.replaced = any_replaced()
        if session.replaced or replaced(name):
            return session.clean.ask(dict(request, name=name))
        return judge(**request)

    def opinion(self, op: str, inputs: Tuple[Any, Any], got: Optional[List[torch.Tensor]],
                failure: str) -> Tuple[str, str]:
        """The verdict of plumb.judge and its reason, where it is asked."""
        ask = self.session.ask
        if ask is None:
            return "", ""
        if got is None:
            return "fault", failure
        if not op.startswith("aten."):
            return "not judged", "plumb has no operator %s" % op
        args, kwargs = inputs
        try:
            found = ask([tensor.cpu() for tensor in got], op, list(args), kwargs)
        except Exception as error:
            return "not judged", str(error)
        return found.verdict, found.why

    def check(self, name: str, op: str, args: Sequence[Any] = (),
              kwargs: Optional[Dict[str, Any]] = None) -> None:
        """Runs the call on the device and on the CPU, writes the row, and fails when they differ
        by more than their type allows."""
        maker = Maker(self.session, name)
        named = {k: v for k, v in (kwargs or {}).items() if k != "pin_memory"}

        def make(device: torch.device) -> Tuple[Any, Any]:
            return maker.make(list(args), "input", device), maker.make(named, "kwargs", device)

        got, failure = None, ""
        try:
            operator = find_operator(op)
            inputs = make(self.session.device)
        except Exception as reason:  # a type that is not there, a tensor larger than the memory
            self.skip(name, op, "its arguments cannot be made here: %s" % reason)
        try:
            got = run(operator, *inputs)
        except Exception as error:
            failure = "%s: %s" % (type(error).__name__, error)
        try:
            found = self.judge(op, *make(torch.device("cpu")), got, failure)
        except Unjudged as reason:
            found = {"row": ["", "", "", "", "fail", "inf"]
                     + [sum(tensor.numel() for tensor in got or [])] * len(POWERS),
                     "problem": "nothing can be judged: kernels of the CPU are replaced, so that "
                     "the reference needs a process without them, but %s" % reason}
        if "refused" in found:
            self.skip(name, op, "the CPU cannot run it on these inputs: %s" % found["refused"])
        verdict, why = self.opinion(op, make(torch.device("cpu")), got, failure)
        self.session.write([self.title(name), op] + found["row"], maker.checksum(), (verdict, why))
        problem = found["problem"] if self.session.verdict != "expected" else ""
        if verdict == "fault" and not problem:
            problem = why
        if problem:
            pytest.fail("%s, %s: %s" % (visible(name), visible(op), lines(problem)), pytrace=False)
        if verdict == "not judged" and self.session.verdict == "expected":
            pytest.skip(lines("not judged: " + why))


@pytest.fixture
def aten(request: Any) -> Call:
    """Of the folder that the test is in, whichever conftest.py pytest takes the fixture from."""
    session = request.config.recorded_operators
    return session.calls[os.path.dirname(os.path.realpath(str(request.node.fspath)))](session)
