"""convert_gguf.py FILE.gguf DIR: turns a llama GGUF with a byte-level BPE tokenizer into a Hugging Face model directory.

Writes config.json, generation_config.json, model.safetensors (bf16), tokenizer.json and tokenizer_config.json.
"""

import json
import os
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

# A control token in GGUF's tokenizer.ggml.token_type.
CONTROL = 3

# Hugging Face's name of what GGUF calls blk.N.<key>.weight.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER_NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def main() -> None:
    source, target = sys.argv[1:]
    reader = GGUFReader(source)
    keys = {name: field.contents() for name, field in reader.fields.items()}
    if keys["general.architecture"] != "llama" or keys["tokenizer.ggml.pre"] != "smollm":
        sys.exit(f"{source}: only llama models with SmolLM's tokenizer can be converted")
    os.makedirs(target, exist_ok=True)
    write_json(target, "config.json", config(keys))
    write_json(target, "generation_config.json", special_ids(keys))
    write_json(target, "tokenizer.json", tokenizer(keys))
    write_json(target, "tokenizer_config.json", tokenizer_config(keys))
    tensors = {hf_name(tensor.name): to_bf16(hf_rows(tensor, keys)) for tensor in reader.tensors}
    write_safetensors(os.path.join(target, "model.safetensors"), tensors)
    print(f"  converted {len(tensors)} tensors, {sum(t.nbytes for t in tensors.values()) / 1e6:.0f} MB in bf16")


def config(keys: dict) -> dict:
    hidden, heads = keys["llama.embedding_length"], keys["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": keys["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": keys["llama.attention.head_count_kv"],
        "head_dim": hidden // heads,
        "intermediate_size": keys["llama.feed_forward_length"],
        "vocab_size": keys["llama.vocab_size"],
        "max_position_embeddings": keys["llama.context_length"],
        "rope_theta": keys["llama.rope.freq_base"],
        "rope_scaling": None,
        # Stored as f32; the shortest decimal that names it is what the published config says.
        "rms_norm_eps": float(f"{keys['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        **special_ids(keys),
    }


def special_ids(keys: dict) -> dict:
    return {
        "bos_token_id": keys["tokenizer.ggml.bos_token_id"],
        "eos_token_id": keys["tokenizer.ggml.eos_token_id"],
        "pad_token_id": keys["tokenizer.ggml.padding_token_id"],
    }


def control_tokens(keys: dict) -> list[tuple[int, str]]:
    tokens, types = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    return [(i, token) for i, (token, kind) in enumerate(zip(tokens, types)) if kind == CONTROL]


def added_token(content: str) -> dict:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"content": content, **flags, "special": True}


def tokenizer(keys: dict) -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, **added_token(token)} for i, token in control_tokens(keys)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(keys["tokenizer.ggml.tokens"])},
            "merges": [merge.split(" ") for merge in keys["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(keys: dict) -> dict:
    tokens = keys["tokenizer.ggml.tokens"]

    def named(key: str) -> str:
        return tokens[keys[f"tokenizer.ggml.{key}_token_id"]]

    return {
        "tokenizer_class": "GPT2Tokenizer",
        "model_max_length": keys["llama.context_length"],
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "bos_token": named("bos"),
        "eos_token": named("eos"),
        "unk_token": named("unknown"),
        "pad_token": named("padding"),
        "added_tokens_decoder": {str(i): added_token(token) for i, token in control_tokens(keys)},
        "chat_template": keys["tokenizer.chat_template"],
    }


def hf_name(name: str) -> str:
    if name in OUTER_NAMES:
        return OUTER_NAMES[name]
    _, layer, key, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[key]}.weight"


def hf_rows(tensor, keys: dict) -> np.ndarray:
    """The tensor in f32, with the rows of q and k in the order of Hugging Face's rotary embedding."""
    values = dequantize(tensor.data, tensor.tensor_type)
    if ".attn_q." in tensor.name:
        return unpermuted(values, keys["llama.attention.head_count"])
    if ".attn_k." in tensor.name:
        return unpermuted(values, keys["llama.attention.head_count_kv"])
    return values


def unpermuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """GGUF rotates neighbouring rows (0 1)(2 3)…, Hugging Face the two halves of a head (0 d/2)(1 d/2+1)…"""
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def to_bf16(values: np.ndarray) -> np.ndarray:
    """The upper 16 bits, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def write_safetensors(path: str, tensors: dict[str, np.ndarray]) -> None:
    """8 bytes of header length, the header in JSON padded to 8 bytes, then the tensors' bytes in the header's order."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in sorted(tensors.items()):
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in sorted(tensors.items()):
            file.write(tensor.tobytes())


def write_json(folder: str, name: str, value: dict) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=2)
        file.write("\n")


main()
