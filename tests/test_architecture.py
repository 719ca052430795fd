"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


def files_of(package: str) -> list[Path]:
    """Return the Python files of a package as it is installed."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(next(iter(spec.submodule_search_locations)))
    found = sorted(folder.rglob("*.py"))
    assert found
    return found


def imports_of(path: Path) -> Iterator[str]:
    """Yield the full names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


STAGES = ("sources", "tracing", "lowering", "passes", "scheduling", "execution")
ABOVE = ("pipeline", "command_line", "engine", "comparing", "export", "running", "tuning")


def not_of(*allowed: str) -> tuple[str, ...]:
    """Return what a stage may not import, which knows these stages alone."""
    return tuple(f"lowerscope.core.{name}" for name in (*STAGES, *ABOVE) if name not in allowed)


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("lowerscope.app", ("torch", "tvm", "tvm_ffi", "lowerscope.core.engine.pipeline")),
        ("lowerscope.core", ("PySide6", "shiboken6", "lowerscope.app")),
        ("lowerscope.core.model", ("torch", "tvm", "tvm_ffi")),
        ("lowerscope.app.kit", ("lowerscope.app.views",)),
        ("lowerscope.app.views", ("lowerscope.app.shell.window", "lowerscope.core.engine")),
        # Stages know nothing of one another, nor of those who chain them and show what they make.
        ("lowerscope.core.sources", not_of("sources")),
        ("lowerscope.core.tracing", not_of("tracing")),
        ("lowerscope.core.lowering", not_of("lowering")),
        ("lowerscope.core.passes", not_of("passes")),
        # A schedule is checked by running it.
        ("lowerscope.core.schedule", not_of("scheduling", "execution")),
        ("lowerscope.core.build", not_of("execution")),
    ],
)
def test_imports_keep_to_the_design(package: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        f"{path.name} imports {name}"
        for path in files_of(package)
        for name in imports_of(path)
        for prefix in forbidden
        if (name == prefix or name.startswith(prefix + "."))
        and not (
            package == "lowerscope.app.kit" and name.startswith("lowerscope.core.model.formatting")
        )
        # The palette and the menus name the window's type, and import it for that alone.
        and not (
            name.startswith("lowerscope.app.shell.window") and "TYPE_CHECKING" in path.read_text()
        )
    ]
    assert wrong == []


SHELL = {"features.py", "panes.py", "window.py"}


def test_the_shell_alone_knows_all_features() -> None:
    knows = {
        path.name
        for path in files_of("lowerscope.app")
        if "lowerscope.app.shell.features" in set(imports_of(path))
    }
    assert knows <= SHELL


def test_the_document_knows_no_feature_and_no_widget() -> None:
    (path,) = (each for each in files_of("lowerscope.app.document") if each.name == "document.py")
    values = {"activity", "history", "overrides", "selection"}
    found = set(imports_of(path))
    known = {f"lowerscope.app.{name}" for name in values}
    assert {each for each in found if each.startswith("lowerscope.app.")} <= {
        each for each in found if each.rpartition(".")[0] in known or each in known
    }
    assert {each.split(".")[1] for each in found if each.startswith("PySide6.")} == {"QtCore"}


def test_widgets_import_the_model_alone_of_the_core() -> None:
    wrong = [
        f"{path.name} imports {name}"
        for path in files_of("lowerscope.app.kit")
        for name in imports_of(path)
        if (name + ".").startswith("lowerscope.core.")
        and not (name + ".").startswith("lowerscope.core.model.")
    ]
    assert wrong == []


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
    assert result.returncode == 0, result.stderr
    heavy = result.stdout.strip()
    assert "torch" not in heavy
    assert "tvm" not in heavy
    assert "help_window" not in heavy
    assert "numpy" not in heavy
    assert "networkx" not in heavy
    # Charts import it when they are first shown.
    assert "pyqtgraph" not in heavy


def test_the_core_starts_without_qt() -> None:
    code = "import sys, lowerscope.core.engine.pipeline; print([m for m in sys.modules if 'PySide' in m])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
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


@pytest.mark.parametrize("package", ["lowerscope.app", "lowerscope.core"])
def test_summaries_are_no_relative_clauses(package: str) -> None:
    words = ("What", "Whether", "How", "Where", "Which", "Who", "When")
    found = [
        f"{path.name}:{node.lineno}"
        for path in files_of(package)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.split(" ")[0] in words
    ]
    assert found == []
