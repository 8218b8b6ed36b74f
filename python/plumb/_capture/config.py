"""What to record: config.json and the arguments of PrecisionDebugger, checked before all else."""

import difflib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from plumb._core import Error

TASKS = ("statistics", "tensor", "structure", "sketch")
CHECK = "check the dump afterwards with `plumb acc_check -api_info .../dump.json`"
SEARCH = "search the dump afterwards with `plumb overflow_check -i .../step0 -o OUT`"
# Tasks of the origin for which plumb has commands that work on a finished dump.
ELSEWHERE = {
    "acc_check": ("tensor", CHECK),
    "run_ut": ("tensor", CHECK),
    "nan_check": ("statistics", SEARCH),
    "overflow_check": ("statistics", SEARCH),
    "diff_check": ("statistics", "compare two dumps afterwards with `plumb compare -da`"),
}
LEVELS = ("L0", "L1", "mix", "debug")
MODES = ("statistics", "md5", "xor")
RISKS = ("FOCUS", "ALL", "CORE")
COMPILED = ("boundary", "inside")
DATA = ("all", "forward", "backward", "input", "output")
# Known to the origin, without meaning here: sums are float64, and a thread writes the files.
WITHOUT_EFFECT = ("async_dump", "precision", "enable_dataloader", "is_deterministic",
                  "is_benchmark_log")
TOP = ("task", "level", "dump_path", "rank", "step", "extra_info", "risk_level", "dump_enable", "compiled",
       "bench_path", "bench_limit", "bench_dump")
SECTION = ("scope", "list", "data_mode", "summary_mode", "tensor_list")
NO_EFFECT_IN_SECTION = ("slice", "file_format", "backward_input", "device", "overflow_nums",
                        "check_mode")


@dataclass
class Config:
    """Empty step, rank, scope and list mean everything."""
    dump_path: str = ""
    task: str = "statistics"
    level: str = "L1"
    step: FrozenSet[int] = frozenset()
    rank: FrozenSet[int] = frozenset()
    extra_info: bool = True
    risk_level: str = "FOCUS"
    scope: Tuple[str, ...] = ()
    list: Tuple[str, ...] = ()
    tensor_list: Tuple[str, ...] = ()
    data_mode: FrozenSet[str] = frozenset(("forward", "backward", "input", "output"))
    summary_mode: str = "statistics"
    dump_enable: bool = True
    compiled: str = "boundary"  # of regions of torch.compile
    bench_path: str = ""  # of an earlier run, with task "sketch": tensors are dumped where the two part
    bench_limit: Optional[float] = None  # the relative distance from which on they have; None: by type
    bench_dump: int = 256  # files of tensors that parted, for each step and rank
    dump_containers: bool = False  # of HDF5 captures
    file: Optional[Path] = None  # to look at dump_enable again; None when it has no such key
    notes: List[str] = field(default_factory=lambda: [], compare=False)  # for the user

    def enabled(self) -> bool:
        """The dynamic switch. A file that is being rewritten leaves things on."""
        if self.file is None:
            return self.dump_enable
        try:
            return json.loads(self.file.read_text(encoding="utf-8")).get("dump_enable") is not False
        except (OSError, ValueError, AttributeError):
            return True

    def risk(self) -> str:
        """The risk level that counts: choosing by name leaves nothing else out."""
        return "ALL" if self.scope or self.list else self.risk_level


def fail(where: str, text: str) -> None:
    raise Error(f"{where}: {text}")


def quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def word(where: str, value: Any, allowed: Sequence[str], more: Sequence[str] = ()) -> str:
    if not isinstance(value, str) or value not in (*allowed, *more):
        fail(where, f"{json.dumps(value, default=str)} is not one of {quoted(allowed)}")
    return value


