"""What is selected, and what belongs to it: one selection that all views share."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from lowerscope.core.records import FunctionRecord, Snapshot


@dataclass(frozen=True)
class Selection:
    """What is selected, and what belongs to it.

    Attributes
    ----------
    chosen
        Ids that the user pointed at, in order.
    linked
        Ids that are linked to one of these, itself included.
    """

    chosen: tuple[str, ...] = ()
    linked: frozenset[str] = frozenset()

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the linked ids of one kind, such as ``"fx"``, sorted."""
        return tuple(sorted(entity for entity in self.linked if entity.startswith(kind + ":")))


class Links:
    """The ids of a snapshot, and which of them belong together.

    At a step, there are other functions: they belong to what became their calls, whatever has
    their names after all steps.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._at_step: dict[str, FunctionRecord] = {}
        self._entities = _entities(snapshot) if snapshot is not None else frozenset()
        self._links: dict[str, set[str]] = {}
        # Several panes ask what is linked to the module that is selected.
        self._last: tuple[str, frozenset[str]] = ("", frozenset())
        for first, second in snapshot.links if snapshot is not None else ():
            self._links.setdefault(first, set()).add(second)
            self._links.setdefault(second, set()).add(first)
        self._modules = [each for each in self._links if each.startswith("module:")]

    def at_step(self, functions: Sequence[FunctionRecord]) -> Links:
        """Return the same with the functions at a step; with none, as it is without steps."""
        links = copy.copy(self)
        links._at_step = {each.id: each for each in functions}
        return links

    def function_at_step(self, entity: str) -> FunctionRecord | None:
        """Return the function with an id at the step."""
        return self._at_step.get(entity)

    def of(self, entity: str) -> frozenset[str]:
        """Return the ids that are linked to one.

        To a module, those below it are linked as well; to a block or a loop, its function and
        what is linked to that.
        """
        function = _function_of(entity)
        if function:
            return frozenset({function, *self.of(function)})
        if entity in self._at_step:
            calls = self._at_step[entity].calls
            around = {other for call in calls for other in self._links.get(call, ())}
            called = {other for other in around if other.startswith(("tir:", "ext:"))}
            return frozenset(calls) | around - called
        linked = set(self._links.get(entity, ()))
        if entity.startswith("module:"):
            if self._last[0] != entity:
                self._last = (entity, self._of_module(entity))
            return self._last[1]
        return frozenset(linked)

    def _of_module(self, entity: str) -> frozenset[str]:
        below = entity if entity == "module:" else f"{entity}."
        linked = set(self._links.get(entity, ()))
        for module in self._modules:
            if module.startswith(below):
                linked |= self._links[module]
        return frozenset(linked)

    def select(self, chosen: tuple[str, ...]) -> Selection:
        """Return the selection of those of `chosen` that are there."""
        kept = tuple(each for each in chosen if self._has(each))
        linked = set(kept)
        for entity in kept:
            linked |= self.of(entity)
        return Selection(kept, frozenset(linked))

    def select_again(self, chosen: tuple[str, ...], before: Links) -> Selection:
        """Return the selection of what is there of `chosen`, and of the calls of lost functions.

        Parameters
        ----------
        before
            Of the step at which it was chosen.
        """
        kept: dict[str, None] = {}
        for each in chosen:
            function = before._at_step.get(_function_of(each) or each)
            lost = function is not None and not self._has(each)
            kept.update(dict.fromkeys(function.calls if function and lost else (each,)))
        return self.select(tuple(kept))

    def _has(self, entity: str) -> bool:
        name = _function_of(entity) or entity
        return name in self._entities or name in self._at_step


def _function_of(entity: str) -> str:
    """Return the function that a block or a loop is in: ``tir:dense`` for ``tir:dense/T_add``."""
    function, slash, _ = entity.partition("/")
    return function if slash and entity.startswith("tir:") else ""


def _entities(snapshot: Snapshot) -> frozenset[str]:
    ids = {span.entity for span in snapshot.relax.spans}
    for function in snapshot.functions:
        if function.kind == "relax":
            parts = (*function.parameters, "return")
            ids.update(f"{function.id}/{part}" for part in parts)
    ids.update(node.id for node in snapshot.fx)
    ids.update(part.id for node in snapshot.fx for part in node.parts)
    ids.update(node.line.id for node in snapshot.fx if node.line is not None)
    ids.update(function.id for function in snapshot.functions)
    ids.update(each.id for each in snapshot.library)
    ids.update(each.id for each in snapshot.model.parameters)
    ids.update(each.id for each in snapshot.constants)
    ids.update(each.id for each in snapshot.model.modules)
    return frozenset(ids)
