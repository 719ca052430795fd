"""The export tracer: ``torch.export``, converted to the form of the fx tracer."""

from __future__ import annotations

import ast
import inspect
import io
import operator
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

import torch
from torch import fx

from lowerscope.core.model.dimensions import parts_of
from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import transformers_as_in_a_run, without_logs
from lowerscope.core.sources.pytree import CallSpec, plain
from lowerscope.core.tracing.example_run import (
    NodeInfo,
    describe,
    is_static,
    may_fail,
    writes_statistics,
)
from lowerscope.core.tracing.seeded_draws import held_generators, with_seeded_draws
from lowerscope.core.tracing.trace_errors import (
    NamedInputs,
    cannot_export,
    cannot_replace,
    fixed_dimension,
    holds,
    line_of_stack,
    line_of_traceback,
    where_of,
)


def export(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    *,
    plain_output: bool = True,
    named: NamedInputs | None = None,
    dispatched: bool = False,
) -> torch.export.ExportedProgram:
    """Export `model` with the shapes of `inputs`.

    `calling`: the call of the model with them; the program takes the tensors one by one.
    `plain_output`: whether the output consists of tuples, lists and dicts only. Other types are
        converted to these, since torch.export has to know the types.
    `named`: the dimensions that are to take any size of a range; ``None`` for none.
    `dispatched`: whether the graph has the operators that transforms of functions (``torch.func``)
        and gradients come to. Without, they are tried only if the transforms cannot be followed.

    Raises `LowerscopeError` if it cannot be exported.
    """

    def exported(shapes: Any, dispatched: bool) -> torch.export.ExportedProgram:
        if not dispatched:
            program = torch.export.export(model, values, dynamic_shapes=shapes)
        else:
            from torch.export._trace import _export  # its import takes seconds

            program = _export(
                model, values, dynamic_shapes=shapes, strict=False, pre_dispatch=False
            )
        program.graph_module.meta[_HELD] = held_generators(model)
        return program

    values = tuple(value.clone() for value in inputs)
    try:
        with (
            torch.no_grad(),
            transformers_as_in_a_run(),
            _without_dumps(),
            _taking_tensors(model, calling, plain_output=plain_output),
        ):
            shapes = None if named is None else _dynamic_shapes(model, values, named)
            try:
                return exported(shapes, dispatched)
            except Exception as error:  # of classes whose modules take seconds to import
                if not dispatched and _is_in_a_transform(error):
                    return exported(shapes, True)
                if named is None or not _guards_hold(str(error), named):
                    raise
                # torch cannot prove a condition that holds for all sizes.
                return torch.export.export(
                    model,
                    values,
                    dynamic_shapes=shapes,
                    prefer_deferred_runtime_asserts_over_guards=True,
                )
    except BaseException as error:
        if is_interrupt(error):
            raise
        demand = None if named is None else _demand(model, inputs, calling, named, error)
        raise demand or cannot_export(error, model) from error


def _is_in_a_transform(error: BaseException) -> bool:
    """Return whether an error was raised inside a transform of functions, such as a gradient."""
    last = error.__traceback__
    while last is not None:
        if last.tb_frame.f_globals.get("__name__") in _TRANSFORMS:
            return True
        last = last.tb_next
    return False


_TRANSFORMS = ("torch._functorch.eager_transforms", "torch._functorch.vmap")


def _demand(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    named: NamedInputs,
    error: BaseException,
) -> LowerscopeError | None:
    # Imported here since it takes seconds, and few models need it.
    from lowerscope.core.tracing.symbolic_sizes import find_demand

    found = find_demand(model, inputs, calling, named)
    demand = "" if found else _violated_guard(str(error))
    if not demand:
        return found
    return fixed_dimension(demand, named, line_of_traceback(error))


_GUARD = re.compile(
    r"Not all values of (\w+) = (\S+) in the specified range .*? "
    r"satisfy the generated guard (.*?)\.?$",
    re.MULTILINE,
)
"""Errors of torch.export for a condition that does not hold for each size in a range."""


