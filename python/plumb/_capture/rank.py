"""Which process of a job this is."""

import os
from typing import Optional

import torch


def global_rank() -> Optional[int]:
    """None when nothing says so."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    text = os.environ.get("RANK", "")
    return int(text) if text.isdigit() else None


def world_size() -> int:
    """How many processes the job has, as far as anything says so."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_world_size())
    text = os.environ.get("WORLD_SIZE", "")
    return int(text) if text.isdigit() else (global_rank() or 0) + 1


def folder_name(rank: Optional[int]) -> str:
    return f"proc{os.getpid()}" if rank is None else f"rank{rank}"
