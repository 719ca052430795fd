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
from tvm import relax

from lowerscope.core.build.build import REMOVE_KILLS
from lowerscope.core.ir.relax import bound_in, called_name, operator_of, relax_functions
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.module_steps import FunctionDifference
from lowerscope.core.model.recipe import BIND_PARAMS
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_SCHEDULES, VECTOR_MATH
from lowerscope.core.model.texts import _, _n, enumeration, joined, sentences
from lowerscope.core.passes.bindings import Matches, is_group
from lowerscope.core.views.moved_lines import sources_of
from lowerscope.core.views.unchanged import why_unchanged

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
        elif operator := operator_of(value):
            found[f"R.{operator.removeprefix('relax.')}"] += 1
        elif type(value.op) is relax.ExternFunc:
            found[str(value.op.global_symbol)] += 1
    return found


def _values(module: tvm.IRModule, only: str = "") -> Iterator[Any]:
    """Yield the values of all bindings, or of those of one function."""
    for name, function in relax_functions(module):
        if only in ("", name):
            for bound in bound_in(name, function):
                yield bound.value


# Words


def code(name: str) -> str:
    """Return a name as code."""
    return f"`{name}`"


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """Return names as code with commas between them, and the number of those left out."""
    every = [code(name) for name in names]
    if len(every) <= most + 1:
        return enumeration(every)
    shown = joined(_(", "), every[:most])
    return _("{names} and {count} more", names=shown, count=len(every) - most)


def _functions(names: Sequence[str]) -> str:
    """Return ``the function `f```, or ``5 functions (`f`, `g`, `h` and 2 more)``."""
    return _n(
        "the function {names}", "{count:,} functions ({names})", len(names), names=listed(names)
    )


def _bindings(names: Sequence[str]) -> str:
    return _n(
        "the binding {names}", "{count:,} bindings ({names})", len(names), names=listed(names)
    )


def _calls(counts: Counter[str]) -> str:
    names = listed(name for name, _count in counts.most_common())
    return _n(
        "{count:,} call of {names}", "{count:,} calls of {names}", sum(counts.values()), names=names
    )


# Rules: each returns a sentence that begins with the step's name; empty where it does not fit.

Rule = Callable[[str, Effect], str]


def effect_n(number: Callable[[Effect], int], singular: str, plural: str, **values: str) -> Rule:
    """Return the rule of a pass whose effect is a number, in the forms of a text; none for 0."""

    def rule(step: str, effect: Effect) -> str:
        count = number(effect)
        return _n(singular, plural, count, step=step, **values) if count > 0 else ""

    return rule


def _folded_norms(step: str, effect: Effect) -> str:
    """Return the numbers of batch norms that went into weights, and of others."""
    others = effect.gained["R.multiply"]
    folded = effect.lost["R.nn.batch_norm"] - others
    parts = []
    if folded > 0:
        parts.append(
            _n(
                "folded {count:,} batch norm into the weights and biases before it",
                "folded {count:,} batch norms into the weights and biases before them",
                folded,
            )
        )
    if others > 0:
        parts.append(
            _n(
                "made {count:,} batch norm a multiplication and an addition",
                "made {count:,} batch norms a multiplication and an addition each",
                others,
            )
        )
    return _("{step} {words}.", step=step, words=enumeration(parts)) if parts else ""


def _of_functions(find: Callable[[Effect], Iterable[str]], words: str, **values: str) -> Rule:
    """Return the rule of a pass that does something to some functions."""

    def rule(step: str, effect: Effect) -> str:
        names = list(find(effect))
        return words.format(step=step, functions=_functions(names), **values) if names else ""

    return rule


def _attributed(attribute: str, words: str) -> Rule:
    """Return the rule of a pass that gives functions an attribute."""
    return _of_functions(
        lambda effect: effect.with_attribute(attribute), words, attribute=code(attribute)
    )


def _changed(effect: Effect) -> Sequence[str]:
    return effect.named("changed", kind="tensorir")


