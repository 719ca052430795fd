"""Upload of compiled code: linked on the server, or compiled there from LLVM IR.

A library needs a linker on one of the machines. If the server has none, but has LLVM as a full TVM
does, it is sent LLVM IR and the virtual machine's own file, and no compiler is needed anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.remote.session import FAILED, Session

_EXECUTABLE = "ffi.Module.load_from_file.relax.VMExecutable"
_LLVM = "ffi.Module.load_from_file.ll"


def ship(session: Session, executable: relax.VMExecutable) -> Any:
    """Upload an executable, and return the server's module for a virtual machine.

    Raises
    ------
    LowerscopeError
        If the server can neither link nor compile it.
    """
    return _shipped(session, executable.export_library, lambda: _as_llvm(session, executable))


def ship_function(session: Session, built: tvm.runtime.Executable) -> Any:
    """Upload a single compiled function, and return the server's module.

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
        if error.problem.code != FAILED:
            raise
        # It has no linker; its own error says so.
        if session.function(_LLVM) is None:
            raise LowerscopeError(
                f"the server cannot link what is built: {error.problem.what}",
                where=session.where,
                todo="Install g++ and tar there, or the whole of apache-tvm",
                details=error.problem.details,
            ) from error
    return as_llvm()


def _as_library(session: Session, export: Callable[[str], object]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".tar")
        try:
            export(str(file))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                f"what is built cannot be written as objects: {last_line(error)}",
                where="build",
                todo="Choose another target; the log has TVM's whole message",
                details=str(error),
            ) from error
        _upload(session, file)
    return session.call("linking the model", lambda: session.rpc.load_module(file.name))


def _as_llvm(session: Session, executable: relax.VMExecutable) -> Any:
    load = session.function(_EXECUTABLE)
    assert load is not None, "a TVM with LLVM has the virtual machine"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".vm")
        executable.mod.write_to_file(str(file), "relax.VMExecutable")
        _upload(session, file)

    def loaded() -> Any:
        path = session.rpc.get_function("tvm.rpc.server.workpath")(file.name)
        return load(path)

    module = session.call("loading the model", loaded)
    for imported in executable.mod.imports:
        library = _upload_llvm(session, imported)
        session.call("loading the model", partial(module.import_module, library))
    return module


def _upload_llvm(session: Session, module: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".ll")
        module.write_to_file(str(file), "ll")
        _upload(session, file)
    return session.call("compiling the model there", lambda: session.rpc.load_module(file.name))


def _upload(session: Session, file: Path) -> None:
    data = bytearray(file.read_bytes())
    session.call("sending the model", lambda: session.rpc.upload(data, file.name))
