"""How the parts of ranks lie, as a user says it, in the words of the command line."""

import os
from typing import List, Mapping, Optional, Sequence, Tuple, Union

from plumb._compare import leaves

Dims = Union[Mapping[str, str], str, Sequence[str]]
Parallel = Union[Mapping[str, int], str, Sequence[str]]


def options(shards: Union[bool, str, "os.PathLike[str]"], dims: Optional[Dims],
            parallel: Optional[Parallel]) -> Optional[Tuple[Optional[str], List[str], List[str]]]:
    """The file of layouts, "PATTERN=DIMS" and "tp=2,pp=4"; None where ranks are not put together."""
    if not isinstance(shards, (bool, str, os.PathLike)):
        raise leaves.refuse(f"shards is True or the path of a YAML file with layouts, not {shards!r}")
    if shards is False and dims is None and parallel is None:
        return None
    file = None if isinstance(shards, bool) else os.path.abspath(shards)
    return file, _dims(dims), _parallel(parallel)


def _dims(dims: Optional[Dims]) -> List[str]:
    if isinstance(dims, Mapping):
        return [f"{pattern}={how}" for pattern, how in dims.items()]
    return [dims] if isinstance(dims, str) else list(dims or ())


def _parallel(parallel: Optional[Parallel]) -> List[str]:
    if isinstance(parallel, Mapping):
        return [",".join(f"{axis}={size}" for axis, size in parallel.items())]
    return [parallel] if isinstance(parallel, str) else list(parallel or ())