def switch(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        fail(where, f"{json.dumps(value, default=str)} is neither true nor false")
    return value


def names(where: str, value: Any) -> Tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or \
            not all(isinstance(item, str) and item for item in value):
        fail(where, f"{json.dumps(value, default=str)} is not a list of names")
    return tuple(value)


def numbers(where: str, value: Any) -> FrozenSet[int]:
    """[1, "3", "4-6"]; a single number or range too."""
    items = value if isinstance(value, (list, tuple, set, frozenset, range)) else [value]
    found = set()
    for item in items:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", item) if isinstance(item, str) else None
        if match:
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first or last - first > 10 ** 6:
                fail(where, f'"{item}" is not a range that goes up')
            found.update(range(first, last + 1))
        elif isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            found.add(item)
        else:
            fail(where, f"{json.dumps(item, default=str)} is not a number from 0, "
                        'or a range like "4-6"')
    return frozenset(found)


def modes(where: str, value: Any) -> FrozenSet[str]:
    """What data_mode leaves: a missing kind of a pair means both of it."""
    given = {word(where, item, DATA) for item in names(where, value)}
    kept = set()
    for pair in ({"forward", "backward"}, {"input", "output"}):
        chosen = given & pair
        kept |= pair if "all" in given or not chosen else chosen
    return frozenset(kept)


def scope(where: str, value: Any) -> Tuple[str, ...]:
    given = names(where, value)
    if len(given) not in (0, 2):
        fail(where, f"{len(given)} names; it takes none, or the first and the last one")
    return given


def path(where: str, value: Any) -> str:
    if not isinstance(value, (str, Path)) or not str(value):
        fail(where, f"{json.dumps(value, default=str)} is not a path")
    return str(value)


def folder(where: str, value: Any) -> str:
    if not Path(path(where, value)).is_dir():
        fail(where, f"{value} is not a folder")
    return str(Path(value).absolute())


def limit(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        fail(where, f"{json.dumps(value, default=str)} is not a number from 0")
    return float(value)


def count(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        fail(where, f"{json.dumps(value, default=str)} is not a number from 0")
    return value


CHECKS: Dict[str, Callable[[str, Any], Any]] = {
    "task": lambda where, value: word(where, value, TASKS, tuple(ELSEWHERE)),
    "level": lambda where, value: word(where, value, LEVELS, ("L2",)),
    "dump_path": path,
    "rank": numbers,
    "step": numbers,
    "extra_info": switch,
    "risk_level": lambda where, value: word(where, value, RISKS),
    "dump_enable": switch,
    "compiled": lambda where, value: word(where, value, COMPILED),
    "scope": scope,
    "list": names,
    "data_mode": modes,
    "summary_mode": lambda where, value: word(where, value, MODES),
    "tensor_list": names,
    "dump_containers": switch,
    "bench_path": folder,
    "bench_limit": limit,
    "bench_dump": count,
}


def unknown(where: str, key: str, allowed: Sequence[str], ignored: Sequence[str], value: Any,
            notes: List[str]) -> None:
    """A misspelt key is an error; one from elsewhere is told and left."""
    if key in ignored or isinstance(value, dict):
        return
    near = difflib.get_close_matches(key, allowed, 1)
    if near:
        fail(where, f'unknown key "{key}"; did you mean "{near[0]}"? There are {quoted(allowed)}')
    notes.append(f'{where}: key "{key}" has no meaning here and is ignored')


def load(file: Path, task: Optional[str], notes: List[str]) -> Dict[str, Any]:
    """The checked values of a config.json, its sections flattened."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Error(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Error(f"{file}: not JSON: {error}") from None
    if not isinstance(content, dict):
        fail(str(file), "not an object with keys like \"task\"")
    values: Dict[str, Any] = {}
    for key, value in content.items():
        if key not in TOP:
            unknown(str(file), key, (*TOP, *TASKS), WITHOUT_EFFECT, value, notes)
        elif value is not None and value != "":
            values[key] = CHECKS[key](f'{file}: key "{key}"', value)
    chosen = task or values.get("task", "statistics")
    section = content.get(chosen, {})
    if not isinstance(section, dict):
        fail(f'{file}: key "{chosen}"', "not an object")
    for key, value in section.items():
        if key not in SECTION:
            unknown(f'{file}: section "{chosen}"', key, SECTION, NO_EFFECT_IN_SECTION, value, notes)
        elif value is not None:
            values[key] = CHECKS[key](f'{file}: key "{chosen}.{key}"', value)
    return values


def configure(config_path: Any = None, **arguments: Any) -> Config:
    """Arguments that are not None win over the file."""
    notes: List[str] = []
    given = {key: CHECKS[key](f"PrecisionDebugger: {key}", value)
             for key, value in arguments.items() if value is not None}
    values: Dict[str, Any] = {}
    file = None
    if config_path is not None:
        file = Path(path("PrecisionDebugger: config_path", config_path))
        values = load(file, given.get("task"), notes)
    values.update(given)
    where = f"{file}" if file else "PrecisionDebugger"
    if not values.get("dump_path"):
        fail(where, "no dump_path: say where the capture goes")
    if values.get("level") == "L2":
        fail(where, 'level "L2" records the kernels of an NPU, which plumb does not; use "L1" or '
                    '"mix", or plumb.begin_dump() for every operator of ATen')
    task = values.get("task", "statistics")
    if task in ELSEWHERE:
        values["task"], advice = ELSEWHERE[task]
        notes.append(f'{where}: task "{task}" is captured as "{values["task"]}"; {advice}')
    if values.get("task") == "tensor" and values.get("tensor_list"):
        notes.append(f"{where}: tensor_list has no effect with task tensor, which saves all")
    if values.get("bench_path") and values.get("task") != "sketch":
        fail(where, 'bench_path is for task "sketch"')
    if values.get("bench_path") and \
            Path(values["bench_path"]).resolve() == Path(values["dump_path"]).resolve():
        fail(where, "bench_path and dump_path are the same folder, which the capture would overwrite")
    watched = file.absolute() if file and "dump_enable" in values and \
        "dump_enable" not in given else None
    if watched:
        del values["dump_enable"]
    return Config(file=watched, notes=notes, **values)


def tell(text: str) -> None:
    """The one way in which a capture speaks."""
    print(f"plumb: {text}", file=sys.stderr, flush=True)
