"""PrecisionDebugger: records a training or inference script step by step.

    debugger = PrecisionDebugger(dump_path="dump", task="statistics", level="mix")
    for batch in data:
        debugger.start(model)
        loss = model(batch); loss.backward()
        debugger.stop()
        debugger.step()

It writes dump_path/step{N}/rank{R}/dump.json, which every command of plumb reads. Giving hook_name,
model or dump_torch_api, and none of config_path, task and level, selects HDF5 files of modules
instead: the sink is then capture.h5.H5Sink(dump_path), steps count from 1, and constructing it
again ends a step.
"""

import atexit
import dataclasses
import os
from typing import Any, Dict, Iterator, Optional, Sequence, Set, Tuple

import torch

from plumb._core import Error
from plumb._capture import config as configuration
from plumb._capture.config import Config, tell
from plumb._capture.dump import DumpSink
from plumb._capture.modules import COVERED, ENCLOSED, Models
from plumb._capture.rank import folder_name, global_rank, world_size
from plumb._capture.recorder import Recorder
from plumb._capture.sink import Sink

HOOKS = ("dump",)
SHOWN = 5  # of a list
TOLD = 20  # lines on the terminal about what could be written nowhere


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def some(items: Sequence[Any]) -> str:
    """A list that may be long."""
    shown = ", ".join(str(item) for item in items[:SHOWN])
    return shown + (f" and {len(items) - SHOWN} more" if len(items) > SHOWN else "")


