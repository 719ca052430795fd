"""Origins of the blocks of a TensorIR function that was fused from several functions.

``FuseTIR`` concatenates the bodies of a group's functions in the order of the group's calls. Each
block is compared with the expected one: they are equal but for the names of buffers, and the
buffers are connected as the values of the group are. If later passes change such a function, a
block is identified by its content, or by its output buffer, which passes keep. Other blocks have no
owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import IRModule, ir, relax

from lowerscope.core.ir.relax import Bound, bound_in, called_name, relax_functions
from lowerscope.core.ir.tensorir import parts_of, prim_funcs_of
from lowerscope.core.model.texts import _
from lowerscope.core.passes.bindings import Matches, fused_groups

Owner = tuple[str, ...] | None
"""Ids of the bindings, before the first pass, that a block computes; ``None`` if unknown."""

_Given = Sequence[tuple[Any, Owner]]
"""Blocks with their owners."""


@dataclass(frozen=True)
class Composed:
    """The blocks of a TensorIR function that was fused from several.

    `owners`: of each block, in text order.
    `reason`: why some are unknown, or some bindings have no block; empty if all are known.
    """

    owners: tuple[Owner, ...]
    reason: str = ""


def blocks_after(
    before: IRModule,
    after: IRModule,
    matches: Matches,
    origins: Matches,
    known: Mapping[str, Composed],
    name: str,
) -> Mapping[str, Composed]:
    """Return the functions of `after` that were fused from several, by name.

    `matches`: the descendants in `after` of the bindings of `before`.
    `origins`: the bindings before the first pass that became those of `before`.
    """
    if before.same_as(after):
        return known
    groups = fused_groups(before, after)
    if not groups and not known:
        return known
    pairing = _Pass(before, after, matches, origins, known, groups, name)
    return dict(pairing.composed())


class _Pass:
    """Effect of a pass on the blocks of functions."""

    def __init__(
        self,
        before: IRModule,
        after: IRModule,
        matches: Matches,
        origins: Matches,
        known: Mapping[str, Composed],
        groups: frozenset[str],
        name: str,
    ) -> None:
        self._old, self._new = prim_funcs_of(before), prim_funcs_of(after)
        self._relax = dict(relax_functions(before))
        self._origins = origins
        self._known = known
        self._groups = groups
        self._name = name
        self._callers = self._called_before(after, matches)

    def _called_before(
        self, after: IRModule, matches: Matches
    ) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """Return, for each function after, the functions and the calls that its calls come from."""
        callees = {
            bound.id: callee
            for name, function in relax_functions(after)
            for bound in bound_in(name, function)
            if (callee := called_name(bound.value)) in self._new
        }
        found: dict[str, dict[str, list[str]]] = {}
        for name, function in self._relax.items():
            # Bindings in a group are found by the group's call.
            for bound in () if name in self._groups else bound_in(name, function):
                callee = called_name(bound.value)
                for each in matches.get(bound.id, ()) if callee else ():
                    if each in callees:
                        found.setdefault(callees[each], {}).setdefault(callee, []).append(bound.id)
        return found

    def composed(self) -> Iterator[tuple[str, Composed]]:
        """Yield the functions that were fused from several."""
        for name, function in self._new.items():
            callers = self._callers.get(name) or ({name: ()} if name in self._old else {})
            kept = name in self._known and function.same_as(self._old[name])
            if kept and list(callers) == [name]:
                yield name, self._known[name]
            elif any(each in self._groups or each in self._known for each in callers):
                yield name, self._made_of(name, function, callers)

    def _made_of(self, name: str, function: Any, callers: Mapping[str, Sequence[str]]) -> Composed:
        blocks = blocks_of(name, function)
        owners: list[Owner] | None = None
        reason = ""
        for source, calls in callers.items():
            if source in self._groups:
                found = self._of_group(source, function, blocks)
                lost = "" if None not in found else _("is not the functions of its group in order")
            elif source in self._old:
                given, lost = self._given(source, calls)
                found = _matched(given, blocks)
                wanted = {each for _other, owner in given for each in owner or ()}
                if None in found or wanted - {each for owner in found for each in owner or ()}:
                    lost = lost or _("was changed by {name}", name=self._name)
            else:
                continue
            owners = found if owners is None else list(map(_both, owners, found))
            reason = reason or lost
        return Composed(tuple(owners or [None] * len(blocks)), reason)

    def _given(self, source: str, calls: Sequence[str]) -> tuple[_Given, str]:
        """Return the blocks of a function before the pass, and why some are unknown."""
        blocks = blocks_of(source, self._old[source])
        known = self._known.get(source)
        if known is not None:
            return list(zip(blocks, known.owners, strict=True)), known.reason
        owner = tuple(dict.fromkeys(each for call in calls for each in self._origins.get(call, ())))
        return [(block, owner) for block in blocks], ""

    def _of_group(self, group: str, function: Any, blocks: Sequence[Any]) -> list[Owner]:
        """Return the owners of the blocks of a group's function."""
        wiring = _Wiring(self._relax[group], function)
        owners: list[Owner] = []
        for bound in bound_in(group, self._relax[group]):
            callee = called_name(bound.value)
            origins = self._origins.get(bound.id, ())
            if callee not in self._old:
                # It computes nothing: an item of a tuple, or an alias.
                wiring.alias(bound)
                continue
            whole = tuple(dict.fromkeys((*origins, *self._items_of(group, bound))))
            given = self._owned(callee, whole)
            made = blocks[len(owners) : len(owners) + len(given)]
            same = len(made) == len(given) and all(
                _equal(one, other) for (one, _other), other in zip(given, made, strict=True)
            )
            if not same or not wiring.accepts(bound, self._old[callee], given, made):
                return [None] * len(blocks)
            owners += [owner for _other, owner in given]
        return owners if len(owners) == len(blocks) else [None] * len(blocks)

    def _owned(self, member: str, origins: Owner) -> _Given:
        blocks = blocks_of(member, self._old[member])
        known = self._known.get(member)
        if known is None:
            return [(block, origins) for block in blocks]
        # In a function that was already fused, each block has owners of its own, as far as they are
        # in this group.
        return [
            (block, None if owner is None else tuple(each for each in owner if each in origins))
            if origins
            else (block, owner)
            for block, owner in zip(blocks, known.owners, strict=True)
        ]

    def _items_of(self, group: str, bound: Bound) -> Iterator[str]:
        """Yield the descendants of items taken from a tuple, which no function computes."""
        variable = bound.binding.var
        for each in bound_in(group, self._relax[group]):
            value = each.value
            if isinstance(value, relax.TupleGetItem) and value.tuple_value.same_as(variable):
                yield from self._origins.get(each.id, ())