def _made_or_changed(effect: Effect) -> Sequence[str]:
    return effect.named("changed", "added", kind="tensorir")


def _legalised(step: str, effect: Effect) -> str:
    made = effect.named("added", kind="tensorir")
    if not effect.lost:
        return ""
    if any(name != "variable" and not name.startswith("R.") for name in effect.gained):
        # Some became functions that are called by name, as `R.print` does.
        return _replaced(step, effect)
    calls = _calls(effect.lost)
    if not made:
        return _(
            "{step} replaced {calls} with calls of TensorIR functions.", step=step, calls=calls
        )
    return _(
        "{step} replaced {calls} with calls of TensorIR functions, {new:,} of them new.",
        step=step,
        calls=calls,
        new=len(made),
    )


_PATTERNS = {
    0: _("elementwise"),
    1: _("broadcast"),
    2: _("injective"),
    3: "reduction",
    4: _("fusable on its output only"),
    7: "tuple",
    8: "opaque",
}
"""Values of ``op_pattern``, TVM's ``OpPatternKind``."""


def _annotated(step: str, effect: Effect) -> str:
    found = effect.with_attribute("op_pattern")
    if not found:
        return ""
    kinds = Counter(_PATTERNS.get(int(value), str(value)) for value in found.values())
    words = joined(
        _(", "), (joined(" ", (f"{count:,}", kind)) for kind, count in kinds.most_common())
    )
    return _n(
        "{step} gave {count:,} function a pattern kind, by which FuseOps groups: {kinds}.",
        "{step} gave {count:,} functions a pattern kind, by which FuseOps groups: {kinds}.",
        len(found),
        step=step,
        kinds=words,
    )


def _folded(step: str, effect: Effect) -> str:
    names = effect.removed_bindings
    if names:
        return _(
            "{step} computed {bindings} at compile time.", step=step, bindings=_bindings(names)
        )
    return _values_folded(step, effect)


_values_folded = effect_n(
    lambda effect: sum(len(each.constants) for each in effect.functions),
    "{step} changed the value of {count:,} constant.",
    "{step} changed the values of {count:,} constants.",
)


def _groups(effect: Effect) -> dict[str, list[str]]:
    """Return the groups that it made, each with the functions and operators that it calls."""
    return {
        name: members
        for name in effect.named("added", kind="relax")
        if is_group(effect.after[name]) and (members := _members(effect.after, name))
    }


def _grouped(step: str, effect: Effect) -> str:
    groups = _groups(effect)
    if not groups:
        return ""
    parts = [
        _("{members} into {group}", members=listed(members, 4), group=code(name))
        for name, members in list(groups.items())[: 2 if len(groups) == 2 else 1]
    ]
    first, *second = parts
    if second:
        return _("{step} grouped {first}, and {second}.", step=step, first=first, second=second[0])
    if len(groups) == 1:
        return _("{step} grouped {members}.", step=step, members=first)
    return _n(
        "{step} grouped {members}, and made {count:,} more group.",
        "{step} grouped {members}, and made {count:,} more groups.",
        len(groups) - 1,
        step=step,
        members=first,
    )


def _members(module: tvm.IRModule, name: str) -> list[str]:
    """Return the functions and operators that a group calls, in order."""
    found: list[str] = []
    for value in _values(module, name):
        if called := called_name(value):
            found.append(called)
        elif operator := operator_of(value):
            found.append(f"R.{operator.removeprefix('relax.')}")
    return found


def _merged(step: str, effect: Effect) -> str:
    relax_names = {name for name, _other in relax_functions(effect.before)}
    merged = [
        name
        for name in effect.named("changed", "added", kind="tensorir")
        if name in relax_names or len(effect.sources.get(name, ())) > 1
    ]
    if not merged:
        return _aliases(step, effect)
    if len(merged) == 1 and effect.sources.get(merged[0]):
        made = _(
            "{step} merged {functions} into the TensorIR function {name}.",
            step=step,
            functions=listed(effect.sources[merged[0]], 4),
            name=code(merged[0]),
        )
    else:
        made = _n(
            "{step} made one TensorIR function of {count:,} group ({names}).",
            "{step} made one TensorIR function of each of {count:,} groups ({names}).",
            len(merged),
            step=step,
            names=listed(merged),
        )
    gone = len(effect.named("removed"))
    unused = _n(
        "It removed {count:,} unused function.", "It removed {count:,} unused functions.", gone
    )
    return sentences(made, unused if gone else "")


