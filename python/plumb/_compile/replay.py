"""Random numbers of one run, drawn again in others of the same module."""

from typing import Any, Dict, List, Optional, Tuple

import torch

from plumb._compile.drawn import without_modes
from plumb._passcheck.higher import Mode, is_higher, run_higher
from plumb._passcheck.raised import is_random, name_of


class Draws:
    """What the first run drew."""

    def __init__(self) -> None:
        self.kept: List[Tuple[str, Any]] = []
        self.whole = False  # the first run is over


class Replay(Mode):
    """Around each run of one module; the first draws, and the others get what it drew."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()
        self.draws, self.at = draws, 0

    def __exit__(self, *raised: Any) -> Any:
        self.draws.whole = True
        return super().__exit__(*raised)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                           kwargs: Optional[Dict[str, Any]] = None) -> Any:
        named = kwargs or {}
        if is_higher(func):
            return run_higher(self, func, args, named)
        name = name_of(func)
        if not is_random(name):
            return func(*args, **named)
        if not self.draws.whole:
            result = func(*args, **named)
            with without_modes():
                self.draws.kept.append((name, _kept(result)))
            return result
        if self.at >= len(self.draws.kept) or self.draws.kept[self.at][0] != name:
            raise RuntimeError(f"the model drew otherwise the first time ({name})")
        self.at += 1
        return self._again(func, args, self.draws.kept[self.at - 1][1])

    @staticmethod
    def _again(func: Any, args: Any, kept: Any) -> Any:
        if func._schema.name == "aten::native_dropout":
            value, p = args[0], args[1]
            return value * kept[1] * (0.0 if p == 1 else 1 / (1 - p)), kept[1]
        if name_of(func).endswith("_"):
            return args[0].copy_(kept)
        return kept


def _kept(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [_kept(item) for item in value] if isinstance(value, (list, tuple)) else value
