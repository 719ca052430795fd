"""Random primitives with random arguments, in a child that is watched.

``python -m tests.core.schedule.fuzzing SEED COUNT SHARE SAMPLE…`` is the child. It writes a line
of JSON before and after all that it does, so that whoever watches it knows what killed it.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import strategies as st

from lowerscope.core.model.schedule import Argument, At, Made, Primitive
from tests.core.schedule.children import draw_until, say, watched

STEPS = 6
"""Primitives of one schedule."""


@dataclass
class Findings:
    """Results of all applications.

    Attributes
    ----------
    done, refused
        How many were applied, and how many refused with a reason.
    forced
        Of those applied, how many although they are unsafe.
    checked
        Schedules that were built and run beside the unscheduled function.
    bad
        What killed or hung the child, or was accepted and is wrong, with its input.
    reasons
        How often a primitive was refused for a reason that is not TVM's or a guard's.
    by_name
        Applications that were done, by primitive.
    """

    done: int = 0
    refused: int = 0
    forced: int = 0
    checked: int = 0
    schedules: int = 0
    bad: list[dict[str, Any]] = field(default_factory=list)
    by_name: Counter[str] = field(default_factory=Counter)

    @property
    def applications(self) -> int:
        """Number of primitives that were tried."""
        return self.done + self.refused + len([bad for bad in self.bad if bad["kind"] == "death"])


def fuzz(first: int, count: int, share: float, samples: list[str], seconds: float) -> Findings:
    """Apply `count` primitives in children, and return what became of them.

    Parameters
    ----------
    share
        Of the schedules, how many are built and run.
    seconds
        After how long without a word the child is taken for hung.
    """
    findings = Findings()
    batch = first
    while findings.applications < count:
        arguments = (batch, count - findings.applications, share, *samples)
        for line in watched("tests.core.schedule.fuzzing", arguments, seconds):
            _count(line, findings)
        batch += 1
    return findings


def _count(line: dict[str, Any], findings: Findings) -> None:
    match line["event"]:
        case "done":
            findings.done += 1
            findings.forced += line["forced"]
            findings.by_name[line["name"]] += 1
        case "refused":
            findings.refused += 1
        case "schedule":
            findings.schedules += 1
        case "checked":
            findings.checked += 1
        case "bad":
            findings.bad.append(line)


# The child.

_NAMES = ("global", "local", "shared", "wmma.accumulator", "", "texture", "warp", "x" * 300)
_KEYS = (
    "pragma_auto_unroll_max_step",
    "pragma_unroll_explicit",
    "pragma_import_c",
    "pragma_debug_skip_region",
    "pragma_parallel_launch_point",
    "pragma_loop_partition_hint",
    "software_pipeline_stage",
    "software_pipeline_order",
    "double_buffer_scope",
    "buffer_dim_align",
    "meta_schedule.parallel",
    "meta_schedule.unroll_explicit",
    "thread_extent_low_inclusive",
    "tirx.script_parsing_detect_access",
    "explicit_read_region_0",
    "explicit_write_region_0",
    "auto_copy",
    "attr",
    "",
    "ключ",
)
_SMALL = st.sampled_from((0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 64))
_ODD = st.sampled_from(
    (-1, -2, 128, 1000, 4096, 2**16, 2**20, 2**30, 2**31 - 1, 2**31, 2**40, -(2**31))
)
_INTEGERS = st.one_of(_SMALL, _SMALL, _SMALL, _ODD)
_WRONG = st.sampled_from((None, True, "x", 1.5, (), float("nan"), float("inf"), "é" * 50))


def _references(named: list[Any], steps: list[str]) -> st.SearchStrategy[Any]:
    options: list[st.SearchStrategy[Any]] = []
    if named:
        options += [st.sampled_from(named)] * 8
    if steps:
        options.append(
            st.builds(
                lambda step, output: Made(step=step, output=output),
                st.sampled_from(steps),
                st.integers(-1, 4),
            )
        )
    options.append(
        st.builds(
            lambda block, occurrence, loop: At(block=block, occurrence=occurrence, loop=loop),
            st.sampled_from(("root", "matmul", "T_add", "", "nothing")),
            st.integers(-1, 2),
            st.one_of(st.none(), st.integers(-2, 9)),
        )
    )
    return st.one_of(*options)


def _maps(axes: tuple[str, ...]) -> st.SearchStrategy[str]:
    axis = st.sampled_from(axes or ("i",))
    number = st.sampled_from((1, 2, 3, 4, 8, 16, 32, 7, 1048576))
    index = st.one_of(
        axis,
        axis,
        st.builds(lambda a, n: f"{a} // {n}", axis, number),
        st.builds(lambda a, n: f"{a} % {n}", axis, number),
        st.builds(lambda a, n, b: f"{a} * {n} + {b}", axis, number, axis),
        st.builds(lambda a, n: f"{n} - {a}", axis, number),
        st.sampled_from(("0", "5", "i // 0", "i ** 9", "f(i)", "i @ j", "(" * 90, "i -> j")),
    )
    left = ", ".join(axes)
    some = st.lists(index, min_size=0, max_size=6).map(lambda each: f"{left} -> {', '.join(each)}")
    mixed = st.permutations(list(axes)).map(lambda each: f"{left} -> {', '.join(each)}")
    halved = st.builds(
        lambda a, n: (
            f"{left} -> "
            + ", ".join(f"{each} // {n}, {each} % {n}" if each == a else each for each in axes)
        ),
        axis,
        number,
    )
    return st.one_of(mixed, halved, some)


def _argument(entry: Any, parameter: Any, named: list[Any], steps: list[str], axes: Any) -> Any:
    reference = _references(named, steps)
    match parameter.kind:
        case "loop" | "block" | "loop or block":
            usual: Any = reference
        case "loops":
            usual = st.lists(reference, max_size=4).map(tuple)
        case "factors":
            usual = st.lists(st.one_of(st.none(), _INTEGERS, _INTEGERS, reference), max_size=4).map(
                tuple
            )
        case "integers" | "order":
            usual = st.lists(_INTEGERS, max_size=8).map(tuple)
        case "numbers":
            usual = st.lists(st.floats(-1, 2), max_size=4).map(tuple)
        case "integer" | "buffer":
            usual = _INTEGERS
        case "number":
            usual = st.one_of(_INTEGERS, st.floats())
        case "flag":
            usual = st.booleans()
        case "choice":
            usual = st.sampled_from((*(parameter.choices or ("A", "B")), *_NAMES))
        case "text":
            usual = st.sampled_from(_KEYS)
        case "value":
            usual = st.one_of(
                _INTEGERS,
                st.floats(),
                st.text(max_size=9),
                st.lists(_INTEGERS, max_size=4).map(tuple),
            )
        case "index map":
            usual = _maps(axes)
        case _:
            raise AssertionError(parameter.kind)
    return st.one_of(*[usual] * 12, _WRONG)


def _functions(samples: list[str]) -> list[tuple[str, Any]]:
    import tvm_ffi
    from tvm import tirx

    from lowerscope.core.model.recipe import Recipe, Source, Step
    from lowerscope.core.stages import Pipeline
    from tests.core.schedule import functions

    found = [
        (name, each)
        for name, each in sorted(vars(functions).items())
        if isinstance(each, tirx.PrimFunc)
    ]
    pipeline = Pipeline()
    for sample in samples:
        for fused in (False, True):
            steps = (
                "LegalizeOps",
                *(("AnnotateTIROpPattern", "FuseOps", "FuseTIR") if fused else ()),
            )
            recipe = Recipe(
                source=Source(spec=sample), steps=tuple(Step(name=name) for name in steps)
            )
            module = pipeline.stages(recipe).transformed.module
            found.extend(
                (f"{sample}/{var.name_hint}", each)
                for var, each in module.functions.items()
                if isinstance(each, tirx.PrimFunc)
            )
    kept: dict[int, tuple[str, Any]] = {}
    for name, each in found:
        kept.setdefault(tvm_ffi.structural_hash(each.without_attr("global_symbol")), (name, each))
    return list(kept.values())


def main(first: int, count: int, share: float, samples: list[str]) -> None:
    """Draw schedules until `count` primitives were tried."""
    import tvm
    import tvm_ffi

    from lowerscope.core.schedule.applying import apply
    from lowerscope.core.schedule.primitive_table import PRIMITIVES
    from lowerscope.core.schedule.references import function_of, places, references
    from lowerscope.core.schedule.replay import can_be_copied, renewed
    from lowerscope.core.schedule.step_errors import StepFailed
    from lowerscope.core.views.workbench import moves
    from tests.core.schedule.running import Runner

    all_functions = _functions(samples)
    target = tvm.target.Target("llvm")
    runner = Runner(target)
    tried = 0

    def one(data: st.DataObject) -> None:
        nonlocal tried
        # The first ones are small and drawn as often as all the others.
        name, func = data.draw(st.sampled_from(all_functions))
        sch = tvm.s_tir.Schedule(tvm.IRModule({"main": func}))
        base = sch
        outputs: dict[str, tuple[Any, ...]] = {}
        steps: list[Primitive] = []
        kept: list[Primitive] = []
        risky = False
        for number in range(data.draw(st.integers(1, STEPS))):
            by_stmt = references(sch, outputs)
            found = places(function_of(sch))
            named = [by_stmt[place.stmt] for place in found if place.stmt in by_stmt]
            entry = data.draw(st.sampled_from(list(PRIMITIVES.values())))
            step = f"s{number}"
            arguments: dict[str, Argument] = {}
            if data.draw(st.integers(0, 3)):
                chosen = tuple(data.draw(st.lists(st.sampled_from(named), min_size=1, max_size=2)))
                say("menu", function=name, steps=_encoded(steps), chosen=repr(chosen))
                menu = {move.name: move for move in moves(sch, chosen, outputs, target, step=step)}
                legal = [move for move in menu.values() if move.legal or move.unsafe]
                move = menu.get(entry.name)
                if legal and (move is None or data.draw(st.integers(0, 3))):
                    move = data.draw(st.sampled_from(legal))
                if move is not None:
                    entry = PRIMITIVES[move.name]
                    arguments = dict(move.primitive.arguments)
            names = [parameter for parameter in entry.parameters if parameter.name not in arguments]
            if arguments and data.draw(st.integers(0, 2)) == 0:
                names = [data.draw(st.sampled_from(entry.parameters))]
            blocks = [place for place in found if place.is_block and len(place.stmt.iter_vars)]
            axes = (
                tuple(
                    str(axis.var.name) for axis in data.draw(st.sampled_from(blocks)).stmt.iter_vars
                )
                if blocks
                else ()
            )
            axes = data.draw(st.sampled_from((axes, ("i", "j"), ("i", "j", "k", "l"))))
            for parameter in names:
                if arguments.get(parameter.name) is None and data.draw(st.integers(0, 9)) == 0:
                    continue
                arguments[parameter.name] = data.draw(
                    _argument(entry, parameter, named, list(outputs), axes)
                )
            primitive = Primitive(
                id=step,
                name=entry.name,
                arguments=arguments,
                forced=data.draw(st.integers(0, 9)) == 0,
            )
            say("trying", function=name, steps=_encoded([*steps, primitive]))
            tried += 1
            try:
                applied = apply(sch, primitive, outputs, target)
            except StepFailed as failed:
                if not failed.error.message or "\n" in failed.error.message:
                    say("bad", kind="message", function=name, steps=_encoded([*steps, primitive]))
                say("refused", name=entry.name, reason=failed.error.message[:300])
                continue
            function_of(applied.sch).script()
            forced = primitive.forced and _unsafe(sch, primitive, outputs, target)
            risky = risky or forced
            say("done", name=entry.name, forced=forced)
            sch, outputs = _to_go_on(applied.sch, {**outputs, step: applied.outputs})
            steps.append(primitive)
            kept.append(primitive)
        say("schedule", steps=len(kept))
        _replay(name, base, sch, kept)
        if kept and not risky and data.draw(st.floats(0, 1)) < share:
            say("building", function=name, steps=_encoded(kept))
            wrong = runner.difference(name, func, function_of(sch))
            if wrong is not None:
                say("bad", kind="wrong", how=wrong, function=name, steps=_encoded(kept))
            say("checked")

    def _to_go_on(sch: Any, outputs: Any) -> tuple[Any, Any]:
        if can_be_copied(sch):
            return sch, outputs
        fresh, own = renewed(sch, "main")
        return fresh, {key: tuple(map(own, made)) for key, made in outputs.items()}

    def _unsafe(sch: Any, primitive: Primitive, outputs: Any, target: Any) -> bool:
        try:
            apply(sch, msgspec.structs.replace(primitive, forced=False), outputs, target)
        except StepFailed:
            return True
        return False

    def _replay(name: str, base: Any, sch: Any, kept: list[Primitive]) -> None:
        again, outputs = base, {}
        for primitive in kept:
            read = msgspec.json.decode(msgspec.json.encode(primitive), type=Primitive)
            try:
                applied = apply(again, read, outputs, target)
            except StepFailed as failed:
                say("bad", kind="replay", how=str(failed), function=name, steps=_encoded(kept))
                return
            again, outputs = _to_go_on(applied.sch, {**outputs, primitive.id: applied.outputs})
        if not tvm_ffi.structural_equal(function_of(again), function_of(sch)):
            say("bad", kind="replay", how="another function", function=name, steps=_encoded(kept))

    draw_until(lambda: tried >= count, one, first, 10)


def _encoded(steps: list[Primitive]) -> str:
    return msgspec.json.encode(steps).decode()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
