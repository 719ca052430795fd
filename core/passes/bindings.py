"""Matching of the bindings of Relax functions before and after a pass.

Passes of TVM keep the variable of each binding that they keep, and create new ones for new
bindings: identity comes first. A binding that has a new variable and computes the same value, such
as the output of a group made by ``FuseOps``, is matched by that value; the rest, by name and place.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import IRModule, ir, relax

from lowerscope.core.ir.relax import (
    Bindings,
    Bound,
    bound_in,
    called_name,
    elements_of,
    operator_of,
    relax_functions,
    writes_arguments,
)
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.module_steps import BindingEffect
from lowerscope.core.model.texts import _
from lowerscope.core.passes.recording import PassRun

_CALL_TIR = "relax.call_tir"


@dataclass(slots=True, eq=False)
class Leaf:
    """A binding that computes something, as reached from a function that nothing calls.

    `ids`: of the bindings that call its function, outermost first, and its own.
    `number`: of its value.
    `reads`: Addresses of the variables that its value reads.
    `callee`: name of the module's function that it calls; empty for none.
    """

    ids: tuple[str, ...]
    bound: Bound
    number: int
    reads: frozenset[int]
    callee: str

    @property
    def address(self) -> int:
        """Address of its variable."""
        return hash(self.bound.binding.var)


@dataclass
class Numbers:
    """Value numbers: the same operator on values of the same numbers has the same number."""

    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _tuples: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, key: tuple[Any, ...]) -> int:
        """Return the number of a key."""
        return self._known.setdefault(key, len(self._known))

    def of_tuple(self, fields: tuple[int, ...]) -> int:
        """Return the number of a tuple of values."""
        number = self.of(("tuple", *fields))
        self._tuples[number] = fields
        return number

    def of_item(self, whole: int, index: int) -> int:
        """Return the number of an item of a tuple."""
        fields = self._tuples.get(whole)
        return self.of(("item", whole, index)) if fields is None else fields[index]


class Unfolded:
    """The bindings of a module in execution order, through its calls.

    `numbers`: Shared by modules whose values are compared.
    `whole`: names of functions that are not expanded at their calls.
    `anchors`: Known numbers of variables, by address. The first binding of each gets it.
    """

    def __init__(
        self,
        module: IRModule,
        numbers: Numbers,
        whole: frozenset[str] = frozenset(),
        anchors: dict[int, int] | None = None,
    ) -> None:
        self.leaves: list[Leaf] = []
        self._numbers = numbers
        self._whole = whole
        self._anchors = dict(anchors or {})
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._functions = dict(relax_functions(module))
        self._bound = {name: bound_in(name, each) for name, each in self._functions.items()}
        every = itertools.chain.from_iterable(self._bound.values())
        called = {called_name(bound.value) for bound in every}
        for name, function in self._functions.items():
            if name not in called:
                parameters = [
                    numbers.of(("parameter", name, each.name)) for each in function.params
                ]
                self._unfold(name, parameters, (), (name,))

    def _unfold(
        self, name: str, arguments: Sequence[int], chain: tuple[str, ...], inside: tuple[str, ...]
    ) -> int:
        """Add the bindings of a function that is called by `chain`; return its value's number."""
        function = self._functions[name]
        known = dict(zip(map(hash, function.params), arguments, strict=False))
        for bound in self._bound[name]:
            value = bound.value
            address = hash(bound.binding.var)
            reads: set[int] = set()
            called = called_name(value)
            ids = (*chain, bound.id)
            if called in self._functions and called not in (*inside, *self._whole):
                passed = [self._number(each, known, reads) for each in _passed(value)]
                known[address] = self._unfold(called, passed, ids, (*inside, called))
                continue
            number = self._number(value, known, reads)
            # A function may be called from several places: the variable is that of the first.
            number = self._anchors.pop(address, number)
            known[address] = number
            self.leaves.append(Leaf(ids, bound, number, frozenset(reads), called))
        return self._number(function.body.body, known, set())

    def _number(self, value: Any, known: dict[int, int], reads: set[int]) -> int:
        kind = type(value)
        if kind in (relax.Var, relax.DataflowVar):
            address = hash(value)
            reads.add(address)
            if address in known:
                return known[address]
            # A group has a variable of its own for each size, of the same name.
            is_size = isinstance(value.ty, ir.PrimType)
            return self._numbers.of(("size", value.name) if is_size else ("free", address))
        if kind is ir.GenericConst:
            return self._numbers.of(("constant", *_constant(value.value)))
        if kind is relax.Tuple:
            return self._numbers.of_tuple(
                tuple(self._number(each, known, reads) for each in value.fields)
            )
        if kind is relax.TupleGetItem:
            whole = self._number(value.tuple_value, known, reads)
            return self._numbers.of_item(whole, int(value.index))
        if kind is relax.Call:
            passed = tuple(self._number(each, known, reads) for each in _passed(value))
            attributes = 0 if value.attrs is None else tvm_ffi.structural_hash(value.attrs)
            key = ("call", _operator(value), attributes, *passed)
            if "alloc" in operator_of(value):
                # Each call returns new memory: they are equal by order only.
                self._seen[key] += 1
                key = (*key, f"#{self._seen[key]}")
            return self._numbers.of(key)
        if value is None or kind in (relax.If, relax.Function, relax.SeqExpr):
            return self._numbers.of(("own", hash(value)))
        return self._numbers.of(("expression", kind.__name__, tvm_ffi.structural_hash(value)))


