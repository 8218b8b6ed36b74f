"""What the C extension offers. Nothing here knows PyTorch: tensors come as addresses.

Every call that touches tensor memory releases the interpreter lock. Failures raise plumb.Error with
plumb's one-line message (file, byte, reason); wrong Python types raise TypeError.
"""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

class Error(Exception):
    """What plumb says when it cannot do something; `code` is one of NOMEM IO FORMAT UNSUPPORTED ARG."""
    code: str

class Tensor:
    """A view of CPU memory. `owner` is kept alive as long as the view; shapes and strides are in
    elements; without stride the memory is dense in C order. dtype is any name plumb knows:
    "torch.float32", "bfloat16", "<f4" is not."""
    def __new__(cls, pointer: int, dtype: str, shape: Sequence[int], stride: Optional[Sequence[int]] = None,
                requires_grad: bool = False, owner: object = None) -> "Tensor": ...
    pointer: int
    dtype: str               # "float32"
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    count: int
    nbytes: int              # of the dense form
    requires_grad: bool
    def stats(self) -> "Stats": ...
    def mark(self) -> int:
        """Of a dense tensor: another number, but for a chance of one in four billion, when its bytes are others."""
    def stats_and_mark(self) -> Tuple["Stats", int]:
        """Both in one walk through memory."""
    def sketch(self) -> "Sketch":
        """What is kept of it in place of its values, in one walk through memory."""
    def crc32(self) -> int:
        """Of the dense bytes, as zlib does it."""
    def xor64(self) -> int:
        """The dense bytes, padded with zeros to a multiple of 8, xor-ed as little-endian words."""
    def copy_into(self, pointer: int, nbytes: int) -> None:
        """Writes the dense bytes; nbytes is the room there and must be enough."""
    def value(self) -> Any:
        """The one element of a tensor of one element, as a Python number."""
    def save(self, path: str) -> None:
        """One file: .pt or .npy by its ending."""

class Stats(Tuple[Any, ...]):
    """(min, max, mean, std, norm, nan, pos_inf, neg_inf). min and max are int (exact) for integer
    types, bool for bool, of |x| for complex; NaN spreads to all five; None where there is nothing to
    say (an empty tensor: all five; complex: norm)."""

class Sketch:
    """Statistics, checksums and a sketch of a tensor; docs/FORMATS.md defines them."""
    stats: Stats
    mark: int                # what Tensor.mark() gives for a dense tensor
    hash: str                # 128 bits of the bytes, in 32 hex digits
    def text(self, name: str, requires_grad: bool, first: bool) -> bytes:
        """As a file of sketches has it, with the comma before it unless it is the first."""

def sketches_begin() -> bytes:
    """The beginning of a file of sketches; it ends in "]}" and a new line."""

class Bench:
    """The sketches (or tensors) of one step and rank of an earlier run: a folder with a dump.json."""
    def __new__(cls, path: str) -> "Bench": ...
    def compare(self, name: str, sketch: Sketch, limit: float) -> Tuple[str, str]:
        """The tensor of that data file: "equal" (the same bytes), "near" (a relative distance below limit; a negative
        one: by its type), "parted", "unknown" (too little was kept) or "alone" (there is none); and why."""
    def unseen(self) -> List[str]:
        """Names that nothing was compared with."""

Value = Any  # None, bool, int, float, complex, str, Tensor, DType, Device, slice, Ellipsis, list/tuple/dict of these

class DType(str):
    """A dtype as an operator's argument: DType("torch.float16")."""
class Device(str):
    """A device as an operator's argument."""

# -- Operators -------------------------------------------------------------------------------------

def has_op(prefix: Optional[str], name: str) -> bool: ...
def op_names() -> List[str]:
    """For each operator its names, separated by blanks."""
def run_op(prefix: Optional[str], name: str, args: Sequence[Value], kwargs: Dict[str, Value],
           grads: Optional[Sequence[Optional[Tensor]]] = None, raised: bool = True,
           ) -> Tuple[List[Value], bool, List[Optional[Tensor]]]:
    """Runs plumb's operator (raised: the float64 reference; else in the recorded types) and returns
    its outputs, whether they are a tuple, and, when grads of the outputs were given, the gradients
    of the tensors in args then kwargs. Result tensors own their memory."""

def judge_call(prefix: Optional[str], name: str, args: Sequence[Value], kwargs: Dict[str, Value],
               grads: Optional[Sequence[Optional[Tensor]]], outputs: Sequence[Value],
               got_grads: Sequence[Value], *, seed: int = 0, runs: int = 0,
               arithmetic: Optional[str] = None, written: Sequence[Value] = (),
               ) -> List[Tuple[str, int, Dict[str, Any]]]:
    """Holds the results of a call against what right arithmetic shows: ("output" | "gradient" |
    "written", its number, the opinion) for each of outputs, got_grads (one for each tensor of the
    arguments; None: not looked at) and written (likewise)."""

