"""What a worker may do once it is ready: read, compute, and write into its own folder. No sockets.

The names of functions that a worker calls come out of a dump, and their arguments too. Landlock and
seccomp of Linux keep what they do inside; a kernel without them leaves the names as the only guard.
"""

import ctypes
import os
import platform
import struct
from typing import List

# The same on every architecture.
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
IO_URING_SETUP = 425
PR_SET_NO_NEW_PRIVS = 38

# machine: the kernel's number for it, then seccomp, socket, ptrace, process_vm_writev
NUMBERS = {"x86_64": (0xC000003E, 317, 41, 101, 311), "aarch64": (0xC00000B7, 277, 198, 117, 271)}
PIDFD_GETFD = 438

# What Landlock leaves alone: the mode, owner, times and attributes of files, and cutting them short.
FCHMODAT2, SETXATTRAT, REMOVEXATTRAT = 452, 463, 466
METADATA = {"x86_64": (76, 90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280),
            "aarch64": (5, 6, 7, 14, 15, 16, 45, 52, 53, 54, 55, 88)}

# Rights of Landlock that change something, by the version that brought them.
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
REMOVE_DIR, REMOVE_FILE, MAKE = 1 << 4, 1 << 5, 0x7F << 6  # of seven kinds of nodes
REFER = 1 << 13
TCP = 3                 # to bind and to connect
ABSTRACT_AND_SIGNALS = 3  # no sockets without a file, no signals to those outside


class Refused(OSError):
    pass


def call(libc: ctypes.CDLL, number: int, *args: object) -> int:
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise Refused(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def keep_files(libc: ctypes.CDLL, folders: List[str], files: List[str]) -> None:
    """Nothing is written, made or removed but below these folders; these files, or those that are
    below them, may be written to."""
    version = call(libc, LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    rights = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE
    rights |= (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled = struct.pack("<QQQ", rights, TCP, ABSTRACT_AND_SIGNALS)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = call(libc, LANDLOCK_CREATE, handled, ctypes.c_size_t(size), ctypes.c_uint(0))
    try:
        for path in folders + files:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = rights if path in folders else WRITE_FILE
            try:
                call(libc, LANDLOCK_ADD, ctypes.c_int(ruleset), ctypes.c_int(1),
                     struct.pack("<Qi", allowed, place), ctypes.c_uint(0))
            finally:
                os.close(place)
        call(libc, LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def keep_inside(libc: ctypes.CDLL, metadata: bool) -> None:
    """No new sockets, nothing that does the same, no hand on other processes, nor on the metadata of
    files: EPERM, in all threads."""
    machine, seccomp, *denied = NUMBERS[platform.machine()]
    load_word, jump_equal, jump_above, leave = 0x20, 0x15, 0x35, 0x06
    allowed, refused = 0x7FFF0000, 0x00050001
    numbers = [*denied, IO_URING_SETUP, PIDFD_GETFD]
    if metadata:
        numbers += [*METADATA[platform.machine()], FCHMODAT2, SETXATTRAT, REMOVEXATTRAT]
    steps = [(load_word, 0, 0, 4), (jump_equal, 0, len(numbers) + 3, machine), (load_word, 0, 0, 0),
             (jump_above, len(numbers) + 1, 0, 0x40000000)]
    steps += [(jump_equal, len(numbers) - k, 0, number) for k, number in enumerate(numbers)]
    steps += [(leave, 0, 0, allowed), (leave, 0, 0, refused)]
    program = b"".join(struct.pack("<HBBI", *step) for step in steps)
    text = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("@HP", len(steps), ctypes.addressof(text))
    every_thread = 1
    call(libc, seccomp, ctypes.c_uint(1), ctypes.c_uint(every_thread), filters)


def enter(folders: List[str], files: List[str], metadata: bool = False) -> List[str]:
    """Gives up what is not needed; with `metadata` also to change that of files, which compilers of
    accelerators do. What this kernel cannot forbid is returned: "files", "network"."""
    libc = ctypes.CDLL(None, use_errno=True)
    left: List[str] = []
    if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0),
                  ctypes.c_ulong(0)):
        return ["files", "network"]
    for what, step in (("files", lambda: keep_files(libc, folders, files)), ("network", lambda: keep_inside(libc, metadata))):
        try:
            step()
        except (OSError, KeyError):
            left.append(what)
    return left