def _guards_hold(message: str, named: NamedInputs) -> bool:
    """Return whether torch's conditions hold for all sizes of the ranges, as far as is tested."""
    # Imported here since it takes seconds, and few models need it.
    from lowerscope.core.sources.symbolic_extents import sizes_within

    reasons = _GUARD.findall(message)
    if len(reasons) != message.count("Not all values of") or not reasons:
        return False
    sources = {source: name for name, source, _other in reasons}
    for _name, _source, guard in reasons:
        for source, name in sources.items():
            guard = guard.replace(source, name)
        try:
            if not all(holds(guard, sizes) for sizes in sizes_within(named.ranges)):
                return False
        except (SyntaxError, NameError, TypeError):
            return False
    return True


def drop_checks_of_sizes(
    graph_module: fx.GraphModule, names: Mapping[Any, Any], named: NamedInputs
) -> None:
    """Erase the checks of conditions on named sizes, with what they alone read; those on data stay.

    Raises `LowerscopeError` if one does not hold for all sizes
    """
    from lowerscope.core.sources.symbolic_extents import always_holds, extent_text

    for node in reversed(list(graph_module.graph.nodes)):
        if node.op != "call_function" or node.users:
            continue
        if node.target is torch.ops.aten._assert_scalar.default:
            condition = node.args[0]
            if isinstance(condition, fx.Node):
                condition = condition.meta.get("val")
            if isinstance(condition, torch.SymBool):
                wanted = condition.node.expr.xreplace(names)
                if not {str(each) for each in wanted.free_symbols} <= named.ranges.keys():
                    continue
                if not always_holds(wanted, named.ranges):
                    raise fixed_dimension(extent_text(wanted), named, None)
            elif condition is not True:
                continue
        elif not isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool, int, bool)):
            continue
        graph_module.graph.erase_node(node)


def _violated_guard(message: str) -> str:
    """Return the first condition among torch.export's reasons, with the names of dimensions."""
    reasons = _GUARD.findall(message)
    if not reasons:
        return ""
    guard = str(reasons[0][2])
    for name, source, _other in reasons:
        guard = guard.replace(source, name)
    try:
        return ast.unparse(ast.parse(guard, mode="eval"))  # without needless parentheses
    except SyntaxError:
        return guard


def _dynamic_shapes(
    model: torch.nn.Module, values: tuple[torch.Tensor, ...], named: NamedInputs
) -> dict[str, Any]:
    """Return the dynamic axes of the arguments of ``forward``, by parameter."""
    dimensions = {
        name: torch.export.Dim(name, min=low, max=high)
        for name, (low, high) in named.ranges.items()
    }

    def extent(text: str) -> Any:
        name, more = parts_of(text)
        return dimensions[name] + more if more else dimensions[name]

    axes = [
        {axis: extent(each) for axis, each in enumerate(shape) if isinstance(each, str)}
        for shape in named.shapes
    ]
    # Bind the axes in the places of their tensors.
    return inspect.signature(model.forward).bind(*axes).arguments


@contextmanager
def _without_dumps() -> Iterator[None]:
    """Suppress what torch writes to stderr when it fails: partial graphs and tracebacks."""
    written = io.StringIO()
    with (
        without_logs("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor"),
        redirect_stderr(written),
    ):
        yield
    print(written.getvalue(), end="", file=sys.stderr)


@contextmanager
def _taking_tensors(
    model: torch.nn.Module, calling: CallSpec, *, plain_output: bool
) -> Iterator[None]:
    """Make `model` take its tensors one by one, and return a plain nest.

    Its ``forward`` is replaced on the instance; a wrapper module would change the paths of modules
    and parameters.
    """
    if calling.is_flat and plain_output:
        yield
        return
    own = model.forward
    before = vars(model).get("forward")

    def forward(*values: torch.Tensor) -> Any:
        args, kwargs = calling.arguments(values)
        return plain(own(*args, **kwargs))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in calling.names]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    model.forward = forward
    try:
        yield
    finally:
        del model.forward
        if before is not None:
            model.forward = before