def judge_whole(before: Value, after: Value, y: Optional[Tensor], formula: Optional[Tensor],
                noise: Sequence[Tensor], fine: Sequence[Tensor], constants: Sequence[Tensor],
                changed: Sequence[Tensor], *, narrowest: Optional[str] = None,
                arithmetic: Optional[str] = None, called: Optional[str] = None) -> Dict[str, Any]:
    """The opinion about a result of a whole graph after a change. y, formula: it before and after,
    in float64, complex numbers by parts; the others are runs of the same with errors: before, before
    with 16-bit types as float32, after with errors in new constants, after. narrowest: the type of
    the least precision that the graph after stores. called: "the graph before", in sentences."""

def blame(target: str, golden: Optional[str] = None, arithmetic: Optional[str] = None, *,
          seed: int = 1234, threads: int = 0, repeat: Tuple[str, ...] = (),
          baseline: Optional[str] = None, write_baseline: Optional[str] = None,
          weights: Optional[str] = None) -> Tuple[str, str, "Page"]:
    """Which calls of a run are wrong: as JSON, for people, and as a page. `repeat`: runs of the same program;
    `baseline`: a file of what is accepted; `write_baseline`: where to write what was found;
    `weights`: a file of the model's parameters."""

# -- Comparison ------------------------------------------------------------------------------------

def compare(target: Tensor, golden: Tensor, metrics: Optional[Sequence[str]] = None, *,
            rtol: float = 1e-3, atol: float = 1e-5, gt: float = 0.0, equal_nan: bool = True,
            ) -> Dict[str, Any]:
    """Named metrics (all when metrics is None) of a pair with the same number of elements; `index`
    of the largest error comes as max_abs_index."""

def judge(target: Tensor, golden: Tensor, standard: str, settings: Sequence[str] = (),
          ) -> Tuple[str, str, Dict[str, Any]]:
    """("pass" | "suspicious" | "fail", the rule that decided, all metrics it needed)."""

def same(before: Tensor, after: Tensor, precision: float) -> Tuple[str, str, Dict[str, Any]]:
    """The pass check's verdict on tensors of one shape, as of judge(), with every metric: within
    precision, absolute and relative; of integers absolute only. Two NaNs are "suspicious"."""

def first_apart(target: Tensor, golden: Tensor, rtol: float, atol: float,
                equal_nan: bool = False) -> Optional[int]:
    """The first element, counted in C order, that is not within atol + rtol * |golden|."""
def element(tensor: Tensor, index: int) -> Any:
    """One element, counted in C order, as a Python number."""

# -- Tables and runs -------------------------------------------------------------------------------

class Table:
    """The one table that all results are put into; shown, it is its text()."""
    def __new__(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]] = (),
                severities: Optional[Sequence[int]] = None) -> "Table": ...
    columns: List[str]
    def __len__(self) -> int: ...
    def __getitem__(self, row: int) -> Tuple[Any, ...]: ...
    def severity(self, row: int) -> int: ...   # 0 normal, 1 suspicious, 2 failed
    def add(self, cells: Sequence[Any], severity: int = 0) -> None: ...
    def save(self, path: str) -> None: ...     # .csv .json .md .xlsx .txt by its ending
    def text(self, width: int = 0, wide: bool = False, colour: bool = False,
             format: str = "box") -> str: ...  # box, csv, json, markdown

class Page:
    """A report in the making (docs/REPORT.md). Moods: 0 bad, 1 doubt, 2 not looked at, 3 good."""
    def __new__(cls, command: str, title: str) -> "Page": ...
    def answer(self, mood: int, sentence: str, where: str = "", row: int = -1, sure: str = "") -> None: ...
    def count(self, word: str, number: int, mood: int) -> None: ...
    def fact(self, label: str, value: str) -> None: ...
    def note(self, text: str) -> None: ...
    def table(self, name: str, table: Table, moods: Optional[bytes] = None) -> None: ...
    def copy(self) -> "Page": ...
    def html(self) -> str: ...
    def save(self, path: str) -> None:
        """The page, whole or not at all."""

def compare_runs(target: str, golden: str, standard: Optional[str] = None, settings: Sequence[str] = (),
                 metrics: Optional[str] = None, match: Optional[str] = None, wide: bool = False,
                 verdict: str = "rules", arithmetic: Optional[str] = None,
                 shards: Optional[Tuple[Optional[str], Sequence[str], Sequence[str]]] = None, page: bool = False,
                 ) -> Tuple[Any, ...]:
    """What `plumb compare` does: the table, the closing lines, and the counts compared, passed,
    suspicious, failed, unjudged, unmatched, unreadable; with a verdict other than "rules" also those of
    each word ("fault", "not judged", ...) and "bad", the rows that fail by what decides. Warnings of the runs
    are lines before the closing ones. shards: ranks as one, by (YAML file, "PATTERN=DIMS", "tp=2,pp=4"). page: a Page
    comes behind these, with the curve along the network and the worst tensors."""
