"""The number types of the planted suite, 8-bit floats among them.

PyTorch 1.13 and numpy have no 8-bit floats. Here such a tensor is kept as float32 that holds only
numbers of the type; plumb gets its bytes, as a view that names the type.
"""

from typing import Any, Dict, NamedTuple, Tuple

import torch

from plumb import _core

Tensor = torch.Tensor


class Eight(NamedTuple):
    """How an 8-bit float is laid out."""
    precision: int  # bits of the mantissa
    bias: int
    beyond: int     # the code of the first magnitude that is no number: NaN or infinity


EIGHT = {"float8_e4m3fn": Eight(3, 7, 127), "float8_e5m2": Eight(2, 15, 124)}


def _magnitudes(eight: Eight) -> Tensor:
    """What the codes from 0 on stand for; the last is what `beyond` would be, were it a number."""
    values = []
    for code in range(eight.beyond + 1):
        exponent, mantissa = code >> eight.precision, code & ((1 << eight.precision) - 1)
        whole = mantissa + ((1 << eight.precision) if exponent else 0)
        values.append(whole * 2.0 ** (max(exponent, 1) - eight.bias - eight.precision))
    return torch.tensor(values, dtype=torch.float64)


class Kind:
    """A number type: `dtype` is what PyTorch keeps it in, `work` what right arithmetic computes in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.eight = EIGHT.get(name)
        self.dtype: torch.dtype = torch.float32 if self.eight else getattr(torch, name)
        self.work = torch.float64 if name == "float64" else torch.float32
        if self.eight:
            self.magnitudes = _magnitudes(self.eight)

    def store(self, x: Tensor) -> Tensor:
        """Rounded to the nearest number of the type."""
        return self._decode(self._encode(x)) if self.eight else x.to(self.dtype)

    def hand(self, x: Any) -> Any:
        """An argument as plumb.judge takes it."""
        if isinstance(x, (list, tuple)):
            return type(x)(self.hand(item) for item in x)
        if not self.eight or not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        codes = self._encode(x).contiguous()
        return _core.Tensor(codes.data_ptr(), self.name, tuple(codes.shape), None, False, codes)

    def bits(self, x: Tensor) -> Tensor:
        """The same numbers as integers, for files that know no such floats."""
        if self.eight:
            return self._encode(x)
        size = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32,
                torch.float64: torch.int64}[self.dtype]
        return x.contiguous().view(size)

    def toward_zero(self, x: Tensor) -> Tensor:
        """Truncated to the type instead of rounded to the nearest."""
        near = self.store(x)
        beyond = near.double().abs() > x.double().abs()
        lower = self.bits(near) - 1  # one unit less in magnitude, with either sign
        return torch.where(beyond, self._decode(lower) if self.eight else lower.view(self.dtype), near)

    def _encode(self, x: Tensor) -> Tensor:
        x = x.detach().double()
        middles = (self.magnitudes[1:] + self.magnitudes[:-1]) / 2
        size = x.abs().contiguous()
        below, above = (torch.searchsorted(middles, size, right=right) for right in (False, True))
        code = torch.where(below % 2 == 0, below, above)  # a tie goes to the even code
        code = torch.where(torch.isnan(x), torch.full_like(code, 127), code)
        return (code + 128 * torch.signbit(x)).to(torch.uint8)

    def _decode(self, codes: Tensor) -> Tensor:
        code = codes.long() % 128
        value = self.magnitudes[code.clamp(max=self.eight.beyond)]
        limit = float("nan") if self.eight.beyond == 127 else float("inf")
        value = torch.where(code == self.eight.beyond, torch.full_like(value, limit), value)
        value = torch.where(code > self.eight.beyond, torch.full_like(value, float("nan")), value)
        return torch.where(codes >= 128, -value, value).float()


_KINDS: Dict[str, Kind] = {}
NAMES: Tuple[str, ...] = ("float32", "bfloat16", "float16", "float64", *EIGHT)


def kind_of(name: str) -> Kind:
    if name not in _KINDS:
        _KINDS[name] = Kind(name)
    return _KINDS[name]


def same(a: Tensor, b: Tensor) -> bool:
    """Number for number; NaN is NaN."""
    return a.shape == b.shape and bool(((a == b) | (torch.isnan(a) & torch.isnan(b))).all())
