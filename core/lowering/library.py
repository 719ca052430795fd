"""Library functions: torch, called by the virtual machine on its own memory."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import tvm
from torch.utils.dlpack import from_dlpack

from lowerscope.core.lowering.values import held_as, held_from, leaves
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.sources.opened_model import run_mode

Call = Callable[..., Any]


@dataclass(frozen=True)
class Argument:
    """Placeholder for a tensor among the arguments of a call.

    `index`: its position among the tensors that the virtual machine passes.
    `dtype`: Torch's dtype if TVM lacks it, as ``"complex64"``; otherwise empty.
    """

    index: int
    dtype: str = ""


@dataclass(frozen=True)
class Size:
    """Placeholder for a size of a named dimension among the arguments of a call.

    `index`: its position among the sizes that the virtual machine passes.
    """

    index: int


@dataclass(frozen=True)
class LibraryFunction:
    """A torch call with everything but its tensors bound.

    It is registered with TVM. The tensors are read and written in place; a torch operator that
    changes its arguments is given copies, since others may read the same memory.

    `name`: Under which it is registered: ``torch.conv2d``, or ``torch.conv2d_1`` for the second one
        of the module that differs in its bound arguments.
    `args`, `kwargs`: with an `Argument` for each tensor, and a `Size` for each size of a named
        dimension.
    `returns`: whether new tensors are returned, since their shapes depend on data; otherwise the
        results are written into the tensors that follow the inputs.
    `sized`: whether a shape follows the inputs: the sizes of named dimensions.
    """

    name: str
    call: Call
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: int
    copies: bool
    returns: bool
    sized: bool = False

    @cached_property
    def _filled(self) -> Filler:
        return _filler((self.args, dict(self.kwargs)))

    @cached_property
    def _mode(self) -> Callable[[], AbstractContextManager[None]]:
        return run_mode(getattr(self.call, "module", None))

    def __call__(self, *tensors: Any) -> Any:
        """Run torch on tensors of the virtual machine."""
        # torch's warnings of the model's calls were shown when it was traced.
        with self._mode(), warnings.catch_warnings(action="ignore"):
            inputs = [_to_torch(each) for each in tensors[: self.inputs]]
            if self.copies:
                inputs = [each.clone() for each in inputs]
            sizes = tuple(map(int, tensors[self.inputs])) if self.sized else ()
            results = [
                held_from(each)
                for each in leaves(self.run(inputs, sizes))
                if isinstance(each, torch.Tensor)
            ]
            if self.returns:
                memory = {each.untyped_storage().data_ptr() for each in inputs}
                values = [_to_tvm(each, memory) for each in results]
                return values[0] if len(values) == 1 else values
            for place, result in zip(tensors[self.inputs + self.sized :], results, strict=True):
                self._write(_to_torch(place), result)
        return None

    def run(self, inputs: list[torch.Tensor], sizes: tuple[int, ...]) -> Any:
        """Call torch on its tensors and sizes."""
        args, kwargs = self._filled(inputs, sizes)
        return self.call(*args, **kwargs)

    def _write(self, place: torch.Tensor, result: torch.Tensor) -> None:
        # copy_ would broadcast a smaller result.
        if result.shape != place.shape or result.dtype != place.dtype:
            raise RuntimeError(f"{self.name} gave {_type(result)} where {_type(place)} was traced")
        place.copy_(result)


class LibraryFunctions:
    """The library functions of one module: one for each operator and its bound arguments.

    The names depend only on the order of the queries, so two processes that lower the same recipe
    use the same names.
    """

    def __init__(self, engine: str = "torch") -> None:
        self._engine = engine
        self.by_name: dict[str, LibraryFunction] = {}
        self._names: dict[Any, str] = {}
        self._kept: list[Any] = []
        self._count: Counter[str] = Counter()

    def name_for(
        self,
        operator: str,
        key: Any,
        make: Callable[[], Call],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: int,
        *,
        copies: bool = False,
        returns: bool = False,
        sized: bool = False,
    ) -> str:
        """Return the name of the function for a call, adding it if there is none yet.

        `key`: Equal for calls that may share a function.
        """
        whole = (
            operator,
            key,
            content_of(args),
            content_of(kwargs),
            inputs,
            copies,
            returns,
            sized,
        )
        if whole not in self._names:
            number = self._count[operator]
            self._count[operator] += 1
            name = f"{self._engine}.{operator}" + (f"_{number}" if number else "")
            self._names[whole] = name
            # Keep objects alive whose ids are in a key.
            self._kept.append((key, args, kwargs))
            self.by_name[name] = LibraryFunction(
                name, make(), args, kwargs, inputs, copies, returns, sized
            )
        return self._names[whole]


def content_of(value: Any) -> str:
    """Return a key text: equal for equal plain values; other objects equal only themselves."""
    if isinstance(value, Argument):
        return f"<{value.index}{value.dtype}>"
    if isinstance(value, Size):
        return f"<size {value.index}>"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(content_of(each) for each in value)})"
    if isinstance(value, dict):
        parts = (f"{content_of(key)}: {content_of(each)}" for key, each in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, slice):
        return f"slice({content_of([value.start, value.stop, value.step])})"
    if value is None or value is ... or type(value) in _PLAIN:
        return repr(value)
    return f"{type(value).__qualname__} {id(value)}"


_PLAIN = (
    bool,
    bytes,
    int,
    float,
    complex,
    str,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


Filler = Callable[[list[torch.Tensor], tuple[int, ...]], Any]
"""Returns the value of a call on its tensors and sizes."""


def _filler(value: Any) -> Filler:
    """Return what replaces every `Argument` and `Size` in `value` by its tensor or number."""
    if isinstance(value, Argument):
        index, dtype = value.index, value.dtype
        if dtype:
            return lambda inputs, _sizes: held_as(inputs[index], dtype)
        return lambda inputs, _sizes: inputs[index]
    if isinstance(value, Size):
        place = value.index
        return lambda _inputs, sizes: sizes[place]
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return _filler_of(value, value._make)
    if type(value) in (tuple, list):
        return _filler_of(value, type(value))
    if type(value) is dict:
        return _filler_of(value.values(), lambda made: dict(zip(value, made, strict=True)))
    if isinstance(value, slice):
        return _filler_of((value.start, value.stop, value.step), lambda made: slice(*made))
    return lambda _inputs, _sizes: value


def _filler_of(parts: Iterable[Any], make: Callable[[list[Any]], Any]) -> Filler:
    fillers = [_filler(each) for each in parts]
    return lambda inputs, sizes: make([fill(inputs, sizes) for fill in fillers])


def _to_torch(tensor: tvm.runtime.Tensor) -> torch.Tensor:
    """Return a tensor of torch on the memory of one of TVM's."""
    # Without a capsule, torch negotiates version and device, which takes longer than the rest.
    return from_dlpack(tensor.__dlpack__())


def _to_tvm(result: torch.Tensor, memory: Set[int]) -> tvm.runtime.Tensor:
    """Return `result` as a tensor of its own, which the virtual machine may keep.

    `memory`: the addresses of its inputs' memory.
    """
    shared = result.untyped_storage().data_ptr() in memory
    if shared or not result.is_contiguous() or result.numel() == 0 or result.data_ptr() % 64:
        result = result.clone(memory_format=torch.contiguous_format)
    return tvm.runtime.from_dlpack(result)


def _type(tensor: torch.Tensor) -> str:
    return f"{shape_text(tensor.shape)} {str(tensor.dtype)[6:]}"
