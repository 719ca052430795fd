"""Lowerscope's own passes, besides those of TVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm

from lowerscope.core.passes.folding import FOLD_BATCH_NORM, fold_batch_norm
from lowerscope.core.passes.options import Option, options_of
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED, split_transposed
from lowerscope.core.passes.vector_math import with_vector_math
from lowerscope.core.records.passes import PassType
from lowerscope.core.records.schedule import RULE_SECONDS
from lowerscope.core.schedules import APPLY_RULES, APPLY_SCHEDULES, APPLY_TUNED, VECTOR_MATH

Change = Callable[..., tvm.IRModule]
"""Function that returns the transformed module; takes the options of the pass by name."""


@dataclass(frozen=True)
class OwnPass:
    """One of Lowerscope's passes.

    Attributes
    ----------
    type
        Its record.
    change
        Its implementation; ``None`` if a part of the recipe provides it.
    given
        As in `catalogue.Pass`: its implementation, or an argument beside the module; empty for
        none.
    options
        Its options.
    """

    type: PassType
    change: Change | None = None
    given: str = ""
    options: tuple[Option, ...] = ()

    def make(self, **given: Any) -> Any:
        """Return TVM's pass, which calls the given function if there is no `change`."""
        change = given.pop(self.given) if self.change is None else self.change

        def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
            return change(module, **given)

        return tvm.transform.module_pass(apply, opt_level=0, name=self.type.name)


def _bounded(seconds: float = RULE_SECONDS) -> None:
    """Schedule by rules.

    Parameters
    ----------
    seconds
        Bound on the time that rules may take for one function.
    """


_BOUND = options_of(APPLY_RULES, _bounded)

_SCHEDULES = PassType(
    name=APPLY_SCHEDULES,
    dialect="s_tir",
    summary="Apply the schedules of the workbench to the functions that they fit.",
    doc="Apply the schedules of the workbench to the functions that they fit.\n\n"
    "A schedule fits a function of the structure that it was made for, under whatever name; or of "
    "its name, where it goes by that alone. Steps of a schedule that cannot be applied are left "
    "out, and a note says which.",
)

_RULES = PassType(
    name=APPLY_RULES,
    dialect="s_tir",
    summary="Schedule by rules the functions that have no schedule of the workbench.",
    doc="Schedule by rules the functions that have no schedule of the workbench.\n\n"
    "A rule writes the steps that *Schedule by rule* writes at the workbench. A function that no "
    "rule fits stays as it is, and so does one for which rules reach the bound on their time: a "
    "note names that function and the rule.",
    options=tuple(each.record for each in _BOUND),
)

_TUNED = PassType(
    name=APPLY_TUNED,
    dialect="s_tir",
    summary="Schedule as tuning has found the functions that have no schedule of the workbench.",
    doc="Schedule as tuning has found the functions that have no schedule of the workbench.\n\n"
    "That is the best history that the database has of a function of this structure, for this "
    "target, this machine and as many threads. A function that was not tuned is scheduled by a "
    "rule, and a note says so.",
    options=tuple(each.record for each in _BOUND),
)

_FOLDING = PassType(
    name=FOLD_BATCH_NORM,
    dialect="relax",
    summary="Fold batch norms into weights and bias of the convolutions before them.",
    doc="Fold batch norms into weights and bias of the convolutions before them.\n\n"
    "In inference, a batch norm multiplies each channel by a constant and adds another. Where "
    "weights, bias and statistics are constants, that is done to the weights here, once, with or "
    "without a bias in between. The convolution has other values then than torch's, and is not "
    "compared; the norm's result is.\n\n"
    "It is a step of Lowerscope's own: FoldBatchnormToConv2D of TVM takes no convolution that has "
    "a bias, and FoldConstant then compiles some hundred small operations for a ResNet.",
)

_TRANSPOSED = PassType(
    name=SPLIT_TRANSPOSED,
    dialect="relax",
    summary="Make one plain convolution of each strided transposed one.",
    doc="Make one plain convolution of each strided transposed one.\n\n"
    "At a stride of 2, every second element of the output is a convolution of the input with every "
    "second weight. All of these become channels of one convolution, whose results are woven "
    "together. TVM puts zeros between the elements of the input instead, and multiplies by them. "
    "It takes convolutions with constant weights, one group and no dilation.\n\n"
    "It is a step of Lowerscope's own.",
)

_VECTOR_MATH = PassType(
    name=VECTOR_MATH,
    dialect="s_tir",
    summary="Write exp, erf, tanh and sigmoid as arithmetic that vector registers can do at once.",
    doc="Write exp, erf, tanh and sigmoid as arithmetic that vector registers can do at once.\n\n"
    "LLVM has no vectors of them: it calls the C library for each element. For float32 and "
    "float16; the results differ by a few units in the last place of float32. NaN stays NaN. It "
    "changes TensorIR, and so belongs after LegalizeOps and FuseTIR, and before what schedules.\n\n"
    "A function with bfloat16 or float8 in it is left out, and a note says so: TVM computes these "
    "in float32, and its rewriting of them gives wrong code for values that are bound in an "
    "expression.",
)

OWN_PASSES = (
    OwnPass(_SCHEDULES, given="schedule"),
    OwnPass(_RULES, given="rules", options=_BOUND),
    OwnPass(_TUNED, given="tuned", options=_BOUND),
    OwnPass(_FOLDING, fold_batch_norm),
    OwnPass(_TRANSPOSED, split_transposed),
    OwnPass(_VECTOR_MATH, with_vector_math, given="leave_out"),
)
"""Lowerscope's passes, in the order of the catalogue."""
