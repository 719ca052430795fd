"""Records of passes with their options, and named lists of steps.

Everything here is plain, frozen and serialisable. This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.model.snapshot import SourceLine

OptionKind = Literal["bool", "int", "float", "text", "names", "pairs"]
"""Kind of the value of an option: ``"names"`` is a list of texts, ``"pairs"`` one of
``name=value``."""


class PassOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a pass.

    Attributes
    ----------
    kind
        Of its value.
    default
        The pass's own; ``None`` where there is none.
    required
        It has no default and must be given.
    nullable
        It can be ``None``.
    choices
        The values that it can have, where these are few.
    doc
        As the pass's docstring has it.
    """

    name: str
    kind: OptionKind
    default: OptionValue = None
    required: bool = False
    nullable: bool = False
    choices: tuple[str, ...] = ()
    doc: str = ""


class PassType(msgspec.Struct, frozen=True, kw_only=True):
    """One pass that a step can name.

    Attributes
    ----------
    name
        As `Step.name` has it: TVM's own for a pass of Relax (``FuseOps``), with the dialect before
        it for others (``tirx.Simplify``, ``s_tir.LowerInitBlock``), and with the name of the file
        for the user's own (``my_passes.drop_relu``).
    dialect
        ``"relax"``, ``"tirx"``, ``"s_tir"``, or the name of the user's file.
    summary, doc
        The first line of its docstring, and all of it.
    options
        In the order of its signature.
    hindrance
        Reason why a step cannot name it; empty where one can.
    line
        Location of a pass of the user's own.
    """

    name: str
    dialect: str
    summary: str = ""
    doc: str = ""
    options: tuple[PassOption, ...] = ()
    hindrance: str = ""
    line: SourceLine | None = None


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of steps.

    Attributes
    ----------
    name
        As ``--pipeline`` takes it.
    title
        In words.
    steps
        In order.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
