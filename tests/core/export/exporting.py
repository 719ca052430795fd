"""Recipes as on the command line, and programs that are run where they are not imported from."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from lowerscope.core.cli.recipe_options import OneLineParser, add_recipe_options, recipe_from
from lowerscope.core.model.recipe import Recipe


def recipe_of(*arguments: str) -> Recipe:
    """Return the recipe of a command line."""
    parser = OneLineParser()
    parser.add_argument("source")
    add_recipe_options(parser)
    return recipe_from(parser.parse_args(arguments))


def imports_of(program: Path) -> set[str]:
    """Return the packages that a program imports, those of Python's own aside."""

    def names() -> Iterator[str]:
        for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.module is not None
                yield node.module

    return {name.partition(".")[0] for name in names()} - sys.stdlib_module_names


def loaded(program: Path, name: str = "reproduce") -> ModuleType:
    """Return a program as a module; its ``main`` has not run."""
    spec = importlib.util.spec_from_file_location(name, program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
