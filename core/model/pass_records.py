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
    """One option of a pass."""

    name: str
    kind: OptionKind  # of its value
    default: OptionValue = None  # the pass's own; ``None`` where there is none
    required: bool = False  # it has no default and must be given
    nullable: bool = False  # it can be ``None``
    choices: tuple[str, ...] = ()  # the values that it can have, where these are few
    doc: str = ""  # as the pass's docstring has it


class PassType(msgspec.Struct, frozen=True, kw_only=True):
    """One pass that a step can name."""

    # As `Step.name` has it: TVM's own for a pass of Relax (``FuseOps``), with the dialect before it
    # for others (``tirx.Simplify``, ``s_tir.LowerInitBlock``), and with the name of the file for
    # the user's own (``my_passes.drop_relu``).
    name: str
    dialect: str  # ``"relax"``, ``"tirx"``, ``"s_tir"``, or the name of the user's file
    # summary, doc: the first line of its docstring, and all of it
    summary: str = ""
    doc: str = ""
    options: tuple[PassOption, ...] = ()  # in the order of its signature
    hindrance: str = ""  # reason why a step cannot name it; empty where one can
    line: SourceLine | None = None  # location of a pass of the user's own


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of steps."""

    name: str  # as ``--pipeline`` takes it
    title: str  # in words
    steps: tuple[Step, ...]  # in order
