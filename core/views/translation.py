"""Translation of one FX node: its rules with their source, and the work of ``emit_te``.

The latter is shown in four steps: placeholders, expressions, function, ``call_tir``.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tvm
from torch import fx
from torch.overrides import resolve_name
from tvm import ir, te, tirx
from tvm.relax.analysis import free_vars

from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import Bound, binding_ids, called_name, operator_of
from lowerscope.core.ir.script import function_text, relax_text
from lowerscope.core.lowering.builder import NodeBuilder, te_name
from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_nodes import MethodCall, ModuleCall
from lowerscope.core.lowering.partial_module import changes_of_nodes, name_constants
from lowerscope.core.lowering.rule_table import Missing
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, TeCall, UsedRule
from lowerscope.core.lowering.values import Dimensions, EncodedTensor, Value, is_size
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.module_steps import TranslationRecord
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import TranslationQuery, answers
from lowerscope.core.model.snapshot import (
    Extent,
    NodeTranslation,
    Placeholder,
    RuleSource,
    SourceKind,
    SourceLine,
    Span,
    TeRecord,
    TextRecord,
)
from lowerscope.core.model.texts import _
from lowerscope.core.passes.recording import FunctionChanges
from lowerscope.core.stages import Pipeline, Stages, has_module
from lowerscope.core.views.programs.builder_text import tuple_text
from lowerscope.core.views.programs.te_text import te_text

_IN_MAIN = "relax:main/"

MOST_MEMBERS = 6
"""Maximum number of named members of a tuple."""


def translation_records(
    lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
) -> tuple[TranslationRecord, ...]:
    """Return a record of each FX node in the order in which they were translated."""
    names = ValueNames(lowered, graph_module, bounds)
    seen: set[str] = set()
    records: list[TranslationRecord] = []
    changes = changes_of_nodes(lowered, graph_module.graph, FunctionChanges().between_modules)
    steps = zip(lowered.nodes.values(), changes, strict=True)
    for number, (each, changed) in enumerate(steps, start=1):
        added = tuple(name for name in each.functions if name not in seen)
        seen.update(added)
        value = names.text(each.value)
        records.append(
            TranslationRecord(
                number=number,
                node=f"fx:{each.node}",
                bindings=tuple(f"relax:main/{name}" for name in each.bindings),
                functions=tuple(str(name) for name in added),
                changed=changed,
                value=value,
                rebound=tuple(f"fx:{name}" for name in each.rebound),
            )
        )
    return tuple(records)


class ValueNames:
    """Formatter of the values of nodes: variables as in the script, constants by their names."""

    def __init__(
        self, lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
    ) -> None:
        self._lowered, self._graph_module = lowered, graph_module
        self._variables: dict[str, str] = {
            bound.variable: bound.name for bound in bounds if bound.id.startswith(_IN_MAIN)
        }

    @cached_property
    def _constants(self) -> Mapping[Any, str]:
        # Few models have a node with a constant value, and naming these visits each.
        lowered = self._lowered
        named = name_constants(lowered.module, self._graph_module, lowered)
        return {
            **{each.constant: each.name for each in named},
            **{each.constant: name for name, each in lowered.arguments.items()},
        }

    def text(self, value: Value) -> str:
        """Return a value in a few words; empty where a node has none."""
        if value is None:
            return ""
        return self._text(value)

    def _text(self, value: Value) -> str:
        if isinstance(value, EncodedTensor):
            return f"{self._text(value.value)} as {value.dtype}"
        if isinstance(value, Missing):
            return f"unknown: {value.reason}"
        if isinstance(value, (tuple, list)):
            members = [self._text(each) for each in value[:MOST_MEMBERS]]
            if len(value) > MOST_MEMBERS:
                members.append(_("and {count} more", count=len(value) - MOST_MEMBERS))
            return f"[{', '.join(members)}]" if isinstance(value, list) else tuple_text(members)
        if isinstance(value, dict):
            pairs = (f"{key}: {self._text(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, ir.GenericConst):
            name = self._constants.get(value)
            return name if name is not None else _constant(value)
        if isinstance(value, ir.Var) and not is_size(value):
            name = str(value.name)
            return self._variables.get(name, name)
        return _TYPED.sub(r"\1", str(value)) if isinstance(value, ir.Expr) else str(value)


def _constant(value: Any) -> str:
    shape = shape_text(value.value.shape, "")
    return f"constant {shape or value.value.numpy()} {value.value.dtype}"


_TYPED = re.compile(r"T\.int64\((-?\d+)\)")
"""A number as the script writes it where its type counts."""


def te_records(
    node: NodeLowering, lowered: LoweredModel, names: ValueNames
) -> tuple[TeRecord, ...]:
    """Return the work of TE for each binding of a node that calls a TensorIR function.

    A node that stayed operators of Relax has the result of legalising these, by the same rules as
    the pass ``LegalizeOps``.
    """
    bindings = [
        binding
        for block in lowered.module["main"].body.blocks
        for binding in block.bindings
        if binding.var.name in node.bindings
    ]
    made = _Records(lowered.module, lowered.te_calls, names, by_pass=False)
    records = list(made.of(bindings))
    if node.strategy == "high-level":
        for binding in bindings:
            records += _legalised(binding, names)
    return tuple(records)


def _legalised(binding: Any, names: ValueNames) -> Iterator[TeRecord]:
    value: Any = getattr(binding, "value", None)
    if not operator_of(value) or value.op.get_attr("FLegalize") is None:
        return
    builder = NodeBuilder(te=True, dimensions=Dimensions({}))
    read = [var for var in free_vars(value) if not isinstance(var.ty, ir.PrimType)]
    with builder.function("main", params=read):
        builder.begin()
        output = builder.emit_output(builder.emit(value, name_hint=binding.var.name))
        bound, _other = builder.end_node()
        builder.finish(bound, output)
    module = builder.get()
    yield from _Records(module, builder.te_calls_of(bound), names, by_pass=True).of(bound)


class _Records:
    """Builder of the records of calls in one module; each function is written once."""

    def __init__(
        self, module: tvm.IRModule, calls: Any, names: ValueNames, *, by_pass: bool
    ) -> None:
        self._module = module
        self._calls = calls
        self._names = names
        self._by_pass = by_pass
        self._written: dict[str, tuple[TextRecord | None, str, TextRecord]] = {}
        self._script: TextRecord | None = None
        self._first: dict[str, str] = {}
        for block in module["main"].body.blocks:
            for binding in block.bindings:
                function = called_name(getattr(binding, "value", None))
                if function:
                    self._first.setdefault(function, f"relax:main/{binding.var.name}")

    def of(self, bindings: Sequence[Any]) -> Iterator[TeRecord]:
        for binding in bindings:
            function = called_name(getattr(binding, "value", None))
            if function:
                yield self._record(str(binding.var.name), binding.value, function)

    def _record(self, variable: str, value: Any, function: str) -> TeRecord:
        arguments = [self._names.text(each) for each in value.args[1].fields]
        known = self._calls.get(variable)
        expression, refusal, script = self._texts(function)
        binding = f"relax:main/{variable}"
        return TeRecord(
            binding=binding,
            title=_title(known, arguments),
            placeholders=tuple(self._placeholders(known, function, arguments)),
            expression=expression,
            refusal=refusal,
            function=function,
            script=script,
            call=self._call(binding),
            first_made="" if self._first[function] == binding else self._first[function],
            by_pass=self._by_pass,
        )

    def _placeholders(
        self, known: TeCall | None, function: str, arguments: list[str]
    ) -> Iterator[Placeholder]:
        recorded = () if known is None else known.placeholders
        # The function of a legalised operator has the placeholders for its first arguments.
        tensors = recorded or self._module[function].params
        for tensor, argument in zip(tensors, arguments, strict=False):
            is_recorded = isinstance(tensor, te.Tensor)
            shape = tensor.shape if is_recorded else getattr(tensor.ty, "shape", ())
            dtype = tensor.dtype if is_recorded else _dtype(tensor)
            yield Placeholder(
                name=str(tensor.op.name if is_recorded else tensor.name),
                shape=tuple(_extent(each) for each in shape),
                dtype=str(dtype),
                argument=argument,
            )

    def _texts(self, name: str) -> tuple[TextRecord | None, str, TextRecord]:
        if name not in self._written:
            expression, refusal = None, ""
            try:
                expression = te_text(self._module[name], name)
            except LowerscopeError as error:
                refusal = error.problem.what
            self._written[name] = (expression, refusal, function_text(self._module, name))
        return self._written[name]

    def _call(self, binding: str) -> str:
        if self._script is None:
            self._script = relax_text(self._module)
        lines = self._script.text.split("\n")
        span = next((each for each in self._script.spans if each.entity == binding), None)
        shown = [] if span is None else lines[span.first - 1 : span.last]
        return "\n".join(line.strip() for line in shown)


def _title(known: TeCall | None, arguments: Sequence[str]) -> str:
    if known is None:
        return ""
    if known.function is None:
        return f"{known.operator}, legalised"
    left = iter(arguments)

    def text(value: Any) -> str:
        if isinstance(value, te.Tensor):
            return next(left, "?")
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(text(each) for each in value)}]"
        return _TYPED.sub(r"\1", str(value))

    given = [text(each) for each in known.args]
    given += [f"{name}={text(each)}" for name, each in known.kwargs]
    return f"emit_te({', '.join([te_name(known.function), *given])})"


def _extent(extent: Any) -> Extent:
    if isinstance(extent, (int, tirx.IntImm)):
        return int(extent)
    return _TYPED.sub(r"\1", str(extent))


def _dtype(parameter: Any) -> Any:
    dtype = parameter.ty.dtype
    return getattr(dtype, "dtype", dtype)


# --- Source of Python functions, with its location ---

_RULES = "lowerscope.core.lowering.rules."

MOST_CALLED = 8
"""Maximum number of functions called by a rule that are shown."""


def function_source(
    function: Callable[..., Any], kind: SourceKind, name: str, remark: str = ""
) -> RuleSource:
    """Return the source of a function; without a text and a line where Python has none.

    `kind`, `name`, `remark`: as in `RuleSource`. For a closure, its arguments are added.
    """
    function = _unwrapped(function)
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or inspect.getfile(function)
    except (OSError, TypeError):
        remarks = (remark, _("it is not written in Python, so there is no source to show"))
        return RuleSource(kind=kind, name=name, remark=_("; ").join(filter(None, remarks)))
    remarks = (remark, _made_with(function))
    return RuleSource(
        kind=kind,
        name=name,
        remark=_("; ").join(filter(None, remarks)),
        line=SourceLine(file=str(Path(file).absolute()), line=first, text=lines[0].strip()),
        text=textwrap.dedent("".join(lines)).rstrip("\n"),
    )


def functions_in(function: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Return the rules that a rule calls, or was made with, and those that these call."""
    found: dict[Callable[..., Any], None] = {}
    waiting = [_unwrapped(function)]
    while waiting:
        each = waiting.pop(0)
        for value in _named_in(each):
            if value not in found and len(found) < MOST_CALLED:
                found[value] = None
                waiting.append(value)
    found.pop(_unwrapped(function), None)
    return tuple(found)


