"""plumb's operators from Python, through ctypes: arguments in, tensors and gradients out."""

import ctypes as c
import os
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

BUILD = Path(os.environ.get("PLUMB_BUILD", "build"))
MAX_RANK = 64
DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
KINDS = {"none": 0, "tensor": 1, "bool": 2, "int": 3, "float": 4, "text": 5, "dtype": 6, "list": 7, "slice": 8,
         "ellipsis": 9, "complex": 12}
OWN, RAISED = 0, 1
NO_DTYPE = 23  # PLUMB_DTYPE_COUNT
CLASSES = ("exact", "decision", "elementwise", "linear", "bilinear", "composite", "random")


class CTensor(c.Structure):
    _fields_ = [("dtype", c.c_int), ("swap", c.c_bool), ("rank", c.c_uint), ("count", c.c_uint64),
                ("shape", c.c_int64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK), ("dense", c.c_bool),
                ("data", c.c_void_p)]


class CArg(c.Structure):
    pass


CArg._fields_ = [("kind", c.c_int), ("requires_grad", c.c_bool), ("tensor", c.POINTER(CTensor)),
                 ("integer", c.c_int64), ("number", c.c_double), ("imaginary", c.c_double), ("text", c.c_char_p),
                 ("dtype", c.c_int), ("items", c.POINTER(CArg)), ("n_items", c.c_size_t)]


