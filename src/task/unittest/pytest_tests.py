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