def _constant(value: Any) -> tuple[object, ...]:
    # Passes re-wrap constants around the same elements.
    return elements_of(value) if isinstance(value, tvm_ffi.Tensor) else (str(value),)


def _operator(call: Any) -> str:
    """Return the callee: a function of the module has one name, however it is called."""
    if called := called_name(call):
        return f"@{called}"
    if isinstance(call.op, ir.Op):
        return operator_of(call)
    if isinstance(call.op, relax.ExternFunc):
        return f"extern {call.op.global_symbol}"
    return f"variable {hash(call.op)}"


def _passed(call: Any) -> list[Any]:
    """Return the arguments that a call passes, those of ``call_tir`` flattened."""
    arguments = list(call.args)
    if operator_of(call) == _CALL_TIR:
        _other, given, *more = arguments
        return [*(given.fields if type(given) is relax.Tuple else [given]), *more]
    return arguments


Matches = Mapping[str, tuple[str, ...]]
"""From ids of bindings before a pass to those after it, ``relax:FUNCTION/VARIABLE``."""


def match_bindings(
    before: tvm.IRModule, after: tvm.IRModule, walked: Bindings | None = None
) -> Matches:
    """Return the descendants of each binding of `before` in `after`.

    Bindings that a pass adds for a binding that it keeps, such as the memory of its value, belong
    to that binding. In a function that a pass makes of some bindings, both the binding there and
    the call of the function belong to each. A binding that was removed has no descendants.
    """
    walked = walked or Bindings()
    bounds = walked.of(before)
    if before.same_as(after) or _variables(bounds) == _variables(walked.of(after)):
        return {bound.id: (bound.id,) for bound in bounds}
    fused = fused_groups(before, after)
    old, new, pairs = _paired(before, after, fused)
    pairs.by_name()
    matches: dict[str, dict[str, None]] = {bound.id: {} for bound in bounds}
    helpers = _helpers(new, pairs.taken)
    for index, leaf in enumerate(old):
        for place in pairs.found.get(index, ()):
            # The bindings of a group belong to its function.
            members = (
                tuple(each.id for each in bound_in(leaf.callee, before[leaf.callee]))
                if leaf.callee in fused
                else ()
            )
            for entity in (*leaf.ids, *members):
                made = (*helpers.get(place, ()), new[place])
                matches[entity].update(dict.fromkeys(each for one in made for each in one.ids))
    return {entity: tuple(found) for entity, found in matches.items()}


def bindings_by_name(before: tvm.IRModule, after: tvm.IRModule) -> frozenset[str]:
    """Return the bindings of `before` that match their descendants by name and type only.

    The pass has kept neither variable nor value: the descendant may be unrelated. One whose type
    differs, in that the channels come last, is the same value.
    """
    walked = Bindings()
    if before.same_as(after) or _variables(walked.of(before)) == _variables(walked.of(after)):
        return frozenset()
    old, new, pairs = _paired(before, after, fused_groups(before, after))
    known = set(pairs.found)
    pairs.by_name()
    return frozenset(
        each
        for index in pairs.found.keys() - known
        if not all(_has_channels_last(*_types(old[index], new[at])) for at in pairs.found[index])
        for each in old[index].ids
    )


def _paired(
    before: tvm.IRModule, after: tvm.IRModule, fused: frozenset[str]
) -> tuple[Sequence[Leaf], Sequence[Leaf], _Pairs]:
    """Return the bindings before and after a pass, with pairs of the same variable or value."""
    numbers = Numbers()
    old = Unfolded(before, numbers, fused).leaves
    anchors = {leaf.address: leaf.number for leaf in reversed(old)}
    new = Unfolded(after, numbers, anchors=anchors).leaves
    pairs = _Pairs(old, new)
    pairs.by_variable()
    pairs.by_value()
    return old, new, pairs


