"""The passes that a step of a recipe can name: those of the TVM that is installed."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import tvm
from tvm import relax, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.passes.context_options import context_options
from lowerscope.core.passes.databases import APPLY_DATABASE, check_database
from lowerscope.core.passes.folding import FOLD_BATCH_NORM, fold_batch_norm
from lowerscope.core.passes.legalising import LEGALISE, legalise_operators
from lowerscope.core.passes.options import NoField, Option, options_of
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED, split_transposed
from lowerscope.core.passes.vector_math import with_vector_math
from lowerscope.core.recipe import BIND_PARAMS
from lowerscope.core.records.passes import PassType
from lowerscope.core.schedules import APPLY_RULES, APPLY_SCHEDULES, APPLY_TUNED, VECTOR_MATH

Values = Mapping[str, Any]
"""Tensors that are known for arguments of ``main``, by name."""

MODULES = (
    ("relax", "tvm.relax.transform"),
    ("relax", "tvm.relax.backend"),
    ("tirx", "tvm.tirx.transform"),
    ("s_tir", "tvm.s_tir.transform"),
)
"""Where TVM has its passes, with the dialect."""

_BASES = (
    tvm.transform.Pass,
    tvm.transform.ModulePass,
    tvm.transform.Sequential,
    relax.transform.FunctionPass,
    relax.transform.DataflowBlockPass,
    tirx.transform.PrimFuncPass,
)

_RUN_CODE = ("MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")
"""They measure what they make; the process that applies passes never runs generated code."""

Running = Callable[[str], AbstractContextManager[None]]
"""The context in which code of a user's file runs; takes what it is doing, for messages."""


@dataclass(frozen=True)
class Pass:
    """One pass of the catalogue.

    Attributes
    ----------
    type
        Its record.
    make
        Takes the options, and returns TVM's pass.
    options
        Those that it has.
    given
        A parameter of `make` that takes a part of the recipe: ``"params"`` for the parameters,
        ``"schedule"`` for what applies its schedules to a module, ``"rules"`` for what schedules
        the others by rules, ``"tuned"`` for what does so as tuning has found, ``"check"`` for what
        stops it; empty for none.
    running
        The context in which it is made and applied.
    """

    type: PassType
    make: Callable[..., Any]
    options: tuple[Option, ...] = ()
    given: str = ""
    running: Running = lambda _: nullcontext()


Catalogue = Mapping[str, Pass]
"""Passes by name."""


@cache
def catalogue() -> Catalogue:
    """Return the passes of TVM by name, in the order of dialects and names."""
    return {each.type.name: each for each in _passes()}


def _passes() -> Iterator[Pass]:
    yield Pass(_SCHEDULES, _apply_schedules, given="schedule")
    yield Pass(_RULES, _apply_rules, given="rules")
    yield Pass(_TUNED, _apply_tuned, given="tuned")
    yield Pass(_FOLDING, _fold_batch_norm)
    yield Pass(_TRANSPOSED, _split_transposed)
    yield Pass(_VECTOR_MATH, _apply_vector_math)
    for dialect, path in MODULES:
        module = importlib.import_module(path)
        for title in sorted(vars(module)):
            made = getattr(module, title)
            if title[0].isupper() and _makes_a_pass(made):
                yield _pass(title if dialect == "relax" else f"{dialect}.{title}", dialect, made)


_SCHEDULES = PassType(
    name=APPLY_SCHEDULES,
    dialect="s_tir",
    summary="Apply the schedules of the workbench to the functions that they fit.",
    doc="Apply the schedules of the workbench to the functions that they fit.\n\n"
    "A schedule fits a function of the structure that it was made for, under whatever name; or of "
    "its name, where it goes by that alone. Steps of a schedule that cannot be applied are left "
    "out, and a note says which.",
)


def _apply_schedules(schedule: Callable[[tvm.IRModule], tvm.IRModule]) -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return schedule(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=APPLY_SCHEDULES)


_RULES = PassType(
    name=APPLY_RULES,
    dialect="s_tir",
    summary="Schedule by rules the functions that have no schedule of the workbench.",
    doc="Schedule by rules the functions that have no schedule of the workbench.\n\n"
    "A rule writes the steps that *Schedule by rule* writes at the workbench. A function that no "
    "rule fits stays as it is.",
)


