"""A Relax function as a graph, one box per binding; two functions as one graph of what differs."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace
from tvm import IRModule, ir, relax, tirx

from lowerscope.core.ir.relax import Bound, bound_in, callee_of, entity_of, relax_functions
from lowerscope.core.model.graph import Box, Edge, GraphRecord, Rows, TextMetrics
from lowerscope.core.model.line_difference import matching_lines
from lowerscope.core.model.module_steps import NodeDifference, Status
from lowerscope.core.passes.bindings import Matches, is_group
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import (
    FITTING,
    Blocks,
    Inside,
    Modules,
    Opening,
    spread,
    tensor_label,
)

# --- The difference of the data flow of two Relax functions, as one drawing ---

_CALL = re.compile(r"^(?:R\.(?:\w+\.)*|call_tir |call )(\w+?)\d*(?= |$)")

_GONE = "old:"
"""Prefix of the id of a box that the new side does not have."""


@dataclass(frozen=True)
class FunctionGraph:
    """The boxes of a function in the order of its bindings, and the flows between them.

    ``nodes`` are the names of the origins of boxes, by their ids, where both sides have the same
    origin: then boxes of different nodes are never matched.
    """

    boxes: Sequence[Box] = ()
    flows: Sequence[Edge] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)


def graph_difference(
    old: FunctionGraph,
    new: FunctionGraph,
    metrics: TextMetrics,
    check: Callable[[], None],
    *,
    whole: bool = True,
) -> tuple[GraphRecord, tuple[NodeDifference, ...]]:
    """Draw both graphs as one, and list their nodes.

    An unchanged or changed node is one box, with the id of the new side; a removed one has its old
    id after ``old:``. The strategy of a box is its status, empty where nothing changed; its origins
    are those of both sides.

    Args:
        whole: Whether to draw all nodes; otherwise those that changed, with their neighbours.
    """
    boxes: list[Box] = []
    nodes: list[NodeDifference] = []
    # In one order for both sides, so that all flows lead from earlier to later boxes.
    merged: dict[str, str] = {}
    for one, other in _side_by_side(old, new):
        box, node = _joined(one, other)
        boxes.append(box)
        nodes.append(node)
        if one is not None:
            merged[_GONE + one.id] = box.id
    gone = [
        replace(flow, source=merged[_GONE + flow.source], target=merged[_GONE + flow.target])
        for flow in old.flows
    ]
    flows = [*gone, *new.flows]
    if not whole:
        changed = {box.id for box in boxes if box.strategy}
        ends = [{flow.source, flow.target} for flow in flows]
        near = changed.union(*(each for each in ends if not changed.isdisjoint(each)))
        boxes = [box for box in boxes if box.id in near]
        nodes = [node for node in nodes if node.id in near]
        flows = [flow for flow in flows if {flow.source, flow.target} <= near]
    return graph_record(boxes, flows, metrics, check), tuple(nodes)


def _side_by_side(old: FunctionGraph, new: FunctionGraph) -> list[tuple[Box | None, Box | None]]:
    """Return the matched boxes of both sides, in the order of the program."""
    types_old, types_new = _types(old), _types(new)

    def whole(box: Box, _types: Mapping[str, str]) -> str:
        return f"{box.kind}|{box.title}|{box.description}"

    def content(box: Box, types: Mapping[str, str]) -> str:
        return f"{box.kind}|{box.description}|{types.get(box.id, '')}"

    def called(box: Box, types: Mapping[str, str]) -> str:
        # An operator, and the function that it was legalised into.
        plain = _CALL.sub(r"\1", box.description)
        return f"{plain}|{types.get(box.id, '')}"

    def name(box: Box, types: Mapping[str, str]) -> str:
        # A name means the same only where the value has the same type: passes number anew.
        return f"{box.title}|{types.get(box.id, '')}"

    def origin(box: Box, types: Mapping[str, str]) -> str:
        # For boxes without origins, this says nothing.
        known = box.id in old.nodes or box.id in new.nodes
        return types.get(box.id, "") if known else f"{box.id}|{types is types_old}"

    # The surest sign first; the others for what lies between.
    pairs: list[tuple[int, int]] = []
    for key in (whole, content, called, name, origin):
        pairs = _with_matches(
            pairs,
            [f"{old.nodes.get(box.id, '')}|{key(box, types_old)}" for box in old.boxes],
            [f"{new.nodes.get(box.id, '')}|{key(box, types_new)}" for box in new.boxes],
        )
    result: list[tuple[Box | None, Box | None]] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(old.boxes), len(new.boxes))]:
        result += [(box, None) for box in old.boxes[i:next_i]]
        result += [(None, box) for box in new.boxes[j:next_j]]
        if next_i < len(old.boxes) and next_j < len(new.boxes):
            result.append((old.boxes[next_i], new.boxes[next_j]))
        i, j = next_i + 1, next_j + 1
    return result


def _with_matches(
    pairs: list[tuple[int, int]], old: Sequence[str], new: Sequence[str]
) -> list[tuple[int, int]]:
    """Return `pairs`, and between them the places where two lists are equal."""
    result: list[tuple[int, int]] = []
    i = j = 0
    for next_i, next_j in [*pairs, (len(old), len(new))]:
        for first, second, length in matching_lines(old[i:next_i], new[j:next_j]):
            result += [(i + first + step, j + second + step) for step in range(length)]
        if next_i < len(old) and next_j < len(new):
            result.append((next_i, next_j))
        i, j = next_i + 1, next_j + 1
    return result


def _types(graph: FunctionGraph) -> dict[str, str]:
    """Return the type of the value of each box."""
    return {flow.source: flow.label for flow in graph.flows}


def _joined(old: Box | None, new: Box | None) -> tuple[Box, NodeDifference]:
    """Return the box of a matched pair, and the entry of the list."""
    if old is None or new is None:
        there = new or old
        assert there is not None
        status: Status = "added" if old is None else "removed"
        entity = there.id if old is None else _GONE + there.id
        name, operator, rows = there.title, there.operator, there.rows
    else:
        there, entity = new, new.id
        status = "same" if old.description == new.description else "changed"
        name, operator = _both(old.title, new.title), _both(old.operator, new.operator)
        rows = _both_rows(old.rows, new.rows)
    sides = [box for box in (new, old) if box is not None]
    box = replace(
        there,
        members=tuple(dict.fromkeys(each for box in sides for each in box.members)),
        origins=tuple(dict.fromkeys(each for box in sides for each in box.origins or ())),
        id=entity,
        title=name,
        operator=operator,
        rows=rows,
        strategy="" if status == "same" else status,
    )
    node = NodeDifference(
        id=entity,
        status=status,
        old="" if old is None else old.id,
        new="" if new is None else new.id,
        name=name,
        before="" if old is None else old.description,
        after="" if new is None else new.description,
    )
    return box, node


def _both(old: str, new: str) -> str:
    return new if old == new else f"{old} → {new}"


def _both_rows(old: Rows, new: Rows) -> Rows:
    """Return the rows that both have, then those that are gone, and those that are new."""
    common = tuple(row for row in new if row in old)
    gone = tuple((f"− {name}", value) for name, value in old if (name, value) not in new)
    added = tuple((f"+ {name}", value) for name, value in new if (name, value) not in old)
    return (*common, *gone, *added)


_CALL_TIR = ir.Op.get("relax.call_tir")


# --- The graph of one function ---


@dataclass(frozen=True)
class FusedGroup:
    """A group of bindings that ``FuseOps`` has put into a function.

    `origins`: the bindings of the lowered module that became those in it, by the ids of the latter;
        ``None`` where it is in the displayed module itself.
    """

    name: str
    module: IRModule
    function: Any
    origins: Matches | None = None


def groups_in(module: IRModule, origins: Matches) -> Mapping[str, FusedGroup]:
    """Return the groups of a module by name."""
    return {
        name: FusedGroup(name, module, function, origins)
        for name, function in relax_functions(module)
        if is_group(function)
    }


def group_called(
    value: Any, module: IRModule, fused: Mapping[str, FusedGroup] = MappingProxyType({})
) -> FusedGroup | None:
    """Return the group that a binding's value calls, if any."""
    callee = callee_of(value)
    if not isinstance(callee, ir.GlobalVar):
        return None
    name, function = str(callee.name_hint), module.functions.get(callee)
    if is_group(function):
        return FusedGroup(name, module, function)
    return fused.get(name) if isinstance(function, tirx.PrimFunc) else None