def _variables(bounds: Sequence[Bound]) -> list[tuple[str, int]]:
    return [(bound.id, hash(bound.binding.var)) for bound in bounds]


def fused_groups(before: tvm.IRModule, after: tvm.IRModule) -> frozenset[str]:
    """Return the names of the groups that are TensorIR functions after the pass.

    Equal groups become one function, named after one of them.
    """
    old, kept = dict(relax_functions(before)), {name for name, _other in relax_functions(after)}
    if old.keys() <= kept:
        return frozenset()
    prim_funcs = prim_funcs_of(after)
    return frozenset(
        name
        for name, function in old.items()
        if name in prim_funcs or (name not in kept and is_group(function))
    )


def is_group(function: Any) -> bool:
    """Return whether a Relax function is one that ``FuseOps`` made."""
    is_relax = isinstance(function, relax.Function) and function.attrs is not None
    return is_relax and bool(function.attrs.get("Primitive"))


class _Pairs:
    """Pairs of bindings before and after a pass, by their places in the two lists."""

    def __init__(self, old: Sequence[Leaf], new: Sequence[Leaf]) -> None:
        self._old = old
        self._new = new
        self.found: dict[int, list[int]] = {}
        self.taken: set[int] = set()

    def _add(self, old: int, new: int) -> None:
        self.found.setdefault(old, []).append(new)
        self.taken.add(new)

    def _left(self) -> list[int]:
        return [index for index in range(len(self._old)) if index not in self.found]

    def by_variable(self) -> None:
        """Pair those with the same variable."""
        places: dict[int, list[int]] = {}
        for index, leaf in enumerate(self._new):
            places.setdefault(leaf.address, []).append(index)
        for index, leaf in enumerate(self._old):
            same = places.get(leaf.address)
            if same:
                self._add(index, same.pop(0))

    def by_value(self) -> None:
        """Pair those with the same value in order; unmatched ones were merged into one of them."""
        left = self._left()
        if not left:
            return
        free: dict[int, list[int]] = {}
        anywhere: dict[int, int] = {}
        for index, leaf in enumerate(self._new):
            anywhere.setdefault(leaf.number, index)
            if index not in self.taken:
                free.setdefault(leaf.number, []).append(index)
        for index in left:
            number = self._old[index].number
            if free.get(number):
                self._add(index, free[number].pop(0))
            elif number in anywhere:
                self._add(index, anywhere[number])

    def by_name(self) -> None:
        """Pair those of the same name and type between the same neighbours.

        Or of a type that differs in that the channels come last.
        """
        left = self._left()
        if not left:
            return
        free: dict[tuple[str, ...], list[int]] = {}
        for index, leaf in enumerate(self._new):
            if index not in self.taken:
                free.setdefault(leaf.ids, []).append(index)
        for index in left:
            leaf = self._old[index]
            for place in free.get(leaf.ids, ()):
                if self._between(index, place) and _same_type(leaf, self._new[place]):
                    self._add(index, place)
                    free[leaf.ids].remove(place)
                    break

    def _between(self, old: int, new: int) -> bool:
        earlier = next((self.found[i][-1] for i in range(old - 1, -1, -1) if i in self.found), -1)
        later = next(
            (self.found[i][0] for i in range(old + 1, len(self._old)) if i in self.found),
            len(self._new),
        )
        return earlier < new < later


def _same_type(one: Leaf, other: Leaf) -> bool:
    before, after = _types(one, other)
    return bool(tvm_ffi.structural_equal(before, after)) or _has_channels_last(before, after)


def _types(one: Leaf, other: Leaf) -> tuple[Any, Any]:
    return one.bound.binding.var.ty, other.bound.binding.var.ty


def _has_channels_last(before: Any, after: Any) -> bool:
    """Return whether two types of tensors differ in that the channels come last."""
    types = [each for each in (before, after) if isinstance(each, relax.TensorType)]
    shapes = [each.shape for each in types if isinstance(each.shape, relax.ShapeExpr)]
    if len(shapes) < 2 or len(shapes[0].values) < 3:
        return False
    own, first = shapes[1], shapes[0]
    batch, channels, *sizes = first.values
    second = relax.ShapeExpr([batch, *sizes, channels])
    return (
        before.dtype == after.dtype
        and bool(tvm_ffi.structural_equal(second, own))
        and not tvm_ffi.structural_equal(first, own)
    )


