"""Code of TensorIR functions: of a build, or of one function alone at a step of its schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from lowerscope.core.build.assembly import LlvmFunction, functions_of
from lowerscope.core.build.build import compile_function
from lowerscope.core.build.line_table import LineTable, make_twin
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.cancellations import with_cancellations
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class Library:
    """The code of TensorIR functions: LLVM IR, whole and by function."""

    text: str
    functions: Mapping[str, LlvmFunction]


@dataclass(frozen=True)
class CompiledFunctions:
    """Compiled functions and their code.

    Attributes
    ----------
    key
        Of all that it was made from.
    functions
        As they were given to the build of TensorIR.
    library
        Their code.
    about
        Description, where it is not part of the model's build.
    """

    key: str
    functions: Mapping[str, tirx.PrimFunc]
    library: Library
    about: str = ""


def compiled(stages: Stages, name: str, moment: Moment | None = None) -> CompiledFunctions:
    """Return the functions of the model's build; at a step of a schedule, `name` alone.

    Raises
    ------
    LowerscopeError
        If TVM cannot compile the function.
    """
    if moment is None or moment.section != "schedule":
        key = key_of("library", stages.build_key)
        library = stages.keep("library", key, lambda: _of_build(stages), _size)
        return CompiledFunctions(stages.build_key, stages.recorded.tensorir, library)
    function = prim_funcs_of(stages.module_at(moment)).get(name)
    if function is None:
        return CompiledFunctions("", {}, Library("", {}))
    function = function.with_attr("global_symbol", name)
    # As it is built: its twin is compared with the code line by line.
    function = with_cancellations(tvm.IRModule({name: function}))[name]
    key = key_of("alone", stages.moment_key(moment), moment, name, str(stages.target))
    alone = stages.keep("library", key, lambda: _alone(stages, name, function), _size)
    about = f"by itself, after step {moment.index} of its schedule"
    if not moment.index:
        about = "by itself, before it is scheduled"
    return CompiledFunctions(key, {name: function}, alone, about)


def twin_of(stages: Stages, made: CompiledFunctions, name: str) -> LineTable:
    """Return the twin of a function, cached."""
    function = made.functions[name]
    key = key_of("twin", made.key, name)
    return stages.keep("twin", key, lambda: make_twin(name, function, stages.target))


def _size(library: Library) -> int:
    return 4 * len(library.text)


def _of_build(stages: Stages) -> Library:
    return _library(stages.recorded.built.executable.mod.imports)


def _alone(stages: Stages, name: str, function: tirx.PrimFunc) -> Library:
    try:
        built = compile_function(name, function, stages.target).mod
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"TVM could not compile the function: {last_line(error)}",
            where=name,
            todo="Take back the last step; the log has TVM's whole message",
            details=str(error),
        ) from error
    return _library((built, *built.imports))


def _library(modules: Iterable[Any]) -> Library:
    texts = [each.inspect_source("ll") for each in modules if each.kind == "llvm"]
    functions: dict[str, LlvmFunction] = {}
    for text in texts:
        functions.update(functions_of(text))
    return Library("\n".join(texts), functions)
