"""Models and faults for the tests of torch.compile."""

import operator
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
import torch.nn.functional as F
from torch import fx, nn

aten = torch.ops.aten


class Mlp(nn.Module):
    """A little of everything that a fault may be planted in."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 8)
        self.norm, self.drop = nn.LayerNorm(32), nn.Dropout(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(torch.relu(self.norm(self.a(x))))
        y = self.b(x)
        return torch.softmax(y - y.mean(0) * 0.5, -1)


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).mean((2, 3)))


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8, dtype=torch.cfloat))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.cfloat) @ self.weight).abs()


def normed(blocks: int) -> nn.Module:
    """Convolutions with a bias that the batch norm behind them takes away."""
    layers: List[nn.Module] = []
    for i in range(blocks):
        layers += [nn.Conv2d(8 if i else 3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
        self.qkv, self.out, self.head = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 50)

    def forward(self, tokens: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        x = self.embed(tokens)
        n, t, c = x.shape
        q, k, v = (part.view(n, t, 2, 8).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        logits = self.head(x + self.out(y))
        return F.cross_entropy(logits.flatten(0, 1), tokens.flatten()), logits


def made(kind: Callable[[], nn.Module], dtype: torch.dtype = torch.float32,
         train: bool = True) -> Tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    model = kind().to(dtype).train(train)
    if kind is Attention:
        return model, torch.randint(0, 50, (2, 6))
    return model, torch.randn(*((2, 3, 8, 8) if kind is Conv else (8, 16))).to(dtype)


# -- Wrong passes ----------------------------------------------------------------------------------
# Each changes the first node of some operator; named for what it does.

class Fault(NamedTuple):
    slot: str
    change: Callable[[fx.Graph], None]
    stage: str
    node: str  # a part of the name that is to be found


def first(graph: fx.Graph, *targets: Any) -> Any:
    return next((node for node in graph.nodes if node.target in targets), None)


def relu_to_sigmoid(graph: fx.Graph) -> None:
    node = first(graph, aten.relu.default, torch.relu)
    if node is not None:
        node.target = torch.sigmoid if node.target is torch.relu else aten.sigmoid.default


def replace(graph: fx.Graph, node: Any, target: Any) -> None:
    """A new node in place of the old one, if there is one, under a name of its own."""
    if node is not None:
        with graph.inserting_before(node):
            new = graph.call_function(target, node.args)
            new.meta.update(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def relu_replaced(graph: fx.Graph) -> None:
    replace(graph, first(graph, aten.relu.default), aten.tanh.default)


def scale_off(graph: fx.Graph) -> None:
    node = next((node for node in graph.nodes if node.target is aten.mul.Tensor and node.args[1] == 0.5), None)
    if node is not None:
        node.args = (node.args[0], 0.5005)


def eps_wrong(graph: fx.Graph) -> None:
    node = next((node for node in graph.nodes if node.target is aten.add.Tensor and node.args[1] == 1e-5), None)
    if node is not None:
        node.args = (node.args[0], 1e-3)


def bias_dropped(graph: fx.Graph) -> None:
    node = first(graph, aten.addmm.default)
    if node is not None:
        node.target, node.args = aten.mm.default, node.args[1:]


def bias_dropped_early(graph: fx.Graph) -> None:
    node = first(graph, torch._C._nn.linear)
    if node is not None:
        node.args = node.args[:2]


def operands_swapped(graph: fx.Graph) -> None:
    nodes = [node for node in graph.nodes if node.target is aten.sub.Tensor and
             all(isinstance(one, fx.Node) and one.op != "placeholder" for one in node.args)]
    if nodes:
        nodes[-1].args = nodes[-1].args[::-1]


def sub_swapped_early(graph: fx.Graph) -> None:
    node = first(graph, operator.sub, torch.sub)
    if node is not None:
        node.args = node.args[::-1]


def sum_over_other_axis(graph: fx.Graph) -> None:
    replace(graph, first(graph, aten.mean.dim), aten.sum.dim_IntList)


def softmax_early_scaled(graph: fx.Graph) -> None:
    node = first(graph, torch.softmax, F.softmax)
    if node is not None:
        with graph.inserting_after(node):
            new = graph.call_function(operator.mul, (node, 1.0005))
        node.replace_all_uses_with(new)
        new.args = (node, 1.0005)


def mask_inverted(graph: fx.Graph) -> None:
    node = first(graph, aten.le.Scalar)
    if node is not None:
        node.target = aten.gt.Scalar


def gradient_halved(graph: fx.Graph) -> None:
    """Of the backward only: the last sum over rows."""
    nodes = [node for node in graph.nodes if node.target is aten.sum.dim_IntList and
             any(one.name.startswith("tangents") for one in graph.nodes)]
    if nodes:
        node = nodes[-1]
        users = list(node.users)
        with graph.inserting_after(node):
            new = graph.call_function(aten.mul.Tensor, (node, 0.5))
            new.meta.update(node.meta)
        for user in users:
            user.replace_input_with(node, new)


FAULTS: List[Fault] = [
    Fault("pre_grad_custom_pass", relu_to_sigmoid, "pre-grad pass", "relu"),
    Fault("pre_grad_custom_pass", bias_dropped_early, "pre-grad pass", "linear"),
    Fault("pre_grad_custom_pass", sub_swapped_early, "pre-grad pass", "sub"),
    Fault("pre_grad_custom_pass", softmax_early_scaled, "pre-grad pass", "mul"),
    Fault("joint_custom_pre_pass", relu_to_sigmoid, "joint pass", "relu"),
    Fault("joint_custom_pre_pass", scale_off, "joint pass", "mul"),
    Fault("joint_custom_pre_pass", eps_wrong, "joint pass", "add"),
    Fault("joint_custom_post_pass", bias_dropped, "joint pass", "addmm"),
    Fault("joint_custom_post_pass", mask_inverted, "joint pass", "le"),
    Fault("joint_custom_post_pass", gradient_halved, "joint pass", "mul"),
    Fault("post_grad_custom_pre_pass", relu_to_sigmoid, "post-grad pass", "relu"),
    Fault("post_grad_custom_pre_pass", operands_swapped, "post-grad pass", "sub"),
    Fault("post_grad_custom_pre_pass", sum_over_other_axis, "post-grad pass", "sum"),
    Fault("post_grad_custom_post_pass", relu_replaced, "post-grad pass", "tanh"),
    Fault("post_grad_custom_post_pass", eps_wrong, "post-grad pass", "add"),
    Fault("post_grad_custom_post_pass", bias_dropped, "post-grad pass", "addmm"),
]


# -- Right passes that change the graph all the same -----------------------------------------------

def relu_as_maximum(graph: fx.Graph) -> None:
    node = first(graph, aten.relu.default)
    if node is not None:
        node.target, node.args = aten.clamp_min.default, (node.args[0], 0)


def addmm_taken_apart(graph: fx.Graph) -> None:
    """Another order of the additions, and another rounding in 16 bits."""
    node = first(graph, aten.addmm.default)
    if node is not None:
        bias, left, right = node.args
        with graph.inserting_before(node):
            product = graph.call_function(aten.mm.default, (left, right))
            new = graph.call_function(aten.add.Tensor, (product, bias))
            product.meta.update(node.meta)
            new.meta.update(node.meta)
        node.replace_all_uses_with(new)
        graph.erase_node(node)


def halved_twice(graph: fx.Graph) -> None:
    node = next((node for node in graph.nodes if node.target is aten.mul.Tensor and node.args[1] == 0.5), None)
    if node is not None:
        node.target, node.args = aten.div.Tensor, (node.args[0], 2.0)


RIGHT: List[Tuple[str, Callable[[fx.Graph], None]]] = [
    (slot, change)
    for slot in ("joint_custom_pre_pass", "post_grad_custom_pre_pass", "post_grad_custom_post_pass")
    for change in (relu_as_maximum, addmm_taken_apart, halved_twice)]


def transformers_models() -> Dict[str, Tuple[nn.Module, Dict[str, Any]]]:
    """Small ones with random weights; {} without Transformers."""
    try:
        from transformers import (BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                                  LlamaForCausalLM)
    except ImportError:
        return {}
    torch.manual_seed(0)
    tokens = torch.randint(0, 64, (2, 7))
    asked: Dict[str, Any] = {"input_ids": tokens, "use_cache": False, "return_dict": False}
    return {
        "Llama": (LlamaForCausalLM(LlamaConfig(
            vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
            num_key_value_heads=2)), {**asked, "labels": tokens}),
        "GPT-2": (GPT2LMHeadModel(GPT2Config(
            vocab_size=64, n_embd=32, n_layer=1, n_head=4, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0)), {**asked, "labels": tokens}),
        "BERT": (BertModel(BertConfig(
            vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
            {"input_ids": tokens, "return_dict": False}),
    }
