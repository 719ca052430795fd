"""AttachAttrLayoutFreeBuffers for functions with dynamic shapes and explicit buffer layouts.

TVM copies a function there with other variables for its extents, and leaves the old ones, now
undefined, in the layouts of its buffers. The functions of ``topi``'s scans have such layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.tirx.buffer import BufferType

from lowerscope.core.ir.tensorir import LAYOUT_FREE, collected

ATTACH = "AttachAttrLayoutFreeBuffers"


_FIELDS = (
    *("dtype", "storage_scope", "shape", "strides", "elem_offset"),
    *("data_alignment", "offset_factor", "layout", "allocated_addr"),
)
"""Fields of a buffer's type."""


def attach_layout_free_buffers(make: Callable[..., Any], **given: Any) -> Any:
    """Return the pass, which `make` makes, for modules with such functions as well."""
    attach = make(**given)

    @tvm.transform.module_pass(opt_level=0, name=ATTACH)  # type: ignore[untyped-decorator]
    def apply(module: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        # In a context of its own: instruments should see one pass.
        with tvm.transform.PassContext(opt_level=3):
            return _read_by_one_block(attach(without_row_major(module)))

    return apply


def _read_by_one_block(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without free layouts of buffers that several blocks read.

    ``SplitLayoutRewritePreproc`` leaves the others the buffer that it takes away.
    """
    made = {name: _with_free_of_one(each) for name, each in module.functions_items()}
    return tvm.IRModule(made, attrs=module.attrs)


def _with_free_of_one(function: Any) -> Any:
    free = function.attrs.get(LAYOUT_FREE, ()) if function.attrs else ()
    if not free:
        return function
    blocks = collected(function.body, s_tir.SBlock)

    def readers(index: int) -> int:
        buffer = function.params[index]
        return sum(any(each.source.same_as(buffer) for each in block.reads) for block in blocks)

    kept = [int(each) for each in free if readers(int(each)) < 2]
    if len(kept) == len(free):
        return function
    bare = function.without_attr(LAYOUT_FREE)
    return bare.with_attr(LAYOUT_FREE, kept) if kept else bare


def without_row_major(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without layouts of named extents that are row-major, as without one."""
    changed = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            bare = _without_row_major(function)
            if not bare.same_as(function):
                changed[variable] = bare
    if not changed:
        return module
    return tvm.IRModule({**dict(module.functions_items()), **changed}, attrs=module.attrs)


def _without_row_major(function: tirx.PrimFunc) -> tirx.PrimFunc:
    made: dict[Any, Any] = {}

    def bare(buffer: Any) -> Any:
        if not _is_row_major(buffer.ty):
            return buffer
        if buffer not in made:
            fields = {name: getattr(buffer.ty, name) for name in _FIELDS} | {"layout": None}
            made[buffer] = tirx.Var(buffer.name, BufferType(**fields))
        return made[buffer]

    return tvm_ffi.structural_map(function, (tirx.Var, bare))


def _is_row_major(kind: Any) -> bool:
    if not isinstance(kind, BufferType) or kind.layout is None:
        return False
    if all(isinstance(extent, tirx.IntImm) for extent in kind.shape):
        return False
    usual = tirx.decl_buffer(kind.shape, kind.dtype).layout
    return bool(tvm_ffi.structural_equal(kind.layout, usual))
