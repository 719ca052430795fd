"""Records of the functions of a module: their callers, and their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tvm import IRModule, relax, tirx

from lowerscope.core.ir.tensorir import allocated_ids, blocks_in, count_parts, parts_of
from lowerscope.core.model.snapshot import FunctionRecord, PieceRecord
from lowerscope.core.passes.blocks import Composed, Owner


def function_records(
    module: IRModule,
    calls: Mapping[str, tuple[str, ...]],
    composed: Mapping[str, Composed] = MappingProxyType({}),
) -> tuple[FunctionRecord, ...]:
    """Return a record of each function of `module`, and of each external one that it calls.

    Relax functions come first, ``main`` before the others; then the TensorIR functions, and the
    external ones, each in the order of their first calls. Functions that nothing calls come last
    among their kind.

    Parameters
    ----------
    composed
        The functions that are made of several, by name, with the bindings of their blocks.
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
            blocks, loops, runs = count_parts(function)
            made = composed.get(name)
            records.append(
                FunctionRecord(
                    id=entity,
                    name=name,
                    kind="tensorir",
                    calls=calls.get(entity, ()),
                    blocks=blocks,
                    loops=loops,
                    runs=runs,
                    pieces=() if made is None else pieces_of(name, function, made),
                    untied="" if made is None else made.reason,
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


def pieces_of(name: str, function: Any, composed: Composed) -> tuple[PieceRecord, ...]:
    """Return the parts of a function by the bindings that they compute.

    A loop belongs to what its blocks belong to, and a buffer to the blocks that write it.
    """
    parts = parts_of(name, function)
    blocks = [part.statement for part in parts if part.kind == "block"]
    owners = dict(zip(map(hash, blocks), composed.owners, strict=True))
    pieces: dict[tuple[str, ...], list[str]] = {}
    for part in parts:
        inside = [part.statement] if part.kind == "block" else blocks_in(part.statement)
        owner = _all_of(owners.get(hash(block)) for block in inside)
        if owner:
            pieces.setdefault(owner, []).append(part.id)
    writers: dict[int, list[Owner]] = {}
    for block, owner in zip(blocks, composed.owners, strict=True):
        for region in block.writes:
            writers.setdefault(hash(region.source), []).append(owner)
    for entity, buffer in allocated_ids(name, function):
        owner = _all_of(writers.get(hash(buffer), ()))
        if owner:
            pieces.setdefault(owner, []).append(entity)
    return tuple(PieceRecord(parts=tuple(each), bindings=owner) for owner, each in pieces.items())


def _all_of(owners: Iterable[Owner]) -> Owner:
    """Return all bindings of some blocks; ``None`` where those of one are not known."""
    found: dict[str, None] = {}
    for owner in owners:
        if owner is None:
            return None
        found.update(dict.fromkeys(owner))
    return tuple(found)
