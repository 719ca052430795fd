"""Errors of primitives that were not applied: TVM's and our own, as the window shows them."""

from __future__ import annotations

import re

from lowerscope.core.model.problems import TVM_ERRORS
from lowerscope.core.model.schedule_records import StepError
from lowerscope.core.model.texts import _

REFUSED = (*TVM_ERRORS, OverflowError, ArithmeticError)
"""Exceptions that TVM raises when it rejects a primitive or its arguments."""

_MESSAGE = "Error message: "
_UNDERLINE = re.compile(r"^\s*\^+\s*$")
_MARK = re.compile(r"^\s*# ((?:s_)?tirx?\.\w+#\d+)\s*$")
_NAMED = re.compile(r"\s*(?:for (\w+)|with T\.sblock\(\"([^\"]+)\"\))")
_NUMBERED = re.compile(r"(?:s_)?tirx?\.\w+#\d+")
_COMPACT = re.compile(
    r"subtree root (\S+) in SRef tree does not have compact dataflow, because its child block "
    r"(\S+) on SRef tree .*?condition #(\d) as a local complete block.*?"
    r"condition #(\d) as a local reduction block",
    re.DOTALL,
)
_COMPLETE = {
    "1": _("not all of its axes are spatial"),
    "2": _("another block writes the same buffer, or reads it before"),
    "3": _("it reads its own output"),
}
_REDUCTION = {
    "1": _("it has no initial value in it: decompose_reduction comes after other steps"),
    "2": _("the bindings of its axes are not affine"),
    "3": _("it has axes that are neither spatial nor reduction axes"),
    "4": _("another block writes the same buffer, or reads it before"),
    "5": _("its output is indexed by an axis of the reduction"),
}
_CHECK = re.compile(r"^Check failed: .*? (?:is false|\(.*? vs\. .*?\)) ?: ?(.+)$", re.DOTALL)
_RESTS = ("The pattern attempting to be matched", "Definition of a ")
"""Beginnings of rests that are cut off: a function on many lines, or text that is always the
same."""
_PREFIXES = ("ScheduleError: ", "ValueError: ", "InternalError: ")


class StepFailed(Exception):
    """A primitive was not applied, for the reason in ``error``.

    `values`: of the fields of the message.
    """

    def __init__(self, message: str, *, unsafe: bool = False, **values: object) -> None:
        message = message.format(**values) if values else message
        self.error = StepError(message=message, unsafe=unsafe)
        super().__init__(message)

    @staticmethod
    def of(error: StepError) -> StepFailed:
        """Return the exception for `error`."""
        failed = StepFailed(error.message)
        failed.error = error
        return failed


def step_error(error: BaseException) -> StepError:
    """Return TVM's reason for rejecting a primitive.

    Of a ``ScheduleError``, its module is the text, without the lines of carets; the lines that
    these stood under are the offending ones. The message names loops and blocks as the script does.
    """
    whole = str(error)
    if _MESSAGE not in whole:
        return StepError(message=_plain(whole) or type(error).__name__)
    shown, _sep, message = whole.rpartition(_MESSAGE)
    _sep, _sep, script = shown.partition("@I.ir_module\n")
    lines: list[str] = []
    marked: list[int] = []
    names: dict[str, str] = {}
    waiting: list[str] = []
    for line in script.splitlines():
        if _UNDERLINE.match(line):
            marked.append(len(lines))
            continue
        mark = _MARK.match(line)
        if mark:
            waiting.append(mark[1])
            continue
        lines.append(line)
        if waiting:
            named = _NAMED.match(line)
            name = (named[1] or named[2]) if named else line.strip()
            names.update((each, name) for each in waiting)
            waiting = []
    text, offset = _function(lines)
    return StepError(
        message=_sentence(
            _dataflow(_NUMBERED.sub(lambda found: names.get(found[0], found[0]), message))
        ),
        text=text,
        lines=tuple(line - offset for line in marked if line > offset),
    )


def _function(lines: list[str]) -> tuple[str, int]:
    """Return the text of the only function of a module, and the number of lines before it."""
    start = 1 if lines[:1] == ["class Module:"] else 0
    body = [line.removeprefix("    ") if start else line for line in lines[start:]]
    while body and not body[-1].strip():
        body.pop()
    return "\n".join(body), start


def _plain(message: str) -> str:
    """Return the reason in a message of one of TVM's checks."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    checked = [line for line in lines if line.startswith("Check failed")]
    line = (checked or lines or [""])[-1]
    found = _CHECK.match(line)
    return _sentence(found[1] or line) if found else _sentence(line)


def _dataflow(message: str) -> str:
    """Return the reason why blocks under a loop cannot run in any order, without definitions."""
    found = _COMPACT.search(message)
    if found is None:
        return message
    loop, block, complete, reduction = found.groups()
    return _(
        "{block} under {loop} is neither a complete block ({complete}) nor a reduction block "
        "({reduction})",
        block=block,
        loop=loop,
        complete=_COMPLETE[complete],
        reduction=_REDUCTION[reduction],
    )


def _sentence(message: str) -> str:
    """Return a message of TVM as one line, without its prefix and full stop."""
    for rest in _RESTS:
        message, _sep, _sep = message.partition(rest)
    line = " ".join(message.split())
    for prefix in _PREFIXES:
        line = line.removeprefix(prefix)
    return line[:-1] if line.endswith(".") and not line.endswith("..") else line
