#!/usr/bin/python3
"""plumb.export_graph: what the exported file computes natively is what PyTorch computes.

Each model is exported and checked against a second graph that PyTorch filled in: its first output
is PyTorch's plus a term of value zero whose gradients are PyTorch's."""

import csv
import json
import operator
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict

BUILD = Path(os.environ["PLUMB_BUILD"])
sys.path.insert(0, str(BUILD / "python"))

import torch
import torch.nn.functional as F
from torch import fx, nn

import plumb


class Zoo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.act = nn.SiLU()
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.norm = nn.LayerNorm(32)
        self.fc = nn.Linear(32, 12, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.pool(self.act(self.bn(self.conv(x))))
        y = self.fc(self.norm(y.flatten(1)))
        parts = y.chunk(3, dim=-1)
        a, b, c = parts[0], parts[1], parts[-1]
        y = torch.softmax(a, -1) * b - c / 2
        return y, y.argmax(-1), {"more": torch.cat([a, c], dim=1)[:, 1:]}


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        batch, length = x.shape[0], x.size(1)
        heads = self.qkv(x).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        q, k, v = heads[0], heads[1], heads[2]
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(batch, length, 8)
        return F.gelu(self.out(y)) + x


class Inplace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 5)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        z = self.relu(y)
        y = y + z  # both are what relu left behind
        y += 1
        y.mul_(2)
        return y * torch.tensor([1.0, 2, 3, 4, 5])


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(5, 5)
        self.b = nn.Linear(5, 5)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(F.dropout(self.a(x), 0.5, training=False)).sigmoid()


def oracle(graph: Dict[str, Any], folder: Path, module: nn.Module, inputs: Any) -> Dict[str, Any]:
    """A graph with PyTorch's numbers in it."""
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    outputs = [*outputs[:2], outputs[2]["more"]] if len(outputs) == 3 else list(outputs)
    outputs[0].sum().backward()
    nodes, buffers, total = [], {}, 0.0

    def save(name: str, value: torch.Tensor) -> Dict[str, str]:
        torch.save(value.detach().contiguous(), folder / f"{name}.pt")
        buffers[name] = {"file": f"{name}.pt"}
        return {"ref": name}
    term: Any = 0.0
    for index, (name, parameter) in enumerate(module.named_parameters()):
        gradient = save(f"gradient_{index}", parameter.grad)
        nodes += [{"name": f"product_{index}", "op": "mul", "args": [{"ref": name}, gradient]},
                  {"name": f"sum_{index}", "op": "sum", "args": [{"ref": f"product_{index}"}]},
                  {"name": f"term_{index}", "op": "add",
                   "args": [{"ref": f"sum_{index}"}, term]}]
        term = {"ref": f"term_{index}"}
        total += float((parameter.detach() * parameter.grad).sum())
    nodes += [{"name": "rest", "op": "sub", "args": [term, total]},
              {"name": "each", "op": "mul", "args": [{"ref": "rest"}, 1.0 / outputs[0].numel()]},
              {"name": "first", "op": "add", "args": [save("output_0", outputs[0]),
                                                      {"ref": "each"}]}]
    results = [{"ref": "first"}]
    results += [save(f"output_{k}", value) for k, value in enumerate(outputs) if k]
    return {"plumb_graph": 1, "parameters": graph["parameters"], "buffers": buffers,
            "nodes": nodes, "outputs": results}


