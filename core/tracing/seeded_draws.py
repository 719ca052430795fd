"""Random numbers of generators that a model makes and seeds in each call: the same in each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree


class SeededDraw(nn.Module):
    """A call of a random operator of torch from a state of its generator.

    It returns what the operator does, and the state after it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, state: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[Any, torch.Tensor]:
        generator = torch.Generator()
        generator.set_state(state.clone())
        value = self.function(*args, generator=generator, **kwargs)
        return value, generator.get_state()


def held_generators(model: nn.Module) -> set[int]:
    """Return the identities of the generators that a model keeps from one call to the next."""
    known: list[Any] = [vars(each) for each in model.modules()]
    for kind in {type(each) for each in model.modules()}:
        known.append(getattr(kind.forward, "__globals__", {}))
    leaves = (leaf for each in known for leaf in pytree.tree_leaves(list(each.values())))
    return {id(each) for each in leaves if isinstance(each, torch.Generator)}


def with_seeded_draws(graph_module: fx.GraphModule, held: set[int]) -> fx.GraphModule:
    """Return a graph in which what is drawn from generators made in a call is so in each call.

    `held`: the identities of the generators that the model keeps.
    """
    graph = graph_module.graph
    for source in graph.find_nodes(op="get_attr"):
        generator = operator.attrgetter(str(source.target))(graph_module)
        if not isinstance(generator, torch.Generator) or id(generator) in held:
            continue
        draws = [each for each in graph.nodes if each in source.users]
        if any(each.kwargs.get("generator") is not source for each in draws):
            continue
        name = str(source.target).replace(".", "_")
        own = torch.Generator()
        own.set_state(generator.get_state())
        state: fx.Node | None = None
        for number, draw in enumerate(draws):
            title = f"{name}_draw_{number}"
            kwargs = {key: each for key, each in draw.kwargs.items() if key != "generator"}
            with graph.inserting_before(draw):
                if state is None and draw.all_input_nodes == [source]:
                    # It reads nothing of the inputs, and so is a constant.
                    drawn = draw.target(*draw.args, generator=own, **kwargs)
                    value = _constant(graph_module, title, drawn)
                else:
                    if state is None:
                        state = _constant(graph_module, f"{name}_state", own.get_state())
                    graph_module.add_submodule(title, SeededDraw(draw.target))
                    call = graph.call_module(title, (state, *draw.args), kwargs)
                    value = graph.call_function(operator.getitem, (call, 0))
                    following = graph.call_function(operator.getitem, (call, 1))
                    call.meta = {**draw.meta, "val": (draw.meta.get("val"), state.meta["val"])}
                    value.meta = dict(draw.meta)
                    following.meta = {**draw.meta, "val": state.meta["val"]}
                    state = following
            draw.replace_all_uses_with(value)
            graph.erase_node(draw)
        graph.erase_node(source)
    graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def _constant(graph_module: fx.GraphModule, name: str, value: torch.Tensor) -> fx.Node:
    graph_module.register_buffer(name, value, persistent=False)
    node = graph_module.graph.get_attr(name)
    node.meta["val"] = value
    return node
