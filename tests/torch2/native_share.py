"""Which calls of real models plumb has operators for: a table of native shares, and of what is missing.

    python3 tests/torch2/native_share.py [--models llama bert ...] [--types float32 bfloat16] [--missing]

Models of Transformers are made from tiny configurations with random weights; one training step each, with sdpa and with
eager attention, in each type: that many runs. Recorded twice: by PrecisionDebugger (level L1, functions of PyTorch) and by begin_dump (operators of
ATen, backward ones too). `plumb acc_check --no-torch` then runs each kind of call once; what it has no operator for is
SKIP. optimizers: one step each of those of torch.optim, in their for-loop, foreach and fused forms.
"""

import argparse
import csv
import os
import subprocess
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402

BUILD = Path(os.environ.get("PLUMB_BUILD", "build"))
TYPES = ("float32", "bfloat16")
ATTENTION = ("sdpa", "eager")
NOT_CHECKED = ("never checked", "the results are random")  # by anybody


def text_step(model: torch.nn.Module, inputs: Dict[str, Any]) -> Callable[[], None]:
    def step() -> None:
        result = model(**inputs)
        loss = result.loss if getattr(result, "loss", None) is not None else result[0].float().square().mean()
        loss.backward()
    return step


SMALL = dict(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64)


def ids(n: int = 12) -> torch.Tensor:
    return torch.randint(3, 90, (2, n), generator=torch.Generator().manual_seed(1))


