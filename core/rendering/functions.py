"""The functions of a module as they are listed: what calls them, and their parts."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import IRModule, relax, tirx

from lowerscope.core.records import FunctionRecord
from lowerscope.core.rendering.tensorir_parts import count_parts


def function_records(
    module: IRModule, calls: Mapping[str, tuple[str, ...]]
) -> tuple[FunctionRecord, ...]:
    """Return a record of each function of `module`, and of each external one that it calls.

    Relax functions come first, ``main`` before the others; then the TensorIR functions, and the
    external ones, each in the order of their first calls. Functions that nothing calls come last
    among their kind.

    Parameters
    ----------
    calls
        The ids of the bindings that call each function, as `calls_of` finds them in `module`.
    """
    records: list[FunctionRecord] = []
    for variable, function in module.functions_items():
        name = str(variable.name_hint)
        if isinstance(function, relax.Function):
            entity = f"relax:{name}"
            records.append(
                FunctionRecord(
                    id=entity,
                    name=name,
                    kind="relax",
                    calls=calls.get(entity, ()),
                    parameters=tuple(str(parameter.name) for parameter in function.params),
                )
            )
        elif isinstance(function, tirx.PrimFunc):
            entity = f"tir:{name}"
            blocks, loops = count_parts(function)
            records.append(
                FunctionRecord(
                    id=entity,
                    name=name,
                    kind="tensorir",
                    calls=calls.get(entity, ()),
                    blocks=blocks,
                    loops=loops,
                )
            )
    records.extend(
        FunctionRecord(id=entity, name=entity.removeprefix("ext:"), kind="external", calls=callers)
        for entity, callers in calls.items()
        if entity.startswith("ext:")
    )
    kind_order = ("relax", "tensorir", "external")
    first_call = {entity: index for index, entity in enumerate(calls)}
    return tuple(
        sorted(
            records,
            key=lambda record: (
                kind_order.index(record.kind),
                record.name != "main",
                first_call.get(record.id, len(first_call)),
                record.name,
            ),
        )
    )