_aliases = effect_n(
    lambda effect: effect.lost["variable"],
    "{step} removed {count:,} alias of a value.",
    "{step} removed {count:,} aliases of values.",
)


def _eliminated(step: str, effect: Effect) -> str:
    functions, bindings = effect.named("removed"), effect.removed_bindings
    parts = []
    if functions:
        parts.append(_functions(functions))
    if bindings:
        parts.append(_bindings(bindings))
    if not parts:
        return ""
    return _("{step} removed {parts}, which nothing uses.", step=step, parts=enumeration(parts))


def _prepacked(step: str, effect: Effect) -> str:
    by_old: dict[str, list[str]] = {}
    for name, olds in effect.sources.items():
        for old in olds:
            by_old.setdefault(old, []).append(name)
    pairs = {old: news for old, news in by_old.items() if len(news) > 1}
    if not pairs:
        return ""
    if len(pairs) == 1:
        old, news = next(iter(pairs.items()))
        return _(
            "{step} split {name} into {parts}: repacking of weights, and the computation.",
            step=step,
            name=code(old),
            parts=listed(news),
        )
    return _(
        "{step} split {functions} each into one that repacks weights and one that computes.",
        step=step,
        functions=_functions(list(pairs)),
    )


def _dataflow_blocks(module: tvm.IRModule) -> int:
    return sum(
        type(block) is relax.DataflowBlock
        for _other, function in relax_functions(module)
        for block in getattr(function.body, "blocks", ())
    )


def _destination_passing(step: str, effect: Effect) -> str:
    calls, made = effect.lost["R.call_tir"], effect.gained["R.builtin.alloc_tensor"]
    calls += effect.lost["R.call_dps_packed"]
    if not calls:
        return ""
    return _n(
        "{step} replaced {count:,} call of {call_tir} with {allocations} and direct calls.",
        "{step} replaced {count:,} calls of {call_tir} with {allocations} and direct calls.",
        calls,
        step=step,
        call_tir=code("R.call_tir"),
        allocations=_n(
            "{count:,} allocation ({operator})",
            "{count:,} allocations ({operator})",
            made,
            operator=code("R.builtin.alloc_tensor"),
        ),
    )


def _planned(step: str, effect: Effect) -> str:
    tensors = effect.lost["R.builtin.alloc_tensor"]
    storages = effect.gained["R.memory.alloc_storage"]
    if not tensors:
        return ""
    sizes = _storage_bytes(effect.after)
    put, into = _tensors(tensors), _storages(storages)
    if sizes is None:
        return _("{step} put {tensors} into {storages}.", step=step, tensors=put, storages=into)
    return _(
        "{step} put {tensors} into {storages} of {size} in all.",
        step=step,
        tensors=put,
        storages=into,
        size=bytes_text(sizes),
    )


def _tensors(count: int) -> str:
    return _n("{count:,} tensor", "{count:,} tensors", count)


def _storages(count: int) -> str:
    return _n("{count:,} storage", "{count:,} storages", count)


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


def _killed(step: str, effect: Effect) -> str:
    tensors = effect.gained["R.memory.kill_tensor"]
    storages = effect.gained["R.memory.kill_storage"]
    parts = [words(count) for words, count in ((_tensors, tensors), (_storages, storages)) if count]
    if not parts:
        return _aliases(step, effect)
    freed = _("{step} freed {parts} after the last use.", step=step, parts=enumeration(parts))
    count = effect.lost["variable"]
    aliases = _n(
        "It removed {count:,} alias of a value.", "It removed {count:,} aliases of values.", count
    )
    return sentences(freed, aliases if count else "")


