"""The selection shared by all views: chosen entities and those linked to them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from PySide6.QtCore import Qt

from lowerscope.core.model.schedule import name_before_packing
from lowerscope.core.model.snapshot import FunctionRecord, Snapshot

EXTENDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


@dataclass(frozen=True)
class Selection:
    """The chosen entities and those linked to them."""

    chosen: tuple[str, ...] = ()  # Ids that the user selected, in order.
    linked: frozenset[str] = frozenset()  # Ids linked to any of these, themselves included.

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the linked ids of one kind, such as ``"fx"``, sorted."""
        return tuple(sorted(entity for entity in self.linked if entity.startswith(kind + ":")))


class Pieces:
    """The blocks, loops and buffers of functions composed of several bindings.

    Args:
        functions: All functions, composed of several bindings or not.
    """

    def __init__(self, functions: Sequence[FunctionRecord]) -> None:
        composed = [each for each in functions if each.pieces or each.untied]
        self._functions = frozenset(each.id for each in composed)
        self._bindings: dict[str, tuple[str, ...]] = {}
        self._parts: dict[str, list[str]] = {}
        for function in composed:
            for piece in function.pieces:
                self._bindings.update(dict.fromkeys(piece.parts, piece.bindings))
                for binding in piece.bindings:
                    self._parts.setdefault(binding, []).extend(piece.parts)

    def has(self, function: str) -> bool:
        """Return whether a function is composed of several bindings."""
        return function in self._functions

    def bindings_of(self, part: str) -> tuple[str, ...] | None:
        """Return the bindings that a part belongs to; none if unknown.

        ``None`` if its function is not composed of several, so that it belongs to all its calls.
        """
        if _function_of(part) not in self._functions:
            return None
        return self._bindings.get(part, ())

    def parts_of(self, entities: Iterable[str]) -> Iterator[str]:
        """Yield the parts that belong to any of these bindings."""
        if self._parts:
            for entity in entities:
                yield from self._parts.get(entity, ())


