"""The export tracer: ``torch.export``, brought into the form that the fx tracer makes."""

from __future__ import annotations

import inspect
import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import torch
from torch import fx

from lowerscope.core.calling import Calling
from lowerscope.core.nesting import plain
from lowerscope.core.records import Note, SourceLine
from lowerscope.core.tracing.failures import cannot_export, where_of
from lowerscope.core.tracing.node_info import NodeInfo, describe, is_static
from lowerscope.core.tracing.running_once import writes_statistics
from lowerscope.core.tracing.source_lines import line_of_stack


def export(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: Calling,
    *,
    plain_output: bool = True,
) -> torch.export.ExportedProgram:
    """Export `model` with the shapes of `inputs`.

    Parameters
    ----------
    calling
        How the model is called with them; the program takes the tensors one by one.
    plain_output
        Whether what it returns is made of tuples, lists and dicts alone. Other types are brought
        into that form, since torch.export has to know the types that it meets.

    Raises
    ------
    LowerscopeError
        If it cannot be exported.
    """
    try:
        with (
            torch.no_grad(),
            _without_dumps(),
            _taking_tensors(model, calling, plain_output=plain_output),
        ):
            return torch.export.export(model, tuple(value.clone() for value in inputs))
    except (Exception, SystemExit) as error:
        raise cannot_export(error) from error


@contextmanager
def _without_dumps() -> Iterator[None]:
    """Keep back what torch writes to stderr of its own when it fails: the graph so far."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    disabled, log.disabled = log.disabled, True
    written = io.StringIO()
    try:
        with redirect_stderr(written):
            yield
        print(written.getvalue(), end="", file=sys.stderr)
    finally:
        log.disabled = disabled


@contextmanager
def _taking_tensors(
    model: torch.nn.Module, calling: Calling, *, plain_output: bool
) -> Iterator[None]:
    """Let `model` take its tensors one by one, and return a plain nest.

    Its ``forward`` is replaced on the instance, and not by a module around it, which would change
    the paths of modules and parameters.
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
    """Return the graph of `program` as it was traced, with parameters as ``get_attr`` nodes.

    Its operators are those that the model calls, in-place ones and views among them.
    """
    return _module_of(program)


def functional_graph(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """Return the graph of `program` without in-place operators, its operators whole otherwise."""
    with torch.no_grad():
        return _module_of(program.run_decompositions({}))


def _module_of(program: torch.export.ExportedProgram) -> fx.GraphModule:
    graph_module = program.module(check_guards=False)
    assert isinstance(graph_module, fx.GraphModule)
    return graph_module


def drop_what_is_not_read(graph_module: fx.GraphModule) -> tuple[Note, ...]:
    """Erase parameters that nothing reads, and what is written into the model's state at the end.

    Returns
    -------
    notes
        One for each buffer that the model changes and that a lowered module keeps.
    """
    notes: list[Note] = []
    for node in reversed(list(graph_module.graph.nodes)):
        if node.users:
            continue
        if node.op == "placeholder" and not isinstance(node.meta.get("val"), torch.Tensor):
            # A number or None among the inputs of an exported program, which is fixed in it.
            graph_module.graph.erase_node(node)
        elif node.op == "get_attr":
            graph_module.graph.erase_node(node)
        elif node.target is torch.ops.aten.copy_.default and node.args[0].op == "get_attr":
            text = f"the model changes its buffer {node.args[0].target}, the lowered one does not"
            where = where_of(line_of_stack(node.args[1].meta.get("stack_trace")))
            notes.append(Note(text=text, where=where))
            graph_module.graph.erase_node(node)
        elif node.target is torch.ops.aten.copy_.default:
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
    """Return whether nodes know their values: none has a symbolic extent, or changes another."""
    if any(changes_in_place(node) for node in graph_module.graph.nodes):
        return False
    return all(
        "val" in node.meta and is_static(node.meta["val"])
        for node in graph_module.graph.nodes
        if node.op != "output"
    )


def changes_in_place(node: fx.Node) -> bool:
    """Return whether `node` calls an operator that writes into its arguments."""
    target = node.target
    mutable = isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
    return mutable or writes_statistics(node)


def described_values(graph_module: fx.GraphModule) -> dict[str, NodeInfo]:
    """Return what each node's value is, by node name, as ``torch.export`` wrote it down."""
    values: dict[str, NodeInfo] = {}
    for node in graph_module.graph.nodes:
        if node.op == "output":
            values[node.name] = describe(fx.node.map_arg(node.args[0], _value_of))
        else:
            values[node.name] = describe(node.meta["val"])
    return values


def _value_of(node: fx.Node) -> Any:
    return node.meta["val"]
