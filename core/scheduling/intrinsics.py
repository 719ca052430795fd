"""The tensor instructions of a target."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tvm
from tvm import s_tir

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.references import below

_NEEDS = (
    ("avx512vnni", "x86", ("dot_16x4_vnni",)),
    ("avx512bw", "x86", ("dot_16x4_avx512",)),
    ("dotprod", "arm_cpu", ("dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot")),
    ("neon", "arm_cpu", ("dot_4x4_i8i8s32_neon",)),
)
"""Features of a processor, and TVM's file and names of the instructions that need them."""

_SUMS = {"int32", "uint32"}
"""Dtypes in which the instructions accumulate."""

_SATURATES = "dot_16x4_avx512"
"""The instruction that adds pairs of products in 16 bits, and saturates."""


def names(target: tvm.target.Target) -> tuple[str, ...]:
    """Return TVM's names of the instructions that `target` has."""
    return tuple(name for _, offered in _offered(target) for name in offered)


def _offered(target: tvm.target.Target) -> list[tuple[str, tuple[str, ...]]]:
    has = tvm.get_global_func("target.target_has_feature")
    return [(file, offered) for feature, file, offered in _NEEDS if has(feature, target)]


def register(target: tvm.target.Target) -> None:
    """Register the instructions that `target` has, so that TVM finds them by their names."""
    for file, _ in _offered(target):
        _load(file)


@contextlib.contextmanager
def without_those_of_gpus() -> Iterator[None]:
    """Prevent TVM, in the body, from registering the instructions of all targets: see `_load`."""
    name = "tvm.s_tir.tensor_intrin"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = types.ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]


@cache
def _load(file: str) -> None:
    """Register the instructions of one file of TVM.

    Importing the package makes those of all GPUs as well, which takes half a minute. A later import
    uses what is loaded here.
    """
    name = f"tvm.s_tir.tensor_intrin.{file}"
    if name in sys.modules:
        return
    path = Path(s_tir.__file__).with_name("tensor_intrin") / f"{file}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _written(call: Call) -> set[str]:
    """Return the dtypes that the blocks write which an instruction is to replace."""
    stmt = call.sch.get(call.values["block_or_loop"])
    blocks = [stmt] if isinstance(stmt, s_tir.SBlock) else []
    blocks += [place.stmt for place in below(stmt.body) if place.is_block]
    return {str(region.source.ty.dtype) for block in blocks for region in block.writes}


def check(call: Call) -> None:
    """Reject an instruction that the target does not have: its code would not run."""
    offered = _offered(call.target)
    if not offered:
        raise StepFailed("TVM knows no tensor instruction of this target; native may have some")
    file = next((file for file, named in offered if call.values["tensor_intrin"] in named), None)
    if file is None:
        raise StepFailed(f"the target has {', '.join(names(call.target))}")
    dtypes = _written(call)
    if not dtypes & _SUMS:
        # Loading them takes longer than the whole menu may.
        raise StepFailed(
            f"{call.values['tensor_intrin']} adds products of 8 bits in 32 bits, "
            f"and this computes in {', '.join(sorted(dtypes)) or 'nothing'}"
        )
    _load(file)
    if call.values["tensor_intrin"] == _SATURATES and not call.forced:
        raise StepFailed(
            "it adds in 16 bits and cuts off what does not fit: the result can be another one",
            unsafe=True,
        )
