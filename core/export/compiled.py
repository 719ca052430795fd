"""Compiled library of a recipe, with a loader that needs torch and TVM only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from tvm.support import cc

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.execution.calling import external_functions
from lowerscope.core.execution.running import to_tvm
from lowerscope.core.export.files import File, arrays_file, copied_file, text_file
from lowerscope.core.export.library_program import library_program, standard_imports
from lowerscope.core.python_text import is_identifier
from lowerscope.core.sources.files import neighbours
from lowerscope.core.stages import Stages

FOLDER = "library"


def compiled_files(stages: Stages) -> Iterator[File]:
    """Yield the library, its loader, the functions that it calls by name, and arguments for a run.

    Constants are in the library. Parameters that are arguments of ``main`` are in
    ``arguments.npz``, as are the inputs.

    Raises
    ------
    LowerscopeError
        If there is no C compiler to link with; or a function that the model calls is registered
        by a file that cannot be copied.
    """
    stages.check_runs_here("a library is linked")
    _check_compiler()
    lowered = stages.lowered
    library = {} if lowered is None else lowered.library
    registering = _registering(stages)
    executable = stages.built.executable

    def link(path: Path) -> None:
        try:
            executable.export_library(str(path))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                f"the library could not be linked: {last_line(error)}",
                where=f"{FOLDER}/model.so",
                todo="See that the C compiler works, or name another in the variable CXX",
                details=str(error),
            ) from error

    yield File(f"{FOLDER}/model.so", link)
    names = []
    for path in registering:
        names.append(path.stem)
        beside = [each for each in neighbours(path) if each.is_relative_to(path.parent)]
        for each in (path, *beside):
            yield copied_file(f"{FOLDER}/{each.relative_to(path.parent)}", each)
    if library:
        yield text_file(f"{FOLDER}/torch_functions.py", _functions(library_program(library)))
        names.append("torch_functions")
    values = stages.arguments([each.value for each in stages.loaded.inputs])
    arrays, views = {}, []
    for number, value in enumerate(values):
        tensor = to_tvm(value) if isinstance(value, torch.Tensor) else value
        array, dtype = tensor.numpy(), str(tensor.dtype)
        own = str(array.dtype) == dtype and array.dtype.char in _OWN_DTYPES
        arrays[str(number)] = array if own else array.view(f"u{array.dtype.itemsize}")
        views.append("" if own else f'.view("{dtype}")')
    yield arrays_file(f"{FOLDER}/arguments.npz", arrays)
    yield text_file(f"{FOLDER}/load.py", _loader(names, views))


_OWN_DTYPES = frozenset("?bBhHiIlLqQefd")


def _loader(names: Sequence[str], views: Sequence[str]) -> str:
    """Return the program that loads the library.

    Parameters
    ----------
    names
        Of the modules beside it that register functions.
    views
        Expressions that convert each array among the arguments to its dtype.
    """
    lines = [
        '"""Loads the library; run by itself, it is called with what lies beside it."""',
        "",
        "from pathlib import Path",
        "",
        "import numpy as np",
        *(f"{_import(name)}  # registers functions with TVM" for name in names),
        "import tvm",
        "from tvm import relax",
        "",
        "HERE = Path(__file__).resolve().parent",
        'library = tvm.runtime.load_module(str(HERE / "model.so"))',
        'main = relax.VirtualMachine(library, tvm.cpu())["main"]',
        "",
        'if __name__ == "__main__":',
        '    given = np.load(HERE / "arguments.npz")',
    ]
    texts = [f'given["{number}"]{view}' for number, view in enumerate(views)]
    values = f"[{', '.join(texts)}]" if any(views) else "given.values()"
    lines.append(f"    print(main(*map(tvm.runtime.tensor, {values})))")
    return "\n".join([*lines, ""])


def _import(name: str) -> str:
    return f"import {name}" if is_identifier(name) else f"__import__({name!r})"


def _check_compiler() -> None:
    compiler = cc.get_cc()
    if compiler is None or shutil.which(compiler) is None:
        named = f": {compiler} is not there" if compiler else ""
        raise LowerscopeError(
            f"a library is linked by a C compiler, and there is none{named}",
            where="library",
            todo="Install gcc or clang (Debian and Ubuntu: apt-get install g++), or name one in "
            "the variable CXX",
        )


def _registering(stages: Stages) -> list[Path]:
    """Return the user's files that register functions called by the model."""
    called = set(external_functions(stages.completed))
    found: list[Path] = []
    for extension, loaded in stages.extensions:
        if called & set(loaded.functions):
            if extension.kind == "rules":
                raise LowerscopeError(
                    "the model calls a function that is registered by a file of rules, which "
                    "needs Lowerscope",
                    where=str(loaded.path),
                    todo="Register the function in a file of its own, and give that with --library",
                )
            found.append(loaded.path)
            called -= set(loaded.functions)
    if called & set(stages.loaded.registered()):
        found.append(stages.loaded.path)
    return found


def _functions(program: str) -> str:
    return "\n".join(
        [
            '"""The functions of torch that the model calls by name, registered with TVM."""',
            "",
            *standard_imports(program),
            *([""] if standard_imports(program) else []),
            "import torch",
            "import tvm",
            "from torch.utils.dlpack import from_dlpack",
            "",
            "",
            program,
            "for name, function in LIBRARY.items():",
            "    tvm.register_global_func(name, function, override=True)",
            "",
        ]
    )
