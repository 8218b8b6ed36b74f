"""Faults planted into models of the zoo, one at a time, each in a known module."""

import copy
import functools
import operator
import types
from typing import Any, Callable, Dict, NamedTuple

import torch

import zoo

Model = Any


class Fault(NamedTuple):
    family: str
    what: str
    module: str                       # where it is to be found
    plant: Callable[[Model], None]
    generates: bool = False           # seen in generate() with a cache


def scaled(path: str, factor: float = 1.01) -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        with torch.no_grad():
            model.get_parameter(path).mul_(factor)
    return plant


def swapped(path: str) -> Callable[[Model], None]:
    """The first two rows of a parameter, which are two experts."""
    def plant(model: Model) -> None:
        with torch.no_grad():
            parameter = model.get_parameter(path)
            parameter[[0, 1]] = parameter[[1, 0]]
    return plant


def setting(path: str, name: str, value: float) -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        module = model.get_submodule(path)
        assert hasattr(module, name)
        setattr(module, name, value)
    return plant


def wrapped(path: str, change: Callable[[Callable[..., Any], tuple, Dict[str, Any]], Any]
            ) -> Callable[[Model], None]:
    """Another forward of one module."""
    def plant(model: Model) -> None:
        module = model.get_submodule(path)
        original = type(module).forward

        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            return change(functools.partial(original, self), args, kwargs)
        module.__class__ = type(type(module).__name__, (type(module),), {"forward": forward})
    return plant


def later(original: Callable[..., Any], args: tuple, kwargs: Dict[str, Any]) -> Any:
    """Positions that are off by one."""
    if "position_ids" in kwargs:
        return original(*args, **{**kwargs, "position_ids": kwargs["position_ids"] + 1})
    return original(args[0], args[1] + 1, *args[2:], **kwargs)


def other_mask(original: Callable[..., Any], args: tuple, kwargs: Dict[str, Any]) -> Any:
    def roll(value: Any) -> Any:
        return value.roll(1, -1) if isinstance(value, torch.Tensor) and value.ndim == 4 else value
    return original(*(args[:1] + tuple(roll(arg) for arg in args[1:])),
                    **{key: roll(value) if "mask" in key else value for key, value in kwargs.items()})


def stale_cache(original: Callable[..., Any], args: tuple, kwargs: Dict[str, Any]) -> Any:
    """The last key is the one before it."""
    cache = kwargs.get("past_key_values")
    if cache is None:
        return original(*args, **kwargs)
    update = cache.update

    def stale(keys: torch.Tensor, values: torch.Tensor, *rest: Any, **more: Any) -> Any:
        keys, values = update(keys, values, *rest, **more)
        if keys.shape[-2] > 12:
            keys = torch.cat((keys[..., :-1, :], keys[..., -2:-1, :]), -2)
        return keys, values
    cache.update = stale
    try:
        return original(*args, **kwargs)
    finally:
        del cache.update


def shifted_states(original: Callable[..., Any], args: tuple, kwargs: Dict[str, Any]) -> Any:
    """Cross attention to states that are off by one."""
    kwargs = {key: value.roll(1, 1) if key == "key_value_states" and value is not None else value
              for key, value in kwargs.items()}
    return original(*args, **kwargs)


