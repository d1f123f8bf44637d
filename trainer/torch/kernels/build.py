"""Compiles the kernels of this folder ahead of time: sm_90/*.cubin, and table.rs, which names them.

Needs no GPU: `pip install triton==3.6.0`, then `python3 trainer/torch/kernels/build.py`. What comes out is committed, so that
a build needs neither Python nor CUDA.
"""

import os
import pathlib

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import attend
import attend_backward
import rows
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).parent
TARGET = GPUTarget("cuda", 90, 32)
# Arguments that are always multiples of 16: rows of whole heads, widths that the caller has checked.
ALIGNED = ("_step", "width")
HALF = {"Q", "KC", "VC", "KB", "VB", "OUT", "DOUT", "DQ", "DKB", "DVB", "X", "ADD", "WEIGHT", "SUM", "DSUM", "DX", "COS", "SIN",
        "GATE", "UP", "DGATE", "DUP", "LOGITS", "GRAD", "WORKING"}
LONG = {"ANCHOR", "LOW", "POSITION", "LABEL", "BEST"}
FLOATS = {"scale", "eps", "decay", "rest1", "beta2", "rest2"}


def kernels():
    """Name, function, constants, warps, stages, other types of arguments."""
    for d in (64, 128):
        shape = lambda **sizes: {"D": d, **sizes}
        yield f"attend_forward_{d}", attend.attend_forward, shape(TILE=128, KEYS=64), 8, 3, {}
        yield f"attend_delta_{d}", attend_backward.attend_delta, shape(TILE=64), 4, 1, {}
        yield f"attend_backward_q_{d}", attend_backward.attend_backward_q, shape(TILE=128, KEYS=64), 8, 3, {}
        yield f"attend_backward_context_{d}", attend_backward.attend_backward_context, shape(TILE=32, KEYS=64), 4, 3, {}
        yield f"attend_backward_own_{d}", attend_backward.attend_backward_own, shape(TILE=64), 4, 1, {}
        for norms in (0, 1):
            name = "rope" if not norms else "rope_norm"
            yield f"{name}_forward_{d}", rows.rope_forward, shape(NORMS=bool(norms), ROWS=8), 1, 1, {}
            yield f"{name}_backward_{d}", rows.rope_backward, shape(NORMS=bool(norms), ROWS=32), 4, 1, {}
    for block in (1024, 2048, 4096, 8192):
        warps = {1024: 4, 2048: 4, 4096: 4, 8192: 8}[block]
        for adds in (False, True):
            name = "add_norm" if adds else "norm"
            yield f"{name}_forward_{block}", rows.norm_forward, {"ADDS": adds, "BLOCK": block}, warps, 1, {}
            yield f"{name}_backward_{block}", rows.norm_backward, {"ADDS": adds, "BLOCK": block}, warps, 1, {}
    yield "swiglu_forward", rows.swiglu_forward, {"BLOCK": 2048}, 8, 1, {}
    yield "swiglu_backward", rows.swiglu_backward, {"BLOCK": 2048}, 8, 1, {}
    yield "cross_entropy", rows.cross_entropy, {"BLOCK": 4096}, 16, 1, {"WEIGHT": "*fp32"}
    yield "adamw", rows.adamw, {"BLOCK": 1024}, 4, 1, {}


def kind(name, constants, others):
    if name in constants:
        return "constexpr"
    if name in others:
        return others[name]
    if name.isupper():
        return "*bf16" if name in HALF else "*i64" if name in LONG else "*fp32"
    if name == "count":
        return "i64"
    return "fp32" if name in FLOATS else "i32"


def compiled(function, constants, warps, stages, others):
    names = function.arg_names
    types = {name: kind(name, constants, others) for name in names}
    whole = [[i] for i, name in enumerate(names) if types[name].startswith("*") or name.endswith(ALIGNED)]
    attrs = {tuple(at): [["tt.divisibility", 16]] for at in whole}
    source = ASTSource(function, signature=types, constexprs=constants, attrs=attrs)
    return triton.compile(source, target=TARGET, options={"num_warps": warps, "num_stages": stages})


def main():
    folder = HERE / "sm_90"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.cubin"):
        old.unlink()
    lines = []
    for name, function, constants, warps, stages, others in kernels():
        kernel = compiled(function, constants, warps, stages, others)
        (folder / f"{name}.cubin").write_bytes(kernel.asm["cubin"])
        sizes = [v for k, v in constants.items() if k in ("TILE", "KEYS", "ROWS", "BLOCK")] + [0, 0]
        launch = f"{32 * warps}, {kernel.metadata.shared}, [{sizes[0]}, {sizes[1]}]"
        lines.append(f'    image!("{name}", "{function.__name__}", {launch}),\n')
        print(name, len(kernel.asm["cubin"]), kernel.metadata.shared, flush=True)
    head = "// Made by kernels/build.py; not to be edited.\n[\n"
    (HERE / "table.rs").write_text(head + "".join(lines) + "]\n")


if __name__ == "__main__":
    main()
