"""Presets on modules of drawn TensorIR functions, compared with what TVM alone makes of them.

``python -m tests.core.schedule.preset_numerics SEED COUNT`` is the child, which is watched.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.core.schedule.children import draw_until, say, watched

ROWS = 7
"""Rows of matrices that may have any number."""

_NEAR = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""What an element may be off, of the largest of the output."""


@dataclass
class Findings:
    """What became of all modules.

    Attributes
    ----------
    modules
        How many were drawn.
    compared
        How many were compared, by preset.
    refused
        How many TVM does not build as they are; presets are applied to these as well.
    bad
        What killed the child, failed, or is wrong.
    """

    modules: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    bad: list[dict[str, Any]] = field(default_factory=list)


def examine(first: int, count: int, seconds: float) -> Findings:
    """Draw `count` modules, apply all presets, and return what became of them."""
    findings = Findings()
    batch = first
    while findings.modules < count:
        arguments = (batch, count - findings.modules)
        for line in watched("tests.core.schedule.preset_numerics", arguments, seconds):
            match line["event"]:
                case "module":
                    findings.modules += 1
                case "refused":
                    findings.refused += 1
                case "compared":
                    findings.compared[line["preset"]] += 1
                case "bad":
                    findings.bad.append(line)
        batch += 1
    return findings


# The child.


def main(first: int, count: int) -> None:
    """Draw modules until there are `count`."""
    from hypothesis import strategies as st

    from lowerscope.core.build.targets import use_threads
    from tests.core.schedule.tensorir_cases import functions, script

    use_threads(2)
    drawn = 0

    def one(data: st.DataObject) -> None:
        nonlocal drawn
        text, shape, dtype = data.draw(functions())
        others = [script(data.draw, shape, dtype) for _ in range(data.draw(st.integers(0, 2)))]
        if drawn == count:
            return
        drawn += 1
        about = {"scripts": [text, *others]}
        say("module", **about)
        _examine([text, *others], shape, dtype, about)

    draw_until(lambda: drawn >= count, one, first, max(1, min(count, 200)))


def _examine(scripts: list[str], shape: tuple[Any, int], dtype: str, about: Any) -> None:
    import torch
    import tvm
    from tvm.script import from_source

    from lowerscope.core.build.targets import make_target
    from lowerscope.core.files.pipelines_and_schedules import PRESETS
    from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError
    from lowerscope.core.passes.transforming import transform
    from lowerscope.core.schedule.replay import Replays
    from lowerscope.core.schedule.whole_model import WholeModel

    target = make_target("native", 2)
    module = _module([from_source(text) for text in scripts], shape, dtype)
    rows = ROWS if isinstance(shape[0], str) else shape[0]
    torch.manual_seed(0)
    if dtype == "int32":
        given = torch.randint(-4, 5, (rows, shape[1]), dtype=torch.int32)
    else:
        given = (torch.rand(rows, shape[1]) * 4 - 2).to(getattr(torch, dtype))
    expected = None
    try:
        expected = _run(module, tvm.target.Target({"kind": "llvm"}), given)
    except TVM_ERRORS as error:
        say("refused", how=str(error)[-300:], **about)
    for preset in PRESETS:
        told = {"preset": preset.name, **about}
        say("applying", **told)
        scheduled = WholeModel((), Replays(), target, lambda: None)
        try:
            made = transform(module, preset.steps, target=target, rules=scheduled.apply_rules)
            made.check()
            if expected is None:
                continue
            got = _run(made.module, target, given)
        except (LowerscopeError, *TVM_ERRORS) as error:
            say("bad", kind="fails", how=str(error)[-600:], **told)
            continue
        if _near(got, expected, dtype):
            say("compared", **told)
        else:
            off = float((got.double() - expected.double()).abs().max())
            say("bad", kind="wrong", how=f"off by {off}", **told)


def _module(functions: list[Any], shape: tuple[Any, int], dtype: str) -> Any:
    """Return a module whose ``main`` calls functions one after the other."""
    from tvm import relax, tirx

    builder = relax.BlockBuilder()
    extents = [tirx.Var(shape[0], "int64") if isinstance(shape[0], str) else shape[0], shape[1]]
    kind = relax.TensorType(extents, dtype)
    given = relax.Var("given", kind)
    with builder.function("main", [given]):
        with builder.dataflow():
            value: Any = given
            for function in functions:
                variable = builder.add_func(function, "drawn")
                value = builder.emit(relax.call_tir(variable, (value,), out_ty=kind))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    return builder.get()


def _run(module: Any, target: Any, given: Any) -> Any:
    import tvm
    from tvm import relax

    from lowerscope.core.run.execution import to_torch, to_tvm

    executable = tvm.compile(module, target)
    return to_torch(relax.VirtualMachine(executable, tvm.cpu())["main"](to_tvm(given)))


def _near(got: Any, expected: Any, dtype: str) -> bool:
    import torch

    if dtype == "int32":
        return bool((got == expected).all())
    a, b = got.double(), expected.double()
    finite = b[b.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    far = _NEAR[dtype] * max(1.0, largest)
    return bool(torch.allclose(a, b, rtol=0, atol=far, equal_nan=True))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
