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


