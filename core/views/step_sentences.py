"""The effect of a step in a sentence: a rule for each pass, which both decides and words.

A rule is given what the step really did: functions that it added, removed or changed, operators
that were called before and are not after it, and attributes. Names of code stand between backticks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tvm
from tvm import ir, relax

from lowerscope.core.ir.relax import bound_in, callee_of, relax_functions
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.module_steps import FunctionDifference
from lowerscope.core.model.recipe import BIND_PARAMS
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_SCHEDULES, VECTOR_MATH
from lowerscope.core.passes.bindings import Matches, is_group
from lowerscope.core.views.moved_lines import sources_of

MOST_NAMES = 3
"""Number of names that a sentence lists; the others are counted."""


@dataclass(frozen=True)
class Effect:
    """Changes that a step made to a module.

    `functions`: the difference of its two ends.
    `find_matches`: returns the descendants of the bindings.
    """

    before: tvm.IRModule
    after: tvm.IRModule
    functions: Sequence[FunctionDifference]
    find_matches: Callable[[], Matches] = field(repr=False)

    def named(self, *statuses: str, kind: str = "") -> tuple[str, ...]:
        """Return the names of the functions of some statuses, and of one kind if it is given."""
        return tuple(
            each.name
            for each in self.functions
            if each.status in statuses and kind in ("", each.kind)
        )

    @cached_property
    def matches(self) -> Matches:
        """The descendants of the bindings before it."""
        return self.find_matches()

    @cached_property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """The TensorIR functions that took the place of others, with these."""
        return sources_of(self.before, self.after, self.matches)

    @cached_property
    def lost(self) -> Counter[str]:
        """Operators with the number of their calls that are gone."""
        return self._operators[0] - self._operators[1]

    @cached_property
    def gained(self) -> Counter[str]:
        """Operators with the number of their new calls."""
        return self._operators[1] - self._operators[0]

    @cached_property
    def _operators(self) -> tuple[Counter[str], Counter[str]]:
        return _operators(self.before), _operators(self.after)

    def with_attribute(self, name: str) -> dict[str, Any]:
        """Return the functions that have an attribute after it and had not before, with values.

        A function that took the place of others counts where none of them had it.
        """
        olds = {str(each.name_hint): function for each, function in self.before.functions_items()}
        found: dict[str, Any] = {}
        for variable, function in self.after.functions_items():
            value = _attribute(function, name)
            title = str(variable.name_hint)
            if value is not None and _attribute(olds.get(title), name) is None:
                found[title] = value
        return dict(sorted(found.items()))

    @cached_property
    def removed_bindings(self) -> tuple[str, ...]:
        """The variables of bindings that have no descendant."""
        return tuple(each.rpartition("/")[2] for each, found in self.matches.items() if not found)


def _attribute(function: Any, name: str) -> Any:
    attributes = getattr(function, "attrs", None)
    return attributes.get(name) if attributes is not None and name in attributes else None


def _operators(module: tvm.IRModule) -> Counter[str]:
    """Count the calls of each operator, and of each function that is called by its name."""
    found: Counter[str] = Counter()
    for value in _values(module):
        if type(value) is not relax.Call:
            found["variable"] += type(value) in (relax.Var, relax.DataflowVar)
        elif type(value.op) is ir.Op:
            found[f"R.{value.op.name.removeprefix('relax.')}"] += 1
        elif type(value.op) is relax.ExternFunc:
            found[str(value.op.global_symbol)] += 1
    return found


def _values(module: tvm.IRModule, only: str = "") -> Iterator[Any]:
    """Yield the values of all bindings, or of those of one function."""
    for name, function in relax_functions(module):
        if only in ("", name):
            for bound in bound_in(name, function):
                yield getattr(bound.binding, "value", None)


# Words


def code(name: str) -> str:
    """Return a name as code."""
    return f"`{name}`"


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """Return names as code with commas between them, and the number of those left out."""
    every = [code(name) for name in names]
    if len(every) > most + 1:
        every = [*every[:most], f"{len(every) - most} more"]
    return " and ".join([", ".join(every[:-1]), every[-1]] if len(every) > 1 else every)


def counted(count: int, one: str, more: str = "") -> str:
    """Return ``1 function``, or ``3 functions``."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _some(names: Sequence[str], one: str) -> str:
    """Return ``the function `f```, or ``5 functions: `f`, `g`, `h` and 2 more``."""
    if len(names) == 1:
        return f"the {one} {code(names[0])}"
    return f"{counted(len(names), one)} ({listed(names)})"


