"""Catalogue of passes that a step of a recipe can name, from the installed TVM."""

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
from lowerscope.core.passes.legalising import LEGALISE, legalise_operators
from lowerscope.core.passes.options import NoField, Option, options_of
from lowerscope.core.passes.own_passes import OWN_PASSES
from lowerscope.core.passes.row_major import ATTACH, attach_layout_free_buffers
from lowerscope.core.recipe import BIND_PARAMS
from lowerscope.core.records.passes import PassType

Values = Mapping[str, Any]
"""Known tensors of arguments of ``main``, by name."""

MODULES = (
    ("relax", "tvm.relax.transform"),
    ("relax", "tvm.relax.backend"),
    ("tirx", "tvm.tirx.transform"),
    ("s_tir", "tvm.s_tir.transform"),
)
"""TVM's modules of passes, with their dialects."""

_BASES = (
    tvm.transform.Pass,
    tvm.transform.ModulePass,
    tvm.transform.Sequential,
    relax.transform.FunctionPass,
    relax.transform.DataflowBlockPass,
    tirx.transform.PrimFuncPass,
)

_RUN_CODE = ("MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")
"""Passes that measure candidates: the process that applies passes never runs generated code."""

Running = Callable[[str], AbstractContextManager[None]]
"""Function that returns the context of a user's code; takes the operation, for messages."""


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
        Its options.
    given
        A parameter of `make` that takes a part of the recipe: ``"params"`` for the parameters,
        ``"schedule"`` for the function that applies its schedules to a module, ``"rules"`` for
        that which schedules the others by rules, ``"tuned"`` for that which does so by tuning
        results, ``"check"`` for the cancellation check, ``"leave_out"`` for the callback for
        functions left out; empty for none.
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
    for own in OWN_PASSES:
        yield Pass(own.type, own.make, own.options, own.given)
    for dialect, path in MODULES:
        module = importlib.import_module(path)
        for title in sorted(vars(module)):
            made = getattr(module, title)
            if title[0].isupper() and _makes_a_pass(made):
                yield _pass(title if dialect == "relax" else f"{dialect}.{title}", dialect, made)


def _makes_a_pass(value: Any) -> bool:
    return is_pass_class(value) or inspect.isfunction(value)


def is_pass_class(value: Any) -> bool:
    """Return whether a value is a class decorated as a pass by TVM."""
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
    elif name == ATTACH:
        make = partial(attach_layout_free_buffers, make)
    return Pass(record, make, options, given)


_GIVEN = {BIND_PARAMS: "params", LEGALISE: "check"}


def _apply_database(make: Callable[..., Any], work_dir: str | None = None, **given: Any) -> Any:
    check_database(work_dir)
    return make(work_dir=work_dir, **given)


def find(name: str, passes: Catalogue, where: str) -> Pass:
    """Return the pass that a step names.

    A Relax pass may be named with its dialect; others may be named without it if the name is
    unique.

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