def given_to(group: FusedGroup, value: Any) -> Mapping[Any, Any] | None:
    """Return the arguments of a group's parameters at `value`, its call or what that has become.

    ``FuseTIR`` takes the tensors of tuples one by one, in order. ``None`` where the arguments are
    no longer those of the group, such as where it gets the memory to write into.
    """
    params = list(group.function.params)
    if group.origins is None:
        return dict(zip(params, value.args, strict=True))
    if value.op != _CALL_TIR or not isinstance(value.args[1], relax.Tuple):
        return None
    fields = list(value.args[1].fields)
    given: dict[Any, Any] = {}
    for param in params:
        if isinstance(param.ty, relax.ShapeType):
            continue
        count = len(param.ty.fields) if isinstance(param.ty, relax.TupleType) else 1
        taken, fields = fields[:count], fields[count:]
        if len(taken) < count:
            return None
        is_tuple = isinstance(param.ty, relax.TupleType)
        given[param] = relax.Tuple(taken) if is_tuple else taken[0]
    return None if fields else given


_INT_LITERAL = re.compile(r"T\.int(?:32|64)\((-?\d+)\)")


def constant_text(constant: Any) -> str:
    """Return the shape of a constant, or the value of a scalar."""
    shape = type_label(constant.ty, with_dtype=False)
    if shape:
        return shape
    number = constant.value.numpy()
    return f"{number.item():g}" if number.dtype.kind == "f" else str(number.item())


