"""The export tracer: ``torch.export``, brought into the form that the fx tracer makes."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import fx

from lowerscope.core.records import SourceLine
from lowerscope.core.tracing.failures import cannot_export
from lowerscope.core.tracing.node_info import NodeInfo, describe, is_static
from lowerscope.core.tracing.running_once import run_eagerly
from lowerscope.core.tracing.source_lines import line_of_stack
from lowerscope.core.tracing.symbolic import check_count


def export(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> torch.export.ExportedProgram:
    """Export `model` with the shapes of `inputs`.

    Raises
    ------
    LowerscopeError
        If the number of inputs is wrong, the model fails on them, or it cannot be exported.
    """
    check_count(model, len(inputs))
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # torch.export warns of its own inner workings, attributed to the standard library.
            warnings.simplefilter("ignore")
            return torch.export.export(model, tuple(value.clone() for value in inputs))
    except Exception as error:
        run_eagerly(model, inputs)
        raise cannot_export(error) from error


def to_graph_module(program: torch.export.ExportedProgram) -> fx.GraphModule:
    """Decompose `program` to core ATen, with parameters as ``get_attr`` nodes."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph_module = program.run_decompositions().module(check_guards=False)
    assert isinstance(graph_module, fx.GraphModule)
    for node in list(graph_module.graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph_module.graph.erase_node(node)
    return graph_module


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
    """Return whether every node knows its value and none of them has a symbolic extent."""
    return all(
        "val" in node.meta and is_static(node.meta["val"])
        for node in graph_module.graph.nodes
        if node.op != "output"
    )


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
