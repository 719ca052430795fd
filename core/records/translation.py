"""Records of the translation of one FX node: plain, frozen, serialisable values.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.records.model import Extent
from lowerscope.core.records.snapshot import SourceLine, TextRecord

SourceKind = Literal["user", "built-in", "tvm", "library", "torch", "python", "te"]
"""Kind of source: a rule of the user's, one of Lowerscope's, a converter of TVM's; a call of torch
as it is registered, and the torch code behind it; code that computes a value while translating; a
TE function."""


class RuleSource(msgspec.Struct, frozen=True, kw_only=True):
    """Source that took part in the translation of a node.

    Attributes
    ----------
    kind
        Kind of the source.
    name
        As it is shown: ``linear``, ``topi.nn.dense``, ``torch.conv2d``.
    remark
        Further information in a line: the arguments that a function of a table was made with, or
        the parts of the node that it lowered.
    line
        Location of the source; ``None`` where it has no file.
    text
        The source, in Python.
    """

    kind: SourceKind
    name: str
    remark: str = ""
    line: SourceLine | None = None
    text: str = ""


class Placeholder(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that stands for an argument while TE computes; ``argument`` as the script has it."""

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    argument: str


class TeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Work of ``emit_te`` for one binding, in its four steps.

    Attributes
    ----------
    binding
        Id of the binding that calls the function.
    title
        The call that led to it: ``emit_te(topi.nn.dense, x, linear0.weight)``, or
        ``R.matmul, legalised``.
    placeholders
        Step 1: the tensors that stood for the arguments.
    expression, refusal
        Step 2: the tensor expressions over them, as a program that makes the very function; empty
        where that cannot be written as one, with the reason.
    function, script
        Step 3: the PrimFunc that was made of them: its name, and its script.
    first_made
        Id of the binding that an equal function was made for before, which is called instead, so
        that its arguments may have other names; empty for the first.
    call
        Step 4: the ``call_tir`` that was bound, as the Relax script has it.
    by_pass
        Whether the node stayed an operator, and this is its lowering by a pass.
    """

    binding: str
    title: str
    placeholders: tuple[Placeholder, ...]
    expression: TextRecord | None
    refusal: str
    function: str
    script: TextRecord
    call: str
    first_made: str = ""
    by_pass: bool = False


class NodeTranslation(msgspec.Struct, frozen=True, kw_only=True):
    """The translation of one FX node.

    Attributes
    ----------
    node
        Its id.
    number
        Its place in the list, from 1.
    summary
        In a sentence.
    sources
        The rules that lowered it, and the functions that these used, each once.
    calls
        Work of ``emit_te``, for each binding that calls a TensorIR function.
    """

    node: str
    number: int
    summary: str
    sources: tuple[RuleSource, ...] = ()
    calls: tuple[TeRecord, ...] = ()
