"""Rules on imports: the folders that may import each other."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import networkx
import pytest

from tests.warm_processes import run_warm


def files_of(package: str) -> list[Path]:
    """Return the Python files of a package as it is installed."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(next(iter(spec.submodule_search_locations)))
    found = sorted(folder.rglob("*.py"))
    assert found
    return found


def modules_of(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules of a package by full name; a package itself counts as its ``__init__``."""
    for path in files_of(f"lowerscope.{package}"):
        parts = path.with_suffix("").parts
        start = len(parts) - parts[::-1].index(package) - 1
        yield ".".join(("lowerscope", *parts[start:])).removesuffix(".__init__"), path


RELATIVE = ("What", "Whether", "How", "Where", "Which", "Who", "When")


@functools.cache
def parsed(path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the modules that a file imports, and the lines of summaries that are no sentences."""
    imports: list[str] = []
    clauses: list[int] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                imports += (alias.name for alias in node.names)
            case ast.ImportFrom():
                assert node.level == 0, f"{path}: relative import"
                assert node.module is not None
                imports += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
            case ast.Expr(value=ast.Constant(value=str(text))) if text.split(" ")[0] in RELATIVE:
                clauses.append(node.lineno)
    return tuple(imports), tuple(clauses)


def imports_of(path: Path) -> tuple[str, ...]:
    """Return the full names of all modules that a file imports, wherever in it."""
    return parsed(path)[0]


MAY_IMPORT = {
    # Plain values, and the bundled artifacts that one of them names.
    "core.model": "resources",
    "core.files": "core.model resources",
    "core.sandbox": "core.model core.files resources",
    # The stages, in the order in which a model goes through them.
    "core.ir": "core.model core.files",
    "core.sources": "core.model core.files core.sandbox",
    "core.tracing": "core.model core.sources",
    "core.lowering": "core.model core.files core.sources",
    "core.passes": "core.model core.files core.sources core.ir core.lowering",
    "core.schedule": "core.model core.files core.ir core.lowering",
    "core.build": "core.model core.ir core.passes core.schedule",
    # A run is given the stages before it; what is run elsewhere goes through `core.remote`.
    "core.run": "core.model core.files core.sandbox core.sources core.ir core.tracing core.lowering"
    " core.passes core.schedule core.build core.stages core.remote",
    "core.views": "core.model core.files core.sources core.ir core.tracing core.lowering"
    " core.passes core.schedule core.build core.run core.stages",
    # All of it, exports too: the core knows no window.
    "core": "core resources",
    "app.kit": "core.model resources",
    "app.document": "core.model core.files",
    # It starts the children, in their sandbox.
    "app.engine": "core.model core.files core.sandbox core.engine.protocol app.document app.kit",
    "app.panes": "core.model core.files app.kit app.document app.engine",
    # It reads the command line as the commands do: its own, and those in help pages.
    "app.shell": "core.model core.files core.cli resources"
    " app.kit app.document app.engine app.panes",
}
"""Of each package, the others of ours that it may import."""

LARGEST_CIRCLE = 6
"""Number of files that may import one another in a circle, in one folder."""

FOREIGN = {
    "app": {"torch", "tvm", "tvm_ffi"},
    "core": {"PySide6", "shiboken6", "pyqtgraph"},
    "core.model": {"torch", "tvm", "tvm_ffi"},
    "core.files": {"torch", "tvm", "tvm_ffi"},
    "core.sandbox": {"torch", "tvm", "tvm_ffi"},
}
"""Of each package, the libraries that it may not import, wherever in a file."""


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_those_that_they_may(package: str) -> None:
    own = f"lowerscope.{package}"
    allowed = (own, *(f"lowerscope.{name}" for name in MAY_IMPORT[package].split()))
    wrong = [
        f"{path.name} imports {name}"
        for path in files_of(own)
        for name in imports_of(path)
        if name.startswith("lowerscope.")
        # `from lowerscope import core` names no package yet; what follows is looked at by itself.
        and not any((name + ".").startswith(prefix + ".") for prefix in allowed)
        and name not in {prefix.rpartition(".")[0] for prefix in allowed}
    ]
    assert wrong == []


def test_panes_import_no_other_pane() -> None:
    # What several of them show is in `common`.
    wrong = [
        f"{module} imports {name}"
        for module, path in modules_of("app")
        if module.startswith("lowerscope.app.panes.")
        for name in imports_of(path)
        if name.startswith("lowerscope.app.panes.")
        and name.split(".")[3] not in (module.split(".")[3], "common")
    ]
    assert wrong == []


def test_circles_of_imports_are_small() -> None:
    modules = {name: path for package in ("app", "core") for name, path in modules_of(package)}
    graph = networkx.DiGraph(
        (module, name)
        for module, path in modules.items()
        for name in imports_of(path)
        if name in modules and name != module
    )
    circles = [each for each in networkx.strongly_connected_components(graph) if len(each) > 1]
    assert [sorted(each) for each in circles if len(each) > LARGEST_CIRCLE] == []
    across = [each for each in circles if len({modules[name].parent for name in each}) > 1]
    assert [sorted(each) for each in across] == []


@pytest.mark.parametrize("package", FOREIGN)
def test_packages_do_without_libraries_that_are_not_theirs(package: str) -> None:
    wrong = [
        f"{path.name} imports {name}"
        for path in files_of(f"lowerscope.{package}")
        for name in imports_of(path)
        if name.partition(".")[0] in FOREIGN[package]
    ]
    assert wrong == []


def test_the_window_asks_the_engine_by_its_protocol_alone() -> None:
    names = {
        name
        for path in files_of("lowerscope.app")
        for name in imports_of(path)
        if name.startswith("lowerscope.core.engine.")
    }
    assert {".".join(name.split(".")[:4]) for name in names} == {"lowerscope.core.engine.protocol"}


def test_the_shell_alone_knows_all_features() -> None:
    knows = {
        module
        for module, path in modules_of("app")
        if "lowerscope.app.shell.features" in set(imports_of(path))
    }
    assert {module.rpartition(".")[0] for module in knows} == {"lowerscope.app.shell"}


def test_the_window_is_held_by_the_shell_alone() -> None:
    holds = {
        module
        for module, path in modules_of("app")
        if "lowerscope.app.shell.window" in set(imports_of(path))
    }
    assert holds == {"lowerscope.app.shell.menus", "lowerscope.app.shell.start"}


@pytest.mark.parametrize(
    "modules",
    [
        "lowerscope.core.model.recipe, lowerscope.core.model.snapshot, lowerscope.core.cli.main",
        "lowerscope.app.shell.window, lowerscope.app.shell.panes, lowerscope.app.shell.menus",
    ],
)
def test_the_window_and_the_command_line_start_without_torch_and_tvm(modules: str) -> None:
    late = {"torch", "tvm", "pygments", "numpy", "pyqtgraph", "networkx"}
    late |= {"lowerscope.app.shell.help_window"}
    code = f"import sys, {modules}; print({late} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "set()", result.stderr


def test_the_core_starts_without_qt_and_what_few_models_need() -> None:
    module = "lowerscope.core.stages"
    # Named dimensions and exported models need the others, which take a second and a half.
    late = {"PySide6", "sympy", "torch._dynamo"}
    code = f"import sys, {module}; print([*({late} & set(sys.modules))])"
    result = run_warm("-c", code)
    assert result.stdout.strip() == "[]", result.stderr


def test_every_package_is_installed() -> None:
    project = Path(__file__).parent.parent
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(settings["tool"]["setuptools"]["packages"])
    there = {
        "lowerscope." + ".".join(path.parent.relative_to(project).parts)
        for folder in ("app", "core", "resources")
        for path in (project / folder).rglob("__init__.py")
    }
    assert listed == there


@pytest.mark.parametrize("package", ["lowerscope.app", "lowerscope.core", "tests"])
def test_summaries_are_no_relative_clauses(package: str) -> None:
    found = [f"{path.name}:{line}" for path in files_of(package) for line in parsed(path)[1]]
    assert found == []
