"""config_check: the golden checkpoints, and checkpoints made here and cut in every way."""

import argparse
import json
import math
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch

BUILD = Path(os.environ["PLUMB_BUILD"])
DATA = Path(os.environ["PLUMB_TEST_DATA"]) / "golden"

Weights = Dict[str, torch.Tensor]


def roots() -> List[Path]:
    return [DATA] + ([Path(os.environ["PLUMB_GOLDEN"])] if "PLUMB_GOLDEN" in os.environ else [])


def near(a: Optional[float], b: Optional[float], rel: float, absolute: float = 0.0) -> bool:
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= max(rel * abs(b), absolute)


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="plumb-ckpt-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plumb(self, *words: object) -> subprocess.CompletedProcess:
        return subprocess.run([str(BUILD / "plumb"), *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=600, check=False)

    def check(self, first: Path, second: Path, status: int, *more: str) -> Dict[str, dict]:
        """The JSON of a comparison that must end with that exit code."""
        out = self.folder / "out.json"
        out.unlink(missing_ok=True)
        done = self.plumb("config_check", "-c", first, second, "-o", out, "--wide", *more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.table = done.stdout
        return json.loads(out.read_text("utf-8"))

    def row(self, name: str) -> List[str]:
        for line in self.table.splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if cells and cells[0].endswith(name):
                return cells
        self.fail(f"no row {name} in\n{self.table}")


class Golden(Scratch):
    def test_same_map(self) -> None:
        for root in roots():
            case = root / "compare" / "ckpt"
            wanted = json.loads((case / "expected_ckpt.json").read_text("utf-8"))
            for more in ([], ["--rules", "msprobe", "--columns", "msprobe"]):
                found = self.check(case / "ckpt1", case / "ckpt2", 1, *more)
                self.assertEqual(found.keys(), wanted.keys())
                for name, about in wanted.items():
                    with self.subTest(root=str(root), name=name):
                        self.assertEqual(found[name].keys(), about.keys())
                        self.assertEqual(found[name]["numel"], about["numel"])
                        self.assertEqual(found[name]["shape"], about["shape"])
                        self.assertTrue(near(found[name]["cos"], about["cos"], 0, 1e-6))
                        self.assertTrue(near(found[name]["l2"], about["l2"], 1e-5))

    def test_one_sided_names_fail(self) -> None:
        case = DATA / "compare" / "ckpt"
        found = self.check(case / "ckpt1", case / "ckpt2", 1)
        self.assertNotIn("decoder.layers.0.extra.weight", found)
        self.assertEqual(self.row("decoder.layers.0.extra.weight")[5], "FAIL")
        self.assertEqual(self.row("decoder.layers.0.pre_mlp_layernorm.weight")[5], "FAIL")
        self.assertIn("1 only in the first, 1 only in the second", self.table)

    def test_iteration_folder(self) -> None:
        case = DATA / "compare" / "ckpt" / "ckpt1"
        found = self.check(case, case / "iter_0000010", 0)
        self.assertEqual(len(found), 31)
        self.assertTrue(all(about["l2"] == 0 for about in found.values()))


def gpt(layers: int, experts: int = 0, seed: int = 0) -> Weights:
    make = torch.Generator().manual_seed(seed)
    weights = {"embedding.word_embeddings.weight": (16, 8), "output_layer.weight": (16, 8),
               "decoder.final_layernorm.weight": (8,)}
    for i in range(layers):
        at = f"decoder.layers.{i}."
        weights.update({at + "input_layernorm.weight": (8,),
                        at + "self_attention.linear_qkv.weight": (24, 8),
                        at + "self_attention.linear_qkv.bias": (24,),
                        at + "self_attention.linear_proj.weight": (8, 8),
                        at + "self_attention.linear_proj.bias": (8,),
                        at + "pre_mlp_layernorm.weight": (8,)})
        for e in range(experts):
            inside = f"{at}mlp.experts.local_experts.{e}."
            weights.update({inside + "linear_fc1.weight": (16, 8),
                            inside + "linear_fc2.weight": (8, 16)})
        if not experts:
            weights.update({at + "mlp.linear_fc1.weight": (16, 8),
                            at + "mlp.linear_fc2.weight": (8, 16)})
    return {name: torch.randn(shape, generator=make) for name, shape in weights.items()}


def noisy(weights: Weights, scale: float = 1e-3) -> Weights:
    make = torch.Generator().manual_seed(99)
    return {name: value + scale * torch.randn(value.shape, generator=make)
            for name, value in weights.items()}


def cut(name: str, value: torch.Tensor, tp: int, rank: int, gated: bool) -> torch.Tensor:
    if gated and "linear_fc1" in name:
        halves = value.chunk(2)
        return torch.cat([half.chunk(tp)[rank] for half in halves])
    rows = ("linear_qkv", "linear_fc1", "word_embeddings.weight", "output_layer.weight")
    if any(part in name for part in rows):
        return value.chunk(tp)[rank].clone()
    if "linear_fc2.weight" in name or "linear_proj.weight" in name:
        return value.chunk(tp, 1)[rank].clone()
    return value


def number(name: str, word: str) -> Optional[int]:
    parts = name.split(".")
    return int(parts[parts.index(word) + 1]) if word in parts else None


def save(folder: Path, weights: Weights, tp: int = 1, stages: Optional[List[List[int]]] = None,
         vpp: int = 1, ep: int = 1, args: bool = True, gated: bool = False) -> Path:
    """Cuts and writes a checkpoint. stages lists the number of layers of each chunk by [chunk][pp]."""
    layers = 1 + max(number(name, "layers") or 0 for name in weights)
    stages = stages or [[layers]]
    pp = len(stages[0])
    experts = 1 + max([number(name, "local_experts") for name in weights
                       if "local_experts" in name] or [-1])
    order = [(v, p) for v in range(vpp) for p in range(pp)]
    starts, at = {}, 0
    for v, p in order:
        starts[v, p] = at
        at += stages[v][p]
    for e in range(ep):
        for p in range(pp):
            for t in range(tp):
                chunks: List[Weights] = [{} for _ in range(vpp)]
                for name, value in weights.items():
                    layer, expert = number(name, "layers"), number(name, "local_experts")
                    if expert is not None:
                        share = experts // ep
                        if expert // share != e:
                            continue
                        name = name.replace(f"local_experts.{expert}.",
                                            f"local_experts.{expert % share}.")
                    if layer is None:
                        v, home = (0, 0) if "embedding" in name else order[-1]
                    else:
                        v, home = next((v, q) for v, q in order
                                       if 0 <= layer - starts[v, q] < stages[v][q])
                        name = name.replace(f"layers.{layer}.", f"layers.{layer - starts[v, home]}.")
                    if home == p:
                        chunks[v][name] = cut(name, value, tp, t, gated)
                state = {"iteration": 10, "optimizer": {"step": torch.ones(3)}}
                if args:
                    state["args"] = argparse.Namespace(
                        tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
                        expert_model_parallel_size=ep, num_experts=experts or None, swiglu=gated,
                        params_dtype=torch.float32)
                for v in range(vpp):
                    state["model" if vpp == 1 else f"model{v}"] = chunks[v]
                name = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else "")
                name += f"_{e:03d}" if ep > 1 else ""
                path = folder / "iter_0000010" / name / "model_optim_rng.pt"
                path.parent.mkdir(parents=True)
                torch.save(state, path)
    (folder / "latest_checkpointed_iteration.txt").write_text("10\n")
    return folder


class Cuts(Scratch):
    """However a checkpoint is cut, the numbers are those of the whole."""

    def compare(self, weights: Weights, status: int = 0, **how: object) -> None:
        other = noisy(weights)
        first = save(self.folder / "cut", weights, **how)
        second = save(self.folder / "whole", other)
        found = self.check(first, second, status)
        self.assertEqual(found.keys(), weights.keys())
        for name, a in weights.items():
            a = a.numpy().astype(np.float64).ravel()
            b = other[name].numpy().astype(np.float64).ravel()
            with self.subTest(name=name):
                self.assertTrue(near(found[name]["l2"], float(np.linalg.norm(a - b)), 1e-6))
                cosine = a.dot(b) / np.linalg.norm(a) / np.linalg.norm(b)
                self.assertTrue(near(found[name]["cos"], float(cosine), 1e-9))
                self.assertEqual(found[name]["shape"], list(weights[name].shape))

    def test_tensor_parallel(self) -> None:
        self.compare(gpt(2), tp=4)

    def test_pipeline_parallel(self) -> None:
        self.compare(gpt(4), tp=2, stages=[[2, 2]])

    def test_uneven_stages(self) -> None:
        self.compare(gpt(6), stages=[[1, 3, 2]])

    def test_virtual_stages(self) -> None:
        self.compare(gpt(8), tp=2, stages=[[2, 2], [2, 2]], vpp=2)

    def test_expert_parallel(self) -> None:
        self.compare(gpt(2, experts=4), ep=2)

    def test_all_at_once(self) -> None:
        self.compare(gpt(4, experts=4), tp=2, stages=[[1, 1], [1, 1]], vpp=2, ep=2)

    def test_gated(self) -> None:
        self.compare(gpt(2), tp=2, gated=True)

    def test_sizes_from_folder_names(self) -> None:
        self.compare(gpt(4), tp=2, stages=[[2, 2]], args=False)
        self.assertIn("the same names in both", self.table)

    def test_large_weights_are_streamed(self) -> None:
        weights = {"decoder.layers.0.mlp.linear_fc2.weight": torch.randn(300, 1000),
                   "embedding.word_embeddings.weight": torch.randn(4096, 70)}
        self.compare(weights, tp=2)


class Names(Scratch):
    def test_older_names(self) -> None:
        value = torch.randn(8, 8)
        old = {"language_model.encoder.layers.0.self_attention.query_key_value.weight": value,
               "language_model.encoder.layers.0.self_attention.dense.weight": value,
               "language_model.encoder.layers.0.input_norm.weight": value[0],
               "language_model.encoder.layers.0.post_attention_norm.weight": value[1],
               "language_model.encoder.layers.0.mlp.dense_h_to_4h.weight": value,
               "language_model.encoder.layers.0.mlp.dense_4h_to_h.weight": value,
               "language_model.encoder.final_norm.weight": value[2],
               "word_embeddings_for_head.weight": value}
        new = {"decoder.layers.0.self_attention.linear_qkv.weight": value,
               "decoder.layers.0.self_attention.linear_proj.weight": value,
               "decoder.layers.0.input_layernorm.weight": value[0],
               "decoder.layers.0.pre_mlp_layernorm.weight": value[1],
               "decoder.layers.0.mlp.linear_fc1.weight": value,
               "decoder.layers.0.mlp.linear_fc2.weight": value,
               "decoder.final_layernorm.weight": value[2],
               "output_layer.weight": value}
        found = self.check(save(self.folder / "a", old), save(self.folder / "b", new), 0)
        self.assertEqual(found.keys(), new.keys())

    def test_fused_norm_meets_the_one_on_its_own(self) -> None:
        value = torch.randn(8)
        fused = save(self.folder / "a", {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight": value},
                     tp=1)
        alone = save(self.folder / "b", {"decoder.layers.0.pre_mlp_layernorm.weight": value})
        self.assertEqual(len(self.check(fused, alone, 0)), 1)
        self.assertEqual(len(self.check(alone, fused, 0)), 1)

    def test_two_names_that_become_one(self) -> None:
        weights = {"encoder.layers.0.mlp.linear_fc1.bias": torch.ones(4),
                   "decoder.layers.0.mlp.linear_fc1.bias": torch.zeros(4) + 3}
        found = self.check(save(self.folder / "a", weights), save(self.folder / "b", weights), 0)
        self.assertEqual(len(found), 2)


class Values(Scratch):
    def pair(self, a: torch.Tensor, b: torch.Tensor, status: int) -> Tuple[dict, List[str]]:
        torch.save({"w": a}, self.folder / "a.pt")
        torch.save({"w": b}, self.folder / "b.pt")
        return self.check(self.folder / "a.pt", self.folder / "b.pt", status)["w"], self.row("w")

    def test_zero_sides(self) -> None:
        zero, one = torch.zeros(4), torch.ones(4)
        self.assertEqual(self.pair(zero, zero, 0)[0]["cos"], 1.0)
        for a, b in ((zero, one), (one, zero)):
            found, row = self.pair(a, b, 1)
            self.assertIsNone(found["cos"])
            self.assertEqual(found["l2"], 2.0)
            self.assertEqual(row[5], "FAIL")

    def test_orthogonal_is_not_zero(self) -> None:
        found, _ = self.pair(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 1)
        self.assertEqual(found["cos"], 0.0)

    def test_not_finite(self) -> None:
        nan, inf = float("nan"), float("inf")
        found, row = self.pair(torch.tensor([1.0, nan]), torch.tensor([1.0, nan]), 1)
        self.assertTrue(math.isnan(found["l2"]) and math.isnan(found["cos"]))
        self.assertIn("not finite", row[6])
        found, _ = self.pair(torch.tensor([1.0, inf]), torch.tensor([1.0, 2.0]), 1)
        self.assertEqual(found["l2"], inf)

    def test_scaled_fails(self) -> None:
        value = torch.randn(100)
        found, row = self.pair(value * 1.02, value, 1)
        self.assertAlmostEqual(found["cos"], 1.0, 9)
        self.assertIn("above 0.01", row[6])

    def test_as_float32(self) -> None:
        value = torch.randn(50, dtype=torch.float64)
        found, _ = self.pair(value, value.float(), 0)
        self.assertEqual(found["l2"], 0.0)
        found, _ = self.pair(value.bfloat16(), value.bfloat16().half().float(), 0)
        self.assertEqual(found["l2"], 0.0)
        found, _ = self.pair(torch.arange(6).reshape(2, 3).t(), torch.arange(6.0).reshape(2, 3).t(), 0)
        self.assertEqual(found["shape"], [3, 2])

    def test_shapes(self) -> None:
        found, row = self.pair(torch.zeros(2, 3), torch.zeros(3, 2), 1)
        self.assertEqual(found, {"l2": None, "cos": None, "numel": 6, "shape": [[2, 3], [3, 2]]})
        self.assertEqual(row[1], "[2, 3] / [3, 2]")
        found, _ = self.pair(torch.zeros(2), torch.zeros(3), 1)
        self.assertEqual(found["numel"], [2, 3])
        found, _ = self.pair(torch.zeros(()), torch.zeros(()), 0)
        self.assertEqual(found, {"l2": 0.0, "cos": 1.0, "numel": 1, "shape": []})


class Damage(Scratch):
    """A bad part costs its own rows."""

    def parts(self) -> Tuple[Path, Path, Weights]:
        weights = gpt(4)
        return (save(self.folder / "cut", weights, tp=2, stages=[[2, 2]]),
                save(self.folder / "whole", weights), weights)

    def check_stage_lost(self, first: Path, second: Path) -> None:
        found = self.check(first, second, 1)
        for name, about in found.items():
            lost = about.get("error") is not None
            layer = number(name, "layers")
            stage = (layer >= 2) if layer is not None else "embedding" not in name
            joined = any(part in name for part in ("linear_qkv", "linear_fc", "proj.weight",
                                                   "output_layer", "word_embeddings"))
            self.assertEqual(lost, stage and joined, name)
            if not lost:
                self.assertEqual(about["l2"], 0.0)

    def test_missing_part(self) -> None:
        first, second, _ = self.parts()
        part = first / "iter_0000010" / "mp_rank_01_001"
        (part / "model_optim_rng.pt").unlink()
        part.rmdir()
        self.check_stage_lost(first, second)
        self.assertEqual(self.row("mp_rank_01_001")[5:], ["FAIL", "this part is missing"])

    def test_truncated_part(self) -> None:
        first, second, _ = self.parts()
        path = first / "iter_0000010" / "mp_rank_01_001" / "model_optim_rng.pt"
        path.write_bytes(path.read_bytes()[:-100])
        self.check_stage_lost(first, second)
        self.assertEqual(self.row("mp_rank_01_001")[5], "FAIL")

    def test_whole_stage_lost(self) -> None:
        weights = gpt(6)
        first = save(self.folder / "cut", weights, stages=[[2, 2, 2]])
        second = save(self.folder / "whole", weights)
        (first / "iter_0000010" / "mp_rank_00_001" / "model_optim_rng.pt").write_bytes(b"nothing")
        found = self.check(first, second, 1)
        self.assertTrue(all(about["l2"] == 0.0 for about in found.values()))
        self.assertIn("decoder.layers.4.input_layernorm.weight", found)
        self.assertNotIn("decoder.layers.2.input_layernorm.weight", found)

    def test_shapes_that_cannot_be_joined(self) -> None:
        first, second, _ = self.parts()
        path = first / "iter_0000010" / "mp_rank_01_000" / "model_optim_rng.pt"
        state = torch.load(path, weights_only=False)
        name = "decoder.layers.0.self_attention.linear_proj.weight"
        state["model"][name] = torch.zeros(7, 4)
        torch.save(state, path)
        found = self.check(first, second, 1)
        self.assertIn("cannot be joined", found[name]["error"])
        self.assertIn("mp_rank_01_000 has [7, 4]", found[name]["error"])
        self.assertEqual(sum("error" in about for about in found.values()), 1)

    def test_copies_that_differ_are_suspicious(self) -> None:
        first, second, _ = self.parts()
        path = first / "iter_0000010" / "mp_rank_01_000" / "model_optim_rng.pt"
        state = torch.load(path, weights_only=False)
        name = "decoder.layers.0.input_layernorm.weight"
        state["model"][name] += 1
        torch.save(state, path)
        found = self.check(first, second, 0)
        self.assertEqual(found[name]["l2"], 0.0)
        self.assertIn("the copy in mp_rank_01_000 differs", self.row(name)[6])
        self.assertIn("(1 suspicious)", self.table)

    def test_nothing_left(self) -> None:
        first, second, _ = self.parts()
        for path in first.glob("iter_0000010/*/model_optim_rng.pt"):
            path.write_bytes(b"")
        done = self.plumb("config_check", "-c", first, second)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none of its 4 parts can be read", done.stderr)

    def test_tracker(self) -> None:
        first, second, _ = self.parts()
        tracker = first / "latest_checkpointed_iteration.txt"
        for text in ("../../etc", "11", "", "iter"):
            tracker.write_text(text)
            done = self.plumb("config_check", "-c", first, second)
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(len(done.stderr.splitlines()), 1)
        tracker.unlink()
        self.check(first, second, 0)  # the newest iteration

    def test_args_that_lie(self) -> None:
        first, second, _ = self.parts()
        for path in first.glob("iter_0000010/*/model_optim_rng.pt"):
            state = torch.load(path, weights_only=False)
            state["args"].tensor_model_parallel_size = 1 << 60
            torch.save(state, path)
        done = self.plumb("config_check", "-c", first, second)
        self.assertEqual(done.returncode, 2)
        self.assertIn("more than any checkpoint has", done.stderr)


def safetensors(path: Path, weights: Weights) -> None:
    header, at, data = {}, 0, b""
    for name, value in weights.items():
        raw = value.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [at, at + len(raw)]}
        data += raw
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Files(Scratch):
    def test_file_and_shards(self) -> None:
        weights = gpt(2)
        names = list(weights)
        torch.save(weights, self.folder / "model.pt")
        shards = self.folder / "shards"
        shards.mkdir()
        for i in range(3):
            safetensors(shards / f"model-{i + 1:05d}-of-00003.safetensors",
                        {name: weights[name] for name in names[i::3]})
        (shards / "config.json").write_text("{}")
        found = self.check(self.folder / "model.pt", shards, 0)
        self.assertEqual(found.keys(), weights.keys())

        (shards / "model-00002-of-00003.safetensors").unlink()
        found = self.check(self.folder / "model.pt", shards, 1)
        self.assertEqual(len(found), len(weights) - len(names[1::3]))
        self.assertEqual(self.row("model-00002-of-00003.safetensors")[6], "this file is missing")

        (shards / "model-00003-of-00003.safetensors").write_bytes(b"\0" * 20)
        self.check(self.folder / "model.pt", shards, 1)
        self.assertEqual(self.row("model-00003-of-00003.safetensors")[5], "FAIL")

    def test_compare_still_takes_files(self) -> None:
        weights = gpt(1)
        torch.save(weights, self.folder / "a.pt")
        safetensors(self.folder / "b.safetensors", weights)
        done = self.plumb("compare", self.folder / "a.pt", self.folder / "b.safetensors")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_output_is_not_overwritten(self) -> None:
        weights = gpt(1)
        torch.save(weights, self.folder / "a.pt")
        out = self.folder / "kept.json"
        out.write_text("kept")
        words = ["config_check", "-c", self.folder / "a.pt", self.folder / "a.pt", "-o", out]
        done = self.plumb(*words)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)
        self.assertEqual(out.read_text(), "kept")
        self.assertEqual(self.plumb(*words, "--force").returncode, 0)
        self.assertEqual(len(json.loads(out.read_text())), len(weights))

    def test_other_endings_are_tables(self) -> None:
        torch.save(gpt(1), self.folder / "a.pt")
        out = self.folder / "out.csv"
        done = self.plumb("config_check", "-c", self.folder / "a.pt", self.folder / "a.pt", "-o", out)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(out.read_text().startswith("Name,Shape,Numel,l2,cos,Result,Err_message\n"))

    def test_same_for_any_number_of_threads(self) -> None:
        torch.save(gpt(3), self.folder / "a.pt")
        torch.save(noisy(gpt(3)), self.folder / "b.pt")
        one = self.check(self.folder / "a.pt", self.folder / "b.pt", 0, "--threads", "1")
        many = self.check(self.folder / "a.pt", self.folder / "b.pt", 0, "--threads", "8")
        self.assertEqual(one, many)


if __name__ == "__main__":
    unittest.main()
