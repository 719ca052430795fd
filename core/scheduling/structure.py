"""Structural hashes: functions that are the same but for their names can share a schedule."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import tvm_ffi
from tvm import tirx

from lowerscope.core.tensorir_parts import blocks_in


def structure_of(function: Any) -> str:
    """Return a hash of a TensorIR function, without its name and attributes.

    The names of its blocks are part of the hash: primitives name blocks by these. Names of loops
    and buffers are not.
    """
    bare = tirx.PrimFunc(function.params, function.body, function.ret_type)
    blocks = "/".join(block.name_hint for block in blocks_in(function.body))
    whole = f"{tvm_ffi.structural_hash(bare) & (1 << 64) - 1:016x}/{blocks}"
    return blake2b(whole.encode(), digest_size=8).hexdigest()