def _apply_rules(rules: Callable[[tvm.IRModule], tvm.IRModule]) -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return rules(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=APPLY_RULES)


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


def _fold_batch_norm() -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return fold_batch_norm(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=FOLD_BATCH_NORM)


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


def _split_transposed() -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return split_transposed(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=SPLIT_TRANSPOSED)


_VECTOR_MATH = PassType(
    name=VECTOR_MATH,
    dialect="s_tir",
    summary="Write exp, erf, tanh and sigmoid as arithmetic that vector registers can do at once.",
    doc="Write exp, erf, tanh and sigmoid as arithmetic that vector registers can do at once.\n\n"
    "LLVM has no vectors of them: it calls the C library for each element. For floats of up to 32 "
    "bits; the results differ by a few units in the last place of float32. NaN stays NaN. It "
    "changes TensorIR, and so belongs after LegalizeOps, and before what schedules.",
)


def _apply_vector_math() -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return with_vector_math(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=VECTOR_MATH)


_TUNED = PassType(
    name=APPLY_TUNED,
    dialect="s_tir",
    summary="Schedule as tuning has found the functions that have no schedule of the workbench.",
    doc="Schedule as tuning has found the functions that have no schedule of the workbench.\n\n"
    "That is the best history that the database has of a function of this structure, for this "
    "target, this machine and as many threads. A function that was not tuned is scheduled by a "
    "rule, and a note says so.",
)


def _apply_tuned(tuned: Callable[[tvm.IRModule], tvm.IRModule]) -> Any:
    def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
        return tuned(module)

    return tvm.transform.module_pass(apply, opt_level=0, name=APPLY_TUNED)


def _makes_a_pass(value: Any) -> bool:
    return is_pass_class(value) or inspect.isfunction(value)


def is_pass_class(value: Any) -> bool:
    """Return whether a value is a class that one of TVM's decorators has made a pass of."""
    return isinstance(value, type) and issubclass(value, tvm.transform.Pass) and value not in _BASES


def _pass(name: str, dialect: str, make: Callable[..., Any]) -> Pass:
    doc = inspect.getdoc(make) or ""
    given = _GIVEN.get(name, "")
    options: tuple[Option, ...] = ()
    hindrance = ""
    if name in _RUN_CODE:
        hindrance = "it measures the code that it makes, and passes are applied where none is run"
    else:
        try:
            options = options_of(name, make, given)
            taken = {each.record.name for each in options}
            options += tuple(
                each for each in context_options(name, dialect) if each.record.name not in taken
            )
        except NoField as reason:
            hindrance = str(reason)
    record = PassType(
        name=name,
        dialect=dialect,
        summary=doc.strip().partition("\n")[0],
        doc=doc,
        options=tuple(each.record for each in options),
        hindrance=hindrance,
    )
    if name == APPLY_DATABASE:
        make = partial(_apply_database, make)
    elif name == LEGALISE:
        make = partial(legalise_operators, make)
    return Pass(record, make, options, given)


_GIVEN = {BIND_PARAMS: "params", LEGALISE: "check"}


def _apply_database(make: Callable[..., Any], work_dir: str | None = None, **given: Any) -> Any:
    check_database(work_dir)
    return make(work_dir=work_dir, **given)


def find(name: str, passes: Catalogue, where: str) -> Pass:
    """Return the pass that a step names.

    A pass of Relax may be named with its dialect, and others without it where one alone has the
    name.

    Raises
    ------
    LowerscopeError
        If there is no such pass, several have the name, or it cannot be used.
    """
    found = passes.get(name) or passes.get(name.removeprefix("relax."))
    if found is None:
        same = [each for each in passes if each.rpartition(".")[2] == name]
        if len(same) > 1:
            raise LowerscopeError(
                f"several passes are called {name}", where=where, todo=f"Write {' or '.join(same)}"
            )
        found = passes[same[0]] if same else None
    if found is None:
        near = difflib.get_close_matches(name, passes, n=3)
        raise LowerscopeError(
            f"there is no pass {name}",
            where=where,
            todo=f"Did you mean {' or '.join(near)}?"
            if near
            else "`lowerscope passes --catalogue` lists those that there are",
        )
    if found.type.hindrance:
        raise LowerscopeError(
            f"{name} cannot be a step: {found.type.hindrance}",
            where=where,
            todo="Write it into a file of passes, and give that with --passes",
        )
    return found