def other_bias(model: Model) -> None:
    """Relative positions of T5 that are off by one."""
    attention = model.encoder.block[0].layer[0].SelfAttention
    original = attention._relative_position_bucket

    def off(relative_position: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return original(relative_position + 1, *args, **kwargs)
    attention._relative_position_bucket = off


def other_activation(model: Model) -> None:
    model.transformer.h[0].mlp.act = torch.nn.ReLU()


def wrong_backend(graph: torch.fx.GraphModule, example: Any) -> Callable[..., Any]:
    """A back end that takes 1e-2 for the eps of norms."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target in (operator.add, torch.add) and \
                isinstance(node.args[1], float) and node.args[1] < 1e-4:
            node.args = (node.args[0], 1e-2)
    graph.recompile()
    return graph.forward  # type: ignore[no-any-return]


def compiled_wrongly(path: str) -> Callable[[Model], None]:
    def plant(model: Model) -> None:
        for name, module in model.named_modules():
            if name.rpartition(".")[0] == path.rpartition(".")[0] and isinstance(module, torch.nn.Module):
                module.compile(backend=wrong_backend if name == path else "eager")
    return plant


def in_compiled_layers(path: str, plant: Callable[[Model], None]) -> Callable[[Model], None]:
    """The same fault in a model whose layers are compiled one by one."""
    def plant_compiled(model: Model) -> None:
        plant(model)
        for layer in model.get_submodule(path):
            layer.compile(backend="aot_eager")
    return plant_compiled


FAULTS = [
    Fault("llama", "norm weight x 1.01", "model.layers.1.input_layernorm",
          scaled("model.layers.1.input_layernorm.weight")),
    Fault("qwen3", "wrong eps", "model.layers.0.self_attn.q_norm",
          setting("model.layers.0.self_attn.q_norm", "variance_epsilon", 1e-3)),
    Fault("llama", "rotary off by one", "model.rotary_emb", wrapped("model.rotary_emb", later)),
    Fault("gemma", "rotary off by one", "model.rotary_emb", wrapped("model.rotary_emb", later)),
    Fault("mixtral", "expert swapped", "model.layers.1.mlp.experts",
          swapped("model.layers.1.mlp.experts.gate_up_proj")),
    Fault("qwen3_moe", "rows of the router swapped", "model.layers.0.mlp.gate",
          swapped("model.layers.0.mlp.gate.weight")),
    Fault("gpt2", "mask off by one", "transformer.h.1.attn", wrapped("transformer.h.1.attn", other_mask)),
    Fault("bert", "mask off by one", "bert.encoder.layer.1.attention.self",
          wrapped("bert.encoder.layer.1.attention.self", other_mask)),
    Fault("llama", "stale cache", "model.layers.1.self_attn", wrapped("model.layers.1.self_attn", stale_cache), True),
    Fault("gemma", "stale cache", "model.layers.0.self_attn", wrapped("model.layers.0.self_attn", stale_cache), True),
    Fault("vit", "wrong eps", "vit.layers.0.layernorm_before", setting("vit.layers.0.layernorm_before", "eps", 1e-2)),
    Fault("t5", "relative positions off by one", "encoder.block.0.layer.0.SelfAttention", other_bias),
    Fault("t5", "norm weight x 1.01", "decoder.block.1.layer.2.layer_norm",
          scaled("decoder.block.1.layer.2.layer_norm.weight")),
    Fault("whisper", "positions rolled", "model.decoder.embed_positions", swapped("model.decoder.embed_positions.weight")),
    Fault("whisper", "cross attention off by one", "model.decoder.layers.1.encoder_attn",
          wrapped("model.decoder.layers.1.encoder_attn", shifted_states)),
    Fault("mamba", "A x 1.01", "backbone.layers.1.mixer", scaled("backbone.layers.1.mixer.A_log")),
    Fault("gpt2", "another activation", "transformer.h.0.mlp.act", other_activation),
    Fault("llama", "wrong eps by the compiler", "model.layers.1", compiled_wrongly("model.layers.1")),
    Fault("qwen3", "wrong eps by the compiler", "model.layers.0", compiled_wrongly("model.layers.0")),
    Fault("llama", "norm weight x 1.01, compiled", "model.layers.1",
          in_compiled_layers("model.layers", scaled("model.layers.1.input_layernorm.weight"))),
    Fault("qwen3", "wrong eps, compiled", "model.layers.0",
          in_compiled_layers("model.layers", setting("model.layers.0.self_attn.q_norm", "variance_epsilon", 1e-3))),
    Fault("llama", "rotary off by one, compiled", "model.rotary_emb",
          in_compiled_layers("model.layers", wrapped("model.rotary_emb", later))),
    Fault("mixtral", "expert swapped, compiled", "model.layers.1",
          in_compiled_layers("model.layers", swapped("model.layers.1.mlp.experts.gate_up_proj"))),
    Fault("bert", "mask off by one, compiled", "bert.encoder.layer.1",
          in_compiled_layers("bert.encoder.layer", wrapped("bert.encoder.layer.1.attention.self", other_mask))),
    Fault("llama", "stale cache, compiled", "model.layers.1",
          in_compiled_layers("model.layers", wrapped("model.layers.1.self_attn", stale_cache)), True),
]


def planted(fault: Fault, model: Model) -> Model:
    broken = copy.deepcopy(model)
    fault.plant(broken)
    return broken


class Pieces(torch.nn.Linear):
    """A right Linear that adds up in another order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        result = x[..., half:] @ self.weight[:, half:].T + x[..., :half] @ self.weight[:, :half].T
        return result if self.bias is None else result + self.bias


def in_another_order(model: Model) -> Model:
    other = copy.deepcopy(model)
    for module in other.modules():
        if type(module) is torch.nn.Linear:
            module.__class__ = Pieces
    return other


def generating(model: Any) -> Callable[[Any], Any]:
    """What diagnose runs: generate() with the inputs of the family."""
    return functools.partial(zoo.generate, inputs=model)
