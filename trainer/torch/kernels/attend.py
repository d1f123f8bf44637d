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
def _rows(base, at, step, head, inside, D: tl.constexpr):
    """Rows `at` of one head, step numbers apart: [len(at), D], zeros where they are not inside."""
    dims = tl.arange(0, D)
    return tl.load(base + at[:, None] * step + head * D + dims[None, :], mask=inside[:, None], other=0.0)


@triton.jit
def _joined(top, norm, acc, s):
    """Scores of further keys join a softmax whose maximum, sum and output are top, norm, acc; also their own part of it."""
    top_new = tl.maximum(top, tl.max(s, 1))
    p = tl.exp2(s - top_new[:, None])
    fade = tl.exp2(top - top_new)
    return top_new, norm * fade + tl.sum(p, 1), acc * fade[:, None], p


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
    q = _rows(Q, first + rows, q_step, head, valid, D)
    factor = scale * LOG2E

    # The own block first: from here on every row has a finite maximum.
    kb = _rows(KB, first + rows, kb_step, group, valid, D)
    vb = _rows(VB, first + rows, vb_step, group, valid, D)
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
        top, norm, acc, p = _joined(top, norm, acc, s)
        v = tl.load(v_base + columns[:, None] * vc_step + dims[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc)
    for start in range(tl.maximum(begin, whole), end, KEYS):
        columns = start + keys
        inside = columns < context
        k = tl.load(k_base + columns[None, :] * kc_step + dims[:, None], mask=inside[None, :], other=0.0)
        s = tl.dot(q, k) * factor
        seen = (columns[None, :] < high[:, None]) & (columns[None, :] >= low[:, None])
        s = tl.where(seen, s, float("-inf"))
        top, norm, acc, p = _joined(top, norm, acc, s)
        v = tl.load(v_base + columns[:, None] * vc_step + dims[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)

    out_at = (first + rows)[:, None] * (heads * D) + head * D + dims[None, :]
    tl.store(OUT + out_at, (acc / norm[:, None]).to(OUT.dtype.element_ty), mask=valid[:, None])
    tl.store(LSE + tl.program_id(1).to(tl.int64) * total + rows, top + tl.log2(norm), mask=valid)
