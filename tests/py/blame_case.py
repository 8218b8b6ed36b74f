"""What the tests of plumb blame share: faults, models, dumps and captures of them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
sys.path.insert(0, str(Path(__file__).parent))

import torch  # noqa: E402
from capture_case import BUILD  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import plumb  # noqa: E402

PLUMB = str(BUILD / "plumb")


def blame(*words: Any, status: Optional[int] = None) -> Dict[str, Any]:
    done = subprocess.run([PLUMB, "blame", *map(str, words), "--format", "json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    if status is not None and done.returncode != status:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def judged(found: Dict[str, Any]) -> int:
    count: int = found["calls"] - found["verdicts"]["not judged"]
    return count


def first(found: Dict[str, Any]) -> str:
    """The worst call."""
    name: str = found["faults"][0]["call"] if found["faults"] else ""
    return name


def named(found: Dict[str, Any]) -> List[str]:
    """Faults and cheaper arithmetic."""
    return [one["call"] for one in found["faults"] + found["suspicious"] if one["verdict"] != "not judged"]


def doubted(found: Dict[str, Any]) -> List[str]:
    return [one["call"] for one in found["suspicious"] if one["verdict"] == "not judged"]


def reasons(found: Dict[str, Any]) -> str:
    return "; ".join(f"{one['count']}: {one['what']}" for one in found["not_judged"])


# -- What goes wrong -------------------------------------------------------------------------------

def tile(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[:max(1, flat.numel() // 16)] = 0
    return flat.reshape(t.shape)


def sign(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[flat.abs().argmax()] *= -1
    return flat.reshape(t.shape)


def nan(t: torch.Tensor) -> torch.Tensor:
    flat = t.clone().reshape(-1)
    flat[flat.numel() // 2] = float("nan")
    return flat.reshape(t.shape)


def every_other(t: torch.Tensor) -> torch.Tensor:
    return t * torch.where(torch.arange(t.numel()).reshape(t.shape) % 2 == 0, 1.0, 0.97).to(t.dtype)


FAULTS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled": lambda t: t * 1.01,
    "shifted": lambda t: t + 0.05 * t.float().abs().mean().to(t.dtype),
    "tile": tile,
    "rolled": lambda t: t.roll(1, 0) if t.dim() else t * 1.1,
    "sign": sign,
    "nan": nan,
    "doubled": lambda t: t * 2,
    "every other": every_other,
    "smaller type": lambda t: t.bfloat16().to(t.dtype) if t.dtype == torch.float32 else t * 1.02,
}


# -- Models ----------------------------------------------------------------------------------------

class Llama(nn.Module):
    """The norm as others write it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.variance_epsilon = 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if x.dtype == torch.float64 else x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * y.to(x.dtype)


LlamaRMSNorm = type("LlamaRMSNorm", (Llama,), {})


class Zoo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 32, padding_idx=3)
        self.conv = nn.Conv1d(32, 32, 3, padding=1, groups=4)
        self.batch = nn.BatchNorm1d(32)
        self.gelu = nn.GELU()
        self.layer = nn.LayerNorm(32, eps=1e-6)
        self.up = nn.Linear(32, 48)
        self.drop = nn.Dropout(0.1)
        self.softmax = nn.Softmax(dim=-1)
        self.group = nn.GroupNorm(4, 48)
        self.pool = nn.AvgPool1d(2)
        self.leaky = nn.LeakyReLU(0.2)
        self.rms = LlamaRMSNorm(48)
        self.out = nn.Linear(48, 10)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, words: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        x = self.batch(self.conv(self.embedding(words).transpose(1, 2)))
        x = self.drop(self.up(self.layer(self.gelu(x.transpose(1, 2).contiguous()))))
        x = self.group((x + self.softmax(x)).transpose(1, 2))
        x = self.rms(self.leaky(self.pool(x)).mean(-1))
        loss: torch.Tensor = self.loss(self.out(x), classes)
        return loss


class Attention(nn.Module):
    def __init__(self, fused: bool, fault: float) -> None:
        super().__init__()
        self.fused, self.fault = fused, fault

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if self.fused:
            fused = getattr(F, "scaled_dot_product_attention", None)
            y: torch.Tensor = fused(q, k, v) if fused else F._scaled_dot_product_attention(q, k, v)[0]
        else:
            y = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
        return y * self.fault


class Attending(nn.Module):
    def __init__(self, fused: bool, fault: float) -> None:
        super().__init__()
        self.into, self.head = nn.Linear(16, 32), nn.Linear(32, 5)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(32), "qkv": nn.Linear(32, 96), "attention": Attention(fused, fault if n == 1 else 1.0),
            "out": nn.Linear(32, 32), "up": nn.Linear(32, 64), "act": nn.GELU(), "down": nn.Linear(64, 32)})
            for n in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.into(x)
        for block in self.blocks:
            x = x + block["out"](block["attention"](*block["qkv"](block["norm"](x)).chunk(3, -1)))
            x = x + block["down"](block["act"](block["up"](x)))
        y: torch.Tensor = self.head(x)
        return y


MODULES = ("embedding.Embedding", "conv.Conv1d", "batch.BatchNorm1d", "gelu.GELU", "layer.LayerNorm", "up.Linear",
           "drop.Dropout", "softmax.Softmax", "group.GroupNorm", "pool.AvgPool1d", "leaky.LeakyReLU",
           "rms.LlamaRMSNorm", "out.Linear", "loss.CrossEntropyLoss")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)

    def make(self, dtype: torch.dtype = torch.float32, training: bool = True) -> nn.Module:
        torch.manual_seed(0)
        model = Zoo().to(dtype).train(training)
        model.drop.eval()
        return model

    def data(self) -> Sequence[torch.Tensor]:
        torch.manual_seed(1)
        return torch.randint(0, 40, (4, 16)), torch.randint(0, 10, (4,))

    def record(self, name: str, model: nn.Module, steps: int = 1, level: str = "L0",
               run: Optional[Callable[[], Any]] = None, **how: Any) -> Path:
        """As a dump, or with how as a capture of modules."""
        path = self.root / name
        debugger = plumb.PrecisionDebugger(dump_path=str(path), model=model, **how) if how else \
            plumb.PrecisionDebugger(dump_path=str(path), task="tensor", level=level)
        self.addCleanup(debugger._close_quietly)
        for _ in range(steps):
            if how:
                debugger.start()
            else:
                debugger.start(model)
            if run is not None:
                run()
            else:
                model(*self.data()).backward()
            debugger.stop()
            debugger.step()
        debugger._close_quietly()
        return path

    def folder(self, dump: Path, step: int = 0) -> Path:
        found, = (dump / f"step{step}").iterdir()
        return found

    def copy(self, dump: Path, settings: bool = True) -> Path:
        target = self.root / "copy"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(dump, target)
        for path in [] if settings else target.rglob("*modules.json"):
            path.unlink()
        return target

    def change(self, dump: Path, name: str, fault: Callable[[torch.Tensor], torch.Tensor], step: int = 0) -> None:
        path = self.folder(dump, step) / "dump_tensor_data" / f"{name}.pt"
        before = torch.load(path)
        after = fault(before).contiguous()
        self.assertFalse(torch.equal(before, after), name)
        torch.save(after, path)
