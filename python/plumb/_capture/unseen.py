"""Calls that neither tensor subclasses nor modes get to see."""

from typing import Any, Callable

import torch

# Before PyTorch 2, DisableTorchFunction leaves modes on.
no_function_mode: Any = getattr(torch.overrides, "_no_torch_function_mode", None)
function_mode_is_on: Callable[[], bool] = \
    getattr(torch._C, "_is_torch_function_mode_enabled", lambda: False) \
    if no_function_mode is not None else lambda: False


class Unseen:
    """Hides what is called inside from tensor subclasses and from modes, which are the script's."""

    __slots__ = ("function", "mode", "dispatch")

    def __enter__(self) -> None:
        self.mode = no_function_mode() if function_mode_is_on() else None
        if self.mode is not None:
            self.mode.__enter__()
        self.function = torch._C.DisableTorchFunction()
        self.function.__enter__()
        self.dispatch = torch._C._DisableTorchDispatch()  # as long as it lives

    def __exit__(self, *error: Any) -> None:
        del self.dispatch
        self.function.__exit__(*error)
        if self.mode is not None:
            self.mode.__exit__(*error)
