"""What scripts/reference_train.py trains and learns from: files, the target, the drafter, in plain PyTorch.

Written from the algorithm alone: dense masks, PyTorch's own operators, and nothing of dflash in it.
"""

import ctypes
import json
import struct
from pathlib import Path

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8}


# ---- files -------------------------------------------------------------------------------------------------------------


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8 : 8 + length]))
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        found[name] = flat.view(entry["shape"])
    return found


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(t.shape), "data_offsets": [at, at + 2 * t.numel()]}
        at += 2 * t.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            own = t.detach().to("cpu", torch.bfloat16).contiguous()
            file.write(ctypes.string_at(own.data_ptr(), 2 * own.numel()))


def read_texts(folder: Path) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Token ids and loss mask of every sample that `dflash prepare` has made."""
    texts = []
    for shard in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["shards"]:
        t = read_safetensors(folder / shard["file"])
        ids, mask, offsets = t["input_ids"].long(), t["loss_mask"].bool(), t["offsets"].tolist()
        texts += [(ids[a:b], mask[a:b]) for a, b in zip(offsets, offsets[1:])]
    return texts


# ---- what target and drafter are made of -------------------------------------------------------------------------------


def rms_norm(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def rope(x, positions, c):
    """x [b, heads, rows, d] at positions [b, rows]: half-split rotation."""
    d = c["head_dim"]
    inverse = c["rope_theta"] ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = positions[:, None, :, None].double() * inverse
    cos, sin = (torch.cat([f(angle)] * 2, -1).to(x.dtype) for f in (torch.cos, torch.sin))
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def heads(x, c):
    return x.unflatten(-1, (-1, c["head_dim"])).transpose(1, 2)


def mlp(x, w, p):
    inner = F.silu(F.linear(x, w[p + "mlp.gate_proj.weight"])) * F.linear(x, w[p + "mlp.up_proj.weight"])
    return F.linear(inner, w[p + "mlp.down_proj.weight"])


class Target:
    """A frozen Llama in bfloat16, of which only the outputs of some layers are wanted."""

    def __init__(self, folder: Path, device: str):
        self.c = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.w = {}
        for path in sorted(folder.glob("model*.safetensors")):
            self.w |= {n: t.to(device, torch.bfloat16) for n, t in read_safetensors(path).items()}
        self.embedding = self.w["model.embed_tokens.weight"]
        self.head = self.w.get("lm_head.weight", self.embedding)

    @torch.no_grad()
    def taps(self, ids, layers):
        """ids [S] -> the outputs of the layers, side by side: [S, n * D]."""
        w, c, found = self.w, self.c, {}
        x, positions = self.embedding[ids][None], torch.arange(len(ids), device=ids.device)[None]
        for i in range(max(layers) + 1):
            p = f"model.layers.{i}."
            h = rms_norm(x, w[p + "input_layernorm.weight"], c["rms_norm_eps"])
            q, k, v = (heads(F.linear(h, w[f"{p}self_attn.{n}_proj.weight"]), c) for n in "qkv")
            q, k = rope(q, positions, c), rope(k, positions, c)
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + F.linear(out.transpose(1, 2).flatten(2), w[p + "self_attn.o_proj.weight"])
            x = x + mlp(rms_norm(x, w[p + "post_attention_layernorm.weight"], c["rms_norm_eps"]), w, p)
            found[i] = x[0]
        return torch.cat([found[i] for i in layers], -1)


class Drafter:
    """Float32 weights by their names in the checkpoint; computed in bfloat16."""

    def __init__(self, target: dict, settings: dict, device: str):
        count, taps = settings["layers"], settings.get("taps", 0) or settings["layers"]
        last = target["num_hidden_layers"] - 3
        ids = [round(1 + i * (last - 1) / (taps - 1)) for i in range(taps)] if taps > 1 else [target["num_hidden_layers"] // 2]
        self.block, self.mask_id, self.taps = settings["block_size"], settings["mask_token_id"], ids
        self.c, self.layers = target, count
        D, H, G, d = (target[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
        ffn = target["intermediate_size"]
        shapes = {"fc": (D, taps * D), "hidden_norm": (D,)}
        for i in range(count):
            a, m = f"layers.{i}.self_attn.", f"layers.{i}.mlp."
            shapes |= {a + "q_proj": (H * d, D), a + "k_proj": (G * d, D), a + "v_proj": (G * d, D), a + "o_proj": (D, H * d)}
            shapes |= {a + "q_norm": (d,), a + "k_norm": (d,)}
            shapes |= {m + "gate_proj": (ffn, D), m + "up_proj": (ffn, D), m + "down_proj": (D, ffn)}
            shapes |= {f"layers.{i}.{n}_layernorm": (D,) for n in ("input", "post_attention")}
        shapes["norm"] = (D,)
        make = lambda s: torch.randn(s) * settings.get("initializer_range", 0.02) if len(s) == 2 else torch.ones(s)
        self.w = {n + ".weight": make(s).to(device) for n, s in shapes.items()}
        self.w["norm.weight"].fill_(settings.get("final_norm_init", 1.0))
        for t in self.w.values():
            t.requires_grad_()

    def forward(self, taps, x, positions, block_positions, visible):
        """taps [b, S, n * D], embedded blocks x [b, Q, D], visible [b, Q, S + Q] -> [b, Q, D]."""
        w, c = {n: t.to(torch.bfloat16) for n, t in self.w.items()}, self.c
        eps = c["rms_norm_eps"]
        context = rms_norm(F.linear(taps, w["fc.weight"]), w["hidden_norm.weight"], eps)
        both_positions = torch.cat([positions, block_positions], 1)
        for i in range(self.layers):
            p = f"layers.{i}."
            a = p + "self_attn."
            h = rms_norm(x, w[p + "input_layernorm.weight"], eps)
            both = torch.cat([context, h], 1)
            q = rms_norm(heads(F.linear(h, w[a + "q_proj.weight"]), c), w[a + "q_norm.weight"], eps)
            k = rms_norm(heads(F.linear(both, w[a + "k_proj.weight"]), c), w[a + "k_norm.weight"], eps)
            v = heads(F.linear(both, w[a + "v_proj.weight"]), c)
            q, k = rope(q, block_positions, c), rope(k, both_positions, c)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=visible[:, None], enable_gqa=True)
            x = x + F.linear(out.transpose(1, 2).flatten(2), w[a + "o_proj.weight"])
            x = x + mlp(rms_norm(x, w[p + "post_attention_layernorm.weight"], eps), w, p)
        return rms_norm(x, w["norm.weight"], eps)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / "model.safetensors", self.w)
        copied = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
        copied += ("rms_norm_eps", "rope_theta", "max_position_embeddings", "bos_token_id", "eos_token_id")
        config = {
            "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "block_size": self.block,
            "dflash_config": {"mask_token_id": self.mask_id, "target_layer_ids": self.taps, "block_size": self.block},
            "num_target_layers": self.c["num_hidden_layers"], "num_hidden_layers": self.layers,
            "layer_types": ["full_attention"] * self.layers, "hidden_act": "silu", "attention_bias": False,
            "attention_dropout": 0.0, "initializer_range": 0.02, "rope_scaling": None, "sliding_window": None,
            "use_sliding_window": False, "max_window_layers": self.layers, "tie_word_embeddings": False,
            "torch_dtype": "bfloat16", "use_cache": True, **{name: self.c[name] for name in copied},
        }
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
