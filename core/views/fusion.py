"""Explanations of fusion, in words, with the change of the recipe that would alter it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
import tvm
from tvm import relax

from lowerscope.core.ir.relax import (
    Bound,
    binding_ids,
    bound_in,
    called_name,
    callee_of,
    entity_of,
    operator_of,
    relax_functions,
)
from lowerscope.core.model.explanation_records import Cause, Change, Explanation
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import WhyFusedQuery, answers
from lowerscope.core.model.recipe import Override, Recipe, Step
from lowerscope.core.model.texts import _, _n, capitalized, english, enumeration
from lowerscope.core.passes.batch_norm_folding import FOLD_BATCH_NORM
from lowerscope.core.passes.bindings import match_bindings
from lowerscope.core.passes.fusion import (
    KIND_TEXTS,
    MOST_FUSED,
    Kind,
    Partition,
    Vertex,
    forbidden_alone,
    read_by,
)
from lowerscope.core.passes.recording import PassRun
from lowerscope.core.stages import Pipeline, Stages

FUSE_OPS = "FuseOps"

WITHOUT_CODE: Mapping[str, str] = {
    "placeholder": _("{name} is an input of the model, and generates no code"),
    "get_attr": _("{name} is a parameter or a constant of the model, and generates no code"),
    "output": _("{name} returns values of other nodes, and generates no code of its own"),
}
"""Words for nodes of the graph that generate no code, by opcode."""

BARRIERS: Mapping[Cause, str] = {
    "library-call": _("{other} calls a library function, which FuseOps does not fuse"),
    "call": _("{other} calls a Relax function, which FuseOps does not fuse"),
    "not-legalised": _(
        "{other} is still the operator {operator}: FuseOps fuses only calls of TensorIR "
        "functions, which LegalizeOps makes"
    ),
    "no-tensorir": _(
        "{other} is the operator {operator}, for which LegalizeOps has no TensorIR function to fuse"
    ),
    "not-annotated": _(
        "the function of {other} has no pattern kind, which AnnotateTIROpPattern adds"
    ),
    "opaque": _("the pattern kind of {other} is opaque: its loops have no form that FuseOps fuses"),
    "in-place": _("{other} writes in place, and its pattern kind is opaque"),
    "match-cast": _("{other} is a match_cast, which checks a shape and is never fused"),
    "tuple": _("{other} makes a tuple, and FuseOps fuses no fields into one"),
    "branch": _("{other} is an If, which is never fused"),
    "not-a-call": _("{other} is not a function call"),
}
"""Words for bindings that are never fused, by cause."""

RULES: Mapping[Cause, str] = {
    "output": _(
        "{source} is an output of its dataflow block, so it is written to memory anyway, and "
        "FuseOps fuses no output into its users"
    ),
    "used-elsewhere": _(
        "{source} has {count} users ({users}), which never meet in one binding, "
        "and FuseOps fuses a value only with the binding where all of its uses meet"
    ),
    "reduction": _("{source} is a reduction, and FuseOps fuses no reduction into its users"),
    "reduces-twice": _(
        "{source} and {other} each bring a reduction ({kind}, {other_kind}), and a "
        "fused function has one at most"
    ),
    "pattern": _("{source} is {kind} and {other} is {other_kind}: FuseOps fuses {allowed}"),
    "field": _(
        "{source} reads a field of a tuple that is made outside of the group: FuseOps reads it "
        "before the call of the fused function"
    ),
    "depth-limit": _("the group would have more than {most} bindings"),
}
"""Words for the rules of ``FuseOps``, by cause."""

ALLOWED = {
    Kind.ELEMENTWISE: _(
        "an elementwise operator into elementwise, broadcast and injective ones, "
        "and at the end into a reduction, but not into out-elementwise-fusable ones, such as "
        "products"
    ),
    Kind.BROADCAST: _(
        "a broadcast operator into elementwise, broadcast and injective operators, "
        "and at the end into a reduction, but not into out-elementwise-fusable ones, such as "
        "products"
    ),
    Kind.INJECTIVE: _("an injective operator into elementwise, broadcast and injective ones only"),
    Kind.ANCHOR: _(
        "an out-elementwise-fusable operator, such as a product, with the elementwise operators "
        "that follow it only"
    ),
}


@answers(WhyFusedQuery)
def why_fused(query: WhyFusedQuery, pipeline: Pipeline, job: Progress) -> Explanation:
    """Return whether two nodes, bindings or functions are fused, and why.

    Raises `LowerscopeError` if there is no such node, or the passes before cannot be applied.
    """
    return _answer(query, pipeline, job, may_change=True)


def _answer(
    query: WhyFusedQuery, pipeline: Pipeline, job: Progress, *, may_change: bool
) -> Explanation:
    stages = pipeline.stages(query.recipe, job)
    one, other = _entity(stages, query.one), _entity(stages, query.other)
    pair = _Pair(stages, one, other)
    answer = pair.answer()
    if answer.fused or not may_change:
        return answer
    for change, cause, words in pair.changes(answer):
        changed = _changed(query.recipe, change)
        if changed == query.recipe:
            continue
        # A missing pass may not be the only thing that is in the way.
        other_answer = _answer(
            msgspec.structs.replace(query, recipe=changed),
            pipeline,
            job,
            may_change=cause is not None,
        )
        if other_answer.fused:
            text = _(
                "{reason}. To fuse them ({by}): {change}",
                reason=words or answer.text,
                change=change.text,
                by=other_answer.by,
            )
            return msgspec.structs.replace(
                answer, cause=cause or answer.cause, text=text, change=change
            )
        if cause is not None and other_answer.text != words:
            # The pass is missing, and would not fuse them either.
            text = _(
                "{reason}; with it, they would not be fused either: {other}",
                reason=words,
                other=other_answer.text,
            )
            both = None if other_answer.change is None else _both(change, other_answer.change)
            return msgspec.structs.replace(other_answer, text=text, change=both)
        if answer.cause == "library-call":
            text = _(
                "{reason}; lowered as high-level, they would not be fused either: {other}",
                reason=answer.text,
                other=other_answer.text,
            )
            return msgspec.structs.replace(answer, text=text)
    return answer


def _both(first: Change, second: Change) -> Change:
    """Return one change in place of two, of which the second was found after the first."""
    return Change(
        text=_("{change}; then: {other}", change=first.text, other=second.text),
        steps=first.steps if second.steps is None else second.steps,
        overrides=first.overrides if second.overrides is None else second.overrides,
    )


def _changed(recipe: Recipe, change: Change) -> Recipe:
    fields = {"steps": change.steps, "overrides": change.overrides}
    return msgspec.structs.replace(
        recipe, **{name: value for name, value in fields.items() if value is not None}
    )


# --- The nodes of a question ---


@dataclass(frozen=True)
class Entity:
    """A node, a binding or a function, with the bindings that it is before the first pass."""

    id: str
    name: str
    bindings: frozenset[str]


def _entity(stages: Stages, text: str) -> Entity:
    """Return the entity with an id or a name.

    Raises `LowerscopeError` if there is none.
    """
    kind, _sep, name = text.rpartition(":")
    lowered = stages.lowered
    if lowered is not None and kind in ("", "fx") and name in lowered.nodes:
        own = {f"relax:main/{each}" for each in lowered.nodes[name].bindings}
        return Entity(f"fx:{name}", name, frozenset(own - _copies(stages.module)))
    module = stages.module
    bounds = binding_ids(module)
    for bound in bounds:
        if kind in ("", "relax") and name in (bound.name, bound.id.removeprefix("relax:")):
            return Entity(bound.id, bound.name, frozenset((bound.id,)) - _copies(module))
    transformed = stages.transformed
    for number in range(len(transformed.runs) + 1):
        # The first step that has it: what is fused later has a name of its own.
        if number and transformed.runs[number - 1].after is None:
            continue
        found = frozenset(_callers(stages, number, name, kind))
        if found:
            return Entity(f"tir:{name}", name, found)
    names = tuple(lowered.nodes) if lowered is not None else tuple(each.name for each in bounds)
    readers = _readers_of_parameter(stages, text)
    if readers is not None:
        raise LowerscopeError(
            _("'{text}' is a parameter of the model, and generates no code", text=text),
            where="why",
            todo=_("Choose a node that reads it: {listed}", listed=listed(readers)),
            choices=readers,
        )
    raise LowerscopeError(
        _("there is no node, binding or function '{text}'", text=text),
        where="why",
        todo=_("Choose one of {listed}", listed=listed(names)),
        choices=names,
    )


def _readers_of_parameter(stages: Stages, name: str) -> tuple[str, ...] | None:
    """Return the nodes that read a parameter or a buffer; ``None`` if there is no such one."""
    if stages.traced is None:
        return None
    graph_module = stages.traced.graph_module
    tensors = (graph_module.named_parameters(), graph_module.named_buffers())
    if not any(name == own for own, _tensor in chain(*tensors)):
        return None
    owner, _dot, _own = name.rpartition(".")
    nodes = graph_module.graph.nodes
    return tuple(
        each.name
        for each in nodes
        if (each.op == "call_module" and str(each.target) == owner)
        or any(given.op == "get_attr" and given.target == name for given in each.all_input_nodes)
    )


def _copies(module: tvm.IRModule) -> set[str]:
    """Return the bindings that only give a value another name, as that of the output does."""
    values = ((bound.id, bound.value) for bound in binding_ids(module))
    return {name for name, value in values if isinstance(value, relax.Var)}


def _callers(stages: Stages, number: int, name: str, kind: str) -> Iterator[str]:
    """Yield the bindings, before the first pass, of the calls of a function after a pass."""
    if kind not in ("", "tir", "relax"):
        return
    module = stages.transformed.module_after(number)
    if not any(str(variable.name_hint) == name for variable, _other in module.functions_items()):
        return
    origins = stages.transformed.origins(number)
    for bound in binding_ids(module):
        if called_name(bound.value) == name:
            yield from origins.get(bound.id, ())


# --- The answer ---


class _Pair:
    """Two entities of a recipe, and what became of them."""

    def __init__(self, stages: Stages, one: Entity, other: Entity) -> None:
        self._stages = stages
        self._one, self._other = one, other
        self._transformed = stages.transformed

    def answer(self) -> Explanation:
        """Return whether they are fused, and why."""
        one, other = self._one, self._other
        for each in (one, other):
            if not each.bindings:
                return self._not("no-code", self._without_code(each), each.id)
        for part, whole in ((one, other), (other, one)):
            names = {"name": part.name, "name2": whole.name}
            if whole.id.startswith("tir:") and part.bindings & whole.bindings:
                return self._not("same-binding", _("{name2} computes {name}", **names))
            if part.bindings < whole.bindings:
                return self._not("same-binding", _("{name} is a part of {name2}", **names))
        if one.bindings & other.bindings:
            return self._not(
                "same-binding",
                _("{name} and {name2} are the same binding", name=one.name, name2=other.name),
            )
        fused = self._fused_by()
        if fused is not None:
            name, function = fused
            by = f"{name}: {function}" if function else name
            if function:
                text = _(
                    "{name} fused {one} and {other} into {function}",
                    name=name,
                    one=one.name,
                    other=other.name,
                    function=function,
                )
            else:
                text = _(
                    "{name} fused {one} and {other} into one binding",
                    name=name,
                    one=one.name,
                    other=other.name,
                )
            cites = (one.id, other.id, *((f"relax:{function}",) if function else ()))
            return Explanation(fused=True, by=by, cause="fused", text=text, cites=cites)
        run = next((run for _other, run in self._runs() if run.name == FUSE_OPS), None)
        if run is None:
            return self._not(
                "pass-missing", _("{fuse_ops} is not in the pipeline", fuse_ops=FUSE_OPS)
            )
        return self._unfused(run)

    def _without_code(self, entity: Entity) -> str:
        """Return why an entity generates no code, with the name of what makes its value."""
        name, traced, lowered = entity.name, self._stages.traced, self._stages.lowered
        if lowered is None or traced is None or not entity.id.startswith("fx:"):
            return _("{name} is another name of a value, and generates no code", name=name)
        node = next(each for each in traced.graph_module.graph.nodes if each.name == name)
        if node.op in WITHOUT_CODE:
            return WITHOUT_CODE[node.op].format(name=name)
        value = lowered.nodes[name].value
        if isinstance(value, relax.Var):
            for each in lowered.nodes.values():
                if each.node != name and value.name in each.bindings:
                    return _(
                        "{name} generates no code of its own: its value comes from {other}",
                        name=name,
                        other=each.node,
                    )
        return _("{name} generates no code of its own", name=name)

    def _not(self, cause: Cause, text: str, *cites: str) -> Explanation:
        cites = tuple(dict.fromkeys((self._one.id, self._other.id, *cites)))
        # Only a word is capitalized, not the name of a binding.
        text = capitalized(text) if english(text).startswith("the ") else text
        return Explanation(fused=False, cause=cause, text=text, cites=cites)

    def _runs(self) -> Iterator[tuple[int, PassRun]]:
        for number, run in enumerate(self._transformed.runs, start=1):
            if run.depth == 0 and run.after is not None and run.status == "done":
                yield number, run

    def _fused_by(self) -> tuple[str, str] | None:
        """Return the pass after which one binding computes both, and the function it calls."""
        # Equal groups share a function: the binding is that of the call, and not one inside.
        own = {name for name, _function in relax_functions(self._stages.module)}
        ours, theirs = self._one.bindings, self._other.bindings
        for number, run in self._runs():
            after = self._transformed.module_after(number)
            if after.same_as(run.before):
                continue
            origins = self._transformed.origins(number)
            for function, each in relax_functions(after):
                for bound in bound_in(function, each) if function in own else ():
                    name = called_name(bound.value)
                    came = frozenset(origins.get(bound.id, ()))
                    if name not in own and came & ours and came & theirs:
                        return run.name, name
        return None

    def _unfused(self, run: PassRun) -> Explanation:
        """Return why ``FuseOps`` did not fuse them."""
        module = run.before
        number = next(number for number, each in self._runs() if each is run)
        origins = self._transformed.origins_before(number)
        bounds = {bound.id: bound for bound in binding_ids(module)}
        one, other = (
            [each for each in bounds if each_entity.bindings.intersection(origins.get(each, ()))]
            for each_entity in (self._one, self._other)
        )
        for entity, left in ((self._one, one), (self._other, other)):
            if not left:
                return self._not("removed", self._removed(entity), entity.id)
        readers = _readers(bounds)
        pair = next(
            (
                (source, user)
                for sources, users in ((one, other), (other, one))
                for source in sources
                for user in readers[source]
                if user in users
            ),
            None,
        )
        if pair is None:
            return self._apart(readers, one, other)
        return self._explain(module, run, *pair)

    def _removed(self, entity: Entity) -> str:
        fates = self._transformed.fates
        fate = next((fates[each] for each in entity.bindings if each in fates), None)
        if fate is None:
            return _(
                "{name} no longer exists before {fuse_ops}", name=entity.name, fuse_ops=FUSE_OPS
            )
        return _(
            "{name} was {fate} before {fuse_ops}",
            name=entity.name,
            fate=fate.text,
            fuse_ops=FUSE_OPS,
        )

    def _apart(
        self, readers: Mapping[str, Sequence[str]], one: Sequence[str], other: Sequence[str]
    ) -> Explanation:
        """Return the answer for entities of which neither reads a value of the other."""
        # Imported here since few commands explain fusion.
        import networkx

        graph = networkx.DiGraph((source, user) for source in readers for user in readers[source])
        names = _("{one} and {other}", one=self._one.name, other=self._other.name)
        for sources, targets in ((one, other), (other, one)):
            for source in sources:
                for target in targets:
                    if source in graph and target in graph:
                        if not networkx.has_path(graph, source, target):
                            continue
                        path = networkx.shortest_path(graph, source, target)
                        count = len(path) - 2
                        text = _n(
                            "{names} are not adjacent: {count} binding between them, {first}",
                            "{names} are not adjacent: {count} bindings between them, "
                            "first {first}",
                            count,
                            names=names,
                            first=_short(path[1]),
                        )
                        return self._not("not-adjacent", text, *path)
        return self._not(
            "not-adjacent", _("{names} are not adjacent: neither reads the other", names=names)
        )

    def _explain(self, module: tvm.IRModule, run: PassRun, source: str, user: str) -> Explanation:
        """Return why ``FuseOps`` did not fuse a binding with one that reads it."""
        partition = Partition(module)
        if source not in partition.vertices or user not in partition.vertices:
            return self._not(
                "unknown",
                _("{short} was grouped before {fuse_ops}", short=_short(source), fuse_ops=FUSE_OPS),
                source,
            )
        one, other = partition.vertices[source], partition.vertices[user]
        matches = match_bindings(module, run.after)
        really = bool(set(matches.get(source, ())) & set(matches.get(user, ())))
        if really or partition.are_fused(source, user):
            level = "fuse_opt_level"
            options = self._stages.recipe.steps[run.step - 1].options
            if not really and options.get(level) == 0:
                text = _(
                    "{fuse_ops} has {level}=0, which fuses nothing", fuse_ops=FUSE_OPS, level=level
                )
                return self._not("fusion-disabled", text, source, user)
            text = _("{fuse_ops} decided otherwise than by its known rules", fuse_ops=FUSE_OPS)
            return self._not("unknown", text, source, user)
        cause, where, words = fusion_reason(one, other, module)
        cites = (
            source,
            user,
            where.bound.id,
            _("{fuse_ops} pattern kinds: {kinds}", fuse_ops=FUSE_OPS, kinds=_kinds(one, where)),
        )
        return self._not(cause, words, *cites)

    # Changes

    def changes(self, answer: Explanation) -> Iterator[tuple[Change, Cause | None, str]]:
        """Yield changes that may fuse them, with the cause that they would cure, in order."""
        steps = self._stages.recipe.steps
        names = [step.name for step in steps]
        if answer.cause == "pass-missing":
            if FUSE_OPS in names:
                place = names.index(FUSE_OPS)
                text = _("Switch on step {place} ({fuse_ops})", place=place + 1, fuse_ops=FUSE_OPS)
                on = msgspec.structs.replace(steps[place], on=True)
                changed = Change(text=text, steps=(*steps[:place], on, *steps[place + 1 :]))
                yield (
                    changed,
                    "pass-off",
                    _("Step {place} ({fuse_ops}) is off", place=place + 1, fuse_ops=FUSE_OPS),
                )
            else:
                text = _("Add {name}", name=FUSE_OPS)
                changed = Change(text=text, steps=_with_fusion(steps))
                yield changed, "pass-missing", answer.text
        elif answer.cause in ("not-legalised", "not-annotated"):
            text = _("Put LegalizeOps and AnnotateTIROpPattern before FuseOps")
            changed = Change(text=text, steps=_with_fusion(steps))
            yield changed, "pass-order", answer.text
        elif answer.cause == "fusion-disabled":
            place = names.index(FUSE_OPS)
            plain = Step(name=FUSE_OPS)
            changed = Change(
                text=_("Reset the options of {fuse_ops}", fuse_ops=FUSE_OPS),
                steps=(*steps[:place], plain, *steps[place + 1 :]),
            )
            yield changed, None, ""
        elif answer.cause == "library-call":
            yield self._lowered_otherwise(), None, ""
        elif answer.cause == "pattern" and FOLD_BATCH_NORM not in names and self._has_batch_norm():
            text = _("Put {name} before all other steps", name=FOLD_BATCH_NORM)
            yield Change(text=text, steps=(Step(name=FOLD_BATCH_NORM), *steps)), None, ""

    def _has_batch_norm(self) -> bool:
        """Return whether one of the two is a batch norm, which may be folded into a product."""
        ours = self._one.bindings | self._other.bindings
        return any(
            operator_of(bound.value) == "relax.nn.batch_norm"
            for bound in binding_ids(self._stages.module)
            if bound.id in ours
        )

    def _lowered_otherwise(self) -> Change:
        recipe, lowered = self._stages.recipe, self._stages.lowered
        nodes = [] if lowered is None else list(lowered.nodes.values())
        ours = self._one.bindings | self._other.bindings
        names = [
            each.node
            for each in nodes
            if each.strategy == "library"
            and ours.intersection(f"relax:main/{name}" for name in each.bindings)
        ]
        added = tuple(Override(pattern=f"fx:{each}", strategy="high-level") for each in names)
        patterns = {each.pattern for each in added}
        kept = (each for each in recipe.overrides if each.pattern not in patterns)
        text = _("Lower {names} as high-level", names=enumeration(names))
        return Change(text=text, overrides=(*kept, *added))


def _readers(bounds: Mapping[str, Bound]) -> dict[str, list[str]]:
    """Return, for each binding, those that read its value."""
    by_variable = {hash(bound.binding.var): name for name, bound in bounds.items()}
    readers: dict[str, list[str]] = {name: [] for name in bounds}
    for name, bound in bounds.items():
        for variable in read_by(bound.value):
            source = by_variable.get(hash(variable))
            if source is not None:
                readers[source].append(name)
    return readers


_NEEDED = ("LegalizeOps", "AnnotateTIROpPattern", FUSE_OPS, "FuseTIR")


def _with_fusion(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps with those of fusion in order, where the first of them stands or at the end."""
    kept = {step.name: step for step in steps if step.name in _NEEDED and step.on}
    place = next(
        (place for place, step in enumerate(steps) if step.name in _NEEDED and step.on), len(steps)
    )
    others = [step for step in steps if step.name not in _NEEDED]
    before = sum(step.name not in _NEEDED for step in steps[:place])
    fusing = [kept.get(name, Step(name=name)) for name in _NEEDED]
    return (*others[:before], *fusing, *others[before:])


