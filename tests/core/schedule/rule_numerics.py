"""Functions of all kinds, scheduled by rule for several targets, in a child that is watched.

``python -m tests.core.schedule.rule_numerics SEED COUNT SHARE KIND…`` is the child. It writes a
line of JSON before and after all that it does.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lowerscope.core.run.checking import Limit
from tests.core.schedule.children import draw_until, say, watched

T = TypeVar("T")

FUSED = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR", "DeadCodeElimination")
TARGETS = ("llvm", "avx2", "native")


@dataclass
class Findings:
    """Results of all functions.

    Attributes
    ----------
    models
        How many were drawn.
    functions, by_rule
        How many they had, and how many were scheduled by which rule.
    checked, with_torch
        Functions that were run beside the unscheduled one, and models beside torch.
    unfit
        Why no rule has scheduled a function, by how often.
    bad
        What killed the child, or is wrong.
    """

    models: int = 0
    functions: int = 0
    checked: int = 0
    with_torch: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)
    unfit: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, Any]] = field(default_factory=list)


def examine(
    first: int, count: int, share: float, seconds: float, kinds: tuple[str, ...] = ()
) -> Findings:
    """Draw `count` models, schedule their functions by rule, and return what became of them.

    Parameters
    ----------
    share
        Of the models, how many are compared with torch as well.
    seconds
        After how long without a word the child is taken for hung.
    kinds
        Of `rule_cases.KINDS`; all if there is none.
    """
    findings = Findings()
    batch = first
    while findings.models < count:
        arguments = (batch, count - findings.models, share, *kinds)
        for line in watched("tests.core.schedule.rule_numerics", arguments, seconds):
            _count(line, findings)
        batch += 1
    return findings


def _count(line: dict[str, Any], findings: Findings) -> None:
    match line["event"]:
        case "model":
            findings.models += 1
        case "ruled":
            findings.functions += 1
            # Of a function of a single value there is nothing to schedule.
            if line["rule"] and line["steps"]:
                findings.by_rule[line["rule"]] += 1
            else:
                findings.unfit[line["reason"]] += 1
        case "checked":
            findings.checked += 1
        case "torch":
            findings.with_torch += 1
        case "bad":
            findings.bad.append(line)


# The child.


def main(first: int, count: int, share: float, kinds: list[str]) -> None:
    """Draw models until there are `count`."""
    from hypothesis import strategies as st

    from lowerscope.core.build.targets import use_threads
    from tests.core.schedule.rule_cases import KINDS

    use_threads(2)
    targets = _targets()
    drawn = 0

    def one(data: st.DataObject) -> None:
        nonlocal drawn
        kind = data.draw(st.sampled_from(kinds or sorted(KINDS)))
        case = data.draw(KINDS[kind])
        name = data.draw(st.sampled_from(TARGETS))
        fused = data.draw(st.integers(0, 4)) > 0
        arithmetic = data.draw(st.booleans())
        beside_torch = data.draw(st.floats(0, 1)) < share
        if drawn == count:
            return
        about = {"case": case.label, "target": name, "fused": fused, "arithmetic": arithmetic}
        say("model", **about)
        drawn += 1
        _examine(case, targets[name], fused, arithmetic, beside_torch, about)

    draw_until(lambda: drawn >= count, one, first, max(1, min(count, 200)))


def _targets() -> dict[str, Any]:
    import tvm

    from lowerscope.core.build.targets import make_target

    wide = {"kind": "llvm", "num-cores": 2, "mattr": ["+avx2", "+fma", "+f16c"]}
    return {
        "llvm": tvm.target.Target({"kind": "llvm", "num-cores": 2}),
        "avx2": tvm.target.Target(wide),
        "native": make_target("native", 2),
    }


def _examine(
    case: Any, target: Any, fused: bool, arithmetic: bool, beside_torch: bool, about: Any
) -> None:
    import tvm
    from tvm import relax, tirx

    from lowerscope.core.passes.vector_math import with_vector_math
    from lowerscope.core.run.standalone import sizes_at_calls

    steps = [getattr(relax.transform, name)() for name in (FUSED if fused else FUSED[:1])]
    with target:
        module = tvm.transform.Sequential(steps)(case.module())
    sizes = sizes_at_calls(module, case.shapes())
    vectors = with_vector_math(module) if arithmetic else module
    scheduled = {}
    for variable, function in module.functions.items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        name = str(variable.name_hint)
        say("scheduling", function=name, **about)
        after = _scheduled(vectors[variable], target, {"function": name, **about})
        if after is not None:
            scheduled[variable] = after
            _check(function, after, sizes.get(name), target, {"function": name, **about})
    if beside_torch and scheduled and case.torch is not None:
        say("running", **about)
        _beside_torch(case, module, scheduled, target, about)


def _scheduled(function: Any, target: Any, about: dict[str, Any]) -> Any:
    """Return what the steps of a rule make when they are replayed; ``None`` where no rule fits."""
    import tvm
    from tvm.s_tir import Schedule

    from lowerscope.core.schedule.applying import apply
    from lowerscope.core.schedule.references import first_outputs, function_of
    from lowerscope.core.schedule.rules.by_rule import by_rule

    ruled = by_rule(function, target)
    steps = len(ruled.primitives)
    say("ruled", rule=ruled.rule, reason=ruled.reason, steps=steps, **about)
    if not ruled.primitives:
        return None
    sch = Schedule(tvm.IRModule({"main": function}))
    outputs: dict[Any, Any] = dict(first_outputs(sch))
    for primitive in ruled.primitives:
        applied = apply(sch, primitive, outputs, target)
        sch, outputs = applied.sch, {**outputs, primitive.id: applied.outputs}
        if not primitive.comment:
            say("bad", kind="no reason", step=primitive.name, **about)
    return function_of(sch)


class _Unlimited(Limit):
    """Runs what it is given at once: whoever watches the child has an eye on the time."""

    def run(self, call: Callable[[], T]) -> T:
        """Return what `call` returns."""
        return call()


def _check(before: Any, after: Any, given: Any, target: Any, about: dict[str, Any]) -> None:
    from lowerscope.core.model.problems import LowerscopeError
    from lowerscope.core.model.progress import SILENT
    from lowerscope.core.run.checking import compare, reference_of
    from lowerscope.core.run.standalone import at_sizes

    say("building", **about)
    limit = _Unlimited(0.0, 2, SILENT)
    sized = at_sizes(before, given)
    reference = reference_of(sized, target, 0, limit)
    try:
        checked = compare(at_sizes(after, given).function, target, reference, limit)
    except LowerscopeError as error:
        say("bad", kind="fails", how=error.problem.what, **about)
        return
    if checked.verdict == "same":
        say("checked")
    else:
        say("bad", kind="wrong", how=checked.reason, **about)


_FAR = {"float64": 1e-9, "float32": 2e-4, "float16": 2e-2, "bfloat16": 2e-1}
"""Tolerance of an output, as a share of its largest value."""


def _beside_torch(case: Any, module: Any, scheduled: Any, target: Any, about: Any) -> None:
    import torch
    import tvm
    from tvm import relax

    from lowerscope.core.run.execution import to_torch, to_tvm

    torch.manual_seed(0)
    inputs = [
        _values(shape, dtype) for shape, (_, dtype) in zip(case.shapes(), case.inputs, strict=True)
    ]
    expected = case.torch(*inputs)
    module = tvm.IRModule({**module.functions, **scheduled}, attrs=module.attrs)
    executable = tvm.compile(module, target)
    got = to_torch(relax.VirtualMachine(executable, tvm.cpu())["main"](*map(to_tvm, inputs)))
    dtypes = [dtype for _, dtype in case.inputs]
    if not expected.dtype.is_floating_point:
        same = bool((got == expected).all())
    else:
        a, b = got.double(), expected.double()
        far = max(_FAR.get(each, 0.0) for each in (*dtypes, str(got.dtype)[6:])) * max(
            1.0, float(b.abs().max()) if b.numel() else 0.0
        )
        same = a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=far, equal_nan=True)
    if same:
        say("torch")
    else:
        say("bad", kind="not as torch", **about)


def _values(shape: tuple[int, ...], dtype: str) -> Any:
    import torch

    if dtype.startswith(("float", "bfloat")):
        return torch.randn(shape).to(getattr(torch, dtype))
    low = 0 if dtype == "int64" else -8
    return torch.randint(low, 9, shape).to(getattr(torch, dtype))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
