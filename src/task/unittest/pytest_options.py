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


