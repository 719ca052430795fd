"""The constants that a builder program reads: arrays for a file beside it, small ones in place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from lowerscope.core.files.python_text import quoted
from lowerscope.core.ir.relax import Elements, elements_of
from lowerscope.core.model.problems import TVM_ERRORS
from lowerscope.core.views.programs.program_lines import Identifiers

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


_OWN_DTYPES = frozenset("?bBhHiIlLqQefd")
"""Characters of NumPy's own dtypes, which its files preserve."""

_OF_SAVEZ = ("file", "allow_pickle")
"""Names of parameters of ``np.savez``, which no array may have."""


class ConstantText:
    """The constants of one module, each tensor once.

    Attributes
    ----------
    arrays
        The arrays that the program reads, by name. Dtypes that are not NumPy's own, such as
        bfloat16, are kept as unsigned integers of the same bits.
    """

    def __init__(self, scope: BuilderScope, wanted_name: Callable[[Any], str]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.lines: list[str] = []
        self._scope = scope
        self._wanted_name = wanted_name
        self._texts: dict[Any, str] = {}
        self._named: dict[Elements, str] = {}

    def text(self, constant: Any) -> str:
        """Return the code for a constant that has been added."""
        return self._texts[constant]

    def add(self, constant: Any) -> None:
        """Write `constant` in place, if it is a number, or name it and keep its array."""
        if constant in self._texts:
            return
        array = constant.value.numpy()
        self._texts[constant] = self._number(constant, array) or self._name(constant, array)

    def _number(self, constant: Any, array: np.ndarray) -> str:
        """Return a scalar as a literal; nothing where that is not exact to the bit."""
        if array.ndim or array.dtype.char not in _OWN_DTYPES:
            return ""
        value = array.item()
        if isinstance(value, float) and not np.isfinite(value):
            return ""
        text = f'relax.const({value!r}, "{array.dtype.name}")'
        return text if self._scope.says(text, constant) else ""

    def _name(self, constant: Any, array: np.ndarray) -> str:
        # Constants of one tensor are one constant, also where passes have wrapped it anew.
        key = elements_of(constant.value)
        if array.size and key in self._named:
            return self._named[key]
        wanted = self._wanted_name(constant) or f"constant{len(self.arrays)}"
        name = self._scope.bind(constant, f"{wanted}_" if wanted in _OF_SAVEZ else wanted)
        key_in_file = name if wanted in self.arrays or wanted in _OF_SAVEZ else wanted
        dtype, view = str(constant.value.dtype), ""
        if array.dtype.char not in _OWN_DTYPES:
            array = array.view(f"u{array.dtype.itemsize}")
            view = f'.view("{dtype}")'
        self.arrays[key_in_file] = array
        self.lines.append(
            f'{name} = relax.const(constants[{quoted(key_in_file)}]{view}, "{dtype}")'
        )
        self._named[key] = name
        return name


def constants_in(function: Any) -> Iterator[Any]:
    """Yield the tensors that are constants of a Relax function, in the order of their use."""
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst):
            assert isinstance(expression.value, tvm_ffi.Tensor), f"{expression} is no tensor"
            found.append(expression)

    relax.analysis.post_order_visit(function, visit)
    return iter(found)