def _calls(counts: Counter[str]) -> str:
    total = sum(counts.values())
    names = listed(name for name, _ in counts.most_common())
    return f"{counted(total, 'call')} of {names}"


# Rules: each returns the words behind the pass's name; empty where it does not fit.

Rule = Callable[[Effect], str]


def _legalised(effect: Effect) -> str:
    lost = effect.lost
    made = effect.named("added", kind="tensorir")
    if not lost:
        return ""
    into = f"TensorIR functions, {len(made):,} of them new" if made else "TensorIR functions"
    return f"replaced {_calls(lost)} with calls of {into}"


_PATTERNS = {
    0: "elementwise",
    1: "broadcast",
    2: "injective",
    3: "reduction",
    4: "fusable on its output only",
    7: "tuple",
    8: "opaque",
}
"""Values of ``op_pattern``, TVM's ``OpPatternKind``."""


def _annotated(effect: Effect) -> str:
    found = effect.with_attribute("op_pattern")
    if not found:
        return ""
    kinds = Counter(_PATTERNS.get(int(value), str(value)) for value in found.values())
    words = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return f"gave {counted(len(found), 'function')} a pattern by which FuseOps groups: {words}"


def _folded(effect: Effect) -> str:
    names = effect.removed_bindings
    if names:
        return f"computed {_some(names, 'binding')} while compiling"
    values = sum(len(each.constants) for each in effect.functions)
    return f"gave {counted(values, 'constant')} other values" if values else ""


def _batch_norm(effect: Effect) -> str:
    count = effect.lost["R.nn.batch_norm"]
    if not count:
        return ""
    return f"folded {counted(count, 'batch norm')} into the weights and biases before them"


def _groups(effect: Effect) -> dict[str, list[str]]:
    """Return the groups that it made, each with the functions and operators that it calls."""
    return {
        name: members
        for name in effect.named("added", kind="relax")
        if is_group(effect.after[name]) and (members := _members(effect.after, name))
    }


def _grouped(effect: Effect) -> str:
    groups = _groups(effect)
    if not groups:
        return ""
    parts = [
        f"{listed(members, 4)} into {code(name)}"
        for name, members in list(groups.items())[: 2 if len(groups) == 2 else 1]
    ]
    more = len(groups) - len(parts)
    others = f", and made {counted(more, 'more group')}" if more else ""
    return f"grouped {', and '.join(parts)}{others}"


def _members(module: tvm.IRModule, name: str) -> list[str]:
    """Return the functions and operators that a group calls, in order."""
    found: list[str] = []
    for value in _values(module, name):
        callee = callee_of(value)
        if isinstance(callee, ir.GlobalVar):
            found.append(str(callee.name_hint))
        elif type(value) is relax.Call and type(value.op) is ir.Op:
            found.append(f"R.{value.op.name.removeprefix('relax.')}")
    return found


def _merged(effect: Effect) -> str:
    relax_names = {name for name, _ in relax_functions(effect.before)}
    merged = [
        name
        for name in effect.named("changed", "added", kind="tensorir")
        if name in relax_names or len(effect.sources.get(name, ())) > 1
    ]
    if not merged:
        aliases = effect.lost["variable"]
        return f"removed {counted(aliases, 'second name')} of a value" if aliases else ""
    gone = effect.named("removed")
    removed = f", and removed {counted(len(gone), 'function')} that nothing else calls"
    removed = removed if gone else ""
    if len(merged) == 1 and effect.sources.get(merged[0]):
        parts = listed(effect.sources[merged[0]], 4)
        return f"merged {parts} into the TensorIR function {code(merged[0])}{removed}"
    groups = f"{counted(len(merged), 'group')} ({listed(merged)})"
    return f"made one TensorIR function of each of {groups}{removed}"


def _eliminated(effect: Effect) -> str:
    functions, bindings = effect.named("removed"), effect.removed_bindings
    parts = []
    if functions:
        parts.append(_some(functions, "function"))
    if bindings:
        parts.append(_some(bindings, "binding"))
    return f"removed {' and '.join(parts)}, which nothing uses" if parts else ""


def _scheduled(by: str) -> Rule:
    def rule(effect: Effect) -> str:
        names = effect.named("changed", "added", kind="tensorir")
        return f"scheduled {_some(names, 'function')} {by}" if names else ""

    return rule


