"""A saved failure of the online check, run again."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Optional, Union

import torch

from plumb import _core
from plumb._guard.check import Checker, Entry, Given, Reference, as_typed, busy, walk
from plumb.tensors import to_core
from plumb._guard.clean_worker import find_operator, observed


def _load(folder: Path, name: Any) -> torch.Tensor:
    """A tensor of the failure. Somebody else may have saved it: plumb's own reader runs nothing of
    it (torch.load with weights_only does: TorchScript, in some versions more), and no name leads
    out of its folder."""
    home = folder / "dump_tensor_data"
    if not isinstance(name, str) or (home / name).resolve().parent != home.resolve():
        raise ValueError(f"{folder}: {name!r} is no tensor of this failure")
    saved = _core.load_tensor(str(home / name))
    return as_typed(saved, getattr(torch, saved.dtype))


def _read_value(item: Any, folder: Path) -> Any:
    if isinstance(item, list):
        return [_read_value(each, folder) for each in item]
    if not isinstance(item, dict):
        return item
    kind, value = item.get("type"), item.get("value")
    if kind == "torch.Tensor":
        return _load(folder, item["data_name"])
    if kind == "torch.dtype":
        dtype = getattr(torch, str(value).partition(".")[2], None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"{folder}: PyTorch has no type {value!r}")
        return dtype
    if kind == "torch.device":
        return torch.device("cpu")
    return value


def _saved_reference(facts: Dict[str, Any], folder: Path) -> Optional[Reference]:
    """None where it is not that of the results as they are."""
    if facts.get("derived"):
        return None
    saved = json.loads((folder / "outputs.json").read_text("utf-8"))
    items = saved["data"]["Aten.reference.0.forward"]["input_args"]
    return Reference(to_core(_read_value(items, folder)), facts["reference"] == "float64", {})


def _names_files(func: Any) -> bool:
    """Whether an operator takes the name of a file: what it is would be somebody else's choice."""
    return any("str" in str(argument.type) and re.search("file|path|uri", argument.name)
               for argument in func._schema.arguments)


def replay(path: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
    """Runs a saved failure again with the kernel that is registered now, and compares its result
    with plumb's reference, or with the saved one where plumb has none: the verdict. A kernel that
    writes into its inputs, or gives another type, fails as it did then."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    dump = json.loads((folder / "dump.json").read_text("utf-8"))
    facts = dump["precision_check"]
    (call,) = dump["data"].values()
    args = _read_value(call["input_args"], folder)
    kwargs = {name: _read_value(item, folder) for name, item in call["input_kwargs"].items()}
    func = find_operator(torch, facts["op"])
    if not isinstance(func, torch._ops.OpOverload) or _names_files(func):
        raise ValueError(f"{folder}: {facts['op']} is no operator that computes")
    guard = _core.Guard(rtol=facts["rtol"], atol=facts["atol"], path=os.devnull)
    checker = Checker(guard, False)
    entry = Entry(func, guard.operator("plumb::replay"), kernel=True)
    given = Given(func, tuple(args), kwargs, [*walk(args), *walk(kwargs)], True)
    try:
        with busy(), torch.no_grad():
            outputs = observed(func, func(*args, **kwargs), args, kwargs)
            return checker.verdict(entry, given, outputs, _saved_reference(facts, folder))
    finally:
        checker.close()
