"""Texts of a recipe's module, by view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec
import tvm
from tvm import IRModule, relax

from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.relax import elements_of, relax_functions
from lowerscope.core.ir.script import function_text, module_text, relax_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.lowering.partial_module import constants_of
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import FunctionTextsQuery, TextQuery, answers
from lowerscope.core.model.snapshot import Span, TextRecord, View
from lowerscope.core.model.texts import _, capitalized
from lowerscope.core.passes.bindings import Matches, inverse
from lowerscope.core.run.compare.tensor_values import constants_by_name
from lowerscope.core.sources.pytree import identifier
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.codegen_text import bytecode_text, loops_at, native_text
from lowerscope.core.views.graph_records import fx_code
from lowerscope.core.views.module_difference import changed_lines
from lowerscope.core.views.programs.builder_text import BuilderText, builder_text
from lowerscope.core.views.programs.numpy_text import numpy_graph_text, numpy_text
from lowerscope.core.views.programs.te_text import te_text
from lowerscope.core.views.translation import source_text

# The script of a module with its metadata, the values of its constants, cut to a readable length.
#
# They are megabytes, most of it in single lines: 64 MB for ResNet-18.

LONGEST_LINE = 400
"""Maximum characters of a line."""

MOST_BYTES = 200_000_000
"""Maximum bytes of constants for which the text is made: it would be a third longer."""

WHOLE = _("lowerscope export SOURCE --output DIR writes it whole")


def metadata_text(module: IRModule) -> TextRecord:
    """Return the script of the whole module with metadata; long lines are cut, with a note.

    Raises `LowerscopeError` if the constants are too large to be printed.
    """
    size = constant_bytes(module)
    if size > MOST_BYTES:
        raise LowerscopeError(
            _("the metadata would be about {size} of text", size=bytes_text(size * 4 / 3)),
            where="show_meta",
            todo=capitalized(WHOLE),
        )
    record = module_text(module, show_meta=True)
    lines = record.text.split("\n")
    cut = [_shortened(line) for line in lines]
    if cut == lines:
        return record
    cut_here = _(
        "{size} with metadata: long lines are cut here.", size=bytes_text(len(record.text))
    )
    head = f"# {cut_here} {WHOLE}."
    spans = tuple(
        msgspec.structs.replace(span, first=span.first + 1, last=span.last + 1)
        for span in record.spans
    )
    return msgspec.structs.replace(record, text="\n".join([head, *cut]), spans=spans)


def constant_bytes(module: IRModule) -> int:
    """Return the size of all constants of the Relax functions of `module`, in bytes."""
    return sum(
        constant.value.numpy().nbytes
        for function in module.functions.values()
        if isinstance(function, relax.Function)
        for constant in constants_of(function)
    )


def _shortened(line: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    return _(
        "{line} … {count:,} more characters",
        line=line[:LONGEST_LINE],
        count=len(line) - LONGEST_LINE,
    )


_WRITERS: Mapping[str, Callable[[tvm.tirx.PrimFunc, str], TextRecord]] = {
    "numpy": numpy_text,
    "te": te_text,
}


def needs_build(view: View, moment: Moment | None) -> bool:
    """Return whether a text shows compiled code: then the worker writes it."""
    at_build = moment is not None and moment.section == "build"
    return view in ("bytecode", "llvm", "asm") or at_build


def text_key(stages: Stages, view: View, name: str, moment: Moment | None) -> str:
    """Return the key of a text: of the module that it shows, and of how it is written."""
    scheduled = moment is not None and moment.section == "schedule"
    built = needs_build(view, moment) and not scheduled
    parent = stages.build_key if built else stages.moment_key(moment)
    return key_of("text", parent, view, name, moment, str(stages.target))


def _is_cached(query: TextQuery, pipeline: Pipeline, job: Progress) -> bool:
    stages = pipeline.stages(query.recipe, job)
    if not stages.has_module(query.moment):
        return False
    # Compilation waits until a run has been measured.
    key = text_key(stages, query.view, query.name, query.moment)
    return not needs_build(query.view, query.moment) or stages.is_cached(key)


@answers(TextQuery, _is_cached)
def text(query: TextQuery, pipeline: Pipeline, job: Progress) -> TextRecord:
    """Return a function after the passes as script, NumPy or TE, or the module's builder.

    Raises `LowerscopeError` if there is no such function, or it cannot be written in that way, with
    the reason.
    """
    stages = pipeline.stages(query.recipe, job)
    view, name, moment = query.view, query.name, query.moment
    return stages.keep(
        "text",
        text_key(stages, view, name, moment),
        lambda: write_text(stages, view, name, moment),
        lambda text: 2 * len(text.text),
    )


def _are_cached(query: FunctionTextsQuery, pipeline: Pipeline, job: Progress) -> bool:
    return all(_is_cached(each, pipeline, job) for each in _single(query))


@answers(FunctionTextsQuery, _are_cached)
def function_texts(
    query: FunctionTextsQuery, pipeline: Pipeline, job: Progress
) -> tuple[TextRecord, ...]:
    """Return the texts of several functions, as `text` does."""
    return tuple(_text_or_reason(each, pipeline, job) for each in _single(query))


def _single(query: FunctionTextsQuery) -> Iterator[TextQuery]:
    for name in query.names:
        yield TextQuery(query.recipe, name, query.view, query.moment)


def _text_or_reason(query: TextQuery, pipeline: Pipeline, job: Progress) -> TextRecord:
    try:
        return text(query, pipeline, job)
    except LowerscopeError as error:
        # The other functions are shown all the same.
        return TextRecord(text=f"# {error.problem.headline}", language="python")


def write_text(stages: Stages, view: View, name: str, moment: Moment | None = None) -> TextRecord:
    """Write function `name` after the passes; for the views ``"builder"`` and ``"metadata"``, the
    module before them; for ``"code"``, the FX graph; for ``"source"``, the file `name`; for
    ``"bytecode"``, ``"llvm"`` and ``"asm"``, what was compiled. Relax functions have the views
    ``"script"`` and ``"numpy"``.

    `moment`: Step of the module that is shown. At a step, a script without a `name` is that of the
        Relax functions. Compiled code is that of the model's build, and at a step of a schedule
        that of the function alone.

    Raises `LowerscopeError` if there is no such function, or it cannot be written in that way, with
    the reason.
    """
    if view == "llvm" or view == "asm":
        return native_text(stages, view, name, moment)
    if view == "bytecode":
        return bytecode_text(stages, name)
    if view == "builder":
        return builder_of(stages, _whole(stages, moment)).record
    if view in ("code", "source"):
        return _traced_text(stages, view, name)
    if view == "metadata":
        return metadata_text(_whole(stages, moment))
    module = stages.transformed.module if moment is None else stages.module_at(moment)
    if view == "script":
        record = _script(stages, module, name, moment)
        if moment is None or moment.section == "schedule":
            return record
        return msgspec.structs.replace(record, changed=changed_lines(stages, moment, record))
    if view == "numpy" and any(name == each for each, _other in relax_functions(module)):
        record = numpy_graph_text(module, name, names_of_constants(stages, identifiers=True))
        return _as_lowered(record, _origins(stages, moment))
    functions = prim_funcs_of(module)
    if name not in functions:
        raise LowerscopeError(
            _("there is no TensorIR function {name}", name=name),
            where=view,
            todo=_("The module has {functions}", functions=_(", ").join(functions)),
        )
    return _WRITERS[view](functions[name], name)


def _traced_text(stages: Stages, view: View, name: str) -> TextRecord:
    if stages.traced is None:
        raise LowerscopeError(
            _("this source builds an IRModule, so there is no FX graph"),
            where=view,
            todo=_("Show the stage relax or tensorir"),
        )
    if view == "source":
        return source_text(name, stages.traced.lines.values())
    return fx_code(stages.traced.graph_module)


def _script(stages: Stages, module: tvm.IRModule, name: str, moment: Moment | None) -> TextRecord:
    if moment is not None and moment.section == "build" and name:
        return function_text(module, name, loops_at(stages, name, moment.index))
    origins, name_of = _origins(stages, moment), names_of_constants(stages)
    if name or moment is None:
        return _as_lowered(function_text(module, name, name_of=name_of), origins)
    bounds = stages.transformed.walked.of(module) if moment.section == "passes" else None
    return _as_lowered(relax_text(module, bounds, name_of), origins)


def _origins(stages: Stages, moment: Moment | None) -> Matches:
    return inverse(stages.transformed.bindings) if moment is None else stages.origins_at(moment)


def _as_lowered(record: TextRecord, origins: Matches) -> TextRecord:
    """Return a text whose bindings have the ids of their origins in the lowered module.

    The ids of the module's own bindings would be taken for those of the lowered one.
    """
    spans: list[Span] = []
    for span in record.spans:
        if not span.entity.startswith("relax:") or "/" not in span.entity:
            spans.append(span)
        else:
            spans += [
                msgspec.structs.replace(span, entity=each) for each in origins.get(span.entity, ())
            ]
    return msgspec.structs.replace(record, spans=tuple(spans))


def _whole(stages: Stages, moment: Moment | None) -> tvm.IRModule:
    return stages.module if moment is None else stages.module_at(moment)


def builder_of(stages: Stages, module: tvm.IRModule, reserved: Collection[str] = ()) -> BuilderText:
    """Return the builder program of `module`, where constants have the names of parameters.

    `module`: That of the stages, before the passes or after them.
    `reserved`: names that nothing in the program may have.

    Raises `LowerscopeError` if the module has something that a builder program cannot make; it is
    named.
    """
    return builder_text(module, names_of_constants(stages, identifiers=True), reserved)


def names_of_constants(stages: Stages, *, identifiers: bool = False) -> Callable[[Any], str]:
    """Return a function that returns the name of a constant; empty for none.

    `identifiers`: as names of variables: ``linear0_weight``. Constants that are no parameters of
        the model are then without a name.
    """
    # Passes re-wrap constants around the same elements.
    names = {elements_of(each): name for name, each in stages.parameters.items()}
    for each in constants_by_name(stages):
        if each.from_model or not identifiers:
            names[elements_of(each.data)] = identifier(each.name, ()) if identifiers else each.name
    return lambda constant: names.get(elements_of(constant.value), "")
