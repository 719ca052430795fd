"""Input and output types of lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import tvm
from torch import fx
from tvm import te

from lowerscope.core.lowering.library import LibraryFunction
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.sources.onnx_models import onnx_side

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class TeCall:
    """A ``call_tir`` of a PrimFunc that was made of a TE function.

    `function`: the TE function; ``None`` if an operator was legalised, as TVM does not expose the
        one it calls.
    `operator`: the operator that was legalised, as ``R.matmul``; empty for a TE function.
    `args`, `kwargs`: the arguments of the function: tensors that stand for the arguments of `call`,
        and numbers.
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


class Info(Protocol):
    """Description of a node's value; see `core.tracing.tracing.NodeInfo`."""

    @property
    def shape(self) -> tuple[int | str, ...] | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def items(self) -> Sequence[Info]: ...


class Traced(Protocol):
    """Parts of a traced model that lowering reads; see `core.tracing.tracing.TracedModel`."""

    @property
    def graph_module(self) -> fx.GraphModule: ...
    @property
    def values(self) -> Mapping[str, Info]: ...
    @property
    def lines(self) -> Mapping[str, SourceLine]: ...
    @property
    def modules(self) -> Mapping[str, str]: ...
    @property
    def mutations(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def tracer(self) -> str: ...
    @property
    def alone(self) -> bool: ...


def engine_of(traced: Traced) -> str:
    """Return the name of what computes the reference values, and runs library functions."""
    return onnx_side() if traced.tracer == "onnx" else "torch"


@dataclass(frozen=True)
class UsedRule:
    """A rule that lowered a node, or a part of it.

    `kind`: ``"user"``: a user's rule; ``"built-in"``: one of the table; ``"tvm"``: a converter of
        TVM's; ``"library"``: torch is called; ``"python"``: no code, a value that is computed at
        lowering.
    `name`: its label; for a library function, its registered name.
    """

    kind: Literal["user", "built-in", "tvm", "library", "python"]
    name: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class PartLowering:
    """One of the operators that an FX node was decomposed into.

    `name`: of the part, unique within its node.
    `target`, `args`: the operator, and the text of its arguments: the names of other parts, of the
        module's parameters, and of the nodes that the node reads.
    `shape`, `dtype`: of the value if it is a tensor; otherwise ``None`` and empty.
    `rule`, `bindings`, `functions`: as in `NodeLowering`.
    """

    name: str
    target: str
    args: str
    shape: tuple[int | str, ...] | None
    dtype: str
    rule: str
    bindings: tuple[str, ...]
    functions: tuple[str, ...]
    used: UsedRule


@dataclass(frozen=True)
class NodeLowering:
    """The provenance of one FX node.

    `strategy`: ``"high-level"``, ``"te"`` or ``"library"``; empty for nodes that make no code.
    `rule`: the rule and the operators it emitted: ``linear: topi.nn.dense, topi.add``, ``conv2d:
        torch.conv2d``; empty for nodes that make no code.
    `bindings`: names of the variables that it bound in ``main``, in order.
    `functions`: names of the PrimFuncs that these bindings call, at translation.
    `reason`: why it runs in torch although another strategy was chosen: ``no relax operator for
        fft_rfft; runs in torch``; otherwise empty.
    `random`: whether it draws random numbers, which may be others than torch's.
    `line`: source line of a user's rule.
    `parts`: the operators that it was decomposed into, in order, as no rule covers it as a whole;
        empty for other nodes. A binding of theirs is one of the node's.
    `used`: the rules that lowered it, the user's first; the rules of its parts are in `parts`.
    `value`: its value in the node map: a Relax expression, a Python value, or a nest of both;
        ``None`` for nodes that have none.
    `rebound`: names of the nodes that it writes in place: the map has its value for them from then
        on.
    """

    node: str
    strategy: str
    rule: str
    bindings: tuple[str, ...]
    functions: tuple[str, ...]
    reason: str = ""
    random: bool = False
    line: SourceLine | None = None
    parts: tuple[PartLowering, ...] = ()
    used: tuple[UsedRule, ...] = ()
    value: Any = None
    rebound: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class NamedConstant:
    """A constant of ``main``.

    `name`: of the model's parameter, buffer or tensor: ``linear0.weight``; for others,
        ``constant_N``, counted in the order of ``main``.
    """

    name: str
    from_model: bool
    constant: Any

    @property
    def data(self) -> tvm.runtime.Tensor:
        """Its value."""
        return self.constant.value


@dataclass(frozen=True)
class LoweredModel:
    """A Relax module, with the provenance of its parts.

    `module`: with one Relax function, ``main``, of one dataflow block; parameters are constants.
    `nodes`: Provenance by node name, for every node of the graph. Each binding of ``main`` is in
        exactly one of them.
    `library`: the functions that the module calls by name, to register before it is built and run.
    `random`: for each output, the names of the random operators that it depends on.
    `constants`: the tensors that were converted to constants, with these.
    `arguments`: the parameters that are arguments of ``main``, by their names there; empty if all
        of them are constants.
    """

    module: tvm.IRModule
    nodes: Mapping[str, NodeLowering]
    notes: tuple[Note, ...]
    library: Mapping[str, LibraryFunction] = field(default_factory=dict)
    random: tuple[tuple[str, ...], ...] = ()
    constants: tuple[tuple[Any, Any], ...] = ()
    arguments: Mapping[str, NamedConstant] = field(default_factory=dict)
    te_calls: Mapping[str, TeCall] = field(default_factory=dict)
