"""A TensorIR function as a source: a module whose ``main`` only calls it.

The course makes such functions by ``te.create_prim_func`` long before there is a Relax function.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lowerscope.core.errors import LowerscopeError

if TYPE_CHECKING:
    import tvm

_CHILDREN = ("block", "init", "body", "then_case", "else_case")


def is_prim_func(value: object) -> bool:
    """Return whether `value` is a TensorIR function, without importing TVM."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(value, tvm.tirx.PrimFunc)


def with_main(built: Any, name: str, where: str) -> tvm.IRModule:
    """Return a module with a Relax function ``main`` that can be run.

    Parameters
    ----------
    built
        A PrimFunc, or an ``IRModule``. A module that has a Relax function is returned unchanged; in
        one of TensorIR only, ``main`` or else the only function is called.
    name
        Name in the module of a PrimFunc without one.
    where
        The source, for errors.

    Raises
    ------
    LowerscopeError
        If the function to call, or its call, is ambiguous.
    """
    import tvm
    from tvm import relax, tirx

    if isinstance(built, tvm.IRModule):
        functions = {variable.name_hint: each for variable, each in built.functions_items()}
        if any(isinstance(each, relax.Function) for each in functions.values()):
            return built
        prim_funcs = {
            title: each for title, each in functions.items() if isinstance(each, tirx.PrimFunc)
        }
        name = "main" if "main" in prim_funcs else next(iter(prim_funcs), "")
        if not prim_funcs or (len(prim_funcs) > 1 and name != "main"):
            raise LowerscopeError(
                "the IRModule has no Relax function called main",
                where=where,
                todo="Name the function that is to be run `main`",
            )
        function = prim_funcs[name]
    else:
        function = built
    title = name if name != "main" else _own_name(function)
    return _calling(function, title, where)


def _own_name(function: Any) -> str:
    """Return the name of the computation, since ``main`` is that of the caller."""
    outputs = _written(function)
    return str(outputs[-1].name) if outputs else "function"


def _calling(function: Any, name: str, where: str) -> tvm.IRModule:
    """Return a module of `function` and a ``main`` that passes it its destinations."""
    import tvm
    from tvm import relax
    from tvm.tirx.buffer import is_buffer_var

    params = list(function.params)
    for parameter in params:
        if not is_buffer_var(parameter):
            raise LowerscopeError(
                f"its argument {parameter.name} is no tensor",
                where=where,
                todo="Write a Relax function main that calls it",
            )
    written = _written(function)
    count = sum(any(each.same_as(parameter) for each in written) for parameter in params)
    outputs = params[len(params) - count :]
    if not count or not all(any(o.same_as(each) for each in written) for o in outputs):
        raise LowerscopeError(
            "it does not write to its last arguments, and only to these",
            where=where,
            todo="Give te.create_prim_func the inputs first and then what is computed, or write "
            "a Relax function main that calls it",
        )
    types = _types(params, where)
    inputs = params[: len(params) - count]
    builder = relax.BlockBuilder()
    callee = builder.add_func(function.without_attr("global_symbol"), _plain(name))
    variables = [relax.Var(each.name, types[each]) for each in inputs]
    out = [types[each] for each in outputs]
    with builder.function("main", variables):
        with builder.dataflow():
            call = relax.call_tir(callee, variables, out if count > 1 else out[0])
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    module = builder.get()
    assert isinstance(module, tvm.IRModule)
    return module


def _types(params: list[Any], where: str) -> dict[Any, Any]:
    """Return the types of the tensors in ``main``, with fresh symbolic variables."""
    from tvm import relax, tirx

    symbols: dict[Any, Any] = {}
    types: dict[Any, Any] = {}
    for parameter in params:
        shape = []
        for extent in parameter.ty.shape:
            if isinstance(extent, tirx.Var):
                extent = symbols.setdefault(extent, tirx.Var(extent.name, "int64"))
            elif not isinstance(extent, tirx.IntImm):
                raise LowerscopeError(
                    f"the extent {extent} of its argument {parameter.name} is no number and no "
                    "symbol",
                    where=where,
                    todo="Write a Relax function main that calls it",
                )
            else:
                extent = int(extent)
            shape.append(extent)
        types[parameter] = relax.TensorType(shape, str(parameter.ty.dtype.dtype))
    return types


def _plain(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name) or "function"


def _written(function: Any) -> list[Any]:
    """Return the buffers that a function stores to, each once; a subregion counts as its buffer."""
    whole: dict[Any, Any] = {}
    found: dict[Any, None] = {}
    for buffer in _stores(function.body, whole):
        while buffer in whole:
            buffer = whole[buffer]
        found[buffer] = None
    return list(found)


def _stores(statement: Any, whole: dict[Any, Any]) -> Iterator[Any]:
    from tvm import s_tir, tirx

    if isinstance(statement, tirx.BufferStore):
        yield statement.buffer
    if isinstance(statement, tirx.SeqStmt):
        for child in statement.seq:
            yield from _stores(child, whole)
        return
    if isinstance(statement, s_tir.SBlock):
        for match in statement.match_buffers:
            whole[match.buffer] = match.source.source
    for field in _CHILDREN:
        child = getattr(statement, field, None)
        if isinstance(child, tirx.Stmt):
            yield from _stores(child, whole)