class Links:
    """The ids of a snapshot, and the links between them.

    At a step, the module has other functions: they are linked to what became their calls, whatever
    has their names after all steps.
    """

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._at_step: dict[str, FunctionRecord] = {}
        self._called: dict[str, set[str]] = {}  # The functions of the step, by their calls.
        self._pieces = self._last_pieces = Pieces(() if snapshot is None else snapshot.functions)
        self._entities = _entities(snapshot) if snapshot is not None else frozenset()
        # Schedules are made for functions before packing, and their loops are selected as such.
        self._packed = {
            name_before_packing(each.id): each.id
            for each in (() if snapshot is None else snapshot.functions)
            if name_before_packing(each.id) not in self._entities
        }
        self._links: dict[str, set[str]] = {}
        # Cache of one entry: several panes query the links of the selected module.
        self._last: tuple[str, frozenset[str]] = ("", frozenset())
        self._nodes: dict[str, tuple[str, ...]] = {}
        for first, *others in snapshot.links if snapshot is not None else ():
            self._links.setdefault(first, set()).update(others)
            for other in others:
                self._links.setdefault(other, set()).add(first)
        self._modules = [each for each in self._links if each.startswith("module:")]

    def at_step(self, functions: Sequence[FunctionRecord]) -> Links:
        """Return the links with the functions at a step; with none, those of the final module."""
        links = copy.copy(self)
        links._at_step = {each.id: each for each in functions}
        links._called = {}
        for each in functions:
            for call in each.calls if each.kind != "relax" else ():
                links._called.setdefault(call, set()).add(each.id)
        links._nodes = {}
        links._last = ("", frozenset())
        links._pieces = Pieces(functions) if functions else links._last_pieces
        return links

    @property
    def functions_at_step(self) -> tuple[FunctionRecord, ...]:
        """The functions at the current step; empty without a step."""
        return tuple(self._at_step.values())

    def function_at_step(self, entity: str) -> FunctionRecord | None:
        """Return the function at the step that an id denotes or lies in."""
        return self._at_step.get(self._function_of(entity) or entity)

    def of(self, entity: str) -> frozenset[str]:
        """Return the ids linked to one.

        A module is linked to everything below it as well, and to what its nodes became; a block or
        a loop to its function and what that is linked to, or, in a function composed of several
        bindings, to its part of these.
        """
        function = self._function_of(entity)
        if function:
            bindings = self._pieces.bindings_of(entity)
            if bindings is None:
                return frozenset({function, *self.of(function)})
            around = {other for each in bindings for other in self._links.get(each, ())}
            return frozenset({function, *bindings} | _without_called(around))
        if entity in self._at_step:
            calls = self._at_step[entity].calls
            around = {other for call in calls for other in self._links.get(call, ())}
            return frozenset(calls) | _without_called(around)
        linked = set(self._links.get(entity, ()))
        if entity.startswith("module:"):
            if self._last[0] != entity:
                self._last = (entity, self._called_at_step(entity, self._of_module(entity)))
            return self._last[1]
        return self._called_at_step(entity, linked)

    def _called_at_step(self, entity: str, linked: Set[str]) -> frozenset[str]:
        """Return the links with the functions of the step in place of the final ones."""
        if not self._at_step:
            return frozenset(linked)
        kept = _without_called(linked)
        called = (self._called.get(each, ()) for each in (entity, *kept))
        return frozenset(kept.union(*called))

    def nodes_of(self, entity: str) -> tuple[str, ...]:
        """Return the FX nodes linked to an id, sorted; cached, since a function may have many."""
        found = self._nodes.get(entity)
        if found is None:
            linked = self.of(entity)
            found = tuple(sorted(each for each in linked if each.startswith("fx:")))
            self._nodes[entity] = found
        return found

    def _of_module(self, entity: str) -> frozenset[str]:
        below = entity if entity == "module:" else f"{entity}."
        linked = set(self._links.get(entity, ()))
        for module in self._modules:
            if module.startswith(below):
                linked |= self._links[module]
        for node in [each for each in linked if each.startswith("fx:")]:
            # What the node became, but no module around.
            linked.update(each for each in self._links[node] if not each.startswith("module:"))
        return frozenset(linked)

    def select(self, chosen: tuple[str, ...]) -> Selection:
        """Return the selection of those of `chosen` that exist."""
        kept = tuple(each for each in chosen if self._has(each))
        linked = set(kept)
        for entity in kept:
            linked |= self.of(entity)
        # If a part of a function was selected, it alone is marked in that function.
        pointed = {self._function_of(each) or each for each in kept}
        parts = list(self._pieces.parts_of(linked))
        linked.update(each for each in parts if self._function_of(each) not in pointed)
        return Selection(kept, frozenset(linked))

    def owner_of(self, entity: str) -> str:
        """Return the primary owner of an entity; empty if unknown.

        The owner of a block or a loop is its function or, in a function composed of several
        bindings, the first binding that it computes. The owner of a function at a step is the first
        of its calls.
        """
        function = self._function_of(entity)
        bindings = self._pieces.bindings_of(entity) if function else None
        if bindings is not None:
            return next(iter(bindings), "")
        name = function or entity
        if self._pieces.has(name):
            return ""
        if name in self._at_step:
            return next(iter(self._at_step[name].calls), "")
        return name

    def select_again(self, chosen: tuple[str, ...], before: Links) -> Selection:
        """Return the selection of what still exists of `chosen`, and of the calls of lost
        functions.

        Args:
            before: Links of the step at which it was chosen.
        """
        kept: dict[str, None] = {}
        for each in chosen:
            function = before.function_at_step(each)
            lost = function is not None and not self._has(each)
            kept.update(dict.fromkeys(function.calls if function and lost else (each,)))
        return self.select(tuple(kept))

    def _function_of(self, entity: str) -> str:
        """Return the function of a block or a loop, or what packing made of it."""
        function = _function_of(entity)
        return function if function in self._at_step else self._packed.get(function, function)

    def _has(self, entity: str) -> bool:
        name = self._function_of(entity) or entity
        return name in self._entities or name in self._at_step


def _without_called(linked: Set[str]) -> set[str]:
    """Return ids without those of functions that are called."""
    return {each for each in linked if not each.startswith(("tir:", "ext:"))}


def _function_of(entity: str) -> str:
    """Return the function of a block or a loop: ``tir:dense`` for ``tir:dense/T_add``."""
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
