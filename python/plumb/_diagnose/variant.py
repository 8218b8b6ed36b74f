"""Ways to run a model: another type, device or attention, compiled or not, or another model."""

import copy
import re
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Union

import torch

from plumb._core import Error
from plumb.tensors import children

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "half": torch.float16,
          "float": torch.float32, "double": torch.float64, "fp64": torch.float64}
KEYS = ("dtype", "device", "attention", "compile", "model")
Way = Union[None, str, torch.dtype, torch.device, torch.nn.Module, Mapping[str, Any]]


class Variant(NamedTuple):
    dtype: Optional[torch.dtype] = None
    device: Optional[torch.device] = None
    attention: Optional[str] = None
    compile: Any = None                       # the back end, True, or options of torch.compile
    model: Optional[torch.nn.Module] = None   # another one

    def says(self, model: torch.nn.Module) -> str:
        """What is run, in words."""
        model = self.model if self.model is not None else model
        parts = [str(self.dtype or dtype_of(model) or "no parameters").replace("torch.", "")]
        attention = self.attention or attention_of(model)
        if attention:
            parts.append(f"{attention} attention")
        if self.device is not None:
            parts.append(str(self.device))
        if self.compile:
            parts.append("compiled" if self.compile is True else f"compiled ({self.compile})")
        if self.model is not None:
            parts.insert(0, type(self.model).__name__)
        return ", ".join(parts)


def dtype_of(model: torch.nn.Module) -> Optional[torch.dtype]:
    """That of most of its parameters."""
    counts: Dict[torch.dtype, int] = {}
    for parameter in model.parameters():
        if parameter.is_floating_point():
            counts[parameter.dtype] = counts.get(parameter.dtype, 0) + parameter.numel()
    return max(counts, key=lambda key: counts[key]) if counts else None


def attention_of(model: torch.nn.Module) -> Optional[str]:
    """The back end that a model of Transformers uses; None: it has no choice."""
    if not hasattr(model, "set_attn_implementation"):
        return None
    found = getattr(getattr(model, "config", None), "_attn_implementation", None)
    return found if isinstance(found, str) else None


def _read_word(word: str, fields: Dict[str, Any]) -> None:
    dtype = DTYPES.get(word, getattr(torch, word, None))
    name, _, backend = word.partition(":")
    if isinstance(dtype, torch.dtype):
        fields["dtype"] = dtype
    elif name in ("compile", "compiled"):
        fields["compile"] = backend or True
    elif name in ("cpu", "cuda", "npu", "xpu", "mps", "hpu"):
        fields["device"] = torch.device(word)
    elif re.fullmatch(r"eager|sdpa|paged.*|.*attention.*|.*/.*", word):
        fields["attention"] = word
    else:
        raise Error(f'diagnose: "{word}" is neither a type (bfloat16), a device (cuda:0), an attention back end '
                    "(eager, sdpa), nor compiled")


def read(way: Way) -> Variant:
    """What the caller wrote, as a variant."""
    fields: Dict[str, Any] = {}
    if way is None:
        return Variant()
    if isinstance(way, torch.dtype):
        return Variant(dtype=way)
    if isinstance(way, torch.device):
        return Variant(device=way)
    if isinstance(way, torch.nn.Module):
        return Variant(model=way)
    if isinstance(way, str):
        for word in re.split(r"[\s,+]+", way.strip()):
            if word:
                _read_word(word, fields)
        return Variant(**fields)
    if not isinstance(way, Mapping):
        raise Error(f"diagnose: a way to run is a text, a type, a device, a model or a dict, not a "
                    f"{type(way).__name__}")
    for key, value in way.items():
        if key not in KEYS:
            raise Error(f'diagnose: "{key}" is not one of {", ".join(KEYS)}')
        if key == "dtype" and isinstance(value, str) or key == "attention":
            _read_word(value, fields)
        else:
            fields[key] = torch.device(value) if key == "device" else value
    return Variant(**fields)


def usual(model: torch.nn.Module) -> List[Variant]:
    """Nothing was said: the model as it is against its plainest form; one that is that already in bfloat16
    against itself."""
    attention = attention_of(model)
    plain = Variant(dtype=torch.float32 if dtype_of(model) not in (None, torch.float32, torch.float64) else None,
                    attention="eager" if attention not in (None, "eager") else None)
    if plain == Variant() and not hasattr(model, "_orig_mod"):
        return [Variant(dtype=torch.bfloat16), plain]
    return [Variant(), plain]


def made(variant: Variant, model: torch.nn.Module) -> torch.nn.Module:
    """The model to run. The caller's own is left as it is: what changes is a copy."""
    model = variant.model if variant.model is not None else model
    if variant.dtype is not None or variant.device is not None or variant.attention is not None:
        try:
            model = copy.deepcopy(getattr(model, "_orig_mod", model))
        except Exception as error:
            raise Error(f"diagnose: the model cannot be copied ({error}); give both models: "
                        "diagnose(model, inputs, a=one, b=other)") from error
    if variant.attention is not None:
        if not hasattr(model, "set_attn_implementation"):
            raise Error(f"diagnose: {type(model).__name__} has no choice of attention back ends")
        model.set_attn_implementation(variant.attention)
    if variant.dtype is not None or variant.device is not None:
        model = model.to(device=variant.device, dtype=variant.dtype)
    return model


def compiled(variant: Variant, model: torch.nn.Module) -> Callable[..., Any]:
    """What is called."""
    if not variant.compile:
        return model
    if not hasattr(torch, "compile"):
        raise Error(f"diagnose: PyTorch {torch.__version__} has no torch.compile")
    if variant.compile is True:
        return torch.compile(model)  # type: ignore[no-any-return]
    if isinstance(variant.compile, str):
        return torch.compile(model, backend=variant.compile)  # type: ignore[no-any-return]
    return torch.compile(model, **variant.compile)  # type: ignore[no-any-return]


def place_of(variant: Variant, model: torch.nn.Module) -> Optional[torch.device]:
    if variant.device is not None:
        return variant.device
    first = next(model.parameters(), None)
    return None if first is None else first.device


def moved(value: Any, dtype: Optional[torch.dtype], device: Optional[torch.device]) -> Any:
    """A copy of the inputs, floating-point ones in the type of the model."""
    if isinstance(value, torch.Tensor):
        kind = dtype if dtype is not None and value.is_floating_point() else value.dtype
        result = value.detach().clone().to(device=device or value.device, dtype=kind)
        return result.requires_grad_(value.requires_grad)
    if isinstance(value, Mapping):
        return {key: moved(item, dtype, device) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(moved(item, dtype, device) for item in value)
    return value


def tensors_of(value: Any, depth: int = 16) -> List[torch.Tensor]:
    """Floating-point tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if not depth or isinstance(value, (str, bytes)):
        return []
    items = value.values() if isinstance(value, Mapping) else (item for _, item in children(value))
    return [tensor for item in items for tensor in tensors_of(item, depth - 1)]