def _named_in(function: Any) -> Iterator[Callable[..., Any]]:
    if inspect.isfunction(function):
        names = _closed_in(function)
        for value in (*names.nonlocals.values(), *names.globals.values()):
            if inspect.isfunction(value) and value.__module__.startswith(_RULES):
                yield value


def _unwrapped(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        # An object that can be called: what runs is its class's.
        function = type(function).__call__
    return inspect.unwrap(function)


def _closed_in(function: Any) -> inspect.ClosureVars:
    try:
        return inspect.getclosurevars(function)
    except ValueError:
        # A name that it reads has no value yet.
        return inspect.ClosureVars({}, {}, {}, set())


def _made_with(function: Any) -> str:
    """Return the arguments of the function that made a closure: ``relax_operator = exp``."""
    if not inspect.isfunction(function):
        return ""
    closed = _closed_in(function).nonlocals
    values = [f"{name} = {_in_words(value)}" for name, value in closed.items() if name != "self"]
    return _("made with {values}", values=_(", ").join(values)) if values else ""


def _in_words(value: Any) -> str:
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        module = getattr(value, "__module__", "") or ""
        return f"{module}.{name}" if module.startswith(("tvm", "torch")) else name
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def source_text(file: str, lines: Iterable[SourceLine]) -> TextRecord:
    """Return the text of a file at the time when the model was traced.

    Spans are ``torch:FILE:LINE``, for each line that an FX node comes from.

    Raises `LowerscopeError` if no node comes from the file, or it cannot be read.
    """
    lines = list(lines)
    files = list(dict.fromkeys(line.file for line in lines))
    if file not in files:
        raise LowerscopeError(
            _("no FX node comes from {file}", file=file),
            where="source",
            todo=_("Choose one of {listed}", listed=listed(files)) if files else "",
            choices=tuple(files),
        )
    # The lines as tracing read them: the file may have changed since.
    text = "".join(linecache.getlines(file)).rstrip("\n")
    if not text:
        raise LowerscopeError(_("{file} cannot be read", file=file), where="source")
    numbers = sorted({line.line for line in lines if line.file == file})
    spans = (
        Span(entity=SourceLine(file=file, line=number).id, first=number, last=number)
        for number in numbers
    )
    return TextRecord(text=text, language="python", spans=tuple(spans))


def library_call_text(function: LibraryFunction) -> str:
    """Return the code that the virtual machine runs when it calls a library function.

    The tensors that it passes are ``t0``, ``t1``, … in order, the sizes of named dimensions
    ``size0``, …; `LibraryFunction.__call__` does the same for every function.
    """
    count = function.inputs
    passed = [f"t{index}" for index in range(count)]
    sizes = ["sizes"] if function.sized else []
    results = [] if function.returns else ["*results"]
    lines = [
        f'@tvm.register_global_func("{function.name}")',
        f"def call({', '.join([*passed, *sizes, *results])}):",
    ]
    if passed:
        kept = "copied, as torch changes them" if function.copies else "read where they lie"
        clone = ".clone()" if function.copies else ""
        read = ", ".join(f"from_dlpack({name}){clone}" for name in passed)
        lines.append(f"    {', '.join(passed)} = {read}  # {kept}")
    lines += ["    with torch.inference_mode():", f"        made = {_call_text(function)}"]
    if function.returns:
        lines.append("    return made  # new tensors: their shapes depend on data")
    else:
        lines.append("    for place, result in zip(results, tensors_of(made)):")
        lines.append("        from_dlpack(place).copy_(result)  # into the memory that TVM planned")
    return "\n".join(lines)


def called_by(function: LibraryFunction) -> Any:
    """Return the torch callee of a library function: a function, or a class of modules.

    For a method of a tensor, its name.
    """
    call = function.call
    if isinstance(call, ModuleCall):
        return type(call.module)
    return call.name if isinstance(call, MethodCall) else call


def name_of_called(function: LibraryFunction) -> str:
    """Return the name of the callee: ``torch.conv2d``, ``torch.nn.modules.linear.Linear``."""
    called = called_by(function)
    if isinstance(called, str):
        return f"torch.Tensor.{called}"
    if isinstance(called, type):
        return f"{called.__module__}.{called.__qualname__}"
    return str(resolve_name(called) or getattr(called, "__qualname__", called))


def _call_text(function: LibraryFunction) -> str:
    args = [_text(each) for each in function.args]
    named = [f"{name}={_text(value)}" for name, value in function.kwargs.items()]
    call = function.call
    if isinstance(call, ModuleCall):
        state, *rest = [*args, *named]
        whole = ", ".join([f"{call.module!r}".split("\n")[0], state, f"({', '.join(rest)},)"])
        return f"torch.func.functional_call({whole})"
    if isinstance(call, MethodCall):
        owner, *rest = [*args, *named]
        return f"{owner}.{call.name}({', '.join(rest)})"
    return f"{name_of_called(function)}({', '.join([*args, *named])})"


def _text(value: Any) -> str:
    if isinstance(value, Argument):
        return f"view_as_{value.dtype}(t{value.index})" if value.dtype else f"t{value.index}"
    if isinstance(value, Size):
        return f"sizes[{value.index}]"
    if isinstance(value, tuple):
        inside = ", ".join(_text(each) for each in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(each)}' for key, each in value.items())}}}"
    return repr(value)


def node_translation(stages: Stages, node: str) -> NodeTranslation:
    """Return the translation of one node.

    `node`: its name, or its id; the id of one of its parts stands for the node.

    Raises `LowerscopeError` if there is no such node; the error lists some nodes.
    """
    traced, lowered = stages.traced, stages.lowered
    if traced is None or lowered is None:
        raise LowerscopeError(
            _("this source builds an IRModule, so there are no translated nodes"),
            where="translation",
            todo=_("Show the stage relax or tensorir"),
        )
    name = node.removeprefix("fx:").removeprefix("part:").partition("/")[0]
    found = next((each for each in traced.graph_module.graph.nodes if each.name == name), None)
    if found is None:
        raise _no_such_node(node, list(lowered.nodes))
    known = lowered.nodes[name]
    names = ValueNames(lowered, traced.graph_module, binding_ids(lowered.module))
    return NodeTranslation(
        node=f"fx:{name}",
        number=list(lowered.nodes).index(name) + 1,
        summary=_summary(known, found, names),
        sources=tuple(_sources(known, lowered)),
        calls=te_records(known, lowered, names),
    )


def _no_such_node(node: str, names: list[str]) -> LowerscopeError:
    return LowerscopeError(
        _("there is no node {node}", node=node),
        where="--node",
        todo=_("Available: {listed}", listed=listed(names)),
        choices=tuple(names),
    )


def _summary(known: NodeLowering, node: fx.Node, names: ValueNames) -> str:
    """Summarise the translation of a node in a sentence."""
    value = names.text(known.value)
    if node.op == "placeholder":
        return _("An input: the argument {value} of main.", value=value)
    if node.op == "output":
        return _("The result of main: {value}.", value=value)
    if not known.bindings:
        return (
            _("It generates no code: it represents {value}.", value=value)
            if value
            else _("It generates no code.")
        )
    if known.strategy == "library":
        engine = next(each.name for each in known.used if each.kind == "library").partition(".")[0]
        if known.reason:
            return _("It runs in {engine}, since {reason}.", engine=engine, reason=known.reason)
        return _("It runs in {engine}.", engine=engine)
    if known.parts:
        return _(
            "No rule covers it as a whole: it was lowered in {count} parts.", count=len(known.parts)
        )
    made = _("tensor expressions") if known.strategy == "te" else _("Relax operators")
    return _("Lowered to {made} by {rule}.", made=made, rule=known.rule)


def _sources(known: NodeLowering, lowered: LoweredModel) -> Iterator[RuleSource]:
    for used in known.used:
        yield from _source(used)
    parts: dict[Callable[..., Any], list[str]] = {}
    rules: dict[Callable[..., Any], UsedRule] = {}
    for part in known.parts:
        parts.setdefault(part.used.function, []).append(part.name)
        rules.setdefault(part.used.function, part.used)
    for function, names in parts.items():
        rule = rules[function]
        yield function_source(function, rule.kind, rule.name, f"for {listed(names, most=4)}")
    functions = {
        call.function: te_name(call.function)
        for name in known.bindings
        if (call := lowered.te_calls.get(name)) is not None and call.function is not None
    }
    for function, title in functions.items():
        yield function_source(function, "te", title)


def _source(used: UsedRule) -> Iterator[RuleSource]:
    if not isinstance(used.function, LibraryFunction):
        yield function_source(used.function, used.kind, used.name)
        for inner in functions_in(used.function):
            remark = _("called while lowering {name}", name=used.name)
            yield function_source(inner, used.kind, inner.__name__, remark)
        return
    wraps = _("calls {name}", name=name_of_called(used.function))
    text = library_call_text(used.function)
    yield RuleSource(kind="library", name=used.name, remark=wraps, text=text)
    called: Any = called_by(used.function)
    if isinstance(called, type):
        called = called.forward  # type: ignore[attr-defined]
    if callable(called):
        yield function_source(called, "torch", name_of_called(used.function))


@answers(TranslationQuery, has_module)
def translation(query: TranslationQuery, pipeline: Pipeline, job: Progress) -> NodeTranslation:
    """Return the translation of a node: see `node_translation`."""
    stages = pipeline.stages(query.recipe, job)
    key = key_of("translation", stages.lower_key, query.node)
    return stages.keep("translation", key, lambda: node_translation(stages, query.node))
