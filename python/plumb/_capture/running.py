"""What the running PyTorch has to record beyond the names that msProbe lists.

The signatures of its operators say it: a function is recorded when an operator of its name takes tensors
and computes tensors, whatever PyTorch this is. Not recorded are functions that only look at a tensor
(size, is_contiguous), give another view of one (detach, __getitem__), or make one without using values of
another (new_zeros, rand_like).
"""

import functools
import inspect
import types
from typing import Any, Dict, FrozenSet, List, Set, Tuple

import torch

# What Python's operators call, by the operator of ATen that they are.
ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "div": "div", "floordiv": "floor_divide",
              "mod": "remainder", "pow": "pow", "matmul": "matmul", "lshift": "bitwise_left_shift",
              "rshift": "bitwise_right_shift", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
DUNDERS = frozenset((*(f"__{side}{name}__" for side in ("", "r", "i") for name in ARITHMETIC), "__neg__", "__abs__",
                     "__invert__"))

# They compute nothing from values: made without them, given as they are, or internals of PyTorch.
MADE = ("new_", "empty", "zeros", "ones", "full", "rand", "_empty", "_efficientzerotensor")
INTERNAL = ("_test_", "_assert", "_sync", "_functional", "_freeze", "_to_functional", "_from_functional", "_propagate",
            "_fw_primal", "_make_dual", "_unpack_dual", "_remove_batch_dim", "_add_batch_dim", "_lazy_clone",
            "_nested_get", "_nested_view", "_mirror", "_pin_memory", "_resize", "_reshape", "_copy_from", "_to_cpu",
            "_coalesced_", "_philox", "_sobol", "_linalg_check_errors", "_validate", "_print", "_foobar", "_shape_as",
            "_dim_arange", "_nested_tensor_s", "_no_grad", "_torch_", "_sparse_coo", "_sparse_cs", "_sparse_bs",
            "_sparse_compressed", "sparse_", "from_file", "q_per_channel", "rename", "requires_grad", "resize")
NOTHING = frozenset("""
alias as_strided as_strided_ clone conj contiguous copy_ data detach detach_ fill index positive put
resolve_conj resolve_neg retain_grad set_ set_data share_memory_ size slice_inverse t_ to_dense to_mkldnn
to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr transpose_ squeeze_ unsqueeze_
swapaxes_ uniform_ random_ zero_
""".split())
SPACES = ("linalg", "special", "fft")
RECURRENT = frozenset((*"lstm gru rnn_tanh rnn_relu".split(), *"lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split()))


@functools.lru_cache(maxsize=None)
def computing() -> FrozenSet[str]:
    """The names of ATen's operators that compute tensors from tensors."""
    found: Set[str] = set()
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and name not in found and _computes(schema):
            found.add(name)
    return frozenset(found)


def _computes(schema: Any) -> bool:
    """It takes a tensor, and gives one that is more than another view of an argument."""
    if not any("Tensor" in str(argument.type) for argument in schema.arguments):
        return False
    for result in schema.returns:
        alias = getattr(result, "alias_info", None)
        if "Tensor" in str(result.type) and (alias is None or alias.is_write):
            return True
    # Those that write into lists of tensors return nothing.
    return not schema.returns and any(argument.alias_info is not None and argument.alias_info.is_write
                                      for argument in schema.arguments)


def wanted(name: str) -> bool:
    return name not in NOTHING and not name.startswith((*MADE, *INTERNAL)) and name in computing()


def _methods() -> Set[str]:
    kinds = (types.MethodDescriptorType, types.FunctionType, types.WrapperDescriptorType, types.BuiltinFunctionType)
    return {name for name in dir(torch.Tensor)
            if (wanted(name) or (name in DUNDERS and inspect.getattr_static(torch.Tensor, name, None) is not None))
            and isinstance(inspect.getattr_static(torch.Tensor, name), kinds)}


def _functions(owner: Any) -> Set[str]:
    kinds = (types.BuiltinFunctionType, types.FunctionType)
    return {name for name, value in vars(owner).items() if isinstance(value, kinds) and wanted(name)}


def _public(owner: Any) -> Set[str]:
    """Functions that PyTorch itself counts as taking tensors, some of which are composed of operators."""
    overridable = torch.overrides.get_overridable_functions().get(owner, [])
    names = {getattr(function, "__name__", "") for function in overridable}
    return {name for name in names if not name.startswith(("_", *MADE)) and name not in NOTHING
            and isinstance(getattr(owner, name, None), (types.FunctionType, types.BuiltinFunctionType))}


def _declared(owner: Any) -> Set[str]:
    """Functions that a module says are its own."""
    return {name for name in getattr(owner, "__all__", ()) if isinstance(getattr(owner, name, None), types.FunctionType)
            and not name.startswith("_")}


@functools.lru_cache(maxsize=None)
def functions() -> Tuple[Tuple[str, Any, FrozenSet[str]], ...]:
    """(prefix, what holds the functions, their names), of this PyTorch."""
    functional = torch.nn.functional
    found: List[Tuple[str, Any, Set[str]]] = [
        ("Functional", functional, _public(functional) | _functions(functional) | _declared(functional)),
        ("Tensor", torch.Tensor, _methods()),
        ("Torch", torch, _functions(torch) | {name for name in _public(torch.functional) if hasattr(torch, name)}),
    ]
    for space in SPACES:
        owner = getattr(torch, space, None)
        if owner is not None:
            names = {name for name, value in vars(owner).items() if isinstance(value, types.BuiltinFunctionType)
                     and wanted(f"{space}_{name}")}
            found.append(("Torch", torch, {f"{space}.{name}" for name in names}))
    merged: Dict[str, Tuple[Any, Set[str]]] = {}
    for prefix, owner, names in found:
        merged.setdefault(prefix, (owner, set()))[1].update(names)
    return tuple((prefix, owner, frozenset(names)) for prefix, (owner, names) in merged.items())