def _replaced(step: str, effect: Effect) -> str:
    words = _("{step} replaced {calls} with {others}.") if effect.gained else ""
    return _with_calls(words, step, effect)


def _with_calls(words: str, step: str, effect: Effect) -> str:
    """Return a sentence on the calls that are gone, and on the new ones."""
    calls = {"calls": _calls(effect.lost), "others": _calls(effect.gained)}
    return words.format(step=step, **calls) if effect.lost else ""


def _shapes(step: str, effect: Effect) -> str:
    checks = sum(count for name, count in effect.gained.items() if "check_" in name)
    matched = effect.gained["vm.builtin.match_shape"]
    parts = []
    if checks:
        parts.append(_n("{count:,} check of types", "{count:,} checks of types", checks))
    if matched:
        parts.append(_n("{count:,} check of shapes", "{count:,} checks of shapes", matched))
    if not parts:
        return ""
    return _("{step} added {parts} of the arguments.", step=step, parts=enumeration(parts))


def _computed_shapes(step: str, effect: Effect) -> str:
    names = effect.named("added")
    if not names:
        return ""
    return _n(
        "{step} made the function {names}, which computes shapes at run time.",
        "{step} made {count:,} functions ({names}) that compute shapes at run time.",
        len(names),
        step=step,
        names=listed(names),
    )


def _bound(effect: Effect) -> int:
    """Return the number of parameters that are gone."""
    olds, news = dict(relax_functions(effect.before)), dict(relax_functions(effect.after))
    return sum(len(olds[name].params) - len(news[name].params) for name in news if name in olds)


def _narrow_products(module: tvm.IRModule) -> int:
    """Return the number of products whose factors are in bfloat16, and the result is not."""
    return sum(
        operator_of(value) == "relax.matmul"
        and (str(value.args[0].ty.dtype), str(value.ty.dtype)) == ("bfloat16", "float32")
        for value in _values(module)
        if type(value) is relax.Call
    )


