"""Registrations of a user's file with TVM and torch, so that the next file can register the same.

Only calls made by the user's own code are recorded: registrations that a package makes when it is
first imported stay, as the package itself does.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import tvm_ffi

from lowerscope.core.sources.user_files import called_by_user, user_frame

_recording: list[Registrations] = []
"""Active recordings, outermost first; a registration belongs to the innermost."""


class Registrations:
    """The global functions of TVM and the operator libraries of torch that a file registers.

    Parameters
    ----------
    folder
        The user's folder: files in it are the user's own code.

    Attributes
    ----------
    spent
        Whether operators of torch were unregistered for good.
    places
        File and line of the call that registered each function, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.spent = False
        self.places: dict[str, tuple[str, int]] = {}
        self._folder = folder
        self._functions: dict[str, Any] = {}
        self._replaced: dict[str, Any] = {}
        """Functions that the file's own have replaced."""
        self._libraries: weakref.WeakSet[torch.library.Library] = weakref.WeakSet()

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the registrations that the user's code makes in the body."""
        # All registration from Python goes through this function.
        register = tvm_ffi.core._register_global_func
        make: Any = torch.library.Library.__init__

        def register_and_note(name: str, function: Any, override: bool) -> Any:
            before = tvm_ffi.get_global_func(name, allow_missing=True)
            result = register(name, function, override)
            frame = user_frame(sys._getframe(1), self._folder)
            if frame is not None and _recording[-1] is self:
                self.places[name] = (frame.f_code.co_filename, frame.f_lineno)
                if before is not None and name not in self._functions:
                    self._replaced[name] = before
                self._functions[name] = tvm_ffi.get_global_func(name)
            return result

        def make_and_note(library: torch.library.Library, *args: Any, **kwargs: Any) -> None:
            make(library, *args, **kwargs)
            if called_by_user(sys._getframe(1), self._folder) and _recording[-1] is self:
                self._libraries.add(library)

        tvm_ffi.core._register_global_func = register_and_note
        torch.library.Library.__init__ = make_and_note  # type: ignore[assignment, method-assign]
        _recording.append(self)
        try:
            yield
        finally:
            _recording.pop()
            tvm_ffi.core._register_global_func = register
            torch.library.Library.__init__ = make  # type: ignore[method-assign]

    def put_back(self) -> None:
        """Register the functions again."""
        for name, function in self._functions.items():
            before = tvm_ffi.get_global_func(name, allow_missing=True)
            if before is not None:
                self._replaced[name] = before
            tvm_ffi.register_global_func(name, function, override=True)

    def put_away(self) -> None:
        """Unregister all functions, and restore those that they replaced."""
        self._destroy_operators()
        for name in list(self._functions):
            present = tvm_ffi.get_global_func(name, allow_missing=True)
            if present is None:
                # Already removed by the user's own code.
                del self._functions[name]
                self.places.pop(name, None)
                self._replaced.pop(name, None)
                continue
            before = self._replaced.pop(name, None)
            if before is None:
                tvm_ffi.registry.remove_global_func(name)
            else:
                tvm_ffi.register_global_func(name, before, override=True)

    def _destroy_operators(self) -> None:
        """Unregister the definitions of torch's libraries; a library cannot do so twice."""
        for library in self._libraries:
            if library.m is not None:
                library._destroy()  # type: ignore[no-untyped-call]
                self.spent = True
        self._libraries.clear()
