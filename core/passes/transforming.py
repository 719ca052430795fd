"""The transform stage: a recipe's steps, applied to a lowered module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import tvm

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.passes.bindings import match_bindings
from lowerscope.core.passes.catalogue import CATALOGUE, Values
from lowerscope.core.recipe import Step
from lowerscope.core.relax_bindings import binding_ids


@dataclass(frozen=True)
class TransformedModel:
    """A module after a recipe's steps.

    Attributes
    ----------
    module
        The module after the last step.
    bindings
        From ids of bindings before the first step to ids of those that they became.
    """

    module: tvm.IRModule
    bindings: Mapping[str, tuple[str, ...]]


def transform(
    module: tvm.IRModule,
    steps: Sequence[Step],
    check: Callable[[], None] = lambda: None,
    values: Values = MappingProxyType({}),
) -> TransformedModel:
    """Apply the steps that are switched on, in order.

    Parameters
    ----------
    check
        Called before each step; may raise to cancel.
    values
        Tensors of the parameters that are arguments of ``main``, by name.

    Raises
    ------
    LowerscopeError
        If a step is not in the catalogue, or a pass fails.
    """
    became: dict[str, tuple[str, ...]] = {bound.id: (bound.id,) for bound in binding_ids(module)}
    for number, step in enumerate(steps, start=1):
        if not step.on:
            continue
        check()
        after = _apply(module, step, number, values)
        matches = match_bindings(module, after)
        became = {
            entity: tuple(new for old in olds for new in matches.get(old, ()))
            for entity, olds in became.items()
        }
        module = after
    return TransformedModel(module=module, bindings=became)


def _apply(module: tvm.IRModule, step: Step, number: int, values: Values) -> tvm.IRModule:
    where = f"step {number} ({step.name})"
    if step.name not in CATALOGUE:
        raise LowerscopeError(
            f"there is no pass {step.name}",
            where=where,
            todo=f"Passes are: {', '.join(sorted(CATALOGUE))}",
        )
    try:
        with tvm.transform.PassContext(opt_level=3):
            return CATALOGUE[step.name](values)(module)
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"the pass failed: {last_line(error)}",
            where=where,
            todo="Switch the step off, or choose another lowering",
            details=str(error),
        ) from error
