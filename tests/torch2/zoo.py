"""Models of Transformers with random weights, small enough for a test: one of each family.

`make(name)` gives a model in eval mode and its inputs; the same each time. Weights of norms are not
left at one, so that a fault in them can be seen."""

import os
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

WORDS = 99
Inputs = Dict[str, torch.Tensor]


class Family(NamedTuple):
    config: str              # class of the configuration
    model: str               # class of the model
    settings: Dict[str, Any]
    inputs: Callable[[], Inputs]
    generates: bool = True   # has generate() and a cache
    attention: bool = True   # sdpa and eager


def words(count: int = 12, batch: int = 2) -> torch.Tensor:
    return torch.randint(3, WORDS, (batch, count))


def text() -> Inputs:
    """The second line is padded, at its end: what is padded there still sees what is before it."""
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    return {"input_ids": words() * mask, "attention_mask": mask}


def picture() -> Inputs:
    return {"pixel_values": torch.randn(2, 3, 16, 16)}


def both() -> Inputs:
    return {**text(), "decoder_input_ids": words(6)}


def sound() -> Inputs:
    return {"input_features": torch.randn(2, 8, 32), "decoder_input_ids": words(6)}


DECODER = {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
           "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

FAMILIES: Dict[str, Family] = {
    "llama": Family("LlamaConfig", "LlamaForCausalLM", DECODER, text),
    "qwen3": Family("Qwen3Config", "Qwen3ForCausalLM", {**DECODER, "head_dim": 16}, text),
    "gemma": Family("GemmaConfig", "GemmaForCausalLM", {**DECODER, "head_dim": 16}, text),
    "mixtral": Family("MixtralConfig", "MixtralForCausalLM",
                      {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2}, text),
    "qwen3_moe": Family("Qwen3MoeConfig", "Qwen3MoeForCausalLM",
                        {**DECODER, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2,
                         "moe_intermediate_size": 24}, text),
    "bert": Family("BertConfig", "BertForMaskedLM",
                   {"vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48,
                    "num_hidden_layers": 2, "num_attention_heads": 4,
                    "max_position_embeddings": 64}, text, generates=False),
    "vit": Family("ViTConfig", "ViTForImageClassification",
                  {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "image_size": 16, "patch_size": 4, "num_labels": 5},
                  picture, generates=False),
    "gpt2": Family("GPT2Config", "GPT2LMHeadModel",
                   {"vocab_size": WORDS, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4,
                    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}, text),
    "t5": Family("T5Config", "T5ForConditionalGeneration",
                 {"vocab_size": WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2,
                  "num_heads": 4, "decoder_start_token_id": 0}, both, attention=False),
    "whisper": Family("WhisperConfig", "WhisperForConditionalGeneration",
                      {"vocab_size": WORDS, "num_mel_bins": 8, "d_model": 32, "encoder_layers": 2,
                       "decoder_layers": 2, "encoder_attention_heads": 4,
                       "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
                       "max_source_positions": 16, "max_target_positions": 32, "pad_token_id": 0,
                       "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
                       "suppress_tokens": None, "begin_suppress_tokens": None}, sound),
    "mamba": Family("MambaConfig", "MambaForCausalLM",
                    {"vocab_size": WORDS, "hidden_size": 32, "state_size": 8,
                     "num_hidden_layers": 2, "time_step_rank": 4, "pad_token_id": 0,
                     "bos_token_id": 1, "eos_token_id": 2},
                    text, attention=False),
}


def make(name: str, attention: str = "", dtype: torch.dtype = torch.float32
         ) -> Tuple[torch.nn.Module, Inputs]:
    family = FAMILIES[name]
    torch.manual_seed(0)
    settings = dict(family.settings)
    if attention:
        settings["attn_implementation"] = attention
    model: torch.nn.Module = getattr(transformers, family.model)(
        getattr(transformers, family.config)(**settings))
    for path, parameter in model.named_parameters():
        with torch.no_grad():
            if parameter.ndim > 1:  # so that layers do something
                parameter.normal_(0, parameter.shape[-1] ** -0.5)
            elif "norm" in path.lower():
                parameter.add_(0.2 * torch.randn_like(parameter))
    torch.manual_seed(1)
    inputs = family.inputs()
    if dtype != torch.float32:
        model = model.to(dtype)
        inputs = {key: value.to(dtype) if value.is_floating_point() else value
                  for key, value in inputs.items()}
    return model.eval(), inputs


def logits(model: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
    result: torch.Tensor = model(**inputs).logits
    return result


def step(model: torch.nn.Module, inputs: Inputs) -> List[torch.Tensor]:
    """One of training: the result, then the gradients of all parameters."""
    model.zero_grad(set_to_none=True)
    result = logits(model, inputs)
    result.float().square().mean().backward()
    return [result.detach()] + [torch.zeros(()) if parameter.grad is None else parameter.grad.clone()
                                for parameter in model.parameters()]


def generate(model: torch.nn.Module, inputs: Inputs, tokens: int = 4) -> torch.Tensor:
    inputs = {key: value for key, value in inputs.items() if key != "decoder_input_ids"}
    if "attention_mask" in inputs:  # padded at the beginning
        inputs = {key: value.flip(1) for key, value in inputs.items()}
    with torch.no_grad():
        result: torch.Tensor = model.generate(**inputs, max_new_tokens=tokens, min_new_tokens=tokens,  # type: ignore[operator]
                                              do_sample=False, use_cache=True)
    return result
