"""Everything that makes two runs of a model differ, held still and given back afterwards."""

import contextlib
import gc
import os
import random
import sys
from typing import Any, Callable, Iterator, List

import torch

SEED = 1337
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
ACCELERATORS = ("cuda", "npu", "xpu", "mps")


def _accelerators() -> Iterator[Any]:
    """The modules of torch for devices that are there and in use."""
    for name in ACCELERATORS:
        device = getattr(torch, name, None)
        if device is None or not hasattr(device, "is_available") or not device.is_available():
            continue
        if getattr(device, "is_initialized", lambda: True)():
            yield device


def seed() -> None:
    """The same start for every generator, as before each run of each side."""
    random.seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED)
    torch.manual_seed(SEED)


def free_caches() -> None:
    gc.collect()
    for device in _accelerators():
        if hasattr(device, "empty_cache"):
            device.empty_cache()


def keep_generators() -> List[Callable[[], None]]:
    """What puts the generators back to where they are now."""
    undo: List[Callable[[], None]] = []
    python = random.getstate()
    undo.append(lambda: random.setstate(python))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state = numpy.random.get_state()
        undo.append(lambda: numpy.random.set_state(state))
    cpu = torch.get_rng_state()
    undo.append(lambda: torch.set_rng_state(cpu))
    for device in _accelerators():
        if hasattr(device, "get_rng_state_all"):
            states = device.get_rng_state_all()
            undo.append(lambda d=device, s=states: d.set_rng_state_all(s))
        elif hasattr(device, "get_rng_state"):
            one = device.get_rng_state()
            undo.append(lambda d=device, s=one: d.set_rng_state(s))
    return undo


def _keep_flags() -> List[Callable[[], None]]:
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    anomaly = torch.is_anomaly_enabled()
    check_nan = getattr(torch, "is_anomaly_check_nan_enabled", lambda: True)()
    workspace = os.environ.get(WORKSPACE)

    def workspace_back() -> None:
        if workspace is None:
            os.environ.pop(WORKSPACE, None)
        else:
            os.environ[WORKSPACE] = workspace

    return [lambda: torch.use_deterministic_algorithms(deterministic, warn_only=warn_only),
            lambda: _set_anomaly(anomaly, check_nan), workspace_back]


def _set_anomaly(on: bool, check_nan: bool) -> None:
    try:
        torch.autograd.set_detect_anomaly(on, check_nan)
    except TypeError:  # before check_nan was there
        torch.autograd.set_detect_anomaly(on)


@contextlib.contextmanager
def seeded() -> Iterator[None]:
    """Generators are given back as they were; gradients are allowed. Nothing else is changed."""
    undo = keep_generators()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for step in undo:
            step()


@contextlib.contextmanager
def deterministic(free: bool = True) -> Iterator[None]:
    """Caches freed, deterministic algorithms and anomaly detection on, gradients allowed; all as it
    was on leaving, whatever happens inside. An operator without a deterministic form warns. NaN in
    a backward is a value to compare, not an anomaly."""
    undo = keep_generators() + _keep_flags()
    try:
        os.environ[WORKSPACE] = ":4096:8"
        torch.use_deterministic_algorithms(True, warn_only=True)
        _set_anomaly(True, False)
        if free:
            free_caches()
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for step in undo:
            try:
                step()
            except Exception:  # the rest is given back all the same
                continue