def fusion_reason(one: Vertex, other: Vertex, module: tvm.IRModule) -> tuple[Cause, Vertex, str]:
    """Return the cause why `one` was not fused with its user `other`, in words."""
    for each in (one, other):
        if each.barrier is not None:
            return each.barrier, each, _barrier_text(each, module)
    dominator = one.dominator
    # What the two forbid stays true, whatever becomes of the value's other users.
    found = forbidden_alone(one, other) or one.blocked
    if one.is_output and found is one.blocked:
        return "output", one, RULES["output"].format(source=_title(one, module))
    if dominator is None and found is one.blocked:
        users = [_short(user.bound.id) for user, _other in one.users]
        text = RULES["used-elsewhere"].format(
            source=_title(one, module), count=len(users), users=_(", ").join(dict.fromkeys(users))
        )
        return "used-elsewhere", one, text
    if found is None:
        return "unknown", one, _("The cause is not known")
    cause, where, kind = found
    if where.barrier is not None:
        text = _barrier_text(where, module)
    else:
        text = RULES[cause].format(
            source=_title(one, module),
            other=_title(where, module),
            kind=_kind_text(one, one.group.kind),
            other_kind=_kind_text(where, kind),
            allowed=ALLOWED.get(one.group.kind, _("nothing into it")),
            most=MOST_FUSED,
        )
    is_apart = where not in (one, other) or (where is one and dominator is not other)
    if is_apart and dominator is not None:
        text = _(
            "{reason}. All uses of {source} meet in {other}, so it is fused with everything on the "
            "way there, or with nothing",
            reason=text,
            source=_short(one.bound.id),
            other=_short(dominator.bound.id),
        )
    return cause, where, text


def _barrier_text(vertex: Vertex, module: tvm.IRModule) -> str:
    assert vertex.barrier is not None
    return BARRIERS[vertex.barrier].format(
        other=_title(vertex, module), operator=operator_of(vertex.bound.value)
    )


def _kind_text(vertex: Vertex, kind: Kind) -> str:
    """Return the pattern kind of a binding, or of the group that it belongs to by then."""
    own, grouped = KIND_TEXTS[vertex.kind], KIND_TEXTS[kind]
    return (
        own
        if own == grouped
        else _("{grouped} (because of the operators it is fused with)", grouped=grouped)
    )


def _kinds(*vertices: Vertex) -> str:
    texts = {_short(each.bound.id): KIND_TEXTS[each.kind] for each in vertices}
    return _(", ").join(f"{name} {kind}" for name, kind in texts.items())


def _title(vertex: Vertex, module: tvm.IRModule) -> str:
    """Return a binding's variable, with the function that it calls."""
    callee = callee_of(vertex.bound.value)
    name = vertex.bound.name
    return name if callee is None else f"{name} ({entity_of(callee, module).partition(':')[2]})"


def _short(binding: str) -> str:
    return binding.partition("/")[2]
