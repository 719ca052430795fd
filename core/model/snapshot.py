"""Records that the window and the command line show: plain, frozen, serialisable values.

Everything that can be selected has an id: ``fx:linear0`` (a node of the FX graph),
``part:lstm/linear_3`` (an operator that a node was broken up into), ``relax:main/lv1`` (a binding
of a Relax function), ``tir:dense`` (a PrimFunc), ``param:linear0.weight``, ``module:linear0``,
``torch:/models/mlp.py:12`` (a line of the user's own file).
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from lowerscope.core.model.encoding import Row
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.module_steps import BindingEffect, PassRecord, TranslationRecord
from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.model.texts import _

# Records of the opened model: its modules, its inputs, its parameters and their values.

Extent = int | str
"""An extent of a shape; a name or an expression where it is symbolic."""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """An 8-bit grey (``channels`` 1) or RGB (3) picture, row by row without padding."""

    width: int
    height: int
    channels: int
    pixels: bytes


class InputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One input of the model as it is used: ``origin`` says where its values come from."""

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    origin: str
    picture: Picture | None = None


class ParameterRecord(Row, frozen=True, kw_only=True):
    """One parameter or buffer, or a constant of the Relax module; ``size`` in bytes.

    ``kind`` is ``parameter``, ``buffer`` or ``constant``; ``aliases`` are other names in the model
    for the same tensor.
    """

    id: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    kind: str = "parameter"
    aliases: tuple[str, ...] = ()


class TensorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a tensor; of a complex one, of its magnitudes.

    ``low``, ``high``, ``mean`` and ``deviation`` (of the whole population) are of the finite
    values, and ``None`` where there are none.
    """

    count: int
    low: float | None
    high: float | None
    mean: float | None
    deviation: float | None
    nans: int
    infinities: int
    zeros: int


class ValuesRecord(TensorStatistics, frozen=True, kw_only=True):
    """Statistics of the values of a tensor, and their histogram."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int  # in bytes
    # edges, counts: a histogram of the finite values: one edge more than counts
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    first: tuple[str, ...]  # the first values, as text


class ModuleRecord(Row, frozen=True, kw_only=True):
    """One ``nn.Module`` of the model's tree; ``path`` is empty for the root.

    ``parameters`` counts the scalars in the module and below it.
    """

    id: str
    path: str
    kind: str
    parameters: int


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The opened model. ``kind`` is ``"torch"``, or ``"relax"`` for a source without torch.

    ``engine`` is what runs its nodes: ``"torch"``, or ``"onnxruntime"`` for an ONNX model.
    """

    title: str
    path: str
    kind: str
    description: str
    inputs: tuple[InputRecord, ...]
    classes: tuple[str, ...] = ()
    modules: tuple[ModuleRecord, ...] = ()
    parameters: tuple[ParameterRecord, ...] = ()
    engine: str = "torch"
    generates: bool = False  # whether the file has ``next_inputs``, so that tokens can be generated


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
        text = _("; ").join((self.text, self.todo)) if self.todo else self.text
        return f"{self.where}: {text}" if self.where else text


class SourceLine(Row, frozen=True, kw_only=True):
    """A line of the user's own file, counted from 1."""

    file: str
    line: int
    text: str = ""

    @property
    def id(self) -> str:
        """Id of the line, where FX nodes come from it: ``torch:/models/mlp.py:12``."""
        return f"torch:{self.file}:{self.line}"


class FxPart(Row, frozen=True, kw_only=True):
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