def summarise_run(path: str) -> Table: ...
def load_tensor(path: str) -> Tensor:
    """The one tensor of a file of any format, dense, in memory of its own. Nothing in the file is run."""

# -- Writing ---------------------------------------------------------------------------------------

class Writer:
    """Writes tensors to files on a thread of its own. What is handed in is copied before the call
    returns, so the caller may change it at once; at most `budget` bytes wait (a larger tensor is
    written by the caller). After a fork the child's calls write by themselves. Errors never raise
    here: they are collected."""
    def __new__(cls, budget: int = 32 << 20) -> "Writer": ...
    def save(self, path: str, tensor: Tensor) -> None:
        """.pt or .npy; the folder must be there."""
    def open_h5(self, path: str, global_rank: int = -1, local_rank: int = -1) -> int:
        """A module dump, or a .safetensors file by its ending; returns its number."""
    def add_h5(self, file: int, name: str, step: int, tensor: Tensor, call: int = -1, /) -> None:
        """step -1: none. A name that is there already is refused, the file goes on. call: which
        one of its module the tensor is of, from 0."""
    def sync_h5(self, file: int) -> None:
        """What was added is in a whole file under its name, and stays there whatever becomes of this
        process. Without it the file appears when it is closed."""
    def close_h5(self, file: int) -> None: ...
    def broken_h5(self, file: int) -> bool:
        """Whether writing an open file failed, in what has been written so far: it takes nothing more."""
    def add_entry(self, descriptor: int, first: int, text: str) -> None:
        """Puts text (the line of an entry) before the end of a JSON file, newline, space, brace,
        newline, brace, once all that was handed in before is written. first: where the first entry
        begins; the others get a comma."""
    def flush(self) -> None:
        """Returns when nothing waits."""
    def close(self) -> None:
        """Flushes, closes every file, ends the thread."""
    def errors(self) -> List[Tuple[str, str]]:
        """(path, or name of a tensor or an entry, message) of what could not be written, and forgets them."""

# -- Text ------------------------------------------------------------------------------------------

def json_text(value: Any, level: int = 0) -> str:
    """As json.dumps(value, indent=1) would write it `level` deep (NaN, Infinity bare, non-ASCII
    escaped), only fast. dict, list, tuple, str, int, float, bool, None."""

# -- The online check ------------------------------------------------------------------------------

class GuardOperator:
    """What a Guard counts of one operator. Thread-safe."""
    name: str                # as the log calls it: "add.Tensor"
    def call(self) -> int:
        """Counts a call: 0 let it go, 1 it may be checked, 2 let it go, and so it was for longer
        than everything before."""
    def claim(self, elements: int) -> bool:
        """Takes one of the checks for a call with that many elements in its largest input."""
    def give_up(self, why: str) -> None: ...    # no call of it can be checked
    def pass_over(self, why: str) -> None: ...  # this one cannot
    def trouble(self, what: str) -> None: ...
    def judge(self, name: str, args: Sequence[Value], kwargs: Dict[str, Value],
              outputs: Sequence[Value], reference: Optional[Sequence[Value]] = None,
              raised: bool = False, where: Optional[str] = None,
              changed: Optional[str] = None, judged: Optional[Sequence[Value]] = None,
              labels: Optional[Sequence[str]] = None,
              opinion: Optional[Tuple[int, str, str]] = None) -> Dict[str, Any]:
        """Compares, counts, logs and saves: passed, error, output, label, rtol, atol, max_abs,
        max_rel, max_ulp, message, saved, verdict and why (of the second opinion). Without a reference plumb's operator `name` computes it;
        raised says that a given one is float64; changed, what the kernel wrote into without leave;
        judged, what is compared with the reference in place of the outputs, and labels, what each
        of that is; opinion, the caller's own second opinion: on which, its word, and why."""
    def counts(self) -> Dict[str, Any]: ...  # calls, checked, failed, troubles, open

class Guard:
    """The online check; include/plumb/guard.h says what the settings mean."""
    def __new__(cls, rtol: float = 1e-4, atol: float = 1e-5, max_checks: int = 10,
                log_once: bool = True, path: Optional[str] = None, log_format: str = "text",
                max_elements: int = 1048576, save: Optional[str] = None,
                include: Optional[Sequence[str]] = None, exclude: Optional[Sequence[str]] = None,
                verdict: str = "rules", arithmetic: Optional[str] = None) -> "Guard": ...
    def operator(self, name: str, unfit: Optional[str] = None) -> GuardOperator: ...
    def function(self, name: str) -> GuardOperator: ...  # of the user's own; no name is left out
    def table(self) -> Table: ...
    def closing(self) -> str: ...
    def forked(self) -> None: ...  # this is a child: what it counts goes to the parent's account

def guard_skips(name: str) -> Optional[str]: ...
def guard_named(full: str, written: str) -> bool: ...
