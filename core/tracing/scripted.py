"""Models that ``torch.jit`` has compiled: converted to an exported program, or one node."""

from __future__ import annotations

import logging
import re

import torch
from torch import fx

from lowerscope.core.model.problems import is_interrupt
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _
from lowerscope.core.sources.pytree import CallSpec, forward_signature


def converted(
    model: torch.jit.ScriptModule, inputs: tuple[torch.Tensor, ...], calling: CallSpec
) -> torch.export.ExportedProgram | str:
    """Return a compiled model as an exported program, or the reason why it cannot be one."""
    # Imported here since few models need it.
    from torch._export.converter import TS2EPConverter

    args, kwargs = calling.arguments([each.clone() for each in inputs])
    bound = forward_signature(model).bind(*args, **kwargs)
    bound.apply_defaults()
    # It warns of sizes of 1, as dimensions are named by whoever opens the model.
    log = logging.getLogger("torch._export.non_strict_utils")
    disabled, log.disabled = log.disabled, True
    try:
        with torch.no_grad():
            return TS2EPConverter(model, bound.args).convert()
    except BaseException as error:
        if is_interrupt(error):
            raise
        operator = _OPERATOR.search(str(error))
        if operator is None:
            return _("torch.export cannot convert it")
        return _("torch.export cannot convert its {operator}", operator=operator[1])
    finally:
        log.disabled = disabled


_OPERATOR = re.compile(r"failed for node ([\w:]+)")


def as_one_node(
    model: torch.jit.ScriptModule, calling: CallSpec, reason: str
) -> tuple[fx.GraphModule, Note]:
    """Return a graph that calls a compiled model, and a note on the reason."""
    graph = fx.Graph()
    args, kwargs = calling.arguments([graph.placeholder(name) for name in calling.names])
    graph.output(graph.call_module("scripted", args, kwargs))
    text = _("the module of torch.jit is one node: {reason}", reason=reason)
    return fx.GraphModule({"scripted": model}, graph), Note(text=text)
