"""What a user's file registers with TVM and torch, so that the next file can register the same.

Only calls that the user's own code makes are written down: what a package registers when it is
imported for the first time stays, as the package itself does.
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
"""From the outermost; what is registered belongs to the innermost."""


class Registrations:
    """The global functions of TVM and the operator libraries of torch that a file registers.

    Parameters
    ----------
    folder
        The user's: what lies there is the user's own code.

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
        """Functions that were there before, under names that the file has taken."""
        self._libraries: weakref.WeakSet[torch.library.Library] = weakref.WeakSet()

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Write down what the user's code registers in the body."""
        # Every way to register a function from Python ends here.
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
        """Unregister all; functions that the file's own replaced come back."""
        self._destroy_operators()
        for name in list(self._functions):
            present = tvm_ffi.get_global_func(name, allow_missing=True)
            if present is None:
                # The user's own code has removed it meanwhile.
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
        """Unregister what torch's libraries define; a library cannot do so a second time."""
        for library in self._libraries:
            if library.m is not None:
                library._destroy()  # type: ignore[no-untyped-call]
                self.spent = True
        self._libraries.clear()
