"""Records that the window and the command line show: plain, frozen, serialisable values.

Everything that can be selected has an id: ``fx:linear0`` (a node of the FX graph),
``part:lstm/linear_3`` (an operator that a node was broken up into), ``relax:main/lv1`` (a binding
of a Relax function), ``tir:dense`` (a PrimFunc), ``param:linear0.weight``, ``module:linear0``,
``torch:/models/mlp.py:12`` (a line of the user's own file). This module imports neither torch nor
TVM.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.records.model import Extent, ModelRecord, ParameterRecord
from lowerscope.core.records.steps import Fate, PassRecord, TranslationRecord

View = Literal[
    "script", "numpy", "te", "builder", "metadata", "code", "source", "bytecode", "llvm", "asm"
]
"""Kind of a text: a function's TVMScript, the same loops in NumPy, the tensor expressions that it
comes from; the program that builds a module, or its script with metadata; the code of the FX graph,
or the user's own file; the bytecode of ``main`` for the virtual machine, and the LLVM IR and the
assembly of a function."""

LibraryOrigin = Literal["file", "torch", "tvm", "missing"]


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A message for the user that stops nothing.

    ``code`` is a machine-readable kind, which the window reacts to with more than text:
    ``"missing-function"`` (no file registers a function that is called, so that it cannot run),
    ``"failed-step"`` (a pass of the recipe failed, and nothing after it was applied),
    ``"schedule"`` (a schedule, or a step of one, is not applied to the model); otherwise empty.
    ``todo`` is what to do about it, where there is something.
    """

    text: str
    where: str = ""
    code: str = ""
    todo: str = ""

    def line(self) -> str:
        """Return it as one line."""
        text = f"{self.text}; {self.todo}" if self.todo else self.text
        return f"{self.where}: {text}" if self.where else text


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's own file, counted from 1."""

    file: str
    line: int
    text: str = ""

    @property
    def id(self) -> str:
        """Id of the line, where FX nodes come from it: ``torch:/models/mlp.py:12``."""
        return f"torch:{self.file}:{self.line}"


class FxPart(msgspec.Struct, frozen=True, kw_only=True):
    """One of the operators that a node was broken up into: ``part:lstm/linear_3``.

    ``args`` are names of other parts of the node, of its module's parameters, and of the nodes
    that it reads; the rest is as in `FxNode`.
    """

    id: str
    name: str
    target: str
    args: str
    shape: tuple[Extent, ...] | None
    dtype: str
    rule: str
    bindings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


class FxNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the FX graph.

    Attributes
    ----------
    opcode
        ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module`` or
        ``output``.
    target, args, kwargs
        As ``Graph.print_tabular`` prints them.
    shape, dtype
        Of a tensor; ``None`` and empty for other values. ``type`` describes both, or the
        tuple, in words.
    label
        Short description: ``Linear · 784 → 128``.
    module
        Dotted path of the module that the node comes from.
    line
        Its line in the user's file.
    strategy
        Strategy of its lowering; empty for nodes that make no code.
    rule
        The rule that lowered it; empty for nodes that make no code.
    reason
        Reason why it runs in torch although another strategy was chosen; otherwise empty.
    random
        Whether it draws random numbers, so that its value cannot be compared.
    rule_line
        Location of that rule, for a rule of the user's own.
    bindings, functions
        Ids of the Relax bindings that it made, and of the PrimFuncs that these call, at the end
        of the passes.
    tracer
        Which tracer made it: ``"fx"`` or ``"export"``.
    parts
        The operators that it was broken up into to be lowered, in order; empty where a rule covers
        it as a whole. A binding of theirs is one of the node's.
    """

    id: str
    name: str
    opcode: str
    target: str
    args: str
    kwargs: str
    shape: tuple[Extent, ...] | None
    dtype: str
    type: str
    label: str
    module: str = ""
    line: SourceLine | None = None
    strategy: str = ""
    rule: str = ""
    reason: str = ""
    random: bool = False
    rule_line: SourceLine | None = None
    bindings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    tracer: str = ""
    parts: tuple[FxPart, ...] = ()

    @property
    def title(self) -> str:
        """The name in the source, where torch.fx can only write ``___`` for that."""
        named = self.opcode in ("placeholder", "get_attr", "call_module")
        return self.target if named and not self.target.isascii() else self.name


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a text that show an entity, ``first`` to ``last``, both included, from 1."""

    entity: str
    first: int
    last: int


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """Information on a name in a text.

    Attributes
    ----------
    name
        As it is written.
    kind
        ``buffer``, ``loop`` or ``constant``.
    first, last
        The lines in which the name stands for it, both included, from 1; an inner one hides an
        outer one of the same name.
    facts
        Facts on it, as labels and values.
    entity
        Its id, where it has one.
    """

    name: str
    kind: Literal["buffer", "loop", "constant"]
    first: int
    last: int
    facts: tuple[tuple[str, str], ...]
    entity: str = ""


class TextRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A text with the entities that its lines show; spans may nest, outer ones first.

    ``cards`` say what names in it stand for. ``changed`` are the lines, from 1, that its step
    changed; ``None`` where that is not known.
    """

    text: str
    language: str
    spans: tuple[Span, ...] = ()
    cards: tuple[Card, ...] = ()
    changed: tuple[int, ...] | None = None


class PieceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a fused function that computes some of its bindings.

    ``parts`` are the ids of blocks, loops and buffers; ``bindings`` are those that they compute.
    """

    parts: tuple[str, ...]
    bindings: tuple[str, ...]


class FunctionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One function of the module: ``kind`` is ``relax``, ``tensorir`` or ``external``.

    ``calls`` are the ids of the Relax bindings that call it; ``blocks`` and ``loops`` count the
    parts of a TensorIR function, and ``runs`` how often its blocks run in a call, as far as extents
    are numbers; ``parameters`` are the names of a Relax function's.

    A function without ``pieces`` belongs to its calls as a whole. Of one with ``pieces``, parts
    that are in none of them may belong to any call, and ``untied`` says why that is not known.
    """

    id: str
    name: str
    kind: str
    calls: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    blocks: int = 0
    loops: int = 0
    runs: int = 0
    pieces: tuple[PieceRecord, ...] = ()
    untied: str = ""


class LibraryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One function outside of the module that is registered with TVM, or that the module calls.

    Attributes
    ----------
    id
        ``ext:env.relu``.
    origin
        ``"file"`` if a file of the user's registers it, ``"torch"`` for those of the library
        strategy, ``"tvm"`` for TVM's own, ``"missing"`` if nothing is registered under the name.
    line
        Location of the registration, for those of a file.
    calls, nodes
        Ids of the bindings that call it, before the passes, and of their FX nodes.
    """

    id: str
    name: str
    origin: LibraryOrigin
    line: SourceLine | None = None
    calls: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a rule file: its operators, its source, and the nodes that it lowered."""

    name: str
    keys: tuple[str, ...]
    strategies: tuple[str, ...]
    line: SourceLine
    nodes: tuple[str, ...] = ()


class ExtensionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a rule or library file: its rules, and the names of the functions it registers."""

    path: str
    rules: tuple[RuleRecord, ...] = ()
    functions: tuple[str, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Overview of a recipe in the window; the rest is fetched when it is shown.

    Attributes
    ----------
    model
        The opened model.
    fx
        The FX nodes in order; empty for a source without torch.
    tracer
        The one that was taken, ``"fx"`` or ``"export"``; empty for a source without torch.
    fx_graph
        The FX graph, laid out; ``None`` for a source without torch.
    relax
        The Relax functions as they were lowered, before the passes.
    functions
        The functions after the passes.
    library
        The functions outside of the module: those that it calls, and those that files register.
    extensions
        Contents of the rule and library files that are switched on, in order.
    constants
        Constants of the Relax module that are none of the model's parameters.
    translation
        The steps of the translation, one an FX node in order; empty for a source without torch.
    passes
        The recipe's steps, and the passes inside of them, in the order in which they began.
    fates
        Effects of passes on entities that no longer exist by themselves, by id: bindings before the
        passes, and FX nodes all of whose bindings are gone.
    links
        Pairs of ids that belong together, as they were recorded when the second was made.
    notes
        Notes for the user.
    key
        Key of the result of the passes: equal for two recipes that lead to the same module by the
        same files.
    milliseconds
        Time of each stage that had to be run, by name.
    structures
        Where the recipe has schedules, the structural hashes of the functions that these are made
        for, by name.
    """

    model: ModelRecord
    fx: tuple[FxNode, ...]
    tracer: str
    fx_graph: GraphRecord | None
    relax: TextRecord
    functions: tuple[FunctionRecord, ...]
    links: tuple[tuple[str, str], ...]
    library: tuple[LibraryRecord, ...] = ()
    extensions: tuple[ExtensionRecord, ...] = ()
    constants: tuple[ParameterRecord, ...] = ()
    translation: tuple[TranslationRecord, ...] = ()
    passes: tuple[PassRecord, ...] = ()
    fates: dict[str, Fate] = {}
    notes: tuple[Note, ...] = ()
    key: str = ""
    milliseconds: dict[str, float] = {}
    structures: dict[str, str] = {}

    @cached_property
    def nodes(self) -> dict[str, FxNode]:
        """The FX nodes by their ids."""
        return {node.id: node for node in self.fx}
