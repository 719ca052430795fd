"""A Relax function as a picture: one box a binding, constants inside the boxes that use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tvm import IRModule, ir, relax, tirx

from lowerscope.core.graph_records import GraphRecord
from lowerscope.core.passes.bindings import Matches
from lowerscope.core.relax_bindings import (
    Bound,
    bound_in,
    callee_of,
    entity_of,
    relax_functions,
)
from lowerscope.core.rendering.boxes import graph_record
from lowerscope.core.rendering.collapsing import BoxText, Flow
from lowerscope.core.rendering.graph_difference import FunctionGraph
from lowerscope.core.rendering.hierarchy import FITTING, Blocks, Modules, Opening
from lowerscope.core.rendering.metrics import TextMetrics
from lowerscope.core.rendering.shapes import tensor_label

_INT_LITERAL = re.compile(r"T\.int(?:32|64)\((-?\d+)\)")
_STRATEGIES = {"tir": "te", "ext": "library", "relax": ""}


def relax_graph(
    module: IRModule,
    metrics: TextMetrics,
    check: Callable[[], None],
    function: str = "main",
    paths: Mapping[str, str] = MappingProxyType({}),
    kinds: Mapping[str, str] = MappingProxyType({}),
    opening: Opening = FITTING,
    origins: Matches | None = None,
) -> GraphRecord:
    """Lay out the data flow of a Relax function; the id of a box is that of its binding.

    The call of a group that ``FuseOps`` has made is the box of all that the group holds. A binding
    that only names what is returned is the box of the result; otherwise that box is
    ``relax:FUNCTION/return``. A branch is one box, with all that happens in it. Where there is
    more than one block, or a binding outside of one, each data-flow block is a region.

    Parameters
    ----------
    module
        The module; one without Relax functions has an empty graph.
    metrics
        Widths of text in the fonts of the graph.
    check
        Called often; may raise to give up.
    function
        Name of the function; where there is none of this name, the first one is drawn.
    paths
        The dotted path of the model's module that each binding comes from, by the binding's id.
    kinds
        The class of each of these modules, by path.
    opening
        Which modules are expanded.
    origins
        What each binding of a module at a step came from; ``None`` for the lowered module.
    """
    functions = dict(relax_functions(module))
    if not functions:
        return graph_record([], [], metrics, check)
    name = function if function in functions else next(iter(functions))
    graph = _FunctionGraph(module, name, functions[name])
    return graph.record(metrics, check, paths, kinds, opening, origins)


def function_graph(module: IRModule, function: str, origins: Matches) -> FunctionGraph:
    """Return the boxes of a Relax function and their flows, without a layout.

    There are none where the module has no such function.

    Parameters
    ----------
    origins
        As for `relax_graph`.
    """
    functions = dict(relax_functions(module))
    if function not in functions:
        return FunctionGraph()
    graph = _FunctionGraph(module, function, functions[function])
    return FunctionGraph(graph.boxes(origins), graph.flows)


class _FunctionGraph:
    """The boxes and flows of one function, gathered in the order of its bindings."""

    def __init__(self, module: IRModule, name: str, function: Any) -> None:
        self._module = module
        self._name = name
        self._boxes: list[BoxText] = []
        self.flows: list[Flow] = []
        # What each variable stands for: the box that makes its value, and the label of that.
        self._made_by: dict[Any, tuple[str, str]] = {}
        self._weights: dict[Any, None] = {}
        inner = _inner_bindings(function)
        returned = function.body.body if isinstance(function.body, relax.SeqExpr) else function.body
        result = f"relax:{name}/return"
        self._block_of = _blocks(function)
        # The number of its block, and whether that is a data-flow block, for a binding's box.
        self._blocks_of_boxes: dict[str, tuple[int, bool]] = {}
        # What has no box of its own, by the box that it is in; for the last one, what is returned.
        self._inside: dict[str, list[str]] = {}
        returned_as: list[str] = []
        for parameter in self._inputs(function, returned):
            self._add_parameter(parameter)
        for bound in bound_in(name, function):
            variable, value = bound.binding.var, getattr(bound.binding, "value", None)
            if bound.binding in inner:
                self._inside.setdefault(self._boxes[-1].id, []).append(bound.id)
                continue
            if isinstance(value, relax.Var) and value in self._made_by:
                self._made_by[variable] = self._made_by[value]
                if variable.same_as(returned):
                    result = bound.id
                    continue
                if _is_output(variable, returned):
                    returned_as.append(bound.id)
                    continue
            self._add_binding(bound)
        self._add_result(result, returned)
        self._inside.setdefault(result, []).extend(returned_as)

    def boxes(self, origins: Matches | None) -> list[BoxText]:
        """Return all boxes with what is inside of them: see `relax_graph` for `origins`."""
        whole = [
            replace(box, members=(*self._inside.get(box.id, ()), *box.members))
            for box in self._boxes
        ]
        return whole if origins is None else _as_lowered(whole, origins)

    def record(
        self,
        metrics: TextMetrics,
        check: Callable[[], None],
        paths: Mapping[str, str],
        kinds: Mapping[str, str],
        opening: Opening,
        origins: Matches | None,
    ) -> GraphRecord:
        boxes = self.boxes(origins)
        modules = Modules([paths.get(box.id, "") for box in boxes], kinds, opening, "bindings")
        return graph_record(boxes, self.flows, metrics, check, self._blocks(), modules)

    def _blocks(self) -> Blocks | None:
        """Return the frames of data-flow blocks, where there is something outside of one."""
        blocks = {of for box in self._boxes if (of := self._blocks_of_boxes.get(box.id))}
        if len(blocks) < 2:
            return None
        # An input stands above the first block that reads it, in a band between the blocks'.
        last = 2 * max(number for number, _ in blocks) + 2
        band = {box: 2 * number + 1 for box, (number, _) in self._blocks_of_boxes.items()}
        for flow in reversed(self.flows):
            if flow.source not in self._blocks_of_boxes:
                before = band.get(flow.target, last) // 2 * 2
                band[flow.source] = min(band.get(flow.source, last), before)
        kinds = {2 * number + 1: dataflow for number, dataflow in sorted(blocks)}
        framed = [each for each, dataflow in kinds.items() if dataflow]
        unread = {box.id for box in self._boxes if box.kind == "input"} - band.keys()
        return Blocks(
            bands=[band.get(box.id, 0 if box.id in unread else last) for box in self._boxes],
            titles={each: f"dataflow {index + 1}" for index, each in enumerate(framed)},
        )

    def _inputs(self, function: Any, returned: Any) -> list[Any]:
        """Return the parameters that have a box; note the weights, which have none.

        What comes after the inputs that the function counts are weights, but for those that are
        returned as they are.
        """
        counted = function.attrs.get("num_input") if function.attrs is not None else None
        if counted is None:
            return list(function.params)
        kept = set(_used_in(returned)[0])
        weights = [each for each in function.params[int(counted) :] if each not in kept]
        self._weights = dict.fromkeys(weights)
        return [each for each in function.params if each not in self._weights]

    def _add_parameter(self, parameter: Any) -> None:
        entity = f"relax:{self._name}/{parameter.name}"
        written = type_label(parameter.ty)
        self._boxes.append(BoxText(entity, parameter.name, written or "parameter", "input"))
        self._made_by[parameter] = (entity, written)

    def _add_binding(self, bound: Bound) -> None:
        variable = bound.binding.var
        value = getattr(bound.binding, "value", None)
        used, constants = _used_in(value)
        sources = [each for each in used if each in self._made_by]
        weights = [each for each in used if each in self._weights]
        folded = bool(constants or weights)
        group = self._group_of(value)
        self._boxes.append(
            BoxText(
                id=bound.id,
                title=bound.name,
                subtitle=self._subtitle(bound.binding, value, weights, constants),
                kind="call" if sources or not folded else "constant",
                strategy=self._common(group) if group else self._strategy(value),
                members=(
                    *(each.id for each in group),
                    *(f"relax:{self._name}/{each.name}" for each in weights),
                ),
            )
        )
        self._blocks_of_boxes[bound.id] = self._block_of[bound.binding]
        self._add_flows(sources, bound.id)
        before = {_dtype(each.ty) for each in sources}
        dtype = _dtype(variable.ty)
        self._made_by[variable] = (bound.id, type_label(variable.ty, dtype not in before))

    def _add_result(self, entity: str, returned: Any) -> None:
        used, _ = _used_in(returned)
        written = type_label(returned.ty)
        name = returned.name if isinstance(returned, relax.Var) else ""
        subtitle = " · ".join(part for part in (name, written) if part)
        self._boxes.append(BoxText(entity, "return", subtitle, "output"))
        self._add_flows([each for each in used if each in self._made_by], entity)

    def _add_flows(self, sources: list[Any], target: str) -> None:
        for variable in sources:
            source, label = self._made_by[variable]
            self.flows.append(Flow(source, target, label))

    def _group_of(self, value: Any) -> tuple[Bound, ...]:
        """Return the bindings of the group that is called, if it is one that ``FuseOps`` made."""
        callee = callee_of(value)
        if not isinstance(callee, ir.GlobalVar):
            return ()
        function = self._module.functions.get(callee)
        if not isinstance(function, relax.Function) or function.attrs is None:
            return ()
        if not function.attrs.get("Primitive"):
            return ()
        return bound_in(str(callee.name_hint), function)

    def _common(self, group: tuple[Bound, ...]) -> str:
        """Return the strategy of a group's bindings, if all have the same one."""
        strategies = {self._strategy(getattr(each.binding, "value", None)) for each in group}
        return strategies.pop() if len(strategies) == 1 else ""

    def _strategy(self, value: Any) -> str:
        callee = callee_of(value)
        if callee is not None:
            return _STRATEGIES[entity_of(callee, self._module).partition(":")[0]]
        return "high-level" if isinstance(value, relax.Call) else ""

    def _subtitle(self, binding: Any, value: Any, weights: list[Any], constants: list[Any]) -> str:
        text = _call_text(binding, value)
        if isinstance(value, relax.If):
            return text
        named = [f"{each.name} {type_label(each.ty, with_dtype=False)}" for each in weights]
        written = [_constant_text(constant) for constant in constants]
        parts = (text, ", ".join(named), f"const {', '.join(written)}" if written else "")
        return " · ".join(part for part in parts if part)


