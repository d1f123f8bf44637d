"""Attention of DFlash blocks: each block sees the context before its anchor, and itself.

q, and the blocks' own keys and values, are [b, N*B, heads, D]; the context's keys and values are [b, S, groups, D]. A tile of
TILE query rows of one head walks over the context up to its own last anchor, so nothing above the anchors is computed and no
mask is ever built. Scores are kept in base 2: exp2 is the hardware's.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _limits(ANCHOR, LOW, batch, blocks, block, window, rows, valid):
    """Of each query row: the context rows low..high that it sees."""
    at = batch * blocks + rows // block
    high = tl.load(ANCHOR + at, mask=valid, other=0).to(tl.int32)
    low = tl.load(LOW + at, mask=valid, other=0).to(tl.int32)
    return tl.maximum(low, high + rows % block - window + 1), high


@triton.jit
def _near(rows_q, rows_k, block, causal):
    """Which keys of its own tile a row sees: those of its own block."""
    same = (rows_q // block)[:, None] == (rows_k // block)[None, :]
    return same & ((causal == 0) | (rows_q[:, None] >= rows_k[None, :]))


@triton.jit
def attend_forward(
    Q, KC, VC, KB, VB, ANCHOR, LOW, OUT, LSE,
    q_step, kc_step, vc_step, kb_step, vb_step,
    context, blocks, block, window, causal, scale, heads, repeat,
    D: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr,
):
    # The longest walks first.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    group = head // repeat
    total = blocks * block
    rows = tile * TILE + tl.arange(0, TILE)
    dims = tl.arange(0, D)
    valid = rows < total
    low, high = _limits(ANCHOR, LOW, batch, blocks, block, window, rows, valid)
    first = (batch * total).to(tl.int64)
    q_at = (first + rows)[:, None] * q_step + head * D + dims[None, :]
    q = tl.load(Q + q_at, mask=valid[:, None], other=0.0)
    factor = scale * LOG2E

    # The own block first: from here on every row has a finite maximum.
    kb = tl.load(KB + (first + rows)[:, None] * kb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    vb = tl.load(VB + (first + rows)[:, None] * vb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    near = tl.where(_near(rows, rows, block, causal), tl.dot(q, tl.trans(kb)) * factor, float("-inf"))
    top = tl.max(near, 1)
    near = tl.exp2(near - top[:, None])
    norm = tl.sum(near, 1)
    acc = tl.dot(near.to(vb.dtype), vb)

    begin = tl.min(tl.where(high > 0, low, context), 0) // KEYS * KEYS
    end = tl.max(high, 0)
    # Up to here every row sees every key.
    whole = tl.minimum(tl.min(high, 0), end) // KEYS * KEYS
    whole = tl.where(tl.max(low, 0) > 0, begin, whole)
    start_row = (batch * context).to(tl.int64)
    keys = tl.arange(0, KEYS)
    k_base = KC + start_row * kc_step + group * D
    v_base = VC + start_row * vc_step + group * D
    for start in range(begin, whole, KEYS):
        columns = start + keys
        k = tl.load(k_base + columns[None, :] * kc_step + dims[:, None])
        s = tl.dot(q, k) * factor
        top_new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - top_new[:, None])
        fade = tl.exp2(top - top_new)
        norm = norm * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        v = tl.load(v_base + columns[:, None] * vc_step + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = top_new
    for start in range(tl.maximum(begin, whole), end, KEYS):
        columns = start + keys
        inside = columns < context
        k = tl.load(k_base + columns[None, :] * kc_step + dims[:, None], mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) * factor
        seen = (columns[None, :] < high[:, None]) & (columns[None, :] >= low[:, None])
        s = tl.where(seen, s, float("-inf"))
        top_new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - top_new[:, None])
        fade = tl.exp2(top - top_new)
        norm = norm * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        v = tl.load(v_base + columns[:, None] * vc_step + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = top_new

    out_at = (first + rows)[:, None] * (heads * D) + head * D + dims[None, :]
    tl.store(OUT + out_at, (acc / norm[:, None]).to(OUT.dtype.element_ty), mask=valid[:, None])
    tl.store(LSE + tl.program_id(1).to(tl.int64) * total + rows, top + tl.log2(norm), mask=valid)


@triton.jit
def attend_delta(OUT, DOUT, DELTA, total, heads, D: tl.constexpr, TILE: tl.constexpr):
    """Of each row and head the sum over D of out * dout: DELTA [b, heads, N*B]."""
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    valid = rows < total
    at = (batch * total + rows).to(tl.int64)[:, None] * (heads * D) + head * D + tl.arange(0, D)[None, :]
    out = tl.load(OUT + at, mask=valid[:, None], other=0.0).to(tl.float32)
    dout = tl.load(DOUT + at, mask=valid[:, None], other=0.0).to(tl.float32)
    tl.store(DELTA + tl.program_id(1).to(tl.int64) * total + rows, tl.sum(out * dout, 1), mask=valid)


@triton.jit
def attend_backward_q(
    Q, KC, VC, KB, VB, ANCHOR, LOW, DOUT, LSE, DELTA, DQ,
    q_step, kc_step, vc_step, kb_step, vb_step,
    context, blocks, block, window, causal, scale, heads, repeat,
    D: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr,
):
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    group = head // repeat
    total = blocks * block
    rows = tile * TILE + tl.arange(0, TILE)
    dims = tl.arange(0, D)
    valid = rows < total
    low, high = _limits(ANCHOR, LOW, batch, blocks, block, window, rows, valid)
    first = (batch * total).to(tl.int64)
    q = tl.load(Q + (first + rows)[:, None] * q_step + head * D + dims[None, :], mask=valid[:, None], other=0.0)
    own_at = (first + rows)[:, None] * (heads * D) + head * D + dims[None, :]
    dout = tl.load(DOUT + own_at, mask=valid[:, None], other=0.0)
    row_at = tl.program_id(1).to(tl.int64) * total + rows
    lse = tl.load(LSE + row_at, mask=valid, other=float("inf"))
    delta = tl.load(DELTA + row_at, mask=valid, other=0.0)
    factor = scale * LOG2E

    kb = tl.load(KB + (first + rows)[:, None] * kb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    vb = tl.load(VB + (first + rows)[:, None] * vb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    near = tl.where(_near(rows, rows, block, causal), tl.dot(q, tl.trans(kb)) * factor, float("-inf"))
    near = tl.exp2(near - lse[:, None]) * (tl.dot(dout, tl.trans(vb)) - delta[:, None])
    acc = tl.dot(near.to(kb.dtype), kb)

    begin = tl.min(tl.where(high > 0, low, context), 0) // KEYS * KEYS
    end = tl.max(high, 0)
    start_row = (batch * context).to(tl.int64)
    keys = tl.arange(0, KEYS)
    k_base = KC + start_row * kc_step + group * D
    v_base = VC + start_row * vc_step + group * D
    for start in range(begin, end, KEYS):
        columns = start + keys
        inside = columns < context
        k = tl.load(k_base + columns[:, None] * kc_step + dims[None, :], mask=inside[:, None], other=0.0)
        v = tl.load(v_base + columns[:, None] * vc_step + dims[None, :], mask=inside[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * factor
        seen = (columns[None, :] < high[:, None]) & (columns[None, :] >= low[:, None])
        p = tl.exp2(tl.where(seen, s, float("-inf")) - lse[:, None])
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        acc = tl.dot(ds.to(k.dtype), k, acc)
    tl.store(DQ + own_at, (acc * scale).to(DQ.dtype.element_ty), mask=valid[:, None])


@triton.jit
def _watchers(ANCHOR, blocks, key):
    """Among which blocks, first..end, are all that see `key` or a later row. Anchors ascend, so these are few more."""
    first = blocks
    end = 0
    for start in range(0, blocks, 512):
        at = start + tl.arange(0, 512)
        sees = tl.load(ANCHOR + at, mask=at < blocks, other=0) > key
        first = tl.minimum(first, tl.min(tl.where(sees, at, blocks), 0))
        end = tl.maximum(end, tl.max(tl.where(sees, at + 1, 0), 0))
    return first, end


@triton.jit
def attend_backward_context(
    Q, KC, VC, ANCHOR, LOW, DOUT, LSE, DELTA, PART,
    q_step, kc_step, vc_step, batches,
    context, blocks, block, window, scale, heads, repeat,
    D: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr,
):
    """Gradients of the context's keys and values as one query head gives them: PART [2, b, S, heads, D], float32."""
    tile = tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    group = head // repeat
    total = blocks * block
    columns = tile * KEYS + tl.arange(0, KEYS)
    dims = tl.arange(0, D)
    inside = columns < context
    start_row = (batch * context).to(tl.int64)
    k = tl.load(KC + (start_row + columns)[:, None] * kc_step + group * D + dims[None, :], mask=inside[:, None], other=0.0)
    v = tl.load(VC + (start_row + columns)[:, None] * vc_step + group * D + dims[None, :], mask=inside[:, None], other=0.0)
    factor = scale * LOG2E
    dk = tl.zeros([KEYS, D], tl.float32)
    dv = tl.zeros([KEYS, D], tl.float32)
    first = (batch * total).to(tl.int64)
    row_base = tl.program_id(1).to(tl.int64) * total
    begin, end = _watchers(ANCHOR + batch * blocks, blocks, tile * KEYS)
    for step in range(begin * block // TILE, (end * block + TILE - 1) // TILE):
        rows = step * TILE + tl.arange(0, TILE)
        valid = rows < total
        low, high = _limits(ANCHOR, LOW, batch, blocks, block, window, rows, valid)
        q = tl.load(Q + (first + rows)[:, None] * q_step + head * D + dims[None, :], mask=valid[:, None], other=0.0)
        dout = tl.load(
            DOUT + (first + rows)[:, None] * (heads * D) + head * D + dims[None, :], mask=valid[:, None], other=0.0
        )
        lse = tl.load(LSE + row_base + rows, mask=valid, other=float("inf"))
        delta = tl.load(DELTA + row_base + rows, mask=valid, other=0.0)
        s = tl.dot(k, tl.trans(q)) * factor
        seen = (columns[:, None] < high[None, :]) & (columns[:, None] >= low[None, :])
        p = tl.exp2(tl.where(seen, s, float("-inf")) - lse[None, :])
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        ds = p * (tl.dot(v, tl.trans(dout)) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    at = (start_row + columns)[:, None] * (heads * D) + head * D + dims[None, :]
    tl.store(PART + at, dk * scale, mask=inside[:, None])
    half = (batches * context).to(tl.int64) * (heads * D)
    tl.store(PART + half + at, dv, mask=inside[:, None])


@triton.jit
def attend_backward_own(
    Q, KB, VB, DOUT, LSE, DELTA, DKB, DVB,
    q_step, kb_step, vb_step,
    blocks, block, causal, scale, heads, repeat,
    D: tl.constexpr, TILE: tl.constexpr,
):
    """Gradients of the blocks' own keys and values, of all query heads of a group."""
    groups = heads // repeat
    batch = tl.program_id(1) // groups
    group = tl.program_id(1) % groups
    total = blocks * block
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    dims = tl.arange(0, D)
    valid = rows < total
    first = (batch * total).to(tl.int64)
    k = tl.load(KB + (first + rows)[:, None] * kb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    v = tl.load(VB + (first + rows)[:, None] * vb_step + group * D + dims[None, :], mask=valid[:, None], other=0.0)
    factor = scale * LOG2E
    dk = tl.zeros([TILE, D], tl.float32)
    dv = tl.zeros([TILE, D], tl.float32)
    seen = tl.trans(_near(rows, rows, block, causal))
    for turn in range(repeat):
        head = group * repeat + turn
        q = tl.load(Q + (first + rows)[:, None] * q_step + head * D + dims[None, :], mask=valid[:, None], other=0.0)
        dout = tl.load(
            DOUT + (first + rows)[:, None] * (heads * D) + head * D + dims[None, :], mask=valid[:, None], other=0.0
        )
        row_at = (batch * heads + head).to(tl.int64) * total + rows
        lse = tl.load(LSE + row_at, mask=valid, other=float("inf"))
        delta = tl.load(DELTA + row_at, mask=valid, other=0.0)
        s = tl.dot(k, tl.trans(q)) * factor
        p = tl.exp2(tl.where(seen, s, float("-inf")) - lse[None, :])
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        ds = p * (tl.dot(v, tl.trans(dout)) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    at = (first + rows)[:, None] * (groups * D) + group * D + dims[None, :]
    tl.store(DKB + at, (dk * scale).to(DKB.dtype.element_ty), mask=valid[:, None])
    tl.store(DVB + at, dv.to(DVB.dtype.element_ty), mask=valid[:, None])