class PrecisionDebugger:
    """One capture a folder: constructing it again with the same dump_path goes on with it. Wrong
    settings raise plumb.Error here; later nothing does."""

    _captures: Dict[Tuple[bool, str], "PrecisionDebugger"] = {}

    def __new__(cls, config_path: Any = None, task: Optional[str] = None, dump_path: Any = None,
                level: Optional[str] = None, step: Any = None, rank: Any = None,
                model: Models = None, hook_name: Optional[str] = None,
                dump_torch_api: Optional[bool] = None, *,
                dump_containers: Optional[bool] = None, scope: Any = None, list: Any = None,
                tensor_list: Any = None, data_mode: Any = None, summary_mode: Optional[str] = None,
                extra_info: Optional[bool] = None, risk_level: Optional[str] = None,
                dump_enable: Optional[bool] = None,
                compiled: Optional[str] = None, bench_path: Any = None,
                bench_limit: Optional[float] = None,
                bench_dump: Optional[int] = None) -> "PrecisionDebugger":
        h5 = not (config_path or task or level) and \
            any(given is not None for given in (hook_name, model, dump_torch_api, dump_containers))
        if hook_name is not None and hook_name not in HOOKS:
            raise Error(f'PrecisionDebugger: hook_name: "{hook_name}" is not one of '
                        f"{configuration.quoted(HOOKS)}")
        settings = dict(task=task, dump_path=dump_path, level=level, step=step, rank=rank,
                        dump_containers=dump_containers, scope=scope, list=list,
                        tensor_list=tensor_list, data_mode=data_mode, summary_mode=summary_mode,
                        extra_info=extra_info, risk_level=risk_level, dump_enable=dump_enable,
                        compiled=compiled, bench_path=bench_path, bench_limit=bench_limit,
                        bench_dump=bench_dump)
        config = configuration.configure(config_path, **settings)
        if config.compiled == "inside":
            from plumb._capture import inside
            inside.watch()
        key = (h5, os.path.abspath(config.dump_path))
        capture = cls._captures.get(key)
        if capture is None:
            capture = cls._captures[key] = super().__new__(cls)
            capture._setup(config, h5, bool(dump_torch_api))
        else:
            capture._again(config, bool(dump_torch_api))
        if model is not None:
            capture._model = model
        capture._arguments = {**settings, "config_path": config_path, "hook_name": hook_name,
                              "dump_torch_api": bool(dump_torch_api) if h5 else None}
        return capture

    def __deepcopy__(self, memo: Any) -> "PrecisionDebugger":
        """A model may hold its debugger: that of a copy is the same."""
        return self

    def __reduce__(self) -> Any:
        """In another process it is one with the same settings, but for the model."""
        return _made_again, (self._arguments,)

    def _setup(self, config: Config, h5: bool, torch_api: bool) -> None:
        self._h5 = h5
        self._step = 1 if h5 else 0
        self._model: Models = None
        self._rank: Optional[int] = None
        self._started = False      # in this step
        self._calls = self._problems = self._steps = 0
        self._recorded: Set[int] = set()  # steps
        self._not_recorded: Optional[Dict[str, str]] = None  # modules that were so in no step
        self._world = 1
        self._told = False
        self._lines = TOLD         # that may still be told
        self._log = ""
        self._taken: Optional[int] = None  # the rank of the process that this one was forked from
        self._configure(config, torch_api)
        for note in config.notes:
            tell(note)
        if h5 and 0 in config.step:
            tell("step 0 was asked for, but steps of HDF5 captures count from 1")

    def _configure(self, config: Config, torch_api: bool) -> None:
        self._config, self._torch_api = config, torch_api
        self._sink = self._new_sink()
        self._recorder = self._new_recorder()

    def _new_recorder(self) -> Recorder:
        config = self._config
        if self._h5:
            chosen = dataclasses.replace(config, extra_info=False)
            return Recorder(self._sink, self._torch_api, "ALL", chosen,
                            leaves=not config.dump_containers, itself=config.dump_containers)
        return Recorder(self._sink, config.level in ("L1", "mix"), config.risk(), config,
                        config.level in ("L0", "mix"))

    def _new_sink(self) -> Sink:
        if self._h5:
            from plumb._capture.h5 import H5Sink
            return H5Sink(self._config.dump_path, self._taken)
        return DumpSink(self._config, self._folder)

    def _again(self, config: Config, torch_api: bool) -> None:
        if self._h5 and self._started:
            self.step()
        if self._h5:
            # The same folder and so the same file, whatever else changed.
            if torch_api != self._torch_api or config != self._config:
                self._finish_step()
                self._config, self._torch_api = config, torch_api
                self._recorder = self._new_recorder()
            return
        if config != self._config or torch_api != self._torch_api:
            self._finish_step()
            self._sink.end()
            self._write_log()
            self._configure(config, torch_api)

    def _folder(self, step: int) -> str:
        rank = self._rank if self._rank is not None else global_rank()
        return os.path.join(os.path.abspath(self._config.dump_path), f"step{step}",
                            folder_name(None if rank == self._taken else rank))

    # -- What a script calls -----------------------------------------------------------------------

    def start(self, model: Models = None, token_range: Optional[Sequence[int]] = None,
              rank_id: Optional[int] = None) -> None:
        """Records from here on. model: whose modules (levels L0 and mix), or a list or dict.
        token_range [first, last]: only these calls of the model, counted from 0."""
        try:
            self._rank = rank_id if rank_id is not None else self._rank
            self._started = True
            self._world = max(self._world, world_size())
            if not self._wanted():
                return
            model = model if model is not None else self._model
            if model is None and not self._recorder.modules and \
                    (self._h5 or self._config.level in ("L0", "mix")):
                text = 'start() without a model, which says whose modules to record (level L0, mix)'
                self._recorder.note(text)
                tell(text)
            self._recorder.start(self._step, model, token_range)
        except Exception:
            self._recorder.problem("start")

    def stop(self) -> None:
        """Records no more; gradients that come later are not seen."""
        try:
            self._recorder.stop()
            self._write_log()
        except Exception:
            self._recorder.problem("stop")

    def step(self) -> None:
        """Ends the step: what follows goes into the next one."""
        try:
            self._finish_step()
        except Exception:
            self._recorder.problem("step")
        self._step += 1

    def save(self, variable: Any, name: str, save_backward: bool = True) -> None:
        """Keeps a tensor, or what holds some, and its gradient (level debug)."""
        if self._config.level != "debug" or self._h5:
            self._once('save() is for level "debug"; it does nothing here')
            return
        if not self._recorder.active:
            self.start()
        self._recorder.save(variable, str(name), save_backward)

    def set_init_step(self, step: int) -> None:
        """The number of the step at hand, for a job that goes on."""
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise Error(f"set_init_step: {step!r} is not a number from 0")
        self._finish_step()
        self._step = step

    def module_dump(self, module: torch.nn.Module, dump_name: str) -> None:
        """Records one module and what is inside it, by another name, until module_dump_end()."""
        try:
            if not isinstance(module, torch.nn.Module):
                raise TypeError(f"{type(module).__name__} is no torch.nn.Module")
            if not self._wanted():
                return
            self._started = True
            self._recorder.stop()
            self._recorder.add_module(f"{dump_name}.", module, itself=True)
            self._recorder.start(self._step)
        except Exception:
            self._recorder.problem("module_dump")

    def module_dump_end(self) -> None:
        self.stop()

    def register_custom_api(self, module: Any, api_name: str,
                            api_prefix: Optional[str] = None) -> None:
        """Also records the function module.api_name, as {api_prefix}.{api_name}; the prefix is the
        last part of the module's name unless given."""
        if not callable(getattr(module, api_name, None)):
            raise Error(f"register_custom_api: {getattr(module, '__name__', module)} has no "
                        f"function {api_name}")
        prefix = api_prefix or getattr(module, "__name__", "Custom").rpartition(".")[2]
        self._recorder.add_api(prefix, api_name, module, api_name)

    def restore_custom_api(self, module: Any, api_name: str) -> None:
        self._recorder.patches.remove(module, api_name)

    # -- Inside ------------------------------------------------------------------------------------

    def _wanted(self) -> bool:
        """Whether this step and process are to be recorded."""
        steps, ranks = self._config.step, self._config.rank
        rank = self._rank if self._rank is not None else global_rank()
        return (not steps or self._step in steps) and (not ranks or (rank or 0) in ranks) and \
            self._config.enabled()

    def _finish_step(self) -> None:
        recorder = self._recorder
        opened = recorder.opened
        recorder.next_step()
        if self._h5 and self._config.step and self._step >= max(self._config.step):
            self._sink.end()  # for programs that are killed, not left
        lost, self._sink.lost = self._sink.lost, 0
        kept, recorder.calls = recorder.calls - lost, 0
        self._calls += kept
        self._started = False
        if opened and (kept > 0 or not lost):
            self._steps += 1
            self._recorded.add(self._step)
        try:
            if opened:
                self._list_missing()
        except OSError:
            recorder.problem(self._sink.list_path())
        self._write_log()

    def _list_missing(self) -> None:
        """The modules that this step did not record, beside it."""
        if self._config.scope:
            return
        missing = self._recorder.modules.not_recorded(self._config.list)
        before = self._not_recorded
        self._not_recorded = missing if before is None else \
            {path: why for path, why in before.items() if path in missing}
        missing = self._not_recorded if self._h5 else missing
        if missing:
            with open(self._sink.list_path(), "w", encoding="utf-8") as file:
                file.writelines(f"{path} {why}\n" for path, why in missing.items())

    def _never_came(self) -> Iterator[str]:
        """What was asked for in vain."""
        rank = self._rank if self._rank is not None else global_rank()
        ranks = self._config.rank
        if ranks and (rank or 0) not in ranks:
            gone = sorted(one for one in ranks if one >= self._world)
            if gone:
                yield (f"rank {some(gone)} never came: this is rank {rank or 0} of {self._world}; "
                       f"nothing of it is in {self._config.dump_path}")
            return
        gone = sorted(self._config.step - self._recorded)
        if gone:
            first = " (steps of HDF5 captures count from 1)" if self._h5 and 0 in gone else ""
            yield (f"step {some(gone)} was asked for and never recorded{first}; the last one was "
                   f"{self._step - (not self._started)}" if self._step or self._started else
                   f"step {some(gone)} was asked for, and start() was never called")

    def _once(self, text: str) -> None:
        if not self._told:
            self._told = True
            tell(text)

    def _write_log(self) -> None:
        """What could not be recorded, beside the dump."""
        recorder = self._recorder
        for text in self._sink.errors:
            recorder.note(text)
        self._sink.errors.clear()
        if not recorder.problems:
            return
        self._problems += recorder.problems
        folder = self._sink.folder or self._config.dump_path
        try:
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, "dump_error_info.log")
            with open(path, "a", encoding="utf-8") as file:
                file.writelines(f"{note}\n" for note in recorder.notes)
                hidden = recorder.problems - len(recorder.notes)
                if hidden:
                    file.write(f"... and {hidden} more\n")
            self._log = path
        except OSError as error:
            for text in (f"{folder}: {error.strerror}", *recorder.notes)[:self._lines]:
                tell(text)
                self._lines -= 1
        recorder.notes.clear()
        recorder.problems = 0

    def _forked(self) -> None:
        """In the child of a fork: files and counts are the parent's. What the child records goes
        into files of its own."""
        if self._started or self._steps:
            rank = self._rank if self._rank is not None else global_rank()
            self._taken = rank or 0 if self._h5 else rank
        self._recorder.forked()
        self._calls = self._problems = self._steps = 0
        self._started = False
        self._log = ""
        if isinstance(self._sink, DumpSink):
            self._sink.forked()
        self._sink = self._recorder.sink = self._new_sink()

    def _close_quietly(self) -> None:
        """Completes all files; constructing the debugger again begins anew."""
        try:
            self._finish_step()
            self._sink.end()
            self._write_log()
        except Exception:
            self._recorder.problem("close")
        for key in [key for key, capture in self._captures.items() if capture is self]:
            del self._captures[key]

    def _close(self) -> None:
        self._close_quietly()
        for text in self._never_came():
            tell(text)
        gone = self._not_recorded or {}
        enclosed = sum(why.startswith(ENCLOSED) for why in gone.values())
        if enclosed:
            inside = self._config.compiled == "inside"
            tell(f"{counted(enclosed, 'module')} in {self._config.dump_path} ran inside compiled "
                 "regions: what went in and came out of a region is recorded, " +
                 ("and the nodes of its graph, interpreted" if inside else "not what is inside"))
        missing = [f"{path} {why}" for path, why in gone.items()
                   if not why.startswith((COVERED, ENCLOSED))]
        if missing:
            tell(f"not recorded in {self._config.dump_path}: {some(missing)}")
        if self._steps or self._problems:
            text = (f"{counted(self._steps, 'step')} with {counted(self._calls, 'call')} in "
                    f"{self._config.dump_path}")
            if self._problems:
                where = f"see {self._log}" if self._log else "see above"
                text += f"; {counted(self._problems, 'thing')} could not be recorded, {where}"
            tell(text)
            more = self._sink.told()
            if more:
                tell(more)


def _made_again(arguments: Dict[str, Any]) -> PrecisionDebugger:
    path = os.path.abspath(arguments["dump_path"] or "")
    for (_, folder), capture in PrecisionDebugger._captures.items():
        if arguments == capture._arguments or (arguments["dump_path"] and folder == path):
            return capture
    return PrecisionDebugger(**arguments)


def _after_fork() -> None:
    for capture in PrecisionDebugger._captures.values():
        capture._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    for capture in list(PrecisionDebugger._captures.values()):
        capture._close()
