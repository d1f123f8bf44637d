"""reference_train.py CONFIG --steps N --seed S DIR: the recipe of a dflash configuration in plain PyTorch.

A second opinion: written from the algorithm alone, with dense masks and PyTorch's own optimizers, and nothing of dflash in it.
It reads the shards of `dflash prepare` and writes a drafter into DIR (z-lab's layout), which `dflash eval` takes. It knows
targets of Llama's kind, full attention, the cross-entropy with decay, and Muon or AdamW.

Needs torch 2.9 or newer (torch.optim.Muon), and nothing besides.
"""

import argparse
import ctypes
import json
import math
import random
import struct
import sys
import tomllib
from pathlib import Path

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("directory", type=Path)
    args = parser.parse_args()
    settings = tomllib.loads(args.config.read_text(encoding="utf-8"))
    refuse_others(settings)
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        # What is left on the CPU is tiny: threads would only wait for each other, the more so beside other trainings.
        torch.set_num_threads(1)
    target = Target(Path(settings["model"]["target"]), device)
    texts = read_texts(Path(settings["data"]["shards"]))
    drafter = Drafter(target.c, settings["drafter"], device)
    train(drafter, target, texts, {**settings["train"], "steps": args.steps}, args.seed, device)
    drafter.save(args.directory)


# Keys that this program follows.
KNOWN = {
    "drafter": "layers block_size taps mask_token_id initializer_range final_norm_init",
    "train": "steps batch anchors gamma vocabulary candidate_low candidate_random optimizer learning_rate beta1 beta2 weight_decay "
    "muon_learning_rate muon_momentum warmup clip",
}
# Keys that change no result.
NEUTRAL = {"drafter": "split_fc mask", "train": "loss_chunk_blocks checkpointing norm_reading fixed_anchors"}
# The one value of others that it follows.
ONLY = {
    "drafter": {"init": "", "layer_types": [], "target_layer_ids": []},
    "train": {
        "anchor_rule": "two_supervised", "loss": "cross_entropy", "noise": "none", "accumulate": 1, "muon_weight_decay": 0.0,
        "muon_iterations": 5, "schedule": "cosine", "min_rate": 0.0,
    },
    "data": {"pack": 0},
}


def refuse_others(settings: dict) -> None:
    """Another recipe than asked for would be no comparison."""
    for section in ("drafter", "train", "data"):
        for key, value in settings.get(section, {}).items():
            only = ONLY[section]
            followed = section == "data" or key in f"{KNOWN[section]} {NEUTRAL[section]}".split()
            if value != only[key] if key in only else not followed:
                sys.exit(f"reference_train: [{section}] {key} = {value!r} is not followed here; leave it out")


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


# ---- training ----------------------------------------------------------------------------------------------------------


def batches(lengths, size, chance):
    """Endless: each epoch all texts once, those of like length together."""
    while True:
        order = list(range(len(lengths)))
        chance.shuffle(order)
        pools = [sorted(order[i : i + 16 * size], key=lengths.__getitem__) for i in range(0, len(order), 16 * size)]
        flat = [text for pool in pools for text in pool]
        made = [flat[i : i + size] for i in range(0, len(flat), size)]
        chance.shuffle(made)
        yield from made


def draw_blocks(texts, valid, count, block, mask_id, chance, device):
    """Anchors among the supervised tokens whose next one is supervised too; `count` blocks a text, those without one empty."""
    b = len(texts)
    anchors, keep = torch.zeros(b, count, dtype=torch.long), torch.zeros(b, count, dtype=torch.bool)
    for row, (ids, mask) in enumerate(texts):
        drawn = sorted(chance.sample(valid[row], min(count, len(valid[row]))))
        anchors[row, : len(drawn)], keep[row, : len(drawn)] = torch.tensor(drawn), True
    longest = max(len(ids) for ids, _ in texts)
    ids, mask = torch.zeros(b, longest, dtype=torch.long), torch.zeros(b, longest, dtype=torch.bool)
    for row, (text, supervised) in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, supervised
    at = anchors[..., None] + torch.arange(block)  # [b, N, B]
    inside = (at < torch.tensor([len(text) for text, _ in texts])[:, None, None]) & keep[..., None]
    at_most = at.clamp(max=longest - 1).flatten(1)
    weight = inside & mask.gather(1, at_most).view_as(at) & (torch.arange(block) > 0)
    blocks = torch.full_like(at, mask_id)
    blocks[..., 0] = torch.where(keep, ids.gather(1, anchors), mask_id)
    labels = ids.gather(1, at_most).view_as(at)
    slots = torch.arange(count * block) // block
    context = (torch.arange(longest) < anchors[:, slots, None]) & keep[:, slots, None]
    own = (slots[:, None] == slots).expand(b, -1, -1)
    return [t.to(device) for t in (blocks.flatten(1), at.flatten(1), labels, weight, torch.cat([context, own], -1))]


