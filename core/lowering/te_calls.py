"""Records of ``emit_te``: the input and output tensors of a TE function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tvm import te

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class TeCall:
    """A ``call_tir`` of a PrimFunc that was made of a TE function.

    Attributes
    ----------
    call
        The call as it was made.
    function
        The TE function; ``None`` if an operator was legalised, as TVM does not expose the one it
        calls.
    operator
        The operator that was legalised, as ``R.matmul``; empty for a TE function.
    args, kwargs
        The arguments of the function: tensors that stand for the arguments of `call`, and numbers.
    outputs
        The tensors that the function made.
    """

    call: Any
    function: Function | None = None
    operator: str = ""
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()
    outputs: tuple[Any, ...] = ()

    @property
    def placeholders(self) -> tuple[Any, ...]:
        """The tensors among the arguments, in the order of those of `call`."""
        return tuple(tensors_of([*self.args, *(value for _, value in self.kwargs)]))


class Listening:
    """Wrapper of a TE function that records its inputs and outputs when TVM calls it."""

    def __init__(self, function: Function) -> None:
        self._function = function
        if hasattr(function, "__name__"):
            # TVM names the PrimFunc by it, unless given another name.
            self.__name__ = function.__name__
        self._args: tuple[Any, ...] = ()
        self._kwargs: tuple[tuple[str, Any], ...] = ()
        self._made: Any = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._args, self._kwargs = args, tuple(kwargs.items())
        self._made = self._function(*args, **kwargs)
        return self._made

    def recorded(self, call: Any) -> TeCall:
        """Return the record of `call`, which TVM made of the function."""
        outputs = tuple(tensors_of([self._made]))
        return TeCall(call, self._function, "", self._args, self._kwargs, outputs)


def tensors_of(values: Any) -> Iterator[Any]:
    """Yield the tensors of TE in a nest of lists, tuples and dicts, in order."""
    for value in values:
        if isinstance(value, te.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)
        elif isinstance(value, dict):
            yield from tensors_of(value.values())
