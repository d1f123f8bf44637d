"""What is done row by row: norms, rotary positions, SwiGLU, the loss, the optimizer's step.

Each reads its inputs once and writes its outputs once; sums are float32. Where the plain path rounds to the weights' type on
the way, so do these.
"""

import triton
import triton.language as tl


@triton.jit
def norm_forward(X, ADD, WEIGHT, SUM, OUT, width, eps, ADDS: tl.constexpr, BLOCK: tl.constexpr):
    """OUT = rms_norm(X), or with ADDS of SUM = X + ADD, which is kept too."""
    at = tl.program_id(0).to(tl.int64) * width + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < width
    x = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
    if ADDS:
        x += tl.load(ADD + at, mask=mask, other=0.0).to(tl.float32)
        rounded = x.to(SUM.dtype.element_ty)
        tl.store(SUM + at, rounded, mask=mask)
        x = rounded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / width + eps)
    weight = tl.load(WEIGHT + tl.arange(0, BLOCK), mask=mask, other=0.0).to(tl.float32)
    normed = (x * scale).to(OUT.dtype.element_ty).to(tl.float32)
    tl.store(OUT + at, (normed * weight).to(OUT.dtype.element_ty), mask=mask)


@triton.jit
def norm_backward(X, WEIGHT, DOUT, DSUM, DX, PART, rows, width, eps, ADDS: tl.constexpr, BLOCK: tl.constexpr):
    """DX; and of each program the weight's gradient over its rows: PART [programs, width]. DSUM is what SUM got besides."""
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    weight = tl.load(WEIGHT + columns, mask=mask, other=0.0).to(tl.float32)
    part = tl.zeros([BLOCK], tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.full([], row, tl.int64) * width + columns
        x = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(DOUT + at, mask=mask, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(x * x, 0) / width + eps)
        normed = x * scale
        part += dout * normed
        slope = dout * weight
        dx = (slope - normed * (tl.sum(slope * normed, 0) / width)) * scale
        if ADDS:
            dx += tl.load(DSUM + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(DX + at, dx.to(DX.dtype.element_ty), mask=mask)
    tl.store(PART + tl.program_id(0) * width + columns, part, mask=mask)


@triton.jit
def rope_forward(
    X, WEIGHT, COS, SIN, POSITION, OUT, total, heads, x_step, eps,
    D: tl.constexpr, NORMS: tl.constexpr, ROWS: tl.constexpr,
):
    """Norms each head of X [rows, heads * D] (with NORMS) and rotates it to its row's position; total = rows * heads."""
    item = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    valid = item < total
    row = item // heads
    half = tl.arange(0, D // 2)
    at = row.to(tl.int64)[:, None] * x_step + ((item % heads) * D)[:, None] + half[None, :]
    a = tl.load(X + at, mask=valid[:, None], other=0.0).to(tl.float32)
    b = tl.load(X + at + D // 2, mask=valid[:, None], other=0.0).to(tl.float32)
    kind = OUT.dtype.element_ty
    if NORMS:
        scale = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / D + eps)[:, None]
        a = (a * scale).to(kind).to(tl.float32) * tl.load(WEIGHT + half).to(tl.float32)[None, :]
        b = (b * scale).to(kind).to(tl.float32) * tl.load(WEIGHT + half + D // 2).to(tl.float32)[None, :]
        a = a.to(kind).to(tl.float32)
        b = b.to(kind).to(tl.float32)
    position = tl.load(POSITION + row, mask=valid, other=0)
    cos = tl.load(COS + position[:, None] * D + half[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
    sin = tl.load(SIN + position[:, None] * D + half[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
    to = item.to(tl.int64)[:, None] * D + half[None, :]
    tl.store(OUT + to, (a * cos - b * sin).to(kind), mask=valid[:, None])
    tl.store(OUT + to + D // 2, (b * cos + a * sin).to(kind), mask=valid[:, None])


@triton.jit
def rope_backward(
    X, WEIGHT, COS, SIN, POSITION, DOUT, DX, PART, total, heads, x_step, eps,
    D: tl.constexpr, NORMS: tl.constexpr, ROWS: tl.constexpr,
):
    """DX [rows, heads * D]; and of each program the weight's gradient: PART [programs, D]."""
    half = tl.arange(0, D // 2)
    part_a = tl.zeros([D // 2], tl.float32)
    part_b = tl.zeros([D // 2], tl.float32)
    for start in range(tl.program_id(0) * ROWS, total, tl.num_programs(0) * ROWS):
        item = start + tl.arange(0, ROWS)
        valid = item < total
        row = item // heads
        position = tl.load(POSITION + row, mask=valid, other=0)
        cos = tl.load(COS + position[:, None] * D + half[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
        sin = tl.load(SIN + position[:, None] * D + half[None, :], mask=valid[:, None], other=0.0).to(tl.float32)
        to = item.to(tl.int64)[:, None] * D + half[None, :]
        da = tl.load(DOUT + to, mask=valid[:, None], other=0.0).to(tl.float32)
        db = tl.load(DOUT + to + D // 2, mask=valid[:, None], other=0.0).to(tl.float32)
        turned = da
        da = turned * cos + db * sin
        db = db * cos - turned * sin
        if NORMS:
            at = row.to(tl.int64)[:, None] * x_step + ((item % heads) * D)[:, None] + half[None, :]
            a = tl.load(X + at, mask=valid[:, None], other=0.0).to(tl.float32)
            b = tl.load(X + at + D // 2, mask=valid[:, None], other=0.0).to(tl.float32)
            scale = tl.rsqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / D + eps)[:, None]
            a = a * scale
            b = b * scale
            part_a += tl.sum(da * a, 0)
            part_b += tl.sum(db * b, 0)
            da = da * tl.load(WEIGHT + half).to(tl.float32)[None, :]
            db = db * tl.load(WEIGHT + half + D // 2).to(tl.float32)[None, :]
            along = ((tl.sum(da * a, 1) + tl.sum(db * b, 1)) / D)[:, None]
            da = (da - a * along) * scale
            db = (db - b * along) * scale
        tl.store(DX + to, da.to(DX.dtype.element_ty), mask=valid[:, None])
        tl.store(DX + to + D // 2, db.to(DX.dtype.element_ty), mask=valid[:, None])
    if NORMS:
        tl.store(PART + tl.program_id(0) * D + half, part_a)
        tl.store(PART + tl.program_id(0) * D + half + D // 2, part_b)


@triton.jit
def swiglu_forward(GATE, UP, OUT, count, BLOCK: tl.constexpr):
    """OUT = silu(GATE) * UP."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    gate = tl.load(GATE + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(UP + at, mask=mask, other=0.0).to(tl.float32)
    opened = (gate * tl.sigmoid(gate)).to(OUT.dtype.element_ty).to(tl.float32)
    tl.store(OUT + at, (opened * up).to(OUT.dtype.element_ty), mask=mask)


@triton.jit
def swiglu_backward(GATE, UP, DOUT, DGATE, DUP, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    gate = tl.load(GATE + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(UP + at, mask=mask, other=0.0).to(tl.float32)
    dout = tl.load(DOUT + at, mask=mask, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    opened = gate * sigmoid
    tl.store(DUP + at, (dout * opened).to(DUP.dtype.element_ty), mask=mask)
    slope = sigmoid * (1.0 + gate * (1.0 - sigmoid))
    tl.store(DGATE + at, (dout * up * slope).to(DGATE.dtype.element_ty), mask=mask)


@triton.jit
def cross_entropy(LOGITS, LABEL, WEIGHT, LOSS, BEST, step, width, BLOCK: tl.constexpr):
    """Of each row: its cross-entropy, its likeliest column (of equals, the lowest), and in place of the logits their
    gradient, WEIGHT[row] * (softmax - label)."""
    row = tl.program_id(0).to(tl.int64)
    base = LOGITS + row * step
    columns = tl.arange(0, BLOCK)
    label = tl.load(LABEL + row)
    # Read before anything is written, and the sums below are a barrier between the two.
    wanted = tl.load(base + label).to(tl.float32)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    norm = tl.zeros([BLOCK], tl.float32)
    where = tl.zeros([BLOCK], tl.int32)
    for start in range(0, width, BLOCK):
        at = start + columns
        x = tl.load(base + at, mask=at < width, other=float("-inf")).to(tl.float32)
        higher = x > top
        where = tl.where(higher, at, where)
        new = tl.maximum(top, x)
        # A lane beyond the width has seen nothing yet where the first block is not full.
        safe = tl.where(new == float("-inf"), 0.0, new)
        norm = norm * tl.exp(top - safe) + tl.exp(x - safe)
        top = new
    best = tl.max(top, 0)
    total = tl.sum(norm * tl.exp(top - best), 0)
    first = tl.min(tl.where(top == best, where, width), 0)
    tl.store(LOSS + row, tl.log(total) + best - wanted)
    tl.store(BEST + row, first.to(tl.int64))
    factor = tl.load(WEIGHT + row)
    for start in range(0, width, BLOCK):
        at = start + columns
        x = tl.load(base + at, mask=at < width, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - best) / total - tl.where(at == label, 1.0, 0.0)
        tl.store(base + at, (p * factor).to(LOGITS.dtype.element_ty), mask=at < width)


@triton.jit
def adamw(MASTER, FIRST, SECOND, GRAD, WORKING, SCALARS, count, decay, rest1, beta2, rest2, eps, BLOCK: tl.constexpr):
    """One step of AdamW in float32. SCALARS, which only the device knows: by what the gradient is multiplied; whether there
    is a step at all (0: nothing changes); the rate over the first moment's correction; the root of the second's.
    decay = 1 - rate * weight decay; rest = 1 - beta."""
    if tl.load(SCALARS + 1) != 0.0:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = at < count
        grad = tl.load(GRAD + at, mask=mask, other=0.0).to(tl.float32) * tl.load(SCALARS)
        master = tl.load(MASTER + at, mask=mask, other=0.0) * decay
        first = tl.load(FIRST + at, mask=mask, other=0.0)
        first += (grad - first) * rest1
        second = tl.load(SECOND + at, mask=mask, other=0.0) * beta2 + grad * grad * rest2
        master -= tl.load(SCALARS + 2) * first / (tl.sqrt_rn(second) / tl.load(SCALARS + 3) + eps)
        tl.store(FIRST + at, first, mask=mask)
        tl.store(SECOND + at, second, mask=mask)
        tl.store(MASTER + at, master, mask=mask)
        tl.store(WORKING + at, master.to(WORKING.dtype.element_ty), mask=mask)