RULES: Mapping[str, Rule] = {
    BIND_PARAMS: effect_n(
        _bound,
        "{step} turned {count:,} parameter into a constant.",
        "{step} turned {count:,} parameters into constants.",
    ),
    "ComputeChosenBranches": effect_n(
        lambda effect: effect.lost["R.where"],
        "{step} left {count:,} result of a branch to the side that is chosen.",
        "{step} left {count:,} results of branches to the sides that are chosen.",
    ),
    "FoldBatchNorm": _folded_norms,
    "SplitTransposedConvolution": effect_n(
        lambda effect: sum(effect.lost[f"R.nn.conv{n}d_transpose"] for n in (1, 2, 3)),
        "{step} split {count:,} transposed convolution into convolutions of the same work.",
        "{step} split {count:,} transposed convolutions into convolutions of the same work.",
    ),
    "WinogradConvolution": effect_n(
        lambda effect: sum(effect.lost[f"R.nn.conv{n}d"] for n in (2, 3)),
        "{step} computed {count:,} convolution by Winograd's algorithm.",
        "{step} computed {count:,} convolutions by Winograd's algorithm.",
    ),
    "PadConvolution": effect_n(
        lambda effect: sum(effect.lost[f"R.nn.conv{n}d"] for n in (1, 2, 3)),
        "{step} filled the vectors of {count:,} convolution.",
        "{step} filled the vectors of {count:,} convolutions.",
    ),
    "MultiplyIntegers": effect_n(
        lambda effect: sum(
            effect.lost[f"R.{name}"] for name in ("matmul", *(f"nn.conv{n}d" for n in (1, 2, 3)))
        ),
        "{step} multiplied the bytes of {count:,} product by one instruction for four of them.",
        "{step} multiplied the bytes of {count:,} products by one instruction for four of them.",
    ),
    "MultiplyBfloat16": effect_n(
        lambda effect: _narrow_products(effect.after) - _narrow_products(effect.before),
        "{step} left the factors of {count:,} product in bfloat16.",
        "{step} left the factors of {count:,} products in bfloat16.",
    ),
    "FuseMatrixTranspose": effect_n(
        lambda effect: effect.lost["R.permute_dims"],
        "{step} removed {count:,} transpose: what it transposed is read in its place.",
        "{step} removed {count:,} transposes: what they transposed is read in their place.",
    ),
    "DecomposeOpsForInference": _replaced,
    "DispatchSampling": _replaced,
    "DispatchSortScan": _replaced,
    "LegalizeOps": _legalised,
    "AnnotateTIROpPattern": _annotated,
    "FoldConstant": _folded,
    "FuseOps": _grouped,
    "FuseTIR": _merged,
    "DeadCodeElimination": _eliminated,
    VECTOR_MATH: _of_functions(
        _changed,
        _("{step} expanded math functions of {functions} into arithmetic that vectorizes."),
    ),
    "AttachAttrLayoutFreeBuffers": _attributed(
        "layout_free_buffers",
        _("{step} marked the constant arguments of {functions} as free in their layout."),
    ),
    APPLY_RULES: _of_functions(_made_or_changed, _("{step} scheduled {functions} by rules.")),
    APPLY_SCHEDULES: _of_functions(
        _made_or_changed, _("{step} scheduled {functions} by the recipe's schedules.")
    ),
    "SplitLayoutRewritePreproc": _prepacked,
    "RewriteDataflowReshape": effect_n(
        lambda effect: effect.gained["R.reshape"],
        "{step} replaced {count:,} function call with {reshape}, which copies nothing.",
        "{step} replaced {count:,} function calls with {reshape}, which copies nothing.",
        reshape=code("R.reshape"),
    ),
    "ToNonDataflow": effect_n(
        lambda effect: _dataflow_blocks(effect.before) - _dataflow_blocks(effect.after),
        "{step} turned {count:,} dataflow block into an ordinary binding block.",
        "{step} turned {count:,} dataflow blocks into ordinary binding blocks.",
    ),
    "RemovePurityChecking": _attributed(
        "relax.force_pure",
        _(
            "{step} set the attribute {attribute} on {functions}, so that calls may have side"
            " effects."
        ),
    ),
    "CallTIRRewrite": _destination_passing,
    "StaticPlanBlockMemory": _planned,
    "RewriteCUDAGraph": _replaced,
    "LowerAllocTensor": effect_n(
        lambda effect: effect.lost["R.builtin.alloc_tensor"],
        "{step} gave {count:,} tensor outside the plan, such as an output, a storage of its own.",
        "{step} gave {count:,} tensors outside the plan, such as outputs, a storage of its own.",
    ),
    "KillAfterLastUse": _killed,
    "LowerRuntimeBuiltin": lambda step, effect: _with_calls(
        _("{step} replaced {calls} with functions of the virtual machine."), step, effect
    ),
    "ComputePrimValue": _computed_shapes,
    "VMShapeLower": _shapes,
    "AttachGlobalSymbol": _attributed(
        "global_symbol",
        _(
            "{step} set the attribute {attribute} on {functions}, by which the runtime finds"
            " functions."
        ),
    ),
}
"""The rules by pass; any other pass, and what a rule does not fit, is described by counts."""


