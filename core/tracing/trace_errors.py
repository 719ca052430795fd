"""Errors and notes for models that cannot be run or traced, or that fix named dimensions."""

from __future__ import annotations

import dis
import inspect
import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

import torch

from lowerscope.core.model.problems import LowerscopeError, Problem, kind_of
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _

_TORCH = str(Path(torch.__file__).parent) + os.sep
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_OWN = str(Path(__file__).parents[1]) + os.sep
_STACK_LINE = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)


def line_of_frame(frame: FrameType | None, boundary: CodeType) -> SourceLine | None:
    """Return the innermost line of the user's among `frame` and its callers.

    The search ends at the frame that runs `boundary`: callers of the tracer are not the model.
    """
    while frame is not None and frame.f_code is not boundary:
        if is_users_file(frame.f_code.co_filename):
            return source_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def line_of_traceback(error: BaseException, *, inside: bool = False) -> SourceLine | None:
    """Return the innermost line of the user's below the tracer, where an exception came from."""
    frames = _users_frames(error, inside=inside)
    return source_line(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _users_frames(error: BaseException, *, inside: bool = False) -> list[traceback.FrameSummary]:
    """Return the user's frames below the tracer, outermost first.

    `inside`: whether the traceback starts below the tracer.
    """
    found = []
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(_OWN):
            inside = True
        elif inside and is_users_file(frame.filename):
            found.append(frame)
    return found


def traceback_text(error: BaseException, *, inside: bool = False) -> str:
    """Return the traceback of an exception through the user's frames; see `_users_frames`."""
    frames = traceback.format_list(_users_frames(error, inside=inside))
    reason = traceback.format_exception_only(type(error), error)
    return "".join([*frames, *reason]).rstrip()


def line_of_stack(stack: str | None) -> SourceLine | None:
    """Return the innermost line of the user's in a stack as torch writes it."""
    found = None
    for match in _STACK_LINE.finditer(stack or ""):
        if is_users_file(match["file"]):
            found = source_line(match["file"], int(match["line"]))
    return found


def line_of_code(code: CodeType) -> SourceLine | None:
    """Return the line where a function of the user's is defined."""
    if not is_users_file(code.co_filename):
        return None
    line = code.co_firstlineno
    # A code object starts at its first decorator, above the def.
    while linecache.getline(code.co_filename, line).strip().startswith("@"):
        line += 1
    return source_line(code.co_filename, line)


def forward_line(model: torch.nn.Module) -> SourceLine | None:
    """Return the line where the model's ``forward`` is defined."""
    if isinstance(model, torch.jit.ScriptModule):
        return None
    code = getattr(inspect.unwrap(type(model).forward), "__code__", None)
    return line_of_code(code) if code else None


def is_users_file(file: str) -> bool:
    """Return whether `file` is not torch's, Python's or the tracer's, nor generated code."""
    if file.startswith((_TORCH, _OWN, "<")):
        return False
    return not file.startswith(_STANDARD_LIBRARY) or "site-packages" in file


def source_line(file: str, line: int) -> SourceLine:
    """Return line `line` of `file` with its text."""
    return SourceLine(file=file, line=line, text=linecache.getline(file, line).strip())


_LONGEST = 200

_MOST_LINES = 100
"""Length limit of torch's own messages, in lines; longer ones are a user's, and are kept."""

_CONSTRAINT = re.compile(r"^Constraints violated.*?^  - (.*?[.!]?)$", re.MULTILINE | re.DOTALL)
"""Pattern of torch's error for a dimension that cannot have any size, without its first line."""


class CannotFollow(Exception):
    """Error of the tracer itself, with a reason in the model's terms.

    `line`: of the branch that it concerns, unless that is where it is raised.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


class StateChange(LowerscopeError):
    """Error for a ``forward`` that changes the model's own tensors, which has no node."""


class CaughtError(LowerscopeError):
    """Error for a wrong graph of a model that catches an error of the tracer's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            _("torch.fx cannot trace the model: {fx_reason}", fx_reason=fx_reason(error)),
            where=where_of(line_of_traceback(error, inside=True)),
            todo=_("try another tracer: --tracer export"),
            details=traceback_text(error, inside=True),
            code="try-export",
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, shortened; its type if it has none.

    A key, or an assertion without a message, says nothing by itself.
    """
    if isinstance(error, SystemExit):
        return _("it ends Python itself (exit code {code})", code=error.code)
    if isinstance(error, KeyError) and " " not in str(error):
        return _("there is no key {key}", key=error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines and isinstance(error, AssertionError):
        _name, _colon, line = kind_of(error).partition(": assert ")
        return _("its own check fails: {check}", check=line) if line else _("its own check fails")
    if not lines:
        return kind_of(error)
    text = lines[0] if len(lines[0]) <= _LONGEST else lines[0][: _LONGEST - 1] + "…"
    if len(lines) > _MOST_LINES:
        text = _(
            "{line} (the first of {count:,} lines; call the model in Python to see all)",
            line=text,
            count=len(lines),
        )
    return text if isinstance(error, Exception) else f"{type(error).__name__}: {text}"


def where_of(line: SourceLine | None) -> str:
    """Return ``file:line``; empty without a line."""
    return f"{line.file}:{line.line}" if line else ""


def inputs_do_not_fit(
    error: BaseException, line: SourceLine | None, node: str = "", names: tuple[str, ...] = ()
) -> LowerscopeError:
    """Return the error for a model that fails on the example inputs, which may have names.

    `node`: the node at which it fails, if that is known.
    """
    line = line_of_traceback(error) or line
    if not isinstance(error, Exception):
        return _ends_python(error, line)
    if "negative strides" in str(error):
        return LowerscopeError(
            _(
                "the model makes a tensor of a NumPy array with a negative step, such as "
                "values[::-1], which torch does not support"
            )
            if not node
            else _(
                "the model makes a tensor of a NumPy array with a negative step, such as "
                "values[::-1], at node {node}; torch does not support these",
                node=node,
            ),
            where=where_of(line),
            todo=_("make a copy of the array: torch.from_numpy(values[::-1].copy())"),
            details=traceback_text(error),
        )
    return LowerscopeError(
        _("the model fails on these inputs: {reason}", reason=first_line(error))
        if not node
        else _(
            "the model fails on these inputs at node {node}: {reason}",
            node=node,
            reason=first_line(error),
        ),
        where=where_of(line),
        todo=_("check the inputs' shapes, dtypes and ranges of values: --input x=1,12:int64[0,100)")
        if _OUT_OF_RANGE.search(str(error))
        else _("check the inputs' shapes and dtypes: --input x=1,784:float32")
        if isinstance(error, _OF_VALUES) and not isinstance(error, _OF_CODE)
        else _("correct this line, or give inputs for which it works: --input x=1,784:float32"),
        details=traceback_text(error),
        code="change-inputs" if names else "",
        choices=names,
    )


_OUT_OF_RANGE = re.compile(r"out[- ]of[- ](range|bounds)", re.IGNORECASE)
"""Errors of an index that reads beyond a tensor, such as a token that an embedding lacks."""

_OF_VALUES = (RuntimeError, ValueError, IndexError, ArithmeticError)
"""Errors for values that do not fit; others are mistakes in the code more often."""

_OF_CODE = (RecursionError, NotImplementedError)
"""Those of them that are not about values."""


def returns_nothing(line: SourceLine | None) -> LowerscopeError:
    """Return the error for a model without a tensor or a number among its outputs."""
    return LowerscopeError(
        _("the model returns no tensor"),
        where=where_of(line),
        todo=_("return the tensors that forward computes"),
    )


def cannot_trace(error: BaseException) -> LowerscopeError:
    """Return the error for a model that ``symbolic_trace`` cannot follow."""
    if not isinstance(error, Exception):
        return _ends_python(error, line_of_traceback(error))
    return LowerscopeError(
        _("torch.fx cannot trace the model: {fx_reason}", fx_reason=fx_reason(error)),
        where=where_of(line_of_traceback(error)),
        todo=_("try another tracer: --tracer export"),
        details=traceback_text(error),
        code="try-export",
    )


_FX_REASONS = (
    (
        "cannot be used as inputs to control flow",
        _("a condition depends on a tensor or its size"),
    ),
    (
        "Proxy object cannot be iterated",
        _("a loop or an unpacking depends on a tensor or its size"),
    ),
    ("'len' is not supported", _("it takes the len() of a tensor")),
    ("does not support item assignment", _("it assigns to elements of a tensor")),
)
"""Patterns of torch.fx's errors, with the reason in the model's terms."""


def fx_reason(error: BaseException) -> str:
    """Return why a model that runs eagerly fails with the proxies of torch.fx."""
    if isinstance(error, CannotFollow):
        return str(error)
    if _is_raised_by_user(error.__traceback__):
        return _(
            "it raises {name}: {first_line}",
            name=type(error).__name__,
            first_line=first_line(error),
        )
    for part, reason in _FX_REASONS:
        if part in str(error):
            return reason
    return _("it needs a value or a size of a tensor that is known only at run time")


def _is_raised_by_user(last: TracebackType | None) -> bool:
    """Return whether an exception was raised by a user's ``raise`` or ``assert`` statement."""
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_users_file(last.tb_frame.f_code.co_filename):
        return False
    code = last.tb_frame.f_code.co_code
    return dis.opname[code[last.tb_lasti]] == "RAISE_VARARGS"


def cannot_name_sizes(reason: str) -> LowerscopeError:
    """Return the error for a model of ``torch.jit`` that is given named dimensions."""
    return LowerscopeError(
        _("the module of torch.jit takes no named dimensions: {reason}", reason=reason),
        todo=_("give numbers for the sizes, or open the original module"),
    )


def cannot_export(error: BaseException, model: torch.nn.Module) -> LowerscopeError:
    """Return the error for a `model` that ``torch.export`` cannot follow."""
    # Already imported by torch.export; it loads SymPy and more, which would slow the start.
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    if not isinstance(error, Exception):
        return _ends_python(error, line_of_traceback(error))
    for path, part in model.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            return LowerscopeError(
                _(
                    "torch.export cannot trace the model: {path} is a module of torch.jit",
                    path=path,
                ),
                where=where_of(line_of_traceback(error)),
                todo=_("use the original module there; or try another tracer: --tracer fx"),
                details=traceback_text(error),
                code="try-fx",
            )
    reason = first_line(error)
    violated = _CONSTRAINT.search(str(error))
    if violated is not None:
        reason = violated[1]
    if isinstance(error, GuardOnDataDependentSymNode):
        reason = _(
            "a branch or a size depends on the values of tensors ({sub})",
            sub=_CONDITION.sub("", reason),
        )
    return LowerscopeError(
        _("torch.export cannot trace the model: {reason}", reason=reason),
        where=where_of(line_of_traceback(error)),
        todo=_(
            "remove the parts that depend on the values of tensors; or try another tracer: "
            "--tracer fx"
        ),
        details=traceback_text(error),
        code="try-fx",
    )


_CONDITION = re.compile(r" \(unhinted: .*")


def cannot_replace(error: Exception) -> LowerscopeError:
    """Return the error for an exported graph of which torch cannot replace the changes in place."""
    return LowerscopeError(
        _("torch.export cannot make its graph functional: {reason}", reason=first_line(error)),
        todo=_(
            "write it without in-place changes and modes of gradients; or try another tracer: "
            "--tracer fx"
        ),
        details=traceback_text(error),
        code="try-fx",
    )


def neither_traces(by_fx: Problem, by_export: Problem) -> LowerscopeError:
    """Return the error for a model that neither tracer can trace."""
    where = by_export.where or by_fx.where
    place = f" ({by_fx.where})" if by_fx.where not in ("", where) else ""
    return LowerscopeError(
        f"{by_fx.what}{place}; {by_export.what}",
        where=where,
        todo=_(
            "remove the parts that depend on the values of tensors, or change the model's state"
        ),
        details="\n".join(
            filter(None, (by_fx.line(), by_fx.details, by_export.line(), by_export.details))
        ),
    )


def took_export(by_fx: Problem) -> Note:
    """Return the note that ``torch.export`` was used because ``torch.fx`` failed."""
    return Note(text=_("{what}; torch.export traced it", what=by_fx.what), where=by_fx.where)


def made_functional(whole: Problem) -> Note:
    """Return the note that in-place operators were replaced in a graph because of `whole`."""
    return Note(
        text=_(
            "{what}; the graph is shown with new values in place of the change", what=whole.what
        ),
        where=whole.where,
    )


def _ends_python(error: BaseException, line: SourceLine | None) -> LowerscopeError:
    raised = "sys.exit()" if isinstance(error, SystemExit) else type(error).__name__
    return LowerscopeError(
        _("the model fails at run time: {first_line}", first_line=first_line(error)),
        where=where_of(line),
        todo=_("raise an error that describes the fault instead of {raised}", raised=raised),
        details=traceback_text(error),
    )


# --- Named dimensions of a model's inputs, and the error for a model that fixes their size ---

CONSTRAINT = "fixed-dimension"
"""Problem code of a model that does not take all sizes of a dimension."""

Range = tuple[int, int]


@dataclass(frozen=True)
class NamedInputs:
    """The shapes of a model's inputs, with names for some extents.

    `shapes`: of the tensors in order.
    `ranges`: smallest and largest size of each name.
    """

    shapes: tuple[tuple[int | str, ...], ...]
    ranges: Mapping[str, Range]


def fixed_dimension(
    demand: str,
    named: NamedInputs,
    line: SourceLine | None,
    at: str = "",
    engine: str = "torch",
) -> LowerscopeError:
    """Return the error for a model that does not take all sizes of a dimension.

    `demand`: Torch's constraint: ``batch == 7``.
    `at`: the node that has it.
    `engine`: what cannot compute other sizes.
    """
    names = [name for name in named.ranges if name in demand] or list(named.ranges)
    name = names[0]
    low, high = named.ranges[name]
    what = (
        _(
            "{name} cannot have every size from {low} to {high}: {engine} needs {demand} at node "
            "{at}"
        )
        if at
        else _("{name} cannot have every size from {low} to {high}: {engine} needs {demand}")
    )
    return LowerscopeError(
        what.format(engine=engine, name=name, low=low, high=high, demand=demand, at=at),
        where=where_of(line),
        todo=_(
            "narrow the range of {name}, give a number in place of it, or change the model",
            name=name,
        ),
        code=CONSTRAINT,
        choices=(demand,),
    )


@lru_cache
def _compiled(condition: str) -> CodeType:
    return compile(condition, "condition", "eval")


def holds(condition: str, sizes: Mapping[str, int]) -> bool:
    """Return whether torch's condition on named sizes, written as Python, holds for some sizes.

    Raises `SyntaxError`, `NameError` or `TypeError` if it is no such condition
    """
    known = {"min": min, "max": max, "__builtins__": {}}
    try:
        return bool(eval(_compiled(condition), known, dict(sizes)))
    except ZeroDivisionError:
        return False


def narrowed(
    problem: Problem, ranges: Mapping[str, Range], sizes: Mapping[str, int]
) -> dict[str, Range] | None:
    """Return the ranges around some sizes in which the model takes the same side of a condition.

    ``None`` if the problem is no condition on one dimension.
    """
    if problem.code != CONSTRAINT:
        return None
    (demand,) = problem.choices
    for name, (low, high) in ranges.items():
        first = last = size = sizes[name]
        try:
            is_met = holds(demand, {name: size})
            while first > low and holds(demand, {name: first - 1}) == is_met:
                first -= 1
            while last < high and holds(demand, {name: last + 1}) == is_met:
                last += 1
        except (SyntaxError, NameError, TypeError):
            continue
        if (first, last) != (low, high):
            return {**ranges, name: (first, last)}
    return None
