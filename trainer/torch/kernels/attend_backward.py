"""Gradients of DFlash blocks' attention (attend.py), each kernel for some of its inputs."""

import triton
import triton.language as tl
from attend import LOG2E, _limits, _near, _rows


@triton.jit
def _key_gradients(dk, dv, v, q, dout, s, seen, lse, delta):
    """What query rows, whose scores are s, add to the gradients of keys and values: dk still to be scaled, dv."""
    p = tl.exp2(tl.where(seen, s, float("-inf")) - lse[None, :])
    dv = tl.dot(p.to(dout.dtype), dout, dv)
    ds = p * (tl.dot(v, tl.trans(dout)) - delta[None, :])
    return tl.dot(ds.to(q.dtype), q, dk), dv


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
    q = _rows(Q, first + rows, q_step, head, valid, D)
    own_at = (first + rows)[:, None] * (heads * D) + head * D + dims[None, :]
    dout = tl.load(DOUT + own_at, mask=valid[:, None], other=0.0)
    row_at = tl.program_id(1).to(tl.int64) * total + rows
    lse = tl.load(LSE + row_at, mask=valid, other=float("inf"))
    delta = tl.load(DELTA + row_at, mask=valid, other=0.0)
    factor = scale * LOG2E

    kb = _rows(KB, first + rows, kb_step, group, valid, D)
    vb = _rows(VB, first + rows, vb_step, group, valid, D)
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
    k = _rows(KC, start_row + columns, kc_step, group, inside, D)
    v = _rows(VC, start_row + columns, vc_step, group, inside, D)
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
        q = _rows(Q, first + rows, q_step, head, valid, D)
        dout = _rows(DOUT, first + rows, heads * D, head, valid, D)
        lse = tl.load(LSE + row_base + rows, mask=valid, other=float("inf"))
        delta = tl.load(DELTA + row_base + rows, mask=valid, other=0.0)
        s = tl.dot(k, tl.trans(q)) * factor
        seen = (columns[:, None] < high[None, :]) & (columns[:, None] >= low[None, :])
        dk, dv = _key_gradients(dk, dv, v, q, dout, s, seen, lse, delta)
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
    k = _rows(KB, first + rows, kb_step, group, valid, D)
    v = _rows(VB, first + rows, vb_step, group, valid, D)
    factor = scale * LOG2E
    dk = tl.zeros([TILE, D], tl.float32)
    dv = tl.zeros([TILE, D], tl.float32)
    seen = tl.trans(_near(rows, rows, block, causal))
    for turn in range(repeat):
        head = group * repeat + turn
        q = _rows(Q, first + rows, q_step, head, valid, D)
        dout = _rows(DOUT, first + rows, heads * D, head, valid, D)
        row_at = (batch * heads + head).to(tl.int64) * total + rows
        lse = tl.load(LSE + row_at, mask=valid, other=float("inf"))
        delta = tl.load(DELTA + row_at, mask=valid, other=0.0)
        s = tl.dot(k, tl.trans(q)) * factor
        dk, dv = _key_gradients(dk, dv, v, q, dout, s, seen, lse, delta)
    at = (first + rows)[:, None] * (groups * D) + group * D + dims[None, :]
    tl.store(DKB + at, (dk * scale).to(DKB.dtype.element_ty), mask=valid[:, None])
    tl.store(DVB + at, dv.to(DVB.dtype.element_ty), mask=valid[:, None])