BUILD_RULES: Mapping[str, Rule] = {
    REMOVE_KILLS: effect_n(
        lambda effect: sum(n for name, n in effect.lost.items() if ".kill_" in name),
        "{step} removed {count:,} call that frees a value: the build inserts it again.",
        "{step} removed {count:,} calls that free values: the build inserts them again.",
    ),
} | {
    name: _of_functions(_changed, words)
    for name, words in {
        "tirx.BindTarget": _("{step} bound {functions} to the target."),
        "s_tir.CanonicalizeLoop": _("{step} made loops of {functions} begin at 0, in steps of 1."),
        "s_tir.LowerInitBlock": _(
            "{step} turned the initial values of reductions in {functions} into conditions on their"
            " first step."
        ),
        "s_tir.PlanAndUpdateBufferAllocationLocation": _(
            "{step} moved allocations of {functions} to the innermost loops that contain all uses."
        ),
        "s_tir.ConvertBlocksToOpaque": _(
            "{step} replaced the block variables of {functions} with loop variables."
        ),
        "s_tir.CompactBufferAllocation": _(
            "{step} reduced buffers of {functions} to the regions that are used."
        ),
        "s_tir.LowerMatchBuffer": _(
            "{step} replaced matched buffers of {functions} with the buffers that contain them."
        ),
        "s_tir.StmtSimplify": _("{step} simplified expressions and conditions of {functions}."),
        "s_tir.LowerOpaqueBlock": _(
            "{step} removed the blocks of {functions}: they cannot be scheduled any more."
        ),
        "tirx.FlattenBuffer": _("{step} made buffers of {functions} one-dimensional."),
        "tirx.BF16ComputeLegalize": _("{step} made {functions} compute bfloat16 in float32."),
        "tirx.NarrowDataType": _("{step} made indices of {functions} narrower where they fit."),
        "s_tir.LoopPartition": _(
            "{step} split loops of {functions} where a condition becomes constant."
        ),
        "tirx.VectorizeLoop": _(
            "{step} replaced vectorized loops of {functions} with vector operations."
        ),
        "tirx.StorageRewrite": _("{step} let buffers of {functions} share memory."),
        "s_tir.HoistIfThenElse": _(
            "{step} moved conditions of {functions} out of loops that do not change them."
        ),
        "tirx.RemoveNoOp": _("{step} removed statements of {functions} that do nothing."),
        "tirx.UnrollLoop": _("{step} unrolled loops of {functions}."),
        "s_tir.RenormalizeSplitPattern": _(
            "{step} rewrote divisions and remainders in indices of {functions}."
        ),
        "tirx.StmtSimplify": _("{step} simplified expressions and conditions of {functions}."),
        "s_tir.RewriteUnsafeSelect": _(
            "{step} replaced selections of {functions} that may read out of bounds with conditions."
        ),
        "tirx.CommonSubexprElim": _(
            "{step} made {functions} compute once what occurs several times."
        ),
        "tirx.MakePackedAPI": _(
            "{step} made {functions} take and check their arguments as the runtime passes them."
        ),
        "tirx.LowerTVMBuiltin": _(
            "{step} replaced builtins of {functions}, such as allocations, with runtime calls."
        ),
        "tirx.LowerIntrin": _(
            "{step} replaced intrinsics of {functions} with those that the target has."
        ),
    }.items()
}
"""The rules of the passes of TVM's build, by name."""


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
    rule = RULES.get(title) or BUILD_RULES.get(title)
    words = "" if rule is None else rule(title, effect)
    if not words and not effect.named("changed", "added", "removed"):
        unmet = why_unchanged(title, effect.before)
        if unmet is not None:
            return _("{title} changed nothing: {reason}.", title=title, reason=unmet.text)
    return words or general_words(title, effect)


def general_words(step: str, effect: Effect) -> str:
    """Return the numbers of functions that were changed, added and removed, with some names."""
    changed, added, removed = (
        _functions(names) if (names := effect.named(status)) else ""
        for status in ("changed", "added", "removed")
    )
    if changed and added and removed:
        text = _("{step} changed {changed}, added {added} and removed {removed}.")
    elif changed and added:
        text = _("{step} changed {changed} and added {added}.")
    elif changed and removed:
        text = _("{step} changed {changed} and removed {removed}.")
    elif added and removed:
        text = _("{step} added {added} and removed {removed}.")
    elif changed:
        text = _("{step} changed {changed}.")
    elif added:
        text = _("{step} added {added}.")
    elif removed:
        text = _("{step} removed {removed}.")
    else:
        text = _("{step} changed nothing.")
    return text.format(step=step, changed=changed, added=added, removed=removed)