class CKwarg(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", CArg)]


class CCall(c.Structure):
    _fields_ = [("prefix", c.c_char_p), ("name", c.c_char_p), ("args", c.POINTER(CArg)), ("n_args", c.c_size_t),
                ("kwargs", c.POINTER(CKwarg)), ("n_kwargs", c.c_size_t), ("grads", c.POINTER(c.POINTER(CTensor))),
                ("n_grads", c.c_size_t), ("draws", c.c_void_p), ("noise", c.c_void_p), ("memory", c.c_size_t),
                ("benchmark_forms", c.c_bool)]


class CResult(c.Structure):
    _fields_ = [("outputs", c.POINTER(CArg)), ("n_outputs", c.c_size_t), ("tuple", c.c_bool),
                ("grads", c.POINTER(CArg)), ("n_grads", c.c_size_t), ("n_arg_grads", c.c_size_t),
                ("memory", c.c_void_p), ("written", c.POINTER(CArg)), ("note", c.c_char_p),
                ("terms", c.c_int64), ("grad_terms", c.c_int64)]


class CError(c.Structure):
    _fields_ = [("code", c.c_int), ("offset", c.c_uint64), ("file", c.c_char * 256), ("message", c.c_char * 512)]


class COp(c.Structure):
    _fields_ = [("names", c.c_char_p), ("schema", c.c_char_p), ("family", c.c_char_p), ("about", c.c_char_p),
                ("types", c.c_char_p), ("backward", c.c_bool), ("results", c.c_int), ("exact", c.c_bool),
                ("closed", c.c_bool), ("random", c.c_bool)]


class CNoise(c.Structure):
    _fields_ = [("relative", c.c_double), ("seed", c.c_uint64), ("store", c.c_int), ("stored", c.c_int),
                ("input_bits", c.c_uint), ("input_cut", c.c_bool), ("sum_bits", c.c_uint), ("grads_only", c.c_bool), ("squares", c.c_bool)]

    def __init__(self, relative: float = 0.0, seed: int = 0, squares: bool = False) -> None:
        super().__init__(relative, seed, NO_DTYPE, 0, 0, False, 0, False, squares)


def load() -> c.CDLL:
    library = c.CDLL(str(BUILD / "tests" / "libop_native.so"))
    library.plumb_op_at.restype = c.POINTER(COp)
    library.plumb_op_at.argtypes = [c.c_size_t]
    library.plumb_op_find.restype = c.POINTER(COp)
    library.plumb_op_find.argtypes = [c.c_char_p, c.c_char_p]
    return library


class Refused(Exception):
    """plumb did not run the call."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Call:
    """A call's arguments as C structures; keeps everything they point to alive."""

    def __init__(self, prefix: str, name: str, args: Sequence[Any], kwargs: Dict[str, Any],
                 grad: Optional[torch.Tensor] = None, grad_output: int = 0) -> None:
        self.alive: List[Any] = []
        self.leaves: List[torch.Tensor] = []
        self.args = (CArg * max(len(args), 1))(*[self.arg(a) for a in args])
        self.kwargs = (CKwarg * max(len(kwargs), 1))(*[CKwarg(k.encode(), self.arg(v)) for k, v in kwargs.items()])
        self.c = CCall(prefix.encode(), name.encode(), self.args, len(args), self.kwargs, len(kwargs), None, 0,
                       None, False)
        if grad is not None:
            grads = (c.POINTER(CTensor) * (grad_output + 1))()
            grads[grad_output] = c.pointer(self.tensor(grad))
            self.alive.append(grads)
            self.c.grads, self.c.n_grads = grads, grad_output + 1

    def tensor(self, t: torch.Tensor) -> CTensor:
        t = t.detach().resolve_conj().resolve_neg()
        out = CTensor(DTYPES.index(str(t.dtype).split(".")[1]), False, t.dim(), t.numel())
        for d in range(t.dim()):
            out.shape[d] = t.shape[d]
            out.stride[d] = t.stride(d)
        out.dense = t.is_contiguous()
        out.data = t.data_ptr()
        self.alive.append((t, out))
        return out

    def arg(self, value: Any) -> CArg:
        out = CArg()
        if isinstance(value, torch.Tensor):
            out.kind = KINDS["tensor"]
            out.requires_grad = value.requires_grad
            out.tensor = c.pointer(self.tensor(value))
            self.leaves.append(value)
        elif isinstance(value, bool):
            out.kind, out.integer = KINDS["bool"], int(value)
        elif isinstance(value, int):
            out.kind, out.integer = KINDS["int"], value
        elif isinstance(value, float):
            out.kind, out.number = KINDS["float"], value
        elif isinstance(value, complex):
            out.kind, out.number, out.imaginary = KINDS["complex"], value.real, value.imag
        elif isinstance(value, str):
            out.kind, out.text = KINDS["text"], value.encode()
        elif isinstance(value, torch.dtype):
            out.kind, out.dtype = KINDS["dtype"], DTYPES.index(str(value).split(".")[1])
        elif isinstance(value, (list, tuple, slice)):
            parts = [value.start, value.stop, value.step] if isinstance(value, slice) else list(value)
            items = (CArg * max(len(parts), 1))(*[self.arg(p) for p in parts])
            self.alive.append(items)
            out.kind = KINDS["slice" if isinstance(value, slice) else "list"]
            out.items, out.n_items = items, len(parts)
        elif value is Ellipsis:
            out.kind = KINDS["ellipsis"]
        elif value is not None:
            raise TypeError(type(value))
        return out


def from_c(arg: CArg) -> Any:
    if arg.kind == KINDS["tensor"]:
        t = arg.tensor.contents
        name = DTYPES[t.dtype]
        dtype = getattr(torch, name)
        shape = [t.shape[d] for d in range(t.rank)]
        out = torch.empty(shape, dtype=dtype)
        if t.count:
            c.memmove(out.data_ptr(), t.data, t.count * out.element_size())
        return out
    if arg.kind == KINDS["bool"]:
        return bool(arg.integer)
    if arg.kind == KINDS["int"]:
        return arg.integer
    if arg.kind == KINDS["none"]:
        return None
    raise TypeError(arg.kind)


class Ran(NamedTuple):
    """What a run gave; a gradient for each tensor among the arguments."""
    outputs: List[Any]
    tuple: bool
    grads: List[Optional[torch.Tensor]]
    terms: int
    grad_terms: int


class Native:
    def __init__(self) -> None:
        self.library = load()

    def operators(self) -> List[COp]:
        found = []
        while True:
            op = self.library.plumb_op_at(len(found))
            if not op:
                return found
            found.append(op.contents)

    def find(self, prefix: Optional[str], name: str) -> Optional[COp]:
        op = self.library.plumb_op_find(prefix.encode() if prefix else None, name.encode())
        return op.contents if op else None

    def is_random(self, prefix: Optional[str], name: str) -> bool:
        op = self.find(prefix, name)
        return bool(op and op.random)

    def run(self, call: Call, precision: int) -> Tuple[List[Any], bool, List[Optional[torch.Tensor]]]:
        """Outputs, whether they are a tuple, and a gradient for each tensor among the arguments."""
        ran = self.run_noisy(call, None, precision)
        return ran.outputs, ran.tuple, ran.grads

    def run_noisy(self, call: Call, noise: Optional[CNoise], precision: int = RAISED) -> Ran:
        result, error = CResult(), CError()
        call.c.noise = c.cast(c.pointer(noise), c.c_void_p) if noise else None
        code = self.library.plumb_op_run(c.byref(call.c), precision, c.byref(result), c.byref(error))
        try:
            if code:
                raise Refused(code, error.message.decode())
            outputs = [from_c(result.outputs[k]) for k in range(result.n_outputs)]
            grads = [from_c(result.grads[k]) for k in range(result.n_grads)]
            return Ran(outputs, result.tuple, grads, result.terms, result.grad_terms)
        finally:
            self.library.plumb_result_destroy(c.byref(result))

    def objective(self, call: Call) -> Tuple[float, float]:
        """<grad, output> in extended precision, as high and low part."""
        out, error = (c.c_double * 2)(), CError()
        code = self.library.op_objective(c.byref(call.c), out, c.byref(error))
        if code:
            raise Refused(code, error.message.decode())
        return out[0], out[1]