def type_label(value_type: Any, with_dtype: bool = True) -> str:
    """Return ``1×784 f32`` for the type of a tensor with a known rank; empty for other types."""
    return tensor_label(shape_of(value_type), dtype_of(value_type) if with_dtype else "")


def shape_of(value_type: Any) -> tuple[int | str, ...] | None:
    """Return the shape of a tensor with a known rank; ``None`` for other types."""
    shape = getattr(value_type, "shape", None)
    if not isinstance(value_type, relax.TensorType) or not isinstance(shape, relax.ShapeExpr):
        return None
    return tuple(_extent(extent) for extent in shape.values)


def _extent(extent: Any) -> int | str:
    if isinstance(extent, tirx.IntImm):
        return int(extent)
    return _INT_LITERAL.sub(r"\1", str(extent)).replace(" ", "")


def dtype_of(value_type: Any) -> str:
    return str(value_type.dtype) if isinstance(value_type, relax.TensorType) else ""


def call_text(binding: Any, value: Any) -> str:
    """Describe a binding's value: ``call_tir dense``, ``R.nn.relu``, ``tup[0]``."""
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


def used_in(value: Any) -> tuple[list[Any], list[Any]]:
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
    fused: Mapping[str, FusedGroup] = MappingProxyType({}),
) -> GraphRecord:
    """Lay out the data flow of a Relax function; the id of a box is that of its binding.

    The call of a group that ``FuseOps`` has made is the box of all that the group holds, of the
    kind ``fused``, which can be expanded; so is the call of the function that ``FuseTIR`` makes of
    a group. A binding that only names the result is the box of the result; otherwise that box is
    ``relax:FUNCTION/return``. A branch is one box, with all that happens in it. Where there is more
    than one block, or a binding outside of one, each dataflow block is a region.

    `module`: the module; one without Relax functions has an empty graph.
    `function`: name of the function; where there is none of this name, the first one is drawn.
    `paths`: the dotted path of the model's module that each binding comes from, by the binding's
        id.
    `origins`: the origins of each binding of a module at a step; ``None`` for the lowered module.
    """
    functions = dict(relax_functions(module))
    if not functions:
        return graph_record([], [], metrics, check)
    name = function if function in functions else next(iter(functions))
    graph = _FunctionGraph(module, name, functions[name], fused)
    return graph.record(metrics, check, paths, kinds, opening, origins)


def function_graph(module: IRModule, function: str, origins: Matches) -> FunctionGraph:
    """Return the boxes of a Relax function and their flows, without a layout.

    There are none where the module has no such function.
    """
    functions = dict(relax_functions(module))
    if function not in functions:
        return FunctionGraph()
    graph = _FunctionGraph(module, function, functions[function])
    return FunctionGraph(graph.boxes(origins), graph.flows)