def vocabulary(s, texts, rows):
    """The ids that the loss is over, drawn anew by the returned function; None: all."""
    if s.get("vocabulary", "full") == "full":
        return lambda: None
    known = torch.cat([ids for ids, _ in texts] + [torch.arange(s.get("candidate_low", 2048))]).unique()
    rest = torch.ones(rows, dtype=torch.bool).index_fill_(0, known, False).nonzero().flatten()
    count = s.get("candidate_random", 1024)
    return lambda: torch.cat([known, rest[torch.randperm(len(rest))[:count]]])


def loss_of(y, labels, weight, head, some, gamma):
    """Mean over the supervised slots, weighted with exp(-(k - 1) / gamma)."""
    block = labels.shape[-1]
    scale = weight * torch.exp(-(torch.arange(block, device=y.device) - 1).clamp(min=0) / gamma)
    live = weight.flatten()
    target = labels.flatten()[live]
    if some is not None:
        place = torch.full((head.shape[0],), -1, device=y.device)
        place[some] = torch.arange(len(some), device=y.device)
        head, target = head[some], place[target]
    logits = F.linear(y.reshape(-1, y.shape[-1])[live], head).float()
    return (F.cross_entropy(logits, target, reduction="none") * scale.flatten()[live]).sum() / scale.sum()


def optimizers(drafter, s):
    matrices = [t for t in drafter.w.values() if t.dim() == 2]
    rest = [t for t in drafter.w.values() if t.dim() != 2]
    rate = s.get("learning_rate", 6e-4)
    made = []
    if s.get("optimizer", "adamw") == "muon":
        muon = {"lr": s.get("muon_learning_rate", 6e-3), "momentum": s.get("muon_momentum", 0.95)}
        made.append(torch.optim.Muon(matrices, weight_decay=0.0, nesterov=True, adjust_lr_fn="match_rms_adamw", **muon))
    else:
        rest = matrices + rest
    betas = (s.get("beta1", 0.9), s.get("beta2", 0.999))
    return [*made, torch.optim.AdamW(rest, lr=rate, betas=betas, weight_decay=s.get("weight_decay", 0.0))]


def factor(step, steps, warmup):
    """Rises over the warm-up, then falls by half a cosine."""
    rising = round(steps * warmup)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(steps - rising, 1)))


def train(drafter, target, texts, s, seed, device):
    chance = random.Random(seed)
    block = drafter.block
    gamma = s.get("gamma", 0.0) or {16: 7.0, 10: 5.0, 8: 4.0}.get(block, 4.0)
    features = [target.taps(ids.to(device), drafter.taps) for ids, _ in texts]
    valid = [(mask[:-1] & mask[1:]).nonzero().flatten().tolist() for _, mask in texts]
    order = batches([len(ids) for ids, _ in texts], s.get("batch", 4), chance)
    draw_ids = vocabulary(s, texts, target.head.shape[0])
    optimizer = optimizers(drafter, s)
    rates = [[group["lr"] for group in o.param_groups] for o in optimizer]
    for step in range(s["steps"]):
        chosen = next(order)
        rows = [texts[i] for i in chosen]
        places = [valid[i] for i in chosen]
        drawn = draw_blocks(rows, places, s.get("anchors", 512), block, drafter.mask_id, chance, device)
        blocks, at, labels, weight, visible = drawn
        taps = torch.nn.utils.rnn.pad_sequence([features[i] for i in chosen], batch_first=True)
        positions = torch.arange(taps.shape[1], device=device).expand(len(rows), -1)
        y = drafter.forward(taps, target.embedding[blocks], positions, at, visible)
        some = draw_ids()
        loss = loss_of(y, labels, weight, target.head, some if some is None else some.to(device), gamma)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(drafter.w.values(), s.get("clip", 1.0))
        for o, base in zip(optimizer, rates):
            for group, rate in zip(o.param_groups, base):
                group["lr"] = rate * factor(step, s["steps"], s.get("warmup", 0.04))
            o.step()
            o.zero_grad()
        if (step + 1) % 50 == 0 or step + 1 == s["steps"]:
            print(f"step {step + 1}/{s['steps']}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
