"""nn modules as calls of functions: what each type of module does with its input."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Type

from torch import nn


class Held(NamedTuple):
    """A parameter or buffer of the module, by its name there."""
    name: str


class Lowered(NamedTuple):
    op: Optional[str]  # None: the input itself
    args: Tuple[Any, ...] = ()  # behind the arguments of the call
    kwargs: Dict[str, Any] = {}


def _held(module: nn.Module, name: str) -> Optional[Held]:
    return None if getattr(module, name, None) is None else Held(name)


def _affine(module: nn.Module) -> Tuple[Optional[Held], Optional[Held]]:
    return _held(module, "weight"), _held(module, "bias")


def _conv(name: str) -> Callable[[Any], Lowered]:
    def lower(m: Any) -> Lowered:
        if m.padding_mode != "zeros":
            raise NotImplementedError(f"padding_mode {m.padding_mode!r}")
        padding = m.padding if isinstance(m.padding, str) else list(m.padding)
        return Lowered(name, (*_affine(m), list(m.stride), padding, list(m.dilation), m.groups))
    return lower


def _conv_transpose(name: str) -> Callable[[Any], Lowered]:
    return lambda m: Lowered(name, (*_affine(m), list(m.stride), list(m.padding),
                                    list(m.output_padding), m.groups, list(m.dilation)))


def _batch_norm(m: Any) -> Lowered:
    mean, var = _held(m, "running_mean"), _held(m, "running_var")
    if m.momentum is None and m.training:
        raise NotImplementedError("momentum=None while training")
    return Lowered("Functional.batch_norm",
                   (mean, var, *_affine(m), m.training or mean is None, m.momentum, m.eps))


def _instance_norm(m: Any) -> Lowered:
    own = m.training or not m.track_running_stats
    return Lowered("Functional.instance_norm", (_held(m, "running_mean"), _held(m, "running_var"),
                                                *_affine(m), own, m.momentum, m.eps))


def _embedding(m: Any) -> Lowered:
    if m.max_norm is not None:
        raise NotImplementedError("max_norm")
    return Lowered("Functional.embedding", (Held("weight"),),
                   {} if m.padding_idx is None else {"padding_idx": m.padding_idx})


def _named(op: str, *names: str) -> Callable[[Any], Lowered]:
    """A function that takes attributes of the module under their own names."""
    return lambda m: Lowered(op, (), {name: getattr(m, name) for name in names})


def _max_pool(op: str) -> Callable[[Any], Lowered]:
    def lower(m: Any) -> Lowered:
        if m.return_indices:
            raise NotImplementedError("return_indices")
        return _named(op, "kernel_size", "stride", "padding", "dilation", "ceil_mode")(m)
    return lower


def _loss(op: str, *names: str) -> Callable[[Any], Lowered]:
    def lower(m: Any) -> Lowered:
        if getattr(m, "weight", None) is not None:
            return Lowered(op, (), {"weight": Held("weight"), **_named(op, *names)(m).kwargs})
        return _named(op, *names)(m)
    return lower


_F = "Functional."
_TABLE: Dict[Type[nn.Module], Callable[[Any], Lowered]] = {
    nn.Linear: lambda m: Lowered(_F + "linear", _affine(m)),
    nn.Bilinear: lambda m: Lowered(_F + "bilinear", _affine(m)),
    nn.Conv1d: _conv(_F + "conv1d"),
    nn.Conv2d: _conv(_F + "conv2d"),
    nn.Conv3d: _conv(_F + "conv3d"),
    nn.ConvTranspose1d: _conv_transpose(_F + "conv_transpose1d"),
    nn.ConvTranspose2d: _conv_transpose(_F + "conv_transpose2d"),
    nn.ConvTranspose3d: _conv_transpose(_F + "conv_transpose3d"),
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.BatchNorm3d: _batch_norm,
    nn.InstanceNorm1d: _instance_norm,
    nn.InstanceNorm2d: _instance_norm,
    nn.InstanceNorm3d: _instance_norm,
    nn.LayerNorm: lambda m: Lowered(_F + "layer_norm",
                                    (list(m.normalized_shape), *_affine(m), m.eps)),
    nn.GroupNorm: lambda m: Lowered(_F + "group_norm", (m.num_groups, *_affine(m), m.eps)),
    nn.Embedding: _embedding,
    nn.Identity: lambda m: Lowered(None),
    nn.Flatten: lambda m: Lowered("Torch.flatten", (m.start_dim, m.end_dim)),
    nn.Dropout: lambda m: Lowered(_F + "dropout", (m.p, m.training)),
    nn.PReLU: lambda m: Lowered(_F + "prelu", (Held("weight"),)),
    nn.ReLU: _named(_F + "relu"),
    nn.ReLU6: _named(_F + "relu6"),
    nn.Sigmoid: _named("Torch.sigmoid"),
    nn.Tanh: _named("Torch.tanh"),
    nn.GELU: _named(_F + "gelu", "approximate"),
    nn.SiLU: _named(_F + "silu"),
    nn.Mish: _named(_F + "mish"),
    nn.ELU: _named(_F + "elu", "alpha"),
    nn.CELU: _named(_F + "celu", "alpha"),
    nn.SELU: _named(_F + "selu"),
    nn.GLU: _named(_F + "glu", "dim"),
    nn.LeakyReLU: _named(_F + "leaky_relu", "negative_slope"),
    nn.Softplus: _named(_F + "softplus", "beta", "threshold"),
    nn.Softsign: _named(_F + "softsign"),
    nn.LogSigmoid: _named(_F + "logsigmoid"),
    nn.Hardtanh: _named(_F + "hardtanh", "min_val", "max_val"),
    nn.Hardswish: _named(_F + "hardswish"),
    nn.Hardsigmoid: _named(_F + "hardsigmoid"),
    nn.Softmax: _named(_F + "softmax", "dim"),
    nn.LogSoftmax: _named(_F + "log_softmax", "dim"),
    nn.MaxPool1d: _max_pool(_F + "max_pool1d"),
    nn.MaxPool2d: _max_pool(_F + "max_pool2d"),
    nn.MaxPool3d: _max_pool(_F + "max_pool3d"),
    nn.AvgPool1d: _named(_F + "avg_pool1d", "kernel_size", "stride", "padding", "ceil_mode",
                         "count_include_pad"),
    nn.AvgPool2d: _named(_F + "avg_pool2d", "kernel_size", "stride", "padding", "ceil_mode",
                         "count_include_pad"),
    nn.AvgPool3d: _named(_F + "avg_pool3d", "kernel_size", "stride", "padding", "ceil_mode",
                         "count_include_pad"),
    nn.AdaptiveAvgPool1d: _named(_F + "adaptive_avg_pool1d", "output_size"),
    nn.AdaptiveAvgPool2d: _named(_F + "adaptive_avg_pool2d", "output_size"),
    nn.AdaptiveAvgPool3d: _named(_F + "adaptive_avg_pool3d", "output_size"),
    nn.MSELoss: _loss(_F + "mse_loss", "reduction"),
    nn.L1Loss: _loss(_F + "l1_loss", "reduction"),
    nn.SmoothL1Loss: _loss(_F + "smooth_l1_loss", "reduction", "beta"),
    nn.CrossEntropyLoss: _loss(_F + "cross_entropy", "ignore_index", "reduction",
                               "label_smoothing"),
    nn.NLLLoss: _loss(_F + "nll_loss", "ignore_index", "reduction"),
    nn.BCEWithLogitsLoss: _loss(_F + "binary_cross_entropy_with_logits", "reduction"),
}


def known_modules() -> List[str]:
    return sorted(kind.__name__ for kind in _TABLE)


def lower(module: nn.Module) -> Lowered:
    """Raises NotImplementedError with the reason for what has no functional form here."""
    for kind in type(module).__mro__:
        if kind in _TABLE:
            if type(module).forward is not kind.forward:
                break  # a subclass that computes something else
            return _TABLE[kind](module)
    raise NotImplementedError(f"no functional form of {type(module).__name__} is known here")