class _FunctionGraph:
    """The boxes and flows of one function, gathered in the order of its bindings.

    A group is processed at its call: its parameters stand for the arguments there.
    """

    def __init__(
        self,
        module: IRModule,
        name: str,
        function: Any,
        fused: Mapping[str, FusedGroup] = MappingProxyType({}),
        caller: _FunctionGraph | None = None,
        given: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        self._module = module
        self._name = name
        self._fused = fused
        self._given = given
        self._boxes: list[Box] = []
        self.flows: list[Edge] = []
        # The value of each variable: the box that computes it, and its label.
        self._made_by: ChainMap[Any, tuple[str, str]] = ChainMap({})
        # The ids of parameters that have no box.
        self._weights: dict[Any, str] = {}
        inner = _inner_bindings(function)
        returned = function.body.body if isinstance(function.body, relax.SeqExpr) else function.body
        result = f"relax:{name}/return"
        self._block_of = _blocks(function)
        # The number of its block, and whether that is a dataflow block, for a binding's box.
        self._blocks_of_boxes: dict[str, tuple[int, bool]] = {}
        # Entities without a box of their own, by the box that they are in; for the last one,
        # results.
        self._inside: dict[str, list[str]] = {}
        # The called groups, with the arguments of their parameters, by box.
        self._calls: dict[str, tuple[FusedGroup, Mapping[Any, Any]]] = {}
        returned_as: list[str] = []
        if caller is None:
            for parameter in self._inputs(function, returned):
                self._add_parameter(parameter)
        else:
            self._made_by = caller._made_by.new_child()
            self._weights = caller._weights
        for bound in bound_in(name, function):
            variable, value = bound.binding.var, bound.value
            if bound.binding in inner:
                self._inside.setdefault(self._boxes[-1].id, []).append(bound.id)
                continue
            if isinstance(value, relax.Var) and value in self._made_by:
                self._made_by[variable] = self._made_by[value]
                if variable.same_as(returned):
                    result = bound.id
                    continue
                if any(field.same_as(variable) for field in getattr(returned, "fields", ())):
                    returned_as.append(bound.id)
                    continue
            self._add_binding(bound)
        self.gives = [
            self._made_by[each][0] for each in self._used_in(returned)[0] if each in self._made_by
        ]
        if caller is None:
            self._add_result(result, returned)
            self._inside.setdefault(result, []).extend(returned_as)

    def boxes(self, origins: Matches | None) -> list[Box]:
        """Return all boxes with their contents: see `relax_graph` for `origins`."""
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
        whole = [
            replace(box, kind="fused") if box.id in self._calls else box
            for box in self.boxes(origins)
        ]
        wanted = self._calls if opening.is_whole else opening.expanded or ()
        calls = {box.id: box for box in whole if box.id in self._calls and box.id in wanted}
        insides = {each: self._inside_of(box, origins) for each, box in calls.items()}
        left = spread(whole, self.flows, insides)
        # The contents of a call are where the call is.
        places = [around or box.id for box, around in zip(left.boxes, left.around, strict=True)]
        modules = Modules(
            paths=[paths.get(each, "") for each in places],
            kinds=kinds,
            opening=opening,
            unit="bindings",
            calls={index: calls[each] for index, each in enumerate(left.around) if each},
        )
        blocks = self._blocks(places)
        return graph_record(left.boxes, left.flows, metrics, check, blocks, modules)

    def _inside_of(self, call: Box, origins: Matches | None) -> Inside:
        """Return the contents of the call of a group, with the origins of that call alone."""
        group, given = self._calls[call.id]
        graph = _FunctionGraph(group.module, group.name, group.function, caller=self, given=given)
        names = {box.id: f"{call.id}/{box.id.rpartition('/')[2]}" for box in graph._boxes}
        became = origins if group.origins is None else group.origins
        own: Matches = {each: (each,) for each in names}
        if became is not None:
            here = set(call.origins or ())
            own = {
                each: tuple(origin for origin in became.get(each, ()) if origin in here)
                for each in names
            }
        boxes = [replace(box, id=names[box.id]) for box in graph.boxes(own)]
        if became is not None:
            # Another name of the value of the call has no box of its own.
            drawn = {each for box in boxes for each in (*box.entities, *box.members)}
            rest = tuple(each for each in call.origins or () if each not in drawn)
            boxes[-1] = replace(boxes[-1], members=(*boxes[-1].members, *rest))
        return Inside(
            boxes=boxes,
            flows=[
                Edge(names.get(flow.source, flow.source), names[flow.target], flow.label)
                for flow in graph.flows
            ],
            gives=[names.get(each, each) for each in graph.gives],
        )

    def _blocks(self, places: Sequence[str]) -> Blocks | None:
        """Return the frames of dataflow blocks, where there is something outside of one."""
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
            bands=[band.get(each, 0 if each in unread else last) for each in places],
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
        kept = set(used_in(returned)[0])
        weights = [each for each in function.params[int(counted) :] if each not in kept]
        self._weights = {each: f"relax:{self._name}/{each.name}" for each in weights}
        return [each for each in function.params if each not in self._weights]

    def _add_parameter(self, parameter: Any) -> None:
        entity = f"relax:{self._name}/{parameter.name}"
        written = type_label(parameter.ty)
        self._boxes.append(
            Box(
                entity,
                parameter.name,
                "input",
                rows=(("input" if written else "parameter", ""),),
                shape=shape_of(parameter.ty),
                dtype=dtype_of(parameter.ty),
            )
        )
        self._made_by[parameter] = (entity, written)

    def _add_binding(self, bound: Bound) -> None:
        variable = bound.binding.var
        value = bound.value
        used, constants = self._used_in(value)
        sources = [each for each in used if each in self._made_by]
        weights = [each for each in used if each in self._weights]
        folded = bool(constants or weights)
        group = group_called(value, self._module, self._fused)
        members: tuple[Bound, ...] = ()
        if group is not None:
            given = given_to(group, value)
            if given is not None:
                self._calls[bound.id] = (group, given)
            if group.module is self._module:
                members = bound_in(group.name, group.function)
        self._boxes.append(
            Box(
                id=bound.id,
                title=bound.name,
                rows=_weight_rows(value, weights, constants),
                kind="call" if sources or not folded else "constant",
                strategy=self._common(members) if members else self._strategy(value),
                members=(
                    *(each.id for each in members),
                    *(self._weights[each] for each in weights),
                ),
                operator=call_text(bound.binding, value),
                shape=shape_of(variable.ty),
                dtype=dtype_of(variable.ty),
            )
        )
        self._blocks_of_boxes[bound.id] = self._block_of[bound.binding]
        self._add_flows(sources, bound.id)
        before = {dtype_of(each.ty) for each in sources}
        dtype = dtype_of(variable.ty)
        self._made_by[variable] = (bound.id, type_label(variable.ty, dtype not in before))

    def _add_result(self, entity: str, returned: Any) -> None:
        used, _ = self._used_in(returned)
        written = type_label(returned.ty)
        name = returned.name if isinstance(returned, relax.Var) else ""
        text = " · ".join(part for part in (name, written) if part)
        self._boxes.append(
            Box(
                entity,
                "return",
                "output",
                rows=((text, ""),) if text else (),
                shape=shape_of(returned.ty),
                dtype=dtype_of(returned.ty),
            )
        )
        self._add_flows([each for each in used if each in self._made_by], entity)

    def _add_flows(self, sources: list[Any], target: str) -> None:
        for variable in sources:
            source, label = self._made_by[variable]
            self.flows.append(Edge(source, target, label))

    def _used_in(self, value: Any) -> tuple[list[Any], list[Any]]:
        """Return the variables and constants in an expression, with those that are given here."""
        used, constants = used_in(value)
        if self._given.keys().isdisjoint(used):
            return used, constants
        found = [
            used_in(self._given[each]) if each in self._given else ([each], []) for each in used
        ]
        variables = [each for some, _ in found for each in some]
        more = [each for _, some in found for each in some]
        return list(dict.fromkeys(variables)), list(dict.fromkeys([*constants, *more]))

    def _common(self, group: tuple[Bound, ...]) -> str:
        """Return the strategy of a group's bindings, if all have the same one."""
        strategies = {self._strategy(each.value) for each in group}
        return strategies.pop() if len(strategies) == 1 else ""

    def _strategy(self, value: Any) -> str:
        callee = callee_of(value)
        if callee is not None:
            return _STRATEGIES[entity_of(callee, self._module).partition(":")[0]]
        return "high-level" if isinstance(value, relax.Call) else ""


def _weight_rows(value: Any, weights: list[Any], constants: list[Any]) -> Rows:
    """Return the weights and constants of a binding; a branch has too many to list."""
    if isinstance(value, relax.If):
        return ()
    return (
        *((each.name, type_label(each.ty, with_dtype=False)) for each in weights),
        *(("const", constant_text(constant)) for constant in constants),
    )


def _as_lowered(boxes: Sequence[Box], origins: Matches) -> list[Box]:
    """Return boxes with the ids of their origins, as in the spans of texts.

    Two calls of one group each have the origins of that call alone.
    """
    at_home = {each for box in boxes for each in origins.get(box.id, ())}
    result: list[Box] = []
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


def _blocks(function: Any) -> dict[Any, tuple[int, bool]]:
    """Return, for each binding, the number of its block, and whether that is a dataflow block."""
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
