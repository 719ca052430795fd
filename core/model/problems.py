"""User-facing errors: what happened, where, and what to do next."""

from __future__ import annotations

import dis
import errno
import linecache
import re
from collections.abc import Sequence

import msgspec

from lowerscope.core.model.texts import _, capitalized, joined


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem as it is shown on the command line and in the Problems pane."""

    what: str  # what happened, one line
    where: str = ""  # a file, ``file:line``, a node or an option; empty for none
    todo: str = ""  # what to do next, one line
    # Machine-readable kind, which the window reacts to with more than text: ``"choose-entry"``
    # (``choices`` are the entries to offer), ``"give-inputs"`` (``choices`` are the names of the
    # inputs), ``"change-inputs"`` (the model fails on them; ``choices`` likewise), ``"give-args"``
    # (``choices`` is an example of the entry's arguments, as JSON),
    # ``"try-export"`` and ``"try-fx"`` (the other tracer may work), ``"own-translator"`` (TVM's
    # importer does not do it, Lowerscope's translator may), ``"trust"`` (the file runs code when it
    # is opened), ``"unseen"`` (``choices`` are files that have to be shown before they run),
    # ``"fixed-dimension"`` (a model does not take all sizes; ``choices`` is the condition),
    # ``"missing-function"`` (``choices`` are the names of functions that no file registers),
    # ``"not-kept"`` (it would have to be derived first), ``"cancelled"`` (``where`` is the call of
    # a run that had to be killed), ``"crashed"`` (``choices`` are the ids of the FX nodes that did
    # it, where they are known), ``"memory"`` (it does not suffice), ``"processes"`` (there were too
    # many), ``"sandbox"`` (it does not allow that, or there is none), ``"stopped"`` (a run that was
    # killed in a call), ``"internal"`` (a mistake of our own); otherwise empty.
    code: str = ""
    choices: tuple[str, ...] = ()  # see ``code``
    # Further text, such as a traceback that has been cut down to the user's own frames.
    details: str = ""
    # Of a run that failed: its calls, in order, up to the one that was under way.
    calls: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The problem as the start of a sentence; a name such as ``torch.fx`` keeps its case."""
        return capitalized(self.what)

    def line(self) -> str:
        """Return the problem as one line: where, what, what to do."""
        where = self.where if len(self.where) <= _LONGEST else f"{self.where[:_LONGEST]}…"
        parts = [f"{where}: {self.what}" if where else self.what]
        if self.todo:
            parts.append(self.todo)
        parts = [" ".join(part.splitlines()) for part in parts]
        sentences = [
            part if part.endswith(tuple(".?!…。？！")) else _("{sentence}.", sentence=part)
            for part in parts
        ]
        # A full-width mark has its own room after it.
        return "".join(
            each if each.endswith(tuple("。？！")) else f"{each} " for each in sentences
        ).rstrip()


_LONG_WORD = re.compile(r"(\S{120})\S{80,}")
"""Overlong word in a message, such as one that comes from a file."""

_LONGEST = 2000
"""Maximum number of characters of a part of a problem."""

_MOST_LINES = 400
"""Maximum number of lines of details."""


def _readable(text: str) -> str:
    text = _LONG_WORD.sub(r"\1…", text)
    if len(text) <= _LONGEST:
        return text
    return _(
        "{text}… ({count:,} more characters)", text=text[:_LONGEST], count=len(text) - _LONGEST
    )


def _shortened(details: str) -> str:
    """Return the first and the last lines of a long text, each shortened."""
    lines = details.splitlines()
    if len(lines) > _MOST_LINES:
        half = _MOST_LINES // 2
        left_out = _(
            "… {count:,} more lines: run the code in Python to see them …",
            count=len(lines) - 2 * half,
        )
        lines = [*lines[:half], left_out, *lines[-half:]]
    elif len(details) <= _LONGEST:
        return details
    return "\n".join(map(_readable, lines))


class LowerscopeError(Exception):
    """An error for the user to fix, carried as a `Problem`."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        todo: str = "",
        code: str = "",
        choices: tuple[str, ...] = (),
        details: str = "",
        calls: tuple[str, ...] = (),
    ) -> None:
        self.problem = Problem(
            what=_readable(what),
            where=where,
            todo=_readable(capitalized(todo)),
            code=code,
            choices=choices,
            details=_shortened(details),
            calls=calls,
        )
        super().__init__(self.problem.line())


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return names in one line, as in ``a, b and 3 more``."""
    shown = joined(_(", "), names[:most])
    more = len(names) - most
    return _("{names} and {count} more", names=shown, count=more) if more > 0 else shown


def error_of(problem: Problem) -> LowerscopeError:
    """Return an error that carries `problem`, to raise it again."""
    return LowerscopeError(**msgspec.structs.asdict(problem))


class Cancelled(Exception):
    """Cancellation of the work under way by the user."""


def is_interrupt(error: BaseException) -> bool:
    """Return whether `error` was raised by Ctrl+C, and not by a ``raise`` in user code.

    Anything else that user code raises is an error of that code, whatever its class.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return True
    code = last.tb_frame.f_code.co_code
    return dis.opname[code[last.tb_lasti]] not in ("RAISE_VARARGS", "RERAISE")


_OF_THE_SYSTEM = {
    errno.ENOSPC: _("Free some disk space"),
    errno.EDQUOT: _("Free some disk space"),
    errno.EFBIG: _("Allow larger files"),
    errno.EROFS: _("Choose a writable place"),
    errno.EACCES: _("Check its permissions"),
    errno.EPERM: _("Check its permissions"),
    errno.EISDIR: _("Move the folder out of the way: a file belongs there"),
    errno.ENOTDIR: _("Move the file out of the way: a folder belongs there"),
    errno.EEXIST: _("Remove or rename the existing file or folder"),
    errno.ENOTEMPTY: _("Move the folder out of the way: a file belongs there"),
    errno.EMFILE: _("Close files that the code has opened"),
    errno.EBADF: _("Close only files that the code itself opened"),
}


def problem_of_system(error: BaseException) -> Problem | None:
    """Return the problem of a file that the system cannot read or write, if that is the error."""
    if not isinstance(error, OSError) or error.errno not in _OF_THE_SYSTEM:
        return None
    reason = _("a file of Lowerscope was closed") if error.errno == errno.EBADF else error.strerror
    return Problem(
        what=_("a file cannot be read or written: {reason}", reason=reason),
        where=str(error.filename2 or error.filename or ""),
        todo=_OF_THE_SYSTEM[error.errno],
    )


TVM_ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
)
"""Built-in exceptions that TVM's own errors derive from."""


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message that is not empty: where TVM says the reason.

    Of a message that ends with a part of a module, that is the check that failed.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[-1].endswith("lines skipped ...)"):
        return next((line for line in lines if line.startswith("Check failed")), lines[0])
    return lines[-1] if lines else kind_of(error)


def kind_of(error: BaseException) -> str:
    """Return the type of an error without a message, with the statement that raised it."""
    traceback, name = error.__traceback__, type(error).__name__
    if traceback is None:
        return name
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    line = linecache.getline(code.co_filename, traceback.tb_lineno).strip()
    return f"{name}: {line}" if line else name
