"""What is built goes to another machine: linked there, or compiled there from LLVM IR.

A library needs a linker on one side. Where the server has none, but has LLVM as the whole of TVM
does, it is sent LLVM IR and the virtual machine's own file, and no compiler is needed anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.remote.session import LOST, Session

_EXECUTABLE = "ffi.Module.load_from_file.relax.VMExecutable"
_LLVM = "ffi.Module.load_from_file.ll"


def ship(session: Session, executable: relax.VMExecutable) -> Any:
    """Return the module on the server that a virtual machine is made of.

    Raises
    ------
    LowerscopeError
        If the server can neither link nor compile it.
    """
    return _shipped(session, executable.export_library, lambda: _as_llvm(session, executable))


def ship_function(session: Session, built: tvm.runtime.Executable) -> Any:
    """Return the module on the server that has a single compiled function.

    Raises
    ------
    LowerscopeError
        If the server can neither link nor compile it.
    """
    return _shipped(session, built.export_library, lambda: _upload_llvm(session, built.mod))


def _shipped(session: Session, export: Callable[[str], object], as_llvm: Callable[[], Any]) -> Any:
    try:
        return _as_library(session, export)
    except LowerscopeError as error:
        # The server has a linker or it has not, and says so in words of its own.
        if error.problem.code == LOST or "compiler" not in error.problem.details:
            raise
    if session.function(_LLVM) is None:
        raise LowerscopeError(
            "the server has neither a C compiler, to link what is built, nor a TVM with LLVM",
            where=session.where,
            todo="Install g++ there, or the whole of apache-tvm",
        )
    return as_llvm()


def _as_library(session: Session, export: Callable[[str], object]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lowerscope.tar"
        try:
            export(str(file))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                f"what is built cannot be written as objects: {last_line(error)}",
                where="build",
                todo="Choose another target; the log has TVM's whole message",
                details=str(error),
            ) from error
        session.call("sending the model", lambda: session.rpc.upload(str(file)))
    return session.call("linking the model", lambda: session.rpc.load_module("lowerscope.tar"))


def _as_llvm(session: Session, executable: relax.VMExecutable) -> Any:
    load = session.function(_EXECUTABLE)
    if load is None:
        raise LowerscopeError(
            "the server has no C compiler to link what is built, and no virtual machine",
            where=session.where,
            todo="Install g++ there",
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lowerscope.vm"
        executable.mod.write_to_file(str(file), "relax.VMExecutable")
        session.call("sending the model", lambda: session.rpc.upload(str(file)))

    def loaded() -> Any:
        path = session.rpc.get_function("tvm.rpc.server.workpath")("lowerscope.vm")
        return load(path)

    module = session.call("loading the model", loaded)
    for place, imported in enumerate(executable.mod.imports):
        library = _upload_llvm(session, imported, f"lowerscope{place}.ll")
        session.call("loading the model", lambda each=library: module.import_module(each))
    return module


def _upload_llvm(session: Session, module: Any, name: str = "lowerscope.ll") -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        module.write_to_file(str(file), "ll")
        session.call("sending the model", lambda: session.rpc.upload(str(file)))
    return session.call("compiling the model there", lambda: session.rpc.load_module(name))