def _vector_math(effect: Effect) -> str:
    names = effect.named("changed", kind="tensorir")
    if not names:
        return ""
    return f"wrote math functions of {_some(names, 'function')} out as arithmetic that vectorizes"


def _layout_free(effect: Effect) -> str:
    found = effect.with_attribute("layout_free_buffers")
    if not found:
        return ""
    return (
        f"marked the constant arguments of {_some(list(found), 'function')} as free in their layout"
    )


def _prepacked(effect: Effect) -> str:
    by_old: dict[str, list[str]] = {}
    for name, olds in effect.sources.items():
        for old in olds:
            by_old.setdefault(old, []).append(name)
    pairs = {old: news for old, news in by_old.items() if len(news) > 1}
    if not pairs:
        return ""
    if len(pairs) == 1:
        old, news = next(iter(pairs.items()))
        return f"split {code(old)} into {listed(news)}: repacking of weights, and the computation"
    return (
        f"split {counted(len(pairs), 'function')} ({listed(pairs)}) each into one that repacks "
        "weights and one that computes"
    )


def _reshaped(effect: Effect) -> str:
    count = effect.gained["R.reshape"]
    if not count:
        return ""
    return (
        f"replaced {counted(count, 'function call')} with {code('R.reshape')}, which copies nothing"
    )


def _non_dataflow(effect: Effect) -> str:
    old, new = (_dataflow_blocks(each) for each in (effect.before, effect.after))
    if old <= new:
        return ""
    return f"turned {counted(old - new, 'dataflow block')} into ordinary binding blocks"


def _dataflow_blocks(module: tvm.IRModule) -> int:
    return sum(
        type(block) is relax.DataflowBlock
        for _, function in relax_functions(module)
        for block in getattr(function.body, "blocks", ())
    )


def _attributed(attribute: str, words: str) -> Rule:
    def rule(effect: Effect) -> str:
        found = effect.with_attribute(attribute)
        if not found:
            return ""
        return f"gave {_some(list(found), 'function')} the attribute {code(attribute)}, {words}"

    return rule


def _destination_passing(effect: Effect) -> str:
    calls, made = effect.lost["R.call_tir"], effect.gained["R.builtin.alloc_tensor"]
    calls += effect.lost["R.call_dps_packed"]
    if not calls:
        return ""
    tensors = f"{counted(made, 'allocation')} ({code('R.builtin.alloc_tensor')})"
    return (
        f"replaced {counted(calls, 'call')} of {code('R.call_tir')} with {tensors} and direct calls"
    )


def _planned(effect: Effect) -> str:
    tensors = effect.lost["R.builtin.alloc_tensor"]
    storages = effect.gained["R.memory.alloc_storage"]
    if not tensors:
        return ""
    sizes = _storage_bytes(effect.after)
    size = "" if sizes is None else f" of {bytes_text(sizes)} in all"
    return f"put {counted(tensors, 'tensor')} into {counted(storages, 'storage')}{size}"


def _storage_bytes(module: tvm.IRModule) -> int | None:
    """Return the bytes of all storages; ``None`` where one depends on an input's shape."""
    total = 0
    for value in _values(module):
        if type(value) is relax.Call and "memory.alloc_storage" in str(value.op):
            extent = value.args[0].values[0]
            if not hasattr(extent, "value"):
                return None
            total += int(extent)
    return total


def _allocated(effect: Effect) -> str:
    count = effect.lost["R.builtin.alloc_tensor"]
    if not count:
        return ""
    return (
        f"gave {counted(count, 'tensor')} outside the plan, such as outputs, a storage of its own"
    )


def _killed(effect: Effect) -> str:
    kinds = {"tensor": "R.memory.kill_tensor", "storage": "R.memory.kill_storage"}
    parts = [
        counted(effect.gained[operator], kind)
        for kind, operator in kinds.items()
        if effect.gained[operator]
    ]
    aliases = effect.lost["variable"]
    freed = f"freed {' and '.join(parts)} after the last use" if parts else ""
    merged = f"removed {counted(aliases, 'second name')} of a value" if aliases else ""
    return ", and ".join(each for each in (freed, merged) if each)


def _replaced(effect: Effect) -> str:
    lost, gained = effect.lost, effect.gained
    if not lost or not gained:
        return ""
    return f"replaced {_calls(lost)} with {_calls(gained)}"


