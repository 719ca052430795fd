"""Translation of one FX node: its rules with their source, and the work of ``emit_te``."""

from __future__ import annotations

import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import fx
from torch.overrides import resolve_name

from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import binding_ids
from lowerscope.core.lowering.builder import te_name
from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_nodes import MethodCall, ModuleCall
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, UsedRule
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import TranslationQuery, answers
from lowerscope.core.model.snapshot import (
    NodeTranslation,
    RuleSource,
    SourceKind,
    SourceLine,
    Span,
    TextRecord,
)
from lowerscope.core.stages import Stages
from lowerscope.core.views.te_steps import ValueNames, te_records

# --- Source of Python functions, with its location ---

_RULES = "lowerscope.core.lowering.rules."

MOST = 8
"""Maximum number of functions called by a rule that are shown."""


def function_source(
    function: Callable[..., Any], kind: SourceKind, name: str, remark: str = ""
) -> RuleSource:
    """Return the source of a function; without a text and a line where Python has none.

    Parameters
    ----------
    kind, name, remark
        As in `RuleSource`. For a closure, its arguments are added.
    """
    function = _unwrapped(function)
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or inspect.getfile(function)
    except (OSError, TypeError):
        remarks = (remark, "it is not written in Python, so there is no source to show")
        return RuleSource(kind=kind, name=name, remark="; ".join(filter(None, remarks)))
    remarks = (remark, _made_with(function))
    return RuleSource(
        kind=kind,
        name=name,
        remark="; ".join(filter(None, remarks)),
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
            if value not in found and len(found) < MOST:
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
    return f"made with {', '.join(values)}" if values else ""


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
            f"no FX node comes from {file}",
            where="source",
            todo=f"Choose one of {listed(files)}" if files else "",
            choices=tuple(files),
        )
    # The lines as tracing read them: the file may have changed since.
    text = "".join(linecache.getlines(file)).rstrip("\n")
    if not text:
        raise LowerscopeError(f"{file} cannot be read", where="source")
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

    Parameters
    ----------
    node
        Its name, or its id; the id of one of its parts stands for the node.

    Raises
    ------
    LowerscopeError
        If there is no such node; the error lists some nodes.
    """
    traced, lowered = stages.traced, stages.lowered
    if traced is None or lowered is None:
        raise LowerscopeError(
            "this source builds an IRModule, so no node was translated",
            where="translation",
            todo="Show the stage relax or tensorir",
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
        f"there is no node {node}",
        where="--node",
        todo=f"There are {listed(names)}",
        choices=tuple(names),
    )


def _summary(known: NodeLowering, node: fx.Node, names: ValueNames) -> str:
    """Summarise the translation of a node in a sentence."""
    value = names.text(known.value)
    if node.op == "placeholder":
        return f"An input: it stands for the argument {value} of main."
    if node.op == "output":
        return f"What main returns: {value}."
    if not known.bindings:
        return f"It makes no code: it stands for {value}." if value else "It makes no code."
    if known.strategy == "library":
        why = f", since {known.reason}" if known.reason else ""
        return f"It runs in torch{why}."
    if known.parts:
        return f"No rule covers it as a whole: it was lowered in {len(known.parts)} parts."
    made = "tensor expressions" if known.strategy == "te" else "Relax operators"
    return f"Lowered to {made} by {known.rule}."


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
            remark = f"called on the way of {used.name}"
            yield function_source(inner, used.kind, inner.__name__, remark)
        return
    wraps = f"calls {name_of_called(used.function)}"
    text = library_call_text(used.function)
    yield RuleSource(kind="library", name=used.name, remark=wraps, text=text)
    called: Any = called_by(used.function)
    if isinstance(called, type):
        called = called.forward  # type: ignore[attr-defined]
    if callable(called):
        yield function_source(called, "torch", name_of_called(used.function))


def _is_cached(query: TranslationQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module()


@answers(TranslationQuery, _is_cached)
def translation(query: TranslationQuery, pipeline: Pipeline, job: Progress) -> NodeTranslation:
    """Return the translation of a node: see `node_translation`."""
    stages = pipeline.stages(query.recipe, job)
    key = key_of("translation", stages.lower_key, query.node)
    return stages.keep("translation", key, lambda: node_translation(stages, query.node))
