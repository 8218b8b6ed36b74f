"""Which APIs are recorded, under which names, and which of them by risk_level."""

import functools
import importlib
import sys
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Set, Tuple

import torch

from plumb._capture import exchange, running

# The names of the pre-check: Functional, Tensor, Torch, NPU; compiled into the program as well.
LISTED = Path(__file__).with_name("api_names.txt")

# Mostly moving and casting: they add nothing wrong of their own and make dumps large.
LOW_RISK = frozenset("""
align_as align_to arange atleast_1d atleast_2d atleast_3d __bool__ bfloat16 bool byte cat cfloat
char chunk clamp clone column_stack concat concatenate diag diag_embed diagflat double dsplit
dstack empty empty_like expand expand_as eye flatten float full full_like half hsplit hstack
identity int linspace logspace long moveaxis movedim numpy ones ones_like permute ravel repeat
repeat_interleave reshape reshape_as row_stack split split_with_sizes squeeze stack stride
swapaxes swapdims tensor_split tile to transpose tril tril_indices triu triu_indices type_as
unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as
vsplit vstack zeros zeros_like meshgrid chalf complex _stack _chunk_cat _foreach_clone _foreach_copy_
""".split())
MOVING = ("fft.", "_cast_")  # beginnings of names of the kind

# What multiplies matrices or normalises.
CORE = frozenset("""
addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ batch_norm
batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats
_batch_norm_impl_index bilinear bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d convolution _convolution embedding embedding_bag _fused_adam_
_fused_adamw_ group_norm instance_norm layer_norm linalg.matmul linalg.multi_dot linalg.vecdot
linear local_response_norm matmul __matmul__ mm multi_head_attention_forward mv native_batch_norm
native_group_norm native_layer_norm rms_norm grouped_mm scaled_dot_product_attention scaled_grouped_mm
scaled_mm _addmm_activation _fused_rms_norm _grouped_mm _int_mm _scaled_grouped_mm _scaled_mm
_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_for_cpu _weight_int4pack_mm _weight_int4pack_mm_for_cpu
_weight_int8pack_mm __rmatmul__ linear_cross_entropy
""".split())
ALWAYS = frozenset(("NPU", "Distributed"))  # whatever the risk level


class Place(NamedTuple):
    """Where an API is an attribute."""
    prefix: str
    name: str
    owner: Any
    attribute: str


def listed() -> Dict[str, Set[str]]:
    """prefix -> names, of api_names.txt."""
    names: Dict[str, Set[str]] = {}
    current: Set[str] = set()
    for line in LISTED.read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            current = names.setdefault(line[1:-1], set())
        elif not line.startswith("#"):
            current.update(line.split())
    return names


def owners() -> List[Tuple[str, Any, FrozenSet[str]]]:
    """(prefix, what holds the functions, their names), of what is there in this process."""
    names = listed()
    found: List[Tuple[str, Any, FrozenSet[str]]] = [
        (prefix, owner, own | names[prefix]) for prefix, owner, own in running.functions()]
    found.append(("VF", importlib.import_module("torch._VF"), running.RECURRENT))
    if torch.distributed.is_available():
        found.append(("Distributed", torch.distributed, exchange.collectives()))
    if "torch_npu" in sys.modules:
        found.append(("NPU", sys.modules["torch_npu"], frozenset(names["NPU"])))
    return found


def wanted(prefix: str, name: str, risk_level: str) -> bool:
    if risk_level == "ALL" or prefix in ALWAYS:
        return True
    if risk_level == "CORE":
        return name in CORE
    return name not in LOW_RISK and not name.startswith(MOVING) and not name.endswith("_copy")


@functools.lru_cache(maxsize=None)
def _listed_operators() -> FrozenSet[str]:
    return frozenset().union(*listed().values())


def wanted_operator(name: str, risk_level: str) -> bool:
    """Of torch.ops.aten."""
    return wanted("Aten", name, risk_level) and (running.wanted(name) or name in _listed_operators())


def places(risk_level: str) -> Iterator[Place]:
    """The attributes to wrap. "Torch.linalg.inv" is the attribute inv of torch.linalg."""
    for prefix, root, names in owners():
        for name in sorted(names):
            if not wanted(prefix, name, risk_level):
                continue
            *path, last = name.split(".")
            owner = root
            for part in path:
                owner = getattr(owner, part, None)
            if callable(getattr(owner, last, None)):
                yield Place(prefix, name, owner, last)
