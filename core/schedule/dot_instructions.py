"""The instructions that add products of neighbours to sums, for TVM's ``tensorize``.

Sums of float32 add products of pairs of bfloat16, and sums of integers those of four bytes. TVM has
no name for the former, and one for the latter whose sums are not in registers. LLVM's take vectors
of small numbers, which TVM's build turns into integers, so that a function of LLVM takes the same
bits as integers and calls it.
"""

from __future__ import annotations

import tvm.script
from tvm.s_tir import TensorIntrin

BFLOAT16_DOT = "dot_16x2_bf16"
"""16 sums in float32, to each of which two products are added."""

INTEGER_DOT = "dot_16x4_u8s8"
"""16 sums in 32 bits, to each of which four products of bytes are added, the second ones signed."""

_LLVM = (
    "declare <16 x {sum}> @llvm.x86.{intrinsic}"
    "(<16 x {sum}>, <{lanes} x {first}>, <{lanes} x {first}>) "
    "define <16 x {sum}> @{name}(<16 x {sum}> %sums, <16 x i32> %a, <16 x i32> %b) {{ "
    "%x = bitcast <16 x i32> %a to <{lanes} x {first}> "
    "%y = bitcast <16 x i32> %b to <{lanes} x {first}> "
    "%made = call <16 x {sum}> @llvm.x86.{intrinsic}"
    "(<16 x {sum}> %sums, <{lanes} x {first}> %x, <{lanes} x {first}> %y) "
    "ret <16 x {sum}> %made }}"
)

_FUNCTION = """
@T.prim_func(s_tir=True)
def dot(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({count},), "{of_a}", offset_factor=1)
    B = T.match_buffer(b, (16, {count}), "{of_b}", offset_factor=1)
    C = T.match_buffer(c, (16,), "{of_c}", scope="local", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:{count}], B[0:16, 0:{count}])
        T.writes(C[0:16])
        {body}
"""

_SUMS = """
        for i, k in T.grid(16, {count}):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.Cast("{of_c}", A[vk]) * T.Cast("{of_c}", B[vi, vk])
"""

_INSTRUCTION = """
        with T.attr(0, "pragma_import_llvm", {llvm!r}):
            C[T.ramp(0, 1, 16)] = T.call_pure_extern(
                "{of_c}x16",
                "{name}",
                C[T.ramp(0, 1, 16)],
                T.broadcast(T.reinterpret("int32", A[T.ramp(0, 1, {count})]), 16),
                T.reinterpret("int32x16", B.vload([0, 0], "{of_b}x{lanes}")),
            )
"""

DOTS = {
    BFLOAT16_DOT: (2, "bfloat16", "bfloat16", "float32"),
    INTEGER_DOT: (4, "uint8", "int8", "int32"),
}
"""Number of products for each sum, and dtypes of the factors and sums, of each instruction."""

_IN_LLVM = {
    BFLOAT16_DOT: ("avx512bf16.dpbf16ps.512", "float", "bfloat"),
    INTEGER_DOT: ("avx512.vpdpbusd.512", "i32", "i8"),
}
"""LLVM's names, and its types of the sums and factors."""


def uses_dot(line: str) -> bool:
    """Return whether a line of a program names one of the instructions."""
    return any(f'"{name}"' in line for name in DOTS)


def register() -> None:
    """Register the instructions, so that TVM finds them by their names."""
    for name, (count, of_a, of_b, of_c) in DOTS.items():
        given = {"name": name, "of_a": of_a, "of_b": of_b, "of_c": of_c, "count": count}
        given["lanes"] = 16 * count
        intrinsic, total, factor = _IN_LLVM[name]
        llvm = _LLVM.format(**given, intrinsic=intrinsic, sum=total, first=factor)
        described, computed = (
            tvm.script.from_source(
                _FUNCTION.format(**given, body=body.format(**given, llvm=llvm).strip())
            )
            for body in (_SUMS, _INSTRUCTION)
        )
        TensorIntrin.register(name, described, computed, override=True)