class _Wiring:
    """Buffers of a function for the variables of its group."""

    def __init__(self, group: Any, function: Any) -> None:
        self._buffers: dict[tuple[int, int], Any] = {}
        self._aliases: dict[int, tuple[int, int]] = {}
        inputs = list(function.params)[: len(group.params)]
        # A tuple is several parameters, which are found at their first read.
        if all(isinstance(each.ty, relax.TensorType) for each in group.params):
            for parameter, buffer in zip(group.params, inputs, strict=False):
                self._buffers[hash(parameter), 0] = buffer

    def alias(self, bound: Bound) -> None:
        """Record a binding that names an item of a tuple, or a value."""
        value = bound.value
        if isinstance(value, relax.TupleGetItem):
            self._aliases[hash(bound.binding.var)] = hash(value.tuple_value), int(value.index)
        elif isinstance(value, ir.Var):
            self._aliases[hash(bound.binding.var)] = self._place(value)

    def accepts(self, bound: Bound, member: Any, given: _Given, made: Sequence[Any]) -> bool:
        """Return whether the blocks of a call read and write the call's values, and record it."""
        buffers: dict[int, Any] = {}
        for (one, _other), other in zip(given, made, strict=True):
            for old, new in zip(_touched(one), _touched(other), strict=True):
                if not buffers.setdefault(hash(old), new).same_as(new):
                    return False
        value = bound.binding.value
        if str(value.op.name) != "relax.call_tir":
            return True
        passed = value.args[1]
        arguments = list(passed.fields) if isinstance(passed, relax.Tuple) else [passed]
        parameters = list(member.params)
        places = [self._place(each) for each in arguments]
        kind = bound.binding.var.ty
        results = len(kind.fields) if isinstance(kind, relax.TupleType) else 1
        places += [(hash(bound.binding.var), item) for item in range(results)]
        for parameter, place in zip(parameters, places, strict=False):
            buffer = buffers.get(hash(parameter))
            if buffer is not None and not self._buffers.setdefault(place, buffer).same_as(buffer):
                return False
        return True

    def _place(self, value: Any) -> tuple[int, int]:
        place = hash(value), 0
        return self._aliases.get(place[0], place)


def blocks_of(name: str, function: Any) -> list[Any]:
    """Return the blocks of a TensorIR function in text order, without the root."""
    return [part.statement for part in parts_of(name, function) if part.kind == "block"]


def _matched(given: _Given, blocks: Sequence[Any]) -> list[Owner]:
    """Return the owners of the blocks that a pass has made of `given`."""
    if len(given) == len(blocks) and all(
        _equal(one, other) for (one, _other), other in zip(given, blocks, strict=True)
    ):
        return [owner for _other, owner in given]
    written: dict[int, list[Owner]] = {}
    for block, owner in given:
        for region in block.writes:
            written.setdefault(hash(region.source), []).append(owner)
    same = [_by_content(block, given, blocks) for block in blocks]
    found = [
        owner or _by_buffers(block, written) for owner, block in zip(same, blocks, strict=True)
    ]
    wanted = {each for _other, owner in given for each in owner or ()}
    if wanted - {each for owner in found for each in owner or ()}:
        # A block that was removed may be a part of any changed one.
        return same
    return found


def _by_content(block: Any, given: _Given, blocks: Sequence[Any]) -> Owner:
    buffers = list(map(hash, _touched(block)))
    own = {
        owner
        for each, owner in given
        if list(map(hash, _touched(each))) == buffers and _equal(each, block)
    }
    if len(own) == 1:
        return own.pop()
    owners = [owner for each, owner in given if _equal(each, block)]
    if len(set(owners)) != 1 or sum(_equal(each, block) for each in blocks) != len(owners):
        return None
    return owners[0]


def _by_buffers(block: Any, written: Mapping[int, Sequence[Owner]]) -> Owner:
    """Return the common owner of all blocks that wrote to a block's output buffer."""
    owners = {
        owner for region in block.writes for owner in written.get(hash(region.source), (None,))
    }
    return owners.pop() if len(owners) == 1 else None


def _touched(block: Any) -> Iterator[Any]:
    for region in (*block.reads, *block.writes):
        yield region.source


def _equal(one: Any, other: Any) -> bool:
    """Return whether two blocks do the same, on whatever buffers."""
    return one.same_as(other) or bool(tvm_ffi.structural_equal(one, other, map_free_vars=True))


def _both(one: Owner, other: Owner) -> Owner:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))