def _as_lowered(boxes: Sequence[BoxText], origins: Matches) -> list[BoxText]:
    """Return boxes that stand for what became them, as the spans of texts do.

    Two calls of one group have each what became that call, and not what became the other one.
    """
    at_home = {each for box in boxes for each in origins.get(box.id, ())}
    result: list[BoxText] = []
    for box in boxes:
        own = origins.get(box.id, ())
        inside = [
            each
            for member in box.members
            for each in origins.get(member, ())
            if each not in at_home
        ]
        held = own if len(own) > 1 else ()
        members = tuple(dict.fromkeys((*held, *inside)))
        result.append(replace(box, members=members, origins=own))
    return result


def _constant_text(constant: Any) -> str:
    """Return the shape of a constant, or the value of a scalar."""
    shape = type_label(constant.ty, with_dtype=False)
    if shape:
        return shape
    number = constant.value.numpy()
    return f"{number.item():g}" if number.dtype.kind == "f" else str(number.item())


def type_label(value_type: Any, with_dtype: bool = True) -> str:
    """Return ``1×784 f32`` for the type of a tensor with a known rank; empty for other types."""
    shape = getattr(value_type, "shape", None)
    if not isinstance(value_type, relax.TensorType) or not isinstance(shape, relax.ShapeExpr):
        return ""
    extents = [_extent(extent) for extent in shape.values]
    return tensor_label(extents, _dtype(value_type) if with_dtype else "")