def whole_graph(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """Return the graph of `program` as traced, with parameters as ``get_attr`` nodes.

    Its operators are those called by the model, including in-place operators and views.
    """
    return _module_of(program)


def _with_both_branches(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph with the branches of each ``torch.cond`` in it, and its results selected.

    A branch stays if it may not be computed unless it is chosen, or draws random numbers.
    """
    graph = graph_module.graph
    for node in graph.nodes:
        if node.target is not torch.ops.higher_order.cond:
            continue
        names = [str(each.target) for each in node.args[1:3]]
        modules = map(graph_module.get_submodule, names)
        both = [_with_both_branches(each) for each in modules if isinstance(each, fx.GraphModule)]
        branches = [each for each in both if all(map(_is_pure, each.graph.nodes))]
        if len(branches) < 2 or not _is_tensor(node.args[0]):
            continue
        with graph.inserting_before(node):
            results = [
                copied(graph, branch, name, node.args[3])
                for branch, name in zip(branches, names, strict=True)
            ]
            selected = [
                graph.call_function(torch.ops.aten.where.self, (node.args[0], *pair))
                for pair in zip(*results, strict=True)
            ]
        for each in selected:
            each.meta.update(stack_trace=node.meta.get("stack_trace"))
            each.meta["nn_module_stack"] = node.meta.get("nn_module_stack", {})
        for user in list(node.users):
            chosen = selected[user.args[1]]
            chosen.meta["val"] = user.meta.get("val")
            user.replace_all_uses_with(chosen)
            graph.erase_node(user)
        graph.erase_node(node)
    graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


MOST_OF_LOOP = 1000
"""Most nodes that the steps of a loop become."""


def _unrolled(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph with the steps of each ``scan`` and ``map`` in it, one after the other."""
    graph = graph_module.graph
    for node in graph.nodes:
        if node.target is torch.ops.higher_order.scan:
            body, carried, given, others = node.args
        elif node.target is torch.ops.higher_order.map_impl:
            carried, (body, given, others) = [], node.args
        else:
            continue
        name = str(body.target)
        step = graph_module.get_submodule(name)
        count = given[0].meta["val"].shape[0] if given else None
        if not isinstance(step, fx.GraphModule) or not isinstance(count, int):
            continue
        step = _unrolled(_with_both_branches(step))
        if count * len(step.graph.nodes) > MOST_OF_LOOP:
            continue
        made: list[list[fx.Node]] = []
        with graph.inserting_before(node):
            for index in range(count):
                rows = [_called(graph, torch.ops.aten.select.int, each, 0, index) for each in given]
                results = copied(graph, step, name, [*carried, *rows, *others])
                carried = results[: len(carried)]
                made.append(results[len(carried) :])
            stacked = [
                _called(graph, torch.ops.aten.stack.default, list(each))
                for each in zip(*made, strict=True)
            ]
        for each in (*carried, *stacked):
            each.meta.setdefault("stack_trace", node.meta.get("stack_trace"))
        for user in list(node.users):
            user.replace_all_uses_with([*carried, *stacked][user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)
    graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def _called(graph: fx.Graph, operator: Any, *args: Any) -> fx.Node:
    """Return a new call of an operator, with the value that it gives for those of `args`."""
    made = graph.call_function(operator, args)
    made.meta["val"] = operator(*fx.node.map_arg(args, lambda each: each.meta["val"]))
    return made


def _is_pure(node: fx.Node) -> bool:
    """Return whether a node of a branch can be computed although the other branch is chosen."""
    if node.op == "output":
        results: Any = node.args[0]
        return all(map(_is_tensor, results))
    if not node.op.startswith("call"):
        return True
    target = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    unsure = {torch.Tag.nondeterministic_seeded, torch.Tag.dynamic_output_shape}
    return unsure.isdisjoint(target.tags) and not may_fail(node, lambda each: each.meta["val"])


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def copied(
    graph: fx.Graph, branch: fx.GraphModule, name: str, operands: Sequence[fx.Node]
) -> list[fx.Node]:
    """Copy the nodes of a branch into the graph; return those of its results.

    Its modules and tensors are attributes of the module `name`.
    """
    known: dict[fx.Node, Any] = {}
    given = iter(operands)
    for node in branch.graph.nodes:
        if node.op == "placeholder":
            known[node] = next(given)
        elif node.op == "output":
            return [known[each] for each in node.args[0]]
        else:
            known[node] = graph.node_copy(node, known.__getitem__)
            if node.op in ("get_attr", "call_module"):
                known[node].target = f"{name}.{node.target}"
    raise AssertionError("a graph ends with its output")


def has_casts(graph_module: fx.GraphModule) -> bool:
    """Return whether a part of the graph is under ``torch.autocast``: a subgraph."""
    wrap = torch.ops.higher_order.wrap_with_autocast
    return any(node.target is wrap for node in graph_module.graph.nodes)


def has_levels(graph_module: fx.GraphModule) -> bool:
    """Return whether a part of the graph is under ``torch.vmap`` or another transform."""
    return any("functorch" in _module_name(node) for node in graph_module.graph.nodes)


def _module_name(node: fx.Node) -> str:
    return str(getattr(node.target, "__module__", ""))


def functional_graph(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """Return the graph of `program` without in-place operators, but not decomposed.

    Raises `LowerscopeError` (code ``"try-fx"``) if torch cannot make one.
    """
    try:
        with torch.no_grad(), _operators_listed_once():
            return _module_of(program.run_decompositions({}))
    except Exception as error:  # torch raises several types for what it cannot replace
        raise cannot_replace(error) from error


def decomposed_graph(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """Return the graph of `program` in core ATen operators, none of them in-place."""
    with torch.no_grad(), _operators_listed_once():
        return _module_of(program.run_decompositions())


@contextmanager
def _operators_listed_once() -> Iterator[None]:
    """Let torch list all its operators once for a program: it does for each namespace, in 70 ms."""
    from torch._export import utils

    list_all = utils._materialize_cpp_cia_ops
    list_all()
    utils._materialize_cpp_cia_ops = lambda: None
    try:
        yield
    finally:
        utils._materialize_cpp_cia_ops = list_all


def _module_of(program: torch.export.ExportedProgram) -> fx.GraphModule:
    graph_module = program.module(check_guards=False)
    assert isinstance(graph_module, fx.GraphModule)
    held = program.graph_module.meta.get(_HELD)
    if held is not None:
        graph_module = with_seeded_draws(graph_module, held)
    return _unrolled(_with_both_branches(graph_module))


_HELD = "held_generators"
"""Key of the generators that an exported model keeps, in the metadata of its graph."""


def drop_what_is_not_read(graph_module: fx.GraphModule, *, is_functional: bool) -> tuple[Note, ...]:
    """Erase unread parameters, and the writes into the model's state at the end.

    Returns a note for each buffer that the model changes and that a lowered module keeps unchanged.

    `is_functional`: whether no operator reads another one's in-place result: in a graph as traced,
        a copy without a reader may be read through its destination.
    """
    notes: list[Note] = []
    for node in reversed(list(graph_module.graph.nodes)):
        if is_functional and node.target is torch.ops.aten.copy_.default:
            # What the model returns of a changed input or buffer is its new value.
            node.replace_all_uses_with(node.args[1])
        if node.users:
            continue
        if node.op == "placeholder" and not isinstance(node.meta.get("val"), torch.Tensor):
            # A number or None among the inputs of an exported program, which is fixed in it.
            graph_module.graph.erase_node(node)
        elif node.op == "get_attr":
            graph_module.graph.erase_node(node)
        elif node.target is not torch.ops.aten.copy_.default or not is_functional:
            continue
        elif node.args[0].op == "get_attr":
            text = _(
                "the model changes its buffer {target}; the lowered one does not",
                target=node.args[0].target,
            )
            where = where_of(line_of_stack(node.args[1].meta.get("stack_trace")))
            notes.append(Note(text=text, where=where))
            graph_module.graph.erase_node(node)
        else:
            graph_module.graph.erase_node(node)
    return tuple(reversed(notes))


def source_lines(graph_module: fx.GraphModule) -> dict[str, SourceLine]:
    """Return the user's line of each node that has one, by node name."""
    lines = {
        node.name: line_of_stack(node.meta.get("stack_trace")) for node in graph_module.graph.nodes
    }
    return {name: line for name, line in lines.items() if line is not None}


def module_paths(graph_module: fx.GraphModule) -> dict[str, str]:
    """Return the dotted path of the module that each node comes from, by node name."""
    paths: dict[str, str] = {}
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            paths[node.name] = str(node.target).rpartition(".")[0]
            continue
        stack = node.meta.get("nn_module_stack")
        paths[node.name] = next(reversed(stack.values()))[0] if stack else ""
    return paths


def is_described(graph_module: fx.GraphModule) -> bool:
    """Return whether node values are known: none has a symbolic extent, or changes another."""
    if any(changes_in_place(node) for node in graph_module.graph.nodes):
        return False
    return all(
        "val" in node.meta and is_static(node.meta["val"])
        for node in graph_module.graph.nodes
        if node.op != "output"
    )


def check_ranges(
    program: torch.export.ExportedProgram, names: Mapping[Any, Any], named: NamedInputs
) -> None:
    """Raise a `LowerscopeError` if a range is wider than that of an exported program."""
    for symbol, name in names.items():
        span = program.range_constraints.get(symbol)
        low, high = named.ranges[str(name)]
        if span is None or (max(low, 2) >= span.lower and high <= span.upper):
            continue
        raise fixed_dimension(f"{span.lower} <= {name} <= {span.upper}", named, None)


def changes_in_place(node: fx.Node) -> bool:
    """Return whether `node` calls an operator that writes into its arguments."""
    target = node.target
    mutable = isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
    return mutable or writes_statistics(node)


def described_values(
    graph_module: fx.GraphModule, names: Mapping[Any, Any] | None = None
) -> dict[str, NodeInfo]:
    """Return the value of each node by name, as recorded by ``torch.export``."""
    values: dict[str, NodeInfo] = {}

    def written(extent: Any) -> str:
        from lowerscope.core.sources.symbolic_extents import named_text

        return named_text(extent, names or {})

    for node in graph_module.graph.nodes:
        if node.op == "output":
            values[node.name] = describe(
                fx.node.map_arg(node.args[0], lambda each: each.meta["val"]), written
            )
        elif "val" in node.meta:
            values[node.name] = describe(node.meta["val"], written)
    return values


def names_of_symbols(graph_module: fx.GraphModule, named: NamedInputs) -> dict[Any, Any]:
    """Return the names of an exported graph's symbols for dimensions of its inputs.

    Raises `LowerscopeError` if it has a number for a dimension that has a name, or a symbol for one
    that has none.
    """
    from lowerscope.core.sources.symbolic_extents import extent_text, symbol_of

    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    names: dict[Any, Any] = {}
    derived: list[tuple[fx.Node, str, Any]] = []
    for node, shape in zip(placeholders, named.shapes, strict=True):
        for axis, (extent, name) in enumerate(zip(node.meta["val"].shape, shape, strict=True)):
            if isinstance(extent, int) and isinstance(name, str):
                raise fixed_dimension(f"{name} == {extent}", named, None, node.name)
            if isinstance(extent, int):
                continue
            expression = extent.node.expr
            if isinstance(name, int):
                raise LowerscopeError(
                    _(
                        "axis {axis} of {name} has any size in this program, and {name2} is given",
                        axis=axis,
                        name=node.name,
                        name2=name,
                    ),
                    where=f"--input {node.name}",
                    todo=_("give a name to each axis that has any size, or to none"),
                )
            if parts_of(name)[1]:
                derived.append((node, name, expression))
                continue
            symbol = symbol_of(name)
            if names.setdefault(expression, symbol) != symbol or not expression.is_Symbol:
                raise fixed_dimension(
                    f"{name} == {extent_text(expression.xreplace(names))}", named, None, node.name
                )
    for node, text, expression in derived:
        name, more = parts_of(text)
        found = expression.xreplace(names)
        if found != symbol_of(name) + more:
            raise fixed_dimension(f"{text} == {extent_text(found)}", named, None, node.name)
    return names
