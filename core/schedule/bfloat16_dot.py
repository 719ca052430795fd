"""The instruction that adds products of pairs of bfloat16, for TVM's ``tensorize``.

TVM has no name for it. LLVM's takes vectors of bfloat16, which TVM's build turns into integers, so
that a function of LLVM takes the same bits as integers and calls it.
"""

from __future__ import annotations

import tvm.script
from tvm.s_tir import TensorIntrin

BFLOAT16_DOT = "dot_16x2_bf16"
"""Name of the instruction: 16 sums in float32, to each of which two products are added."""

_LLVM = (
    "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512"
    "(<16 x float>, <32 x bfloat>, <32 x bfloat>) "
    f"define <16 x float> @{BFLOAT16_DOT}(<16 x float> %sums, <16 x i32> %a, <16 x i32> %b) {{ "
    "%x = bitcast <16 x i32> %a to <32 x bfloat> "
    "%y = bitcast <16 x i32> %b to <32 x bfloat> "
    "%made = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512"
    "(<16 x float> %sums, <32 x bfloat> %x, <32 x bfloat> %y) "
    "ret <16 x float> %made }"
)

_FUNCTION = """
@T.prim_func(s_tir=True)
def dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), "bfloat16", offset_factor=1)
    B = T.match_buffer(b, (16, 2), "bfloat16", offset_factor=1)
    C = T.match_buffer(c, (16,), "float32", scope="local", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:2], B[0:16, 0:2])
        T.writes(C[0:16])
        {body}
"""

_SUMS = """
        for i, k in T.grid(16, 2):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.Cast("float32", A[vk]) * T.Cast("float32", B[vi, vk])
"""

_INSTRUCTION = f"""
        with T.attr(0, "pragma_import_llvm", {_LLVM!r}):
            C[T.ramp(0, 1, 16)] = T.call_pure_extern(
                "float32x16",
                "{BFLOAT16_DOT}",
                C[T.ramp(0, 1, 16)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, 2)]), 16),
                T.reinterpret("int32x16", B.vload([0, 0], "bfloat16x32")),
            )
"""


def register() -> None:
    """Register the instruction, so that TVM finds it by its name."""
    described, computed = (
        tvm.script.from_source(_FUNCTION.format(body=body.strip()))
        for body in (_SUMS, _INSTRUCTION)
    )
    TensorIntrin.register(BFLOAT16_DOT, described, computed, override=True)
