"""Names in a builder program, and the check that its code makes the intended objects."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from lowerscope.core.errors import TVM_ERRORS
from lowerscope.core.python_text import quoted
from lowerscope.core.rendering.programs.identifiers import Identifiers

RESERVED = ("Path", "T", "bb", "build", "constants", "module", "np", "relax", "tirx", "tvm")
"""Names that every builder program uses itself."""


class BuilderScope:
    """The variables of a builder program in one scope, by their names.

    Parameters
    ----------
    around
        The scope around this one, whose names stay visible, and taken.
    reserved
        Of the outermost: names that are taken, besides `RESERVED`.
    """

    def __init__(self, around: BuilderScope | None = None, reserved: Collection[str] = ()) -> None:
        self.identifiers: Identifiers = (
            around.identifiers.inner() if around else Identifiers((*RESERVED, *reserved))
        )
        self._names: dict[Any, str] = dict(around._names) if around else {}
        self._values: dict[str, Any] = (
            dict(around._values) if around else {"relax": relax, "tirx": tirx, "tvm": tvm}
        )
        self.symbols: list[Any] = []
        # Infers the same types as the builder of the program.
        self._inferring = relax.BlockBuilder()

    def bind(self, value: Any, name: str) -> str:
        """Give `value`, a variable or a constant, a name like `name`, and return it."""
        taken = self.identifiers.take(name)
        self._names[value] = taken
        self._values[taken] = value
        return taken

    def name_of(self, variable: Any) -> str:
        """Return the name of a variable; one of TensorIR, a symbolic extent, gets one now."""
        if variable not in self._names:
            assert isinstance(variable.ty, ir.PrimType), f"{variable} is used before it is bound"
            self.symbols.append(variable)
            self.bind(variable, variable.name)
        return self._names[variable]

    def take_symbols(self) -> list[str]:
        """Return the lines that define the extents named since the last call."""
        lines = [
            f'{self._names[symbol]} = tirx.Var({quoted(symbol.name)}, "{symbol.ty.dtype}")'
            for symbol in self.symbols
        ]
        self.symbols.clear()
        return lines

    def make(self, text: str) -> Any:
        """Return the object that `text` makes, with its type, run with the names of this scope.

        The text is our own, made of identifiers and literals.
        """
        made = eval(text, {}, self._values)
        return self._inferring.normalize(made) if isinstance(made, ir.Expr) else made

    def says(self, text: str, meant: Any) -> bool:
        """Return whether `text`, run with the names of this scope, makes the intended object."""
        try:
            made = self.make(text)
        except TVM_ERRORS:
            return False
        return bool(tvm_ffi.structural_equal(made, meant))
