"""The work of ``emit_te``, in four steps: placeholders, expressions, function, ``call_tir``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import tvm
from torch import fx
from tvm import ir, relax, te, tirx
from tvm.relax.analysis import free_vars

from lowerscope.core.ir.relax import Bound
from lowerscope.core.lowering.builder import NodeBuilder, te_name
from lowerscope.core.lowering.parameter_binding import name_constants
from lowerscope.core.lowering.partial_module import changes_of_nodes
from lowerscope.core.lowering.rule_table import Missing
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, TeCall
from lowerscope.core.lowering.values import Dimensions, EncodedTensor, Value, is_size
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.module_steps import TranslationRecord
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import Extent, Placeholder, TeRecord, TextRecord
from lowerscope.core.passes.recording import FunctionChanges
from lowerscope.core.views.programs.te_text import te_text
from lowerscope.core.views.script import function_text, relax_text

_IN_MAIN = "relax:main/"

MOST = 6
"""Maximum number of named members of a tuple."""


def translation_records(
    lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
) -> tuple[TranslationRecord, ...]:
    """Return a record of each FX node in the order in which they were translated."""
    names = ValueNames(lowered, graph_module, bounds)
    seen: set[str] = set()
    records: list[TranslationRecord] = []
    changes = changes_of_nodes(lowered, graph_module.graph, FunctionChanges().between_modules)
    steps = zip(lowered.nodes.values(), changes, strict=True)
    for number, (each, changed) in enumerate(steps, start=1):
        added = tuple(name for name in each.functions if name not in seen)
        seen.update(added)
        value = names.text(each.value)
        records.append(
            TranslationRecord(
                number=number,
                node=f"fx:{each.node}",
                bindings=tuple(f"relax:main/{name}" for name in each.bindings),
                functions=tuple(str(name) for name in added),
                changed=changed,
                value=value,
                rebound=tuple(f"fx:{name}" for name in each.rebound),
            )
        )
    return tuple(records)


class ValueNames:
    """Formatter of the values of nodes: variables as in the script, constants by their names."""

    def __init__(
        self, lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
    ) -> None:
        self._lowered, self._graph_module = lowered, graph_module
        self._variables: dict[str, str] = {
            bound.variable: bound.name for bound in bounds if bound.id.startswith(_IN_MAIN)
        }

    @cached_property
    def _constants(self) -> Mapping[Any, str]:
        # Few models have a node with a constant value, and naming these visits each.
        lowered = self._lowered
        named = name_constants(lowered.module, self._graph_module, lowered)
        return {
            **{each.constant: each.name for each in named},
            **{each.constant: name for name, each in lowered.arguments.items()},
        }

    def text(self, value: Value) -> str:
        """Return a value in a few words; empty where a node has none."""
        if value is None:
            return ""
        return self._text(value)

    def _text(self, value: Value) -> str:
        if isinstance(value, EncodedTensor):
            return f"{self._text(value.value)} as {value.dtype}"
        if isinstance(value, Missing):
            return f"unknown: {value.reason}"
        if isinstance(value, (tuple, list)):
            members = [self._text(each) for each in value[:MOST]]
            if len(value) > MOST:
                members.append(f"and {len(value) - MOST} more")
            return f"[{', '.join(members)}]" if isinstance(value, list) else _tuple(members)
        if isinstance(value, dict):
            pairs = (f"{key}: {self._text(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, ir.GenericConst):
            name = self._constants.get(value)
            return name if name is not None else _constant(value)
        if isinstance(value, ir.Var) and not is_size(value):
            name = str(value.name)
            return self._variables.get(name, name)
        return _TYPED.sub(r"\1", str(value)) if isinstance(value, ir.Expr) else str(value)


def _tuple(members: list[str]) -> str:
    return f"({members[0]},)" if len(members) == 1 else f"({', '.join(members)})"


def _constant(value: Any) -> str:
    shape = shape_text(value.value.shape, "")
    return f"constant {shape or value.value.numpy()} {value.value.dtype}"


_TYPED = re.compile(r"T\.int64\((-?\d+)\)")
"""A number as the script writes it where its type counts."""


def te_records(
    node: NodeLowering, lowered: LoweredModel, names: ValueNames
) -> tuple[TeRecord, ...]:
    """Return the work of TE for each binding of a node that calls a TensorIR function.

    A node that stayed operators of Relax has the result of legalising these, by the same rules as
    the pass ``LegalizeOps``.
    """
    bindings = [
        binding
        for block in lowered.module["main"].body.blocks
        for binding in block.bindings
        if binding.var.name in node.bindings
    ]
    made = _Records(lowered.module, lowered.te_calls, names, by_pass=False)
    records = list(made.of(bindings))
    if node.strategy == "high-level":
        for binding in bindings:
            records += _legalised(binding, names)
    return tuple(records)


def _legalised(binding: Any, names: ValueNames) -> Iterator[TeRecord]:
    value: Any = getattr(binding, "value", None)
    is_operator = isinstance(value, relax.Call) and isinstance(value.op, ir.Op)
    if not is_operator or value.op.get_attr("FLegalize") is None:
        return
    builder = NodeBuilder(te=True, dimensions=Dimensions({}))
    read = [var for var in free_vars(value) if not isinstance(var.ty, ir.PrimType)]
    with builder.function("main", params=read):
        builder.begin()
        output = builder.emit_output(builder.emit(value, name_hint=binding.var.name))
        bound, _ = builder.end_node()
        builder.finish(bound, output)
    module = builder.get()
    yield from _Records(module, builder.te_calls_of(bound), names, by_pass=True).of(bound)


class _Records:
    """Builder of the records of calls in one module; each function is written once."""

    def __init__(
        self, module: tvm.IRModule, calls: Any, names: ValueNames, *, by_pass: bool
    ) -> None:
        self._module = module
        self._calls = calls
        self._names = names
        self._by_pass = by_pass
        self._written: dict[str, tuple[TextRecord | None, str, TextRecord]] = {}
        self._script: TextRecord | None = None
        self._first: dict[str, str] = {}
        for block in module["main"].body.blocks:
            for binding in block.bindings:
                function = _called(binding)
                if function:
                    self._first.setdefault(function, f"relax:main/{binding.var.name}")

    def of(self, bindings: Sequence[Any]) -> Iterator[TeRecord]:
        for binding in bindings:
            function = _called(binding)
            if function:
                yield self._record(str(binding.var.name), binding.value, function)

    def _record(self, variable: str, value: Any, function: str) -> TeRecord:
        arguments = [self._names.text(each) for each in value.args[1].fields]
        known = self._calls.get(variable)
        expression, refusal, script = self._texts(function)
        binding = f"relax:main/{variable}"
        return TeRecord(
            binding=binding,
            title=_title(known, arguments),
            placeholders=tuple(self._placeholders(known, function, arguments)),
            expression=expression,
            refusal=refusal,
            function=function,
            script=script,
            call=self._call(binding),
            first_made="" if self._first[function] == binding else self._first[function],
            by_pass=self._by_pass,
        )

    def _placeholders(
        self, known: TeCall | None, function: str, arguments: list[str]
    ) -> Iterator[Placeholder]:
        recorded = () if known is None else known.placeholders
        # The function of a legalised operator has the placeholders for its first arguments.
        tensors = recorded or self._module[function].params
        for tensor, argument in zip(tensors, arguments, strict=False):
            is_recorded = isinstance(tensor, te.Tensor)
            shape = tensor.shape if is_recorded else getattr(tensor.ty, "shape", ())
            dtype = tensor.dtype if is_recorded else _dtype(tensor)
            yield Placeholder(
                name=str(tensor.op.name if is_recorded else tensor.name),
                shape=tuple(_extent(each) for each in shape),
                dtype=str(dtype),
                argument=argument,
            )

    def _texts(self, name: str) -> tuple[TextRecord | None, str, TextRecord]:
        if name not in self._written:
            expression, refusal = None, ""
            try:
                expression = te_text(self._module[name], name)
            except LowerscopeError as error:
                refusal = error.problem.what
            self._written[name] = (expression, refusal, function_text(self._module, name))
        return self._written[name]

    def _call(self, binding: str) -> str:
        if self._script is None:
            self._script = relax_text(self._module)
        lines = self._script.text.split("\n")
        span = next((each for each in self._script.spans if each.entity == binding), None)
        shown = [] if span is None else lines[span.first - 1 : span.last]
        return "\n".join(line.strip() for line in shown)


def _called(binding: Any) -> str:
    """Return the name of the TensorIR function that a binding calls; empty if there is none."""
    value = getattr(binding, "value", None)
    called = value.args[0] if isinstance(value, relax.Call) and len(value.args) else None
    return str(called.name_hint) if isinstance(called, ir.GlobalVar) else ""


def _title(known: TeCall | None, arguments: Sequence[str]) -> str:
    if known is None:
        return ""
    if known.function is None:
        return f"{known.operator}, legalised"
    left = iter(arguments)

    def text(value: Any) -> str:
        if isinstance(value, te.Tensor):
            return next(left, "?")
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(text(each) for each in value)}]"
        return _TYPED.sub(r"\1", str(value))

    given = [text(each) for each in known.args]
    given += [f"{name}={text(each)}" for name, each in known.kwargs]
    return f"emit_te({', '.join([te_name(known.function), *given])})"


def _extent(extent: Any) -> Extent:
    if isinstance(extent, (int, tirx.IntImm)):
        return int(extent)
    return _TYPED.sub(r"\1", str(extent))


def _dtype(parameter: Any) -> Any:
    dtype = parameter.ty.dtype
    return getattr(dtype, "dtype", dtype)