class FxNode(Row, frozen=True, kw_only=True):
    """One node of the FX graph."""

    id: str
    name: str
    # ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module`` or
    # ``output``.
    opcode: str
    # A path, an operator, or the qualified name of a function: ``torch.softmax``.
    target: str
    # args, kwargs: as ``Graph.print_tabular`` prints them
    args: str
    kwargs: str
    # shape, dtype: of a tensor; ``None`` and empty for other values. ``type`` describes both, or
    # the tuple, in words.
    shape: tuple[Extent, ...] | None
    dtype: str
    type: str
    label: str  # short description: ``Linear · 784 → 128``
    family: str = ""  # family of its operator, a key of `FAMILY_NAMES`
    module: str = ""  # dotted path of the module that the node comes from
    line: SourceLine | None = None  # its line in the user's file
    strategy: str = ""  # strategy of its lowering; empty for nodes that make no code
    rule: str = ""  # the rule that lowered it; empty for nodes that make no code
    # Reason why it runs in torch although another strategy was chosen; otherwise empty.
    reason: str = ""
    random: bool = False  # whether it draws random numbers, which may be others than torch's
    rule_line: SourceLine | None = None  # location of that rule, for a rule of the user's own
    # bindings, functions: ids of the Relax bindings that it made, and of the PrimFuncs that these
    # call, at the end of the passes
    bindings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    tracer: str = ""  # which tracer made it: ``"fx"`` or ``"export"``
    # The operators that it was broken up into to be lowered, in order; empty where a rule covers it
    # as a whole. A binding of theirs is one of the node's.
    parts: tuple[FxPart, ...] = ()

    @property
    def title(self) -> str:
        """The name in the source, where torch.fx can only write ``___`` for that."""
        named = self.opcode in ("placeholder", "get_attr", "call_module")
        return self.target if named and not self.target.isascii() else self.name

    @property
    def operator(self) -> str:
        """The operator: ``Linear``; of a function its name."""
        return self.label.partition(" · ")[0]


class Span(Row, frozen=True, kw_only=True):
    """The lines of a text that show an entity, ``first`` to ``last``, both included, from 1."""

    entity: str
    first: int
    last: int


class Card(Row, frozen=True, kw_only=True):
    """Information on a name in a text."""

    name: str  # as it is written
    kind: Literal["buffer", "loop", "constant"]  # ``buffer``, ``loop`` or ``constant``
    # first, last: the lines in which the name stands for it, both included, from 1; an inner one
    # hides an outer one of the same name
    first: int
    last: int
    facts: tuple[tuple[str, str], ...]  # facts on it, as labels and values
    entity: str = ""  # its id, where it has one


class TextRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A text with the entities that its lines show; spans may nest, outer ones first.

    ``cards`` say what names in it stand for. ``changed`` are the lines, from 1, that its step
    changed; ``None`` where that is not known. ``constants`` are the names of constants of a script,
    by their printed form: ``metadata["ir.GenericConst"][0]``.
    """

    text: str
    language: str
    spans: tuple[Span, ...] = ()
    cards: tuple[Card, ...] = ()
    changed: tuple[int, ...] | None = None
    constants: dict[str, str] = {}


class PieceRecord(Row, frozen=True, kw_only=True):
    """Part of a fused function that computes some of its bindings.

    ``parts`` are the ids of blocks, loops and buffers; ``bindings`` are those that they compute.
    """

    parts: tuple[str, ...]
    bindings: tuple[str, ...]


class FunctionRecord(Row, frozen=True, kw_only=True):
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
    """One function outside of the module that is registered with TVM, or that the module calls."""

    id: str  # ``ext:env.relu``
    name: str
    # ``"file"`` if a file of the user's registers it, ``"torch"`` for those of the library
    # strategy, ``"tvm"`` for TVM's own, ``"missing"`` if nothing is registered under the name.
    origin: LibraryOrigin
    line: SourceLine | None = None  # location of the registration, for those of a file
    # calls, nodes: ids of the bindings that call it, before the passes, and of their FX nodes
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
    """Overview of a recipe in the window; the rest is fetched when it is shown."""

    model: ModelRecord  # the opened model
    fx: tuple[FxNode, ...]  # the FX nodes in order; empty for a source without torch
    # The one that was taken, ``"fx"`` or ``"export"``; empty for a source without torch.
    tracer: str
    fx_graph: GraphRecord | None  # the FX graph, laid out; ``None`` for a source without torch
    relax: TextRecord  # the Relax functions as they were lowered, before the passes
    functions: tuple[FunctionRecord, ...]  # the functions after the passes
    # Ids that belong together, as they were recorded: the first of each with all that follow it.
    links: tuple[tuple[str, ...], ...]
    # The functions outside of the module: those that it calls, and those that files register.
    library: tuple[LibraryRecord, ...] = ()
    # Contents of the rule and library files that are switched on, in order.
    extensions: tuple[ExtensionRecord, ...] = ()
    # Constants of the Relax module that are none of the model's parameters.
    constants: tuple[ParameterRecord, ...] = ()
    # The steps of the translation, one an FX node in order; empty for a source without torch.
    translation: tuple[TranslationRecord, ...] = ()
    # The recipe's steps, and the passes inside of them, in the order in which they began.
    passes: tuple[PassRecord, ...] = ()
    # Effects of passes on entities that no longer exist by themselves, by id: bindings before the
    # passes, and FX nodes all of whose bindings are gone.
    fates: dict[str, BindingEffect] = {}
    notes: tuple[Note, ...] = ()  # notes for the user
    # Key of the result of the passes: equal for two recipes that lead to the same module by the
    # same files.
    key: str = ""
    milliseconds: dict[str, float] = {}  # time of each stage that had to be run, by name
    # Where the recipe has schedules, the structural hashes of the functions that these are made
    # for, by name.
    structures: dict[str, str] = {}

    @cached_property
    def nodes(self) -> dict[str, FxNode]:
        """The FX nodes by their ids."""
        return {node.id: node for node in self.fx}

    @cached_property
    def operands(self) -> dict[str, tuple[str, ...]]:
        """The ids of the FX nodes that each one reads, by its id."""
        found: dict[str, dict[str, None]] = {}
        for edge in () if self.fx_graph is None else self.fx_graph.edges:
            found.setdefault(edge.target, {})[edge.source] = None
        return {reader: tuple(read) for reader, read in found.items()}


# --- Records of the translation of one FX node: plain, frozen, serialisable values ---

SourceKind = Literal["user", "built-in", "tvm", "library", "torch", "python", "te"]
"""Kind of source: a rule of the user's, one of Lowerscope's, a converter of TVM's; a call of torch
as it is registered, and the torch code behind it; code that computes a value while translating; a
TE function."""


class RuleSource(msgspec.Struct, frozen=True, kw_only=True):
    """Source that took part in the translation of a node."""

    kind: SourceKind  # kind of the source
    name: str  # as it is shown: ``linear``, ``topi.nn.dense``, ``torch.conv2d``
    # Further information in a line: the arguments that a function of a table was made with, or the
    # parts of the node that it lowered.
    remark: str = ""
    line: SourceLine | None = None  # location of the source; ``None`` where it has no file
    text: str = ""  # the source, in Python


class Placeholder(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that stands for an argument while TE computes; ``argument`` as the script has it."""

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    argument: str


class TeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Work of ``emit_te`` for one binding, in its four steps."""

    binding: str  # id of the binding that calls the function
    # The call that led to it: ``emit_te(topi.nn.dense, x, linear0.weight)``, or ``R.matmul,
    # legalised``.
    title: str
    placeholders: tuple[Placeholder, ...]  # step 1: the tensors that stood for the arguments
    # expression, refusal: step 2: the tensor expressions over them, as a program that makes the
    # very function; empty where that cannot be written as one, with the reason
    expression: TextRecord | None
    refusal: str
    # function, script: step 3: the PrimFunc that was made of them: its name, and its script
    function: str
    script: TextRecord
    call: str  # step 4: the ``call_tir`` that was bound, as the Relax script has it
    # Id of the binding that an equal function was made for before, which is called instead, so that
    # its arguments may have other names; empty for the first.
    first_made: str = ""
    by_pass: bool = False  # whether the node stayed an operator, and this is its lowering by a pass


class NodeTranslation(msgspec.Struct, frozen=True, kw_only=True):
    """The translation of one FX node."""

    node: str  # its id
    number: int  # its place in the list, from 1
    summary: str  # in a sentence
    # The rules that lowered it, and the functions that these used, each once.
    sources: tuple[RuleSource, ...] = ()
    # Work of ``emit_te``, for each binding that calls a TensorIR function.
    calls: tuple[TeRecord, ...] = ()


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
    doc: str = ""  # its docstring
    options: tuple[PassOption, ...] = ()  # in the order of its signature
    hindrance: str = ""  # reason why a step cannot name it; empty where one can
    line: SourceLine | None = None  # location of a pass of the user's own

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return self.doc.strip().partition("\n")[0]


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of steps."""

    name: str  # as ``--pipeline`` takes it
    title: str  # in words
    steps: tuple[Step, ...]  # in order
