"""Shared parts of the steps that compute convolutions by functions of their own.

The program that reproduces a model embeds these functions: they use no names of this module but
one another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax, tirx

from lowerscope.core.model.texts import _

LayoutsOf = dict[str, tuple[str, str]]
"""Layouts of the data and weights, by the names of the operators."""


def replaced(
    module: tvm.IRModule,
    layouts: LayoutsOf,
    reason_of: Callable[[Any], str],
    call_of: Callable[[Any, relax.BlockBuilder, dict[Any, tvm.ir.GlobalVar]], relax.Call],
) -> tvm.IRModule:
    """Return a module with calls of functions in place of some results of operators.

    `layouts`: the operators. `reason_of`: returns why a call stays; empty if it does not.
    `call_of`: takes a call, the builder, and the functions that were added, by their sizes; the
    call that it returns may be of another call first. The variables of the results stay. Constants
    that are converted to another dtype, as weights in half precision are, count as constants.
    """
    builder = relax.BlockBuilder(module)
    added: dict[Any, tvm.ir.GlobalVar] = {}
    converted: dict[Any, Any] = {}

    def constant(value: Any) -> Any:
        if value not in converted:
            return value
        dtype = str(value.ty.dtype)
        return relax.const(converted[value].value.numpy().astype(dtype), dtype)

    for variable, function in module.functions_items():
        if not isinstance(function, relax.Function) or not isinstance(function.body, relax.SeqExpr):
            continue
        found = False
        blocks = []
        for block in function.body.blocks:
            bindings: list[Any] = []
            for binding in block.bindings:
                value: Any = getattr(binding, "value", None)
                is_cast = is_one_of(value, {"relax.astype": ("", "")})
                if is_cast and isinstance(value.args[0], tvm.ir.GenericConst):
                    converted[binding.var] = value.args[0]
                is_replaced = is_one_of(value, layouts)
                if is_replaced:
                    args = [constant(each) for each in value.args]
                    value = relax.Call(value.op, args, value.attrs, value.ty_args)
                    value = builder.normalize(value)
                if is_replaced and not reason_of(value):
                    found = True
                    call = call_of(value, builder, added)
                    before = call.args[0]
                    if isinstance(before, relax.Call):
                        before = builder.normalize(before)
                        variable_before = type(binding.var)(binding.var.name, before.ty)
                        bindings.append(relax.VarBinding(variable_before, before))
                        call = relax.Call(call.op, [variable_before, *call.args[1:]], call.attrs)
                    bindings.append(relax.VarBinding(binding.var, builder.normalize(call)))
                else:
                    bindings.append(binding)
            blocks.append(type(block)(bindings))
        if found:
            body = relax.SeqExpr(blocks, function.body.body)
            own = function.params, body, function.ret_ty, function.is_pure, function.attrs
            builder.update_func(variable, relax.Function(*own))
    return builder.get()


def is_one_of(value: Any, layouts: LayoutsOf) -> bool:
    """Return whether a value is the result of one of these operators."""
    return isinstance(value, relax.Call) and str(getattr(value.op, "name", "")) in layouts


def unusual(call: Any, layouts: LayoutsOf, *, may_be_named: bool = False) -> str:
    """Return what is unusual about a convolution: not constant weights, say; empty for nothing.

    `may_be_named`: whether its batch, rows and columns may have named sizes.
    """
    attrs, (data, weight) = call.attrs, call.args
    if not isinstance(weight, tvm.ir.GenericConst):
        return _("its weights are not constants")
    is_known = all(numbers(each.ty.shape) for each in (data, weight, call))
    if not is_known and not (may_be_named and isinstance(data.ty.shape, relax.ShapeExpr)):
        return _("its shapes are symbolic")
    if {str(each.ty.dtype) for each in (data, weight, call)} != {"float32"}:
        return _("it is not in float32")
    usual = layouts[str(call.op.name)]
    own = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout or usual[0])
    if own != (*usual, usual[0]):
        return _("its layout is not {layout}", layout=usual[0])
    return ""


def numbers(shape: Any) -> tuple[int, ...]:
    """Return the extents of a shape; none if some are symbolic."""
    values = shape.values if isinstance(shape, relax.ShapeExpr) else ()
    known = all(isinstance(each, tirx.IntImm) for each in values)
    return tuple(int(each) for each in values) if known else ()


def extents(shape: tuple[Any, ...]) -> list[Any]:
    """Return extents as Relax has them, in 64 bits; those of named sizes stay."""
    return [tirx.IntImm("int64", each) if isinstance(each, int) else each for each in shape]
