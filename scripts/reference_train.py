"""reference_train.py CONFIG --steps N --seed S DIR: the recipe of a dflash configuration in plain PyTorch.

A second opinion: written from the algorithm alone, with dense masks and PyTorch's own optimizers, and nothing of dflash in it.
It reads the shards of `dflash prepare` and writes a drafter into DIR (z-lab's layout), which `dflash eval` takes. It knows
targets of Llama's kind, full attention, the cross-entropy with decay, and Muon or AdamW.

Needs torch 2.9 or newer (torch.optim.Muon), and nothing besides.
"""

import argparse
import math
import random
import sys
import tomllib
from pathlib import Path

import torch
import torch.nn.functional as F

from reference_model import Drafter, Target, read_texts


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
    features = {}
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
        for i in chosen:
            if i not in features:
                features[i] = target.taps(texts[i][0].to(device), drafter.taps)
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