def _extent(extent: Any) -> str:
    if isinstance(extent, tirx.IntImm):
        return str(int(extent))
    return _INT_LITERAL.sub(r"\1", str(extent)).replace(" ", "")


def _dtype(value_type: Any) -> str:
    return str(value_type.dtype) if isinstance(value_type, relax.TensorType) else ""


def _call_text(binding: Any, value: Any) -> str:
    """Say what a binding's value is: ``call_tir dense``, ``R.nn.relu``, ``tup[0]``."""
    if isinstance(binding, relax.MatchCast):
        return "match_cast"
    if isinstance(value, relax.If):
        return f"if {getattr(value.cond, 'name', '…')}"
    if isinstance(value, relax.TupleGetItem):
        return f"{getattr(value.tuple_value, 'name', 'tuple')}[{value.index}]"
    if isinstance(value, relax.Call):
        callee = callee_of(value)
        called = getattr(callee, "name_hint", None) or getattr(callee, "global_symbol", "")
        if not isinstance(value.op, ir.Op):
            return f"call {called or getattr(value.op, 'name', '')}".rstrip()
        operator = str(value.op.name).removeprefix("relax.")
        return f"{operator} {called}" if called else f"R.{operator}"
    if isinstance(value, relax.Var):
        return f"= {value.name}"
    return type(value).__name__.lower()


def _used_in(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the variables and the constants in an expression, each once, in order."""
    variables: dict[Any, None] = {}
    constants: dict[Any, None] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, relax.Var):
            variables[expression] = None
        elif isinstance(expression, ir.GenericConst) and isinstance(
            expression.ty, relax.TensorType
        ):
            # Dtypes and texts, as in the calls that allocate memory, are constants as well.
            constants[expression] = None

    if value is not None:
        relax.analysis.post_order_visit(value, visit)
    return list(variables), list(constants)


def _blocks(function: Any) -> dict[Any, tuple[int, bool]]:
    """Return, for each binding, the number of its block, and whether that is a data-flow block."""
    return {
        binding: (number, isinstance(block, relax.DataflowBlock))
        for number, block in enumerate(getattr(function.body, "blocks", ()))
        for binding in block.bindings
    }


def _inner_bindings(function: Any) -> set[Any]:
    """Return the bindings inside branches and inner functions, which have no box of their own."""
    outer = {
        binding for block in getattr(function.body, "blocks", ()) for binding in block.bindings
    }
    return {bound.binding for bound in bound_in("", function)} - outer


def _is_output(variable: Any, returned: Any) -> bool:
    return any(field.same_as(variable) for field in getattr(returned, "fields", ()))