def numeric_check(*arguments: Any) -> subprocess.CompletedProcess:
    return subprocess.run([str(BUILD / "plumb"), "numeric_check", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class Export(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(7)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, make: Callable[[], nn.Module], *inputs: torch.Tensor,
              train: bool = False) -> None:
        module = make().train(train)
        path = self.folder / "graph.json"
        plumb.export_graph(module, inputs, path)
        graph = json.loads(path.read_text())
        after = self.folder / "torch.json"
        after.write_text(json.dumps(oracle(graph, self.folder, module, inputs)))
        rows = self.folder / "rows.csv"
        done = numeric_check(path, after, "--iterations", 1, "--no-optimizer", "--precision", 1e-5,
                             "-o", rows)
        self.assertLessEqual(done.returncode, 1, done.stdout)
        with open(rows, encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        # The oracle is right about the sum of the first output alone.
        judged = [row for row in found if row["Kind"] != "gradient of all outputs"]
        self.assertEqual([row for row in judged if row["Result"] != "PASS"], [], done.stdout)
        self.assertEqual(sum(row["Kind"] == "gradient" for row in judged),
                         len(graph["parameters"]), done.stdout)

    def test_zoo(self) -> None:
        self.check(Zoo, torch.randn(2, 3, 9, 9))

    def test_zoo_in_training(self) -> None:
        self.check(Zoo, torch.randn(2, 3, 9, 9), train=True)

    def test_attention(self) -> None:
        self.check(Attention, torch.randint(0, 11, (2, 5)))

    def test_inplace(self) -> None:
        self.check(Inplace, torch.randn(3, 5))

    def test_tied(self) -> None:
        self.check(Tied, torch.randn(3, 5))

    def test_a_wrong_gradient_is_seen(self) -> None:
        """The oracle itself can fail."""
        module = Tied()
        inputs = (torch.randn(3, 5),)
        path, after = self.folder / "graph.json", self.folder / "torch.json"
        plumb.export_graph(module, inputs, path)
        graph = oracle(json.loads(path.read_text()), self.folder, module, inputs)
        torch.save(module.b.bias.grad * 1.001, self.folder / "gradient_2.pt")
        after.write_text(json.dumps(graph))
        done = numeric_check(path, after, "--iterations", 1, "--compare", "gradient", "--format",
                             "csv")
        self.assertEqual(done.returncode, 1, done.stdout)
        rows = {line.split(",")[2]: "FAIL" in line for line in done.stdout.splitlines()
                if ",gradient," in line}
        self.assertEqual(rows, {"a.weight": False, "a.bias": False, "b.bias": True})

    def test_before_and_after_a_pass(self) -> None:
        graph = fx.symbolic_trace(Attention())
        wrong = fx.symbolic_trace(Attention())
        wrong.load_state_dict(graph.state_dict())
        for node in wrong.graph.nodes:
            if node.target is F.gelu:
                node.kwargs = {"approximate": "tanh"}
        ids = torch.randint(0, 11, (2, 5))
        plumb.export_graph(graph, ids, self.folder / "before.json")
        plumb.export_graph(wrong, ids, self.folder / "after.json")
        done = numeric_check(self.folder / "before.json", self.folder / "after.json", "--follow",
                             "--precision", 1e-6)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("first node that differs: gelu", done.stdout)

    def test_bfloat16_and_reference(self) -> None:
        module = Tied().bfloat16()
        plumb.export_graph(module, torch.randn(3, 5).bfloat16(), self.folder / "a.json")
        for device in ("cpu", "reference"):
            done = numeric_check(self.folder / "a.json", self.folder / "a.json", "--device", device)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_refused(self) -> None:
        class Views(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = x.view(-1)
                x.add_(1)
                return y

        class Sets(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x[0] = 1
                return x

        class Recurrent(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.rnn = nn.LSTM(5, 5)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.rnn(x)[0]
        for make, words in ((Views, "view of the same memory"), (Sets, "item assignment"),
                            (Recurrent, "LSTM")):
            with self.assertRaisesRegex(plumb.Error, words):
                plumb.export_graph(make(), torch.randn(3, 5), self.folder / "no.json")
            self.assertFalse((self.folder / "no.json").exists())
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.call_function(operator.setitem, (x, 0, 1.0))
        graph.output(x)
        def normed() -> nn.Module:
            return nn.utils.weight_norm(nn.Linear(4, 4))

        def hooked(method: str) -> nn.Module:
            model = nn.Linear(4, 4)
            getattr(model, method)(lambda *values: None)
            return model

        def own() -> nn.Module:
            model = nn.Linear(4, 4)
            forward = model.forward
            model.forward = lambda x: forward(x) * 2
            return model
        spectral = nn.utils.parametrizations.spectral_norm
        for words, model in (("hooks", normed()), ("hooks", hooked("register_forward_hook")),
                             ("hooks", hooked("register_forward_pre_hook")),
                             ("hooks", hooked("register_full_backward_hook")),
                             ("parameters are computed", spectral(nn.Linear(4, 4))),
                             ("forward is not that of its class", own())):
            for whole in (model, nn.Sequential(model)):
                with self.assertRaisesRegex(plumb.Error, words):
                    plumb.export_graph(whole, torch.ones(2, 4), self.folder / "refused.json")
        with self.assertRaisesRegex(plumb.Error, "setitem"):
            plumb.export_graph(fx.GraphModule(nn.Module(), graph), torch.randn(3, 5),
                               self.folder / "no.json")


if __name__ == "__main__":
    unittest.main()
