"""Import of torch and TVM at the start of a process, in two thirds of the usual time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def import_libraries(*modules: str) -> None:
    """Import torch, TVM and modules, whose objects are left out of collections of cycles."""
    if "tvm" in sys.modules:
        return
    read_symbols()
    # None of their 400,000 objects is garbage.
    gc.disable()
    try:
        for name in ("torch", "tvm", *modules):
            import_module(name)
    finally:
        gc.enable()
    # Visiting them takes 0.1 s a collection.
    gc.freeze()


def read_symbols() -> None:
    """Let TVM read the symbols of its libraries, for backtraces, before torch is loaded.

    It reads those of all libraries that are loaded at its first error, once; and each import of it
    meets an error, of a type that is not compiled in. Those of torch take 0.9 s.
    """
    # A build of TVM that has them elsewhere does it at its first error.
    with contextlib.suppress(OSError, AttributeError):
        interface = ctypes.CDLL(_library("tvm_ffi"))
        ctypes.CDLL(_library("tvm_compiler", "tvm"))
        interface.TVMFFIBacktrace(None, 0, None, 0)


def _library(name: str, package: str = "") -> str:
    spec = find_spec(package or name)
    folders = (spec and spec.submodule_search_locations) or [""]
    return str(Path(folders[0], "lib", f"lib{name}.so"))
