"""The form of a primitive: its fields, with the choices at the selection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from tvm import tirx

from lowerscope.core.records.schedule import Field
from lowerscope.core.schedules import Argument, At, Made
from lowerscope.core.scheduling import intrinsics
from lowerscope.core.scheduling.entry import Entry, Site
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.index_maps import axes_of, block_axes, buffers_of
from lowerscope.core.scheduling.references import resolve, stmt_of
from lowerscope.core.scheduling.sizes import known
from lowerscope.core.scheduling.titles import buffer_names


def form(site: Site, entry: Entry, arguments: Mapping[str, Argument]) -> tuple[Field, ...]:
    """Return the fields of a primitive, with `arguments` as their initial values."""
    stmts = {
        name: _stmt(site, argument)
        for name, argument in arguments.items()
        if isinstance(argument, Made | At)
    }
    return tuple(_filled(site, field, entry, arguments, stmts) for field in entry.parameters)


def _stmt(site: Site, argument: Made | At) -> Any:
    sch = site.sch.copy()
    try:
        return stmt_of(sch, resolve(sch, argument, site.outputs))
    except StepFailed:
        return None


def _filled(
    site: Site,
    field: Field,
    entry: Entry,
    arguments: Mapping[str, Argument],
    stmts: Mapping[str, Any],
) -> Field:
    field = msgspec.structs.replace(field, default=arguments.get(field.name, field.default))
    block, target = stmts.get("block"), next(iter(stmts.values()), None)
    if field.kind == "factors" and isinstance(target, tirx.For) and entry.name == "split":
        return msgspec.structs.replace(field, product=known(target.extent))
    if field.name == "tensor_intrin":
        choices = intrinsics.names(site.target)
    elif block is not None:
        choices = _of_block(field, block, arguments)
    elif target is not None and entry.name == "unannotate" and field.name == "ann_key":
        choices = tuple(str(key) for key in target.annotations)
    else:
        choices = field.choices
    return msgspec.structs.replace(field, choices=choices)


def _of_block(field: Field, block: Any, arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    """Return the choices of a field for a block: its axes, or its buffers."""
    if field.name == "buffer":
        return tuple(buffers_of(block))
    if field.kind == "buffer":
        return tuple(buffer_names(block, field.name))
    if field.kind == "order":
        return block_axes(block)
    if field.kind == "index map":
        return axes_of(block, arguments.get("buffer"))
    return field.choices
