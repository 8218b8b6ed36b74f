"""Rights: copies that may be written, programs of somebody who has no rights, and a full disk."""

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Dict, Sequence, Tuple

NOBODY = 65534


def open_to_all(folder: Path) -> bool:
    """May everybody go through it?"""
    return all(place.stat().st_mode & stat.S_IXOTH for place in (folder, *folder.parents))


def make_folder(prefix: str) -> Path:
    """A folder that every user can reach, wherever the tree and the temporary files of the caller are."""
    bases = (Path(tempfile.gettempdir()).resolve(), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
    base = next((base for base in bases if base.is_dir() and open_to_all(base)), bases[0])
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    folder.chmod(0o755)
    return folder


def without_rights(program: str, folder: Path) -> Tuple[str, Dict[str, Any]]:
    """A program as somebody without rights can run it, and how subprocess runs it so. Nobody runs a
    copy of it and its libraries, in a folder that he can reach; an ordinary user is himself such a
    one."""
    if os.geteuid() != 0:
        return program, {}
    copy = folder / "bin" / Path(program).name
    copy.parent.mkdir(exist_ok=True)
    copy.parent.chmod(0o755)
    for part in (copy.name, "libplumb-op.so", "libplumb-xlsx.so"):
        shutil.copy(Path(program).parent / part, copy.parent / part)
        (copy.parent / part).chmod(0o755)
    return str(copy), {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": str(folder)}


def copy_tree(source: Path, target: Path, without: Sequence[str] = ()) -> None:
    """A copy that may be written, also where the original is read-only."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        if not any(path.match(pattern) for pattern in without):
            if path.is_dir():
                copy_tree(path, target / path.name, without)
            else:
                shutil.copyfile(path, target / path.name)


def preload(build: Path, library: str, **settings: str) -> Dict[str, str]:
    """An environment with a library of tests/tools before all others."""
    # By name: LD_PRELOAD takes a path with a blank in it for two.
    places = f"{build / 'tests'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return {**os.environ, "LD_LIBRARY_PATH": places, "LD_PRELOAD": f"lib{library}.so", **settings}


def full_disk(build: Path, room: int) -> Dict[str, str]:
    """An environment in which files have so much room altogether."""
    return preload(build, "full_disk", PLUMB_TEST_ROOM=str(room))
