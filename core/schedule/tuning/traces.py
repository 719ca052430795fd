"""Conversion of TVM's traces to ordinary histories of primitives, to be read, edited and replayed.

Random draws are numbers in the history, and look-ups of a trace (``get_loops``, ``get_producers``
and so on) are the places that they have found. The trace must be that of a finished schedule, which
includes the changes of annotations by postprocessors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.model.schedule import Made, Reference
from lowerscope.core.schedule.annotations import LAYOUT_REWRITE
from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.references import references, stmt_of
from lowerscope.core.schedule.rules.recorder import ScheduleRecorder
from lowerscope.core.schedule.table import PRIMITIVES

FOUND_BY_TUNING = "found by tuning"
"""The comment of the first step."""

_INLINED, _STAYS = -2, -1
"""Values drawn in place of a loop to compute a block under."""


def written_by_trace(
    trace: Any, function: tirx.PrimFunc, target: tvm.target.Target
) -> ScheduleRecorder:
    """Return the primitives that are equivalent to a trace, and the function after them.

    Raises `StepFailed` if an instruction has no primitive, or a guard rejects one.
    """
    reading = _Reading(ScheduleRecorder(function, target))
    for instruction in trace.insts:
        reading.take(instruction, trace.decisions.get(instruction))
    return reading.writing


class _Reading:
    """State of the conversion of a trace."""

    def __init__(self, writing: ScheduleRecorder) -> None:
        self.writing = writing
        # Objects for the loops, blocks and numbers of the trace.
        self._known: dict[Any, Any] = {}
        self._made: dict[Any, Made] = {}

    def take(self, instruction: Any, decision: Any) -> None:
        """Convert one more instruction."""
        kind = str(instruction.kind.name)
        if kind == "EnterPostproc":
            return
        outputs = list(instruction.outputs)
        if kind in _LOOKED_UP:
            found = _LOOKED_UP[kind](self.writing.sch, self._inputs(instruction), instruction)
        elif kind in _DRAWN:
            found = _DRAWN[kind](self.writing.sch, self._inputs(instruction), instruction, decision)
        else:
            found = self._written(kind, instruction)
        for output, each in zip(outputs, found, strict=True):
            self._known[output] = each

    def _inputs(self, instruction: Any) -> list[Any]:
        return [self._known.get(each, each) for each in instruction.inputs]

    def _number(self, each: Any) -> Any:
        is_drawn = isinstance(each, tirx.Var)
        return self._known[each] if is_drawn else _plain(each)

    def _written(self, kind: str, instruction: Any) -> list[Any]:
        if kind not in _WRITTEN:
            raise StepFailed(f"there is no primitive for {kind}")
        name, arguments = _WRITTEN[kind](self, instruction)
        if name == "fuse" and len(arguments["loops"]) == 1:
            return self._inputs(instruction)
        if name in ("annotate", "unannotate"):
            return self._annotated(name, arguments)
        if name in ("compute_at", "reverse_compute_at") and isinstance(arguments["loop"], int):
            if arguments["loop"] == _STAYS:
                return []
            name = "compute_inline" if name == "compute_at" else "reverse_compute_inline"
            arguments = {"block": arguments["block"]}
        why = "" if self.writing.primitives else FOUND_BY_TUNING
        made = self.writing.do(name, why, **arguments)
        outputs = self.writing.outputs(made)
        for each, output in zip(made, outputs, strict=True):
            self._made[output] = each
        return list(outputs)

    def _annotated(self, name: str, arguments: dict[str, Any]) -> list[Any]:
        """Convert an annotation that the build reads; the others served to make the trace."""
        key = str(arguments["ann_key"])
        if key.startswith("meta_schedule.") and key != LAYOUT_REWRITE:
            return []
        on = arguments["block_or_loop"]
        if name == "annotate" and key in self.writing.block(on).annotations:
            self.writing.do("unannotate", "", block_or_loop=on, ann_key=key)
        self.writing.do(name, "", **arguments)
        return []

    def reference(self, each: Any) -> Reference | int:
        """Return the reference of a primitive to a loop or block of the trace.

        -1 and -2 where a drawn loop is none: see `_STAYS` and `_INLINED`.

        Raises `StepFailed` if a later instruction has removed it.
        """
        own = self._known[each]
        if isinstance(own, int):
            return own
        if own in self._made:
            return self._made[own]
        sch = self.writing.sch
        reference = references(sch, {}).get(stmt_of(sch, own))
        if reference is None:
            raise StepFailed("a loop or block of the trace is not there any more")
        return reference

    def argument(self, each: Any) -> Any:
        """Return an input or attribute of an instruction as an argument of a primitive."""
        if isinstance(each, LoopRV | SBlockRV):
            return self.reference(each)
        if isinstance(each, tvm.ir.Array):
            return tuple(map(self.argument, each))
        return self._number(each)


def _plain(each: Any) -> Any:
    """Return a number or text of TVM's as Python's."""
    if isinstance(each, tirx.IntImm | tirx.FloatImm):
        return bool(each.value) if str(each.ty.dtype) == "bool" else each.value
    if isinstance(each, bool | int | float) or each is None:
        return each
    return str(each)


# --- what a trace looks up ----------------------------------------------------------------------


def _get_sblock(sch: Schedule, inputs: list[Any], instruction: Any) -> list[Any]:
    return [sch.get_sblock(str(instruction.attrs[0]))]


_LOOKED_UP: Mapping[str, Callable[[Schedule, list[Any], Any], list[Any]]] = {
    "GetSBlock": _get_sblock,
    "GetLoops": lambda sch, inputs, _: list(sch.get_loops(inputs[0])),
    "GetChildBlocks": lambda sch, inputs, _: list(sch.get_child_blocks(inputs[0])),
    "GetProducers": lambda sch, inputs, _: list(sch.get_producers(inputs[0])),
    "GetConsumers": lambda sch, inputs, _: list(sch.get_consumers(inputs[0])),
    "GetOutputBlocks": lambda sch, inputs, _: list(sch.get_output_blocks(inputs[0])),
}


# --- what a trace has drawn ---------------------------------------------------------------------


def _tiles(sch: Schedule, inputs: list[Any], instruction: Any, decision: Any) -> list[Any]:
    return [int(each) for each in decision]


def _chosen(sch: Schedule, inputs: list[Any], instruction: Any, decision: Any) -> list[Any]:
    return [int(instruction.attrs[0][int(decision)])]


def _location(sch: Schedule, inputs: list[Any], instruction: Any, decision: Any) -> list[Any]:
    if int(decision) < 0:
        return [int(decision)]
    return [sch.sample_compute_location(inputs[0], decision=int(decision))]


_DRAWN: Mapping[str, Callable[[Schedule, list[Any], Any, Any], list[Any]]] = {
    "SamplePerfectTile": _tiles,
    "SamplePartitionedTile": _tiles,
    "SampleCategorical": _chosen,
    "SampleComputeLocation": _location,
}


# --- what has a primitive -----------------------------------------------------------------------

Written = tuple[str, dict[str, Any]]


def _called(name: str, *arguments: str) -> Callable[[_Reading, Any], Written]:
    """Return the converter of an instruction to a primitive; inputs, then attributes, have names.

    One that begins with ``*`` takes all inputs that are left; an empty one is left out.
    """

    def written(reading: _Reading, instruction: Any) -> Written:
        inputs, given = list(instruction.inputs), dict[str, Any]()
        values = [*inputs, *instruction.attrs]
        for argument in arguments:
            if argument.startswith("*"):
                count = len(values) - len(instruction.attrs)
                given[argument[1:]] = tuple(map(reading.argument, values[:count]))
                values = values[count:]
                continue
            value = reading.argument(values.pop(0))
            if argument:
                given[argument] = value
        known = PRIMITIVES[name].by_name
        # A value drawn in place of a loop is no argument yet.
        return name, {
            key: bool(each) if known[key].kind == "flag" else each for key, each in given.items()
        }

    return written


def _transform_layout(reading: _Reading, instruction: Any) -> Written:
    block = reading.argument(instruction.inputs[0])
    index, written = (int(each) for each in instruction.attrs[:2])
    stmt = reading.writing.block(block)
    buffers = stmt.writes if written else stmt.reads
    return "transform_layout", {
        "block": block,
        "buffer": str(buffers[index].source.name),
        "index_map": _map_text(instruction.inputs[1]),
    }


def _transform_block_layout(reading: _Reading, instruction: Any) -> Written:
    block = reading.argument(instruction.inputs[0])
    index_map = instruction.attrs[0] if instruction.attrs else instruction.inputs[1]
    return "transform_block_layout", {"block": block, "index_map": _map_text(index_map)}


def _map_text(index_map: Any) -> str:
    axes = [
        tirx.Var(f"i{place}", str(each.ty.dtype))
        for place, each in enumerate(index_map.initial_indices)
    ]
    final = index_map.map_indices(axes)
    return f"{', '.join(str(each.name) for each in axes)} -> {', '.join(map(str, final))}"


_UNDER = ("block", "loop", "preserve_unit_loops", "index")

_WRITTEN: Mapping[str, Callable[[_Reading, Any], Written]] = {
    "Split": _called("split", "loop", "*factors", "preserve_unit_iters", "disable_predication"),
    "Fuse": _called("fuse", "*loops", "preserve_unit_iters"),
    "Reorder": _called("reorder", "*loops"),
    "AddUnitLoop": _called("add_unit_loop", "block_or_loop"),
    "Parallel": _called("parallel", "loop"),
    "Vectorize": _called("vectorize", "loop"),
    "Unroll": _called("unroll", "loop"),
    "ComputeAt": _called("compute_at", *_UNDER),
    "ReverseComputeAt": _called("reverse_compute_at", *_UNDER),
    "ComputeInline": _called("compute_inline", "block"),
    "ReverseComputeInline": _called("reverse_compute_inline", "block"),
    "CacheRead": _called("cache_read", "block", "", "read_buffer_index", "storage_scope"),
    "CacheWrite": _called("cache_write", "block", "", "write_buffer_index", "storage_scope"),
    "SetScope": _called("set_scope", "block", "buffer_index", "storage_scope"),
    "StorageAlign": _called("storage_align", "block", "buffer_index", "axis", "factor", "offset"),
    "DecomposeReduction": _called("decompose_reduction", "block", "loop"),
    "RFactor": _called("rfactor", "loop", "factor_axis"),
    "PadEinsum": _called("pad_einsum", "block", "padding"),
    "DecomposePadding": _called("decompose_padding", "block", "loop"),
    "Annotate": _called("annotate", "block_or_loop", "ann_val", "ann_key"),
    "Unannotate": _called("unannotate", "block_or_loop", "ann_key"),
    "TransformLayout": _transform_layout,
    "TransformBlockLayout": _transform_block_layout,
}
"""Converters by TVM's kind of instruction, without those for GPUs and other accelerators."""