def _runtime_calls(effect: Effect) -> str:
    if not effect.lost:
        return ""
    return f"replaced {_calls(effect.lost)} with functions of the virtual machine"


def _shapes(effect: Effect) -> str:
    checks = sum(count for name, count in effect.gained.items() if "check_" in name)
    matched = effect.gained["vm.builtin.match_shape"]
    parts = []
    if checks:
        parts.append(f"{counted(checks, 'check')} of types")
    if matched:
        parts.append(f"{counted(matched, 'check')} of shapes")
    return f"added {' and '.join(parts)} of the arguments" if parts else ""


def _computed_shapes(effect: Effect) -> str:
    names = effect.named("added")
    return f"made {_some(names, 'function')} that compute shapes at run time" if names else ""


def _transposed(effect: Effect) -> str:
    count = effect.lost["R.nn.conv2d_transpose"] + effect.lost["R.nn.conv1d_transpose"]
    if not count:
        return ""
    return f"split {counted(count, 'transposed convolution')} into convolutions of the same work"


def _bound(effect: Effect) -> str:
    olds, news = dict(relax_functions(effect.before)), dict(relax_functions(effect.after))
    count = sum(
        len(olds[name].params) - len(function.params)
        for name, function in news.items()
        if name in olds
    )
    return f"made constants of {counted(count, 'parameter')}" if count > 0 else ""


RULES: Mapping[str, Rule] = {
    BIND_PARAMS: _bound,
    "FoldBatchNorm": _batch_norm,
    "SplitTransposedConvolution": _transposed,
    "DecomposeOpsForInference": _replaced,
    "DispatchSampling": _replaced,
    "DispatchSortScan": _replaced,
    "LegalizeOps": _legalised,
    "AnnotateTIROpPattern": _annotated,
    "FoldConstant": _folded,
    "FuseOps": _grouped,
    "FuseTIR": _merged,
    "DeadCodeElimination": _eliminated,
    VECTOR_MATH: _vector_math,
    "AttachAttrLayoutFreeBuffers": _layout_free,
    APPLY_RULES: _scheduled("by rule"),
    APPLY_SCHEDULES: _scheduled("as the recipe's schedules say"),
    "SplitLayoutRewritePreproc": _prepacked,
    "RewriteDataflowReshape": _reshaped,
    "ToNonDataflow": _non_dataflow,
    "RemovePurityChecking": _attributed("relax.force_pure", "so that calls may have side effects"),
    "CallTIRRewrite": _destination_passing,
    "StaticPlanBlockMemory": _planned,
    "RewriteCUDAGraph": _replaced,
    "LowerAllocTensor": _allocated,
    "KillAfterLastUse": _killed,
    "LowerRuntimeBuiltin": _runtime_calls,
    "ComputePrimValue": _computed_shapes,
    "VMShapeLower": _shapes,
    "AttachGlobalSymbol": _attributed("global_symbol", "by which the runtime finds functions"),
}
"""The rules by pass; any other pass, and what a rule does not fit, is described by counts."""


_FUSED: Mapping[str, Callable[[Effect], Iterable[Sequence[str]]]] = {
    "FuseOps": lambda effect: _groups(effect).values(),
    "FuseTIR": lambda effect: effect.sources.values(),
}
"""For passes that fuse, the functions that became one, group by group."""


def fused_pair(name: str, effect: Effect) -> tuple[str, ...]:
    """Return the ids of two functions that a pass fused; empty if there are none."""
    fused = _FUSED.get(name.removeprefix("relax."))
    for group in () if fused is None else fused(effect):
        functions = list(dict.fromkeys(each for each in group if not each.startswith("R.")))
        if len(functions) > 1:
            return tuple(f"tir:{each}" for each in functions[:2])
    return ()


def step_sentence(name: str, effect: Effect) -> str:
    """Return the effect of a pass in a sentence, which begins with its name."""
    title = name.removeprefix("relax.")
    rule = RULES.get(title)
    words = "" if rule is None else rule(effect)
    return f"{title} {words or general_words(effect)}."


def general_words(effect: Effect) -> str:
    """Return the numbers of functions that were changed, added and removed, with some names."""
    parts = [
        f"{status} {_some(names, 'function')}"
        for status in ("changed", "added", "removed")
        if (names := effect.named(status))
    ]
    if not parts:
        return "changed nothing"
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