def causal(config: str, model: str, **settings: Any) -> Callable[[str], Tuple[torch.nn.Module, Dict[str, Any]]]:
    def make(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
        import transformers
        made = getattr(transformers, config)(**{**SMALL, **settings})
        made._attn_implementation = attention
        mask = torch.ones(2, 12, dtype=torch.long)
        mask[0, :3] = 0
        return getattr(transformers, model)(made), {"input_ids": ids(), "labels": ids(), "attention_mask": mask}
    return make


def bert(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation=attention)
    return BertForMaskedLM(config), {"input_ids": ids(), "labels": ids()}


def vit(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16,
                       patch_size=4, num_labels=5, attn_implementation=attention)
    return ViTForImageClassification(config), {"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([1, 3])}


def gpt2(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=96, n_positions=64, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
                        attn_pdrop=0.0, attn_implementation=attention)
    return GPT2LMHeadModel(config), {"input_ids": ids(), "labels": ids()}


def t5(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0,
                      feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    return T5ForConditionalGeneration(config), {"input_ids": ids(), "labels": ids(7)}


def whisper(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(vocab_size=96, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8,
                           max_source_positions=16, max_target_positions=32, decoder_start_token_id=1, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, attn_implementation=attention)
    return WhisperForConditionalGeneration(config), {"input_features": torch.randn(2, 8, 32), "labels": ids(7)}


def mamba(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import MambaConfig, MambaForCausalLM
    return MambaForCausalLM(MambaConfig(vocab_size=96, hidden_size=32, state_size=4, num_hidden_layers=2)), \
        {"input_ids": ids(), "labels": ids()}


def mamba2(attention: str) -> Tuple[torch.nn.Module, Dict[str, Any]]:
    from transformers import Mamba2Config, Mamba2ForCausalLM
    config = Mamba2Config(vocab_size=96, hidden_size=32, state_size=4, num_hidden_layers=2, num_heads=4, head_dim=16,
                          n_groups=2, chunk_size=8)
    return Mamba2ForCausalLM(config), {"input_ids": ids(), "labels": ids()}


MODELS: Dict[str, Callable[[str], Tuple[torch.nn.Module, Dict[str, Any]]]] = {
    "llama": causal("LlamaConfig", "LlamaForCausalLM"),
    "qwen3": causal("Qwen3Config", "Qwen3ForCausalLM", head_dim=8),
    "gemma2": causal("Gemma2Config", "Gemma2ForCausalLM", head_dim=8, sliding_window=4),
    "mixtral": causal("MixtralConfig", "MixtralForCausalLM", num_local_experts=4, output_router_logits=True),
    "qwen3_moe": causal("Qwen3MoeConfig", "Qwen3MoeForCausalLM", num_experts=4, num_experts_per_tok=2,
                        moe_intermediate_size=16, head_dim=8),
    "bert": bert, "vit": vit, "gpt2": gpt2, "t5": t5, "whisper": whisper, "mamba": mamba, "mamba2": mamba2,
}
ONE_ATTENTION = ("t5", "mamba", "mamba2")  # no choice of it


def optimizers() -> Iterator[Tuple[str, Callable[[], None]]]:
    """One step of each optimizer, in each of its forms."""
    optim = torch.optim
    kinds = [(optim.AdamW, {}, True), (optim.Adam, {"amsgrad": True}, True), (optim.SGD, {"momentum": 0.9}, True),
             (optim.Adagrad, {}, True), (optim.RMSprop, {"momentum": 0.5}, False), (optim.Adadelta, {}, False),
             (optim.NAdam, {}, False), (optim.RAdam, {}, False), (optim.Adamax, {}, False), (optim.Rprop, {}, False),
             (optim.ASGD, {}, False), (optim.Adafactor, {}, False)]
    for kind, settings, fused in kinds:
        for form in ("for", "foreach") + (("fused",) if fused else ()):
            def step(kind: Any = kind, settings: Any = settings, form: str = form) -> None:
                parameters = [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(5))]
                made = kind(parameters, **settings, **({"foreach": False} if form == "for" else {form: True}))
                for _ in range(2):
                    for parameter in parameters:
                        parameter.grad = torch.randn_like(parameter)
                    made.step()
            yield f"{kind.__name__}/{form}", step


# ---- Recording --------------------------------------------------------------------------------------------------

def record(what: str, how: str, folder: str, dtype: str, attention: str) -> None:
    """In a process of its own: what begin_dump records goes on until the process ends."""
    import plumb
    torch.manual_seed(0)
    os.chdir(folder)
    if what == "optimizers":
        model: Any = torch.nn.Identity()
        steps = [step for _, step in optimizers()]
    else:
        model, inputs = MODELS[what](attention)
        model = model.to(getattr(torch, dtype)).train()
        inputs = {key: value.to(getattr(torch, dtype)) if value.is_floating_point() else value
                  for key, value in inputs.items()}
        steps = [text_step(model, inputs)]
    if how == "ATen":
        plumb.begin_dump(X_DEBUG=0x102, X_DEDUP=False, X_DUMP_NUM=100000)
        for step in steps:
            step()
        plumb.end_dump()
        return
    debugger = plumb.PrecisionDebugger(dump_path=folder, task="tensor", level="L1")
    debugger.start(model)
    for step in steps:
        step()
    debugger.stop()
    debugger.step()


def in_a_child(work: Callable[[], None]) -> None:
    """A fork, so that Transformers is imported once for all models."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            work()
            code = 0
        except Exception as error:
            print(f"recording failed: {error!r}", flush=True)
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("a model could not be recorded")


class Share:
    """Calls of one recording, and which of them plumb has operators for."""

    def __init__(self, what: str, how: str, dtype: str, attention: str) -> None:
        self.calls = self.native = self.errors = 0
        self.missing: Counter = Counter()
        self.names: Counter = Counter()
        self.wrong: List[str] = []
        with tempfile.TemporaryDirectory() as folder:
            in_a_child(lambda: record(what, how, folder, dtype, attention))
            dumps = list(Path(folder).rglob("dump.json"))
            if len(dumps) != 1:
                raise SystemExit(f"{what}, {how}: {len(dumps)} dumps instead of one")
            self.check(dumps[0], Path(folder) / "out")

    def check(self, dump: Path, out: Path) -> None:
        done = subprocess.run([str(BUILD / "plumb"), "acc_check", str(dump), "--no-torch", "-o", str(out)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        results = list(out.glob("accuracy_checking_result_*.csv"))
        if len(results) != 1:
            raise SystemExit(f"acc_check of {dump}: {done.stderr.strip()}")
        with results[0].open(newline="") as file:
            rows = list(csv.reader(file))[1:]
        for name, forward, backward, why in rows:
            api = name.rpartition(".")[0]
            if forward == "SKIP" and any(word in why for word in NOT_CHECKED):
                continue
            self.names[api] += 1
            self.calls += 1
            if forward == "SKIP" or backward == "SKIP":
                self.missing[f"{api}: {why}"] += 1
                continue
            self.native += 1
            if "error" in (forward, backward):
                self.errors += 1
                self.wrong.append(f"{name}: {why}")


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import transformers
    print(f"PyTorch {torch.__version__}, Transformers {transformers.__version__}\n")
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=[*MODELS, "optimizers"])
    parser.add_argument("--types", nargs="*", default=TYPES)
    parser.add_argument("--missing", action="store_true", help="name what is missing, and rows that are errors")
    options = parser.parse_args()
    missing: Counter = Counter()
    wrong: List[str] = []
    print("| model | runs | calls of L1 | native | errors | calls of ATen | native | errors |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for what in options.models:
        ways = [("float32", "")] if what == "optimizers" else \
            [(dtype, attention) for dtype in options.types
             for attention in (ATTENTION[:1] if what in ONE_ATTENTION else ATTENTION)]
        cells = [what, str(len(ways))]
        for how in ("L1", "ATen"):
            shares = [Share(what, how, dtype, attention) for dtype, attention in ways]
            calls, native = sum(share.calls for share in shares), sum(share.native for share in shares)
            cells += [str(calls), f"{100 * native / max(1, calls):.1f} %", str(sum(share.errors for share in shares))]
            for share, (dtype, attention) in zip(shares, ways):
                missing.update(share.missing)
                wrong += [f"{what} {dtype} {attention} {how}: {text}" for text in share.wrong]
        print("| " + " | ".join(cells) + " |", flush=True)
    if options.missing:
        for text, count in missing.most_common():
            print(f"missing {count:6} {text}")
        for text in wrong:
            print(f"error {text}")


if __name__ == "__main__":
    main()
