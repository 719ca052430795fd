"""Passes, and what becomes of bindings in them."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.ir.relax import binding_ids, calls_of
from lowerscope.core.model.recipe import Step
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.passes.transforming import transform

LEGALIZE = (Step(name="LegalizeOps"),)


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.nn.softmax(x)
            b = R.add(a, R.const(1.0, "float32"))
            a = R.multiply(b, b)
            out = R.nn.relu(a)
            R.output(out)
        return out


def test_each_binding_is_followed_into_the_legalised_module() -> None:
    transformed = transform(Model, LEGALIZE)
    before = [bound.id for bound in binding_ids(Model)]
    assert list(transformed.bindings) == before
    after = [each for ids in transformed.bindings.values() for each in ids]
    assert after == [bound.id for bound in binding_ids(transformed.module)]
    callees = {
        binding: function
        for function, bindings in calls_of(transformed.module).items()
        for binding in bindings
    }
    made = [callees[transformed.bindings[each][-1]] for each in before]
    assert made == ["tir:softmax", "tir:add", "tir:multiply", "tir:relu"]


def test_the_module_between_steps_is_that_of_tvm() -> None:
    transformed = transform(Model, (Step(name="LegalizeOps", on=False), *LEGALIZE))
    assert transformed.module_after(0).same_as(Model)
    assert transformed.module_after(1).same_as(Model)
    with tvm.transform.PassContext(opt_level=3):
        tvm.ir.assert_structural_equal(
            transformed.module_after(2), relax.transform.LegalizeOps()(Model)
        )
    off, on = pass_records(transformed.runs)
    assert (off.status, off.changed) == ("off", ())
    assert on.changed == ("add", "main", "multiply", "relu", "softmax")
    assert on.milliseconds > 0


def test_cancel_is_asked_for_before_each_step_each_pass_of_it_and_each_call() -> None:
    asked: list[int] = []
    transform(Model, LEGALIZE * 3, lambda: asked.append(1))
    calls = 4
    # There is nothing to legalise the second time.
    assert len(asked) == 2 * 3 + calls