def _helpers(new: Sequence[Leaf], taken: set[int]) -> Mapping[int, tuple[Leaf, ...]]:
    """Return the helper bindings of each kept binding that reads them, by position.

    A call that returns nothing writes into one of its arguments: it belongs to the readers of
    these.
    """
    helpers: dict[int, tuple[Leaf, ...]] = {}
    waiting: list[Leaf] = []
    for index, leaf in enumerate(new):
        if index not in taken:
            waiting.append(leaf)
            continue
        if waiting:
            reads, found = set(leaf.reads), list[Leaf]()
            for each in reversed(waiting):
                writes = writes_arguments(each.bound.binding)
                if each.address in reads or (writes and each.reads & reads):
                    found.append(each)
                    reads |= each.reads
            helpers[index] = tuple(reversed(found))
        waiting = []
    return helpers


_FOLDS = frozenset(("FoldConstant", "FoldBatchNorm"))


@dataclass(frozen=True)
class Followed:
    """Descendants after some steps of the bindings before the first step.

    `became`: from their ids to those of their descendants.
    `fates`: the effects on those that were removed, or are in a function of several.
    `in_main`: as `became`, limited to descendants in ``main`` at every step: for equal groups that
        share a function, the one call that a binding belongs to.
    `step`: from the ids before the last of the steps to those after it.
    """

    became: Matches
    fates: Mapping[str, BindingEffect]
    in_main: Matches
    step: Matches

    def after(self, matches: Matches) -> tuple[Matches, Matches]:
        """Return `became` and `in_main` after one more pass."""
        in_main = _in_main(compose(self.in_main, matches))
        elsewhere = {
            old: tuple(each for each in found if _function_of(each) != "main")
            for old, found in matches.items()
        }
        # Bindings inside a function belong to all of its calls, if they were moved into it, and
        # their descendants, to the one call that they became as well.
        became = {}
        for entity, olds in self.became.items():
            own = in_main[entity]
            found = (*own, *_each(olds, elsewhere)) if own else _each(olds, matches)
            became[entity] = _once(found)
        return became, in_main


def unchanged(bindings: Matches) -> Followed:
    """Return the state before the first step, with each binding mapped to itself."""
    return Followed(bindings, {}, _in_main(bindings), bindings)


def follow(
    runs: Sequence[PassRun], start: Followed, walked: Bindings | None = None
) -> Iterator[Followed]:
    """Yield the descendants of bindings after each step.

    `runs`: of the steps that were applied, without the passes inside of them.
    """
    walked = walked or Bindings()
    now = start
    for run in runs:
        assert run.after is not None
        if run.after.same_as(run.before):
            now = replace(now, step={})
        else:
            known = {function for function, _other in relax_functions(run.before)}
            matches = match_bindings(run.before, run.after, walked)
            became, in_main = now.after(matches)
            fates = {**now.fates, **_fates_in(run, now.became, became, known)}
            now = Followed(became, fates, in_main, matches)
        yield now


def _fates_in(
    run: PassRun, before: Matches, after: Matches, known: Collection[str]
) -> Mapping[str, BindingEffect]:
    """Return the effects of a step on the bindings that it removed or moved into a function."""
    name = run.name.removeprefix("relax.")
    fates: dict[str, BindingEffect] = {}
    for entity, found in after.items():
        if not found and before[entity]:
            text = (
                _("folded by {name}", name=name)
                if name in _FOLDS
                else _("removed by {name}", name=name)
            )
            fates[entity] = BindingEffect(text=text, step=run.step)
        elif groups := [group for each in found if (group := _function_of(each)) not in known]:
            text = _("fused into {group} by {name}", group=groups[0], name=name)
            fates[entity] = BindingEffect(text=text, step=run.step, gone=False)
    return fates


def compose(one: Matches, other: Matches) -> Matches:
    """Return the composition of two mappings, without repeated ids."""
    return {entity: _once(_each(olds, other)) for entity, olds in one.items()}


def inverse(matches: Matches) -> Matches:
    """Return the inverse of a mapping."""
    origins: dict[str, list[str]] = {}
    for entity, found in matches.items():
        for each in found:
            origins.setdefault(each, []).append(entity)
    return {entity: tuple(found) for entity, found in origins.items()}


def _each(olds: Sequence[str], matches: Matches) -> Iterator[str]:
    """Yield the descendants of each of some ids."""
    return (new for old in olds for new in matches.get(old, ()))


def _once(entities: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entities))


def _in_main(matches: Matches) -> Matches:
    return {
        entity: tuple(each for each in found if _function_of(each) == "main")
        for entity, found in matches.items()
    }


def _function_of(entity: str) -> str:
    return entity.removeprefix("relax:").partition("/")[0]
