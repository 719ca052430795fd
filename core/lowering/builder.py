"""Block builder that legalises on emission and tracks the bindings of the current node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
import tvm
from tvm import ir, relax, te, tirx, topi
from tvm.relax import op

from lowerscope.core.lowering.types import Listening, TeCall
from lowerscope.core.lowering.values import (
    HALF,
    Dimensions,
    EncodedTensor,
    Value,
    dtype_name,
    dtype_of,
    is_float,
    is_scalar_constant,
    is_size,
    is_tensor,
    rank_of,
    scalar,
    torch_dtype,
)

_ALIGNMENT = 64


class Constants:
    """The constants of one module: equal tensors share one object.

    Two tensors are equal if they are one object under two names, or two objects over the same
    elements: tied weights.

    The constants share the memory of the model's parameters if TVM supports their layout; they are
    values, and nothing writes to either.
    """

    def __init__(self) -> None:
        self._made: dict[Any, tuple[torch.Tensor, Value]] = {}

    @property
    def made(self) -> tuple[tuple[torch.Tensor, Value], ...]:
        """Each tensor with its constant."""
        return tuple(self._made.values())

    def constant(self, tensor: torch.Tensor) -> Value:
        """Return `tensor` as a Relax constant of the same shape and dtype."""
        key = memory_of(tensor)
        kept = self._made.get(key)
        if kept is None:
            kept = (tensor, relax.const(_to_tvm(tensor)))
            self._made[key] = kept
        constant = kept[1]
        assert isinstance(constant, ir.GenericConst)
        return constant


def memory_of(tensor: torch.Tensor) -> Any:
    """Return a key that is equal for tensors over the same elements, while one of them is alive."""
    if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.numel():
        return id(tensor)
    signs = (tensor.is_conj(), tensor.is_neg())
    address = tensor.data_ptr()
    place = (address, tensor.dtype, tensor.shape, tensor.stride())
    return (*place, *signs) if address else id(tensor)


def _to_tvm(tensor: torch.Tensor) -> tvm.runtime.Tensor:
    data = tensor.detach()
    if data.layout != torch.strided or data.is_quantized:
        data = data.to_dense() if data.layout != torch.strided else data.dequantize()
    data = data.cpu().resolve_conj().resolve_neg().contiguous()
    if not data.numel():
        # TVM may interpret its strides as gaps between elements.
        return tvm.runtime.empty(tuple(data.shape), str(data.dtype).removeprefix("torch."))
    if data.data_ptr() % _ALIGNMENT:
        # A fresh allocation is aligned as TVM requires; a view into a larger one need not be.
        data = data.clone(memory_format=torch.contiguous_format)
    return tvm.runtime.from_dlpack(data)


_FINAL = frozenset(
    f"relax.{name}"
    for name in (
        "call_tir",
        "call_dps_packed",
        "call_pure_packed",
        "call_tir_inplace",
        "null_value",
        "shape_of",
    )
)
"""Internal operators, which have nothing to legalise."""


_FOLDED = frozenset(
    f"relax.{name}"
    for name in ("add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod")
)
"""Operators that TVM simplifies as for real numbers if an argument is 0."""


class NodeBuilder(relax.BlockBuilder):  # type: ignore[misc]
    """Builder of ``main``, one dataflow block, that splits its bindings by FX node.

    `te`: whether an emitted relax operator is replaced by its legalisation, a ``call_tir`` of a new
        PrimFunc; otherwise it is emitted unchanged. May change from node to node.
    `not_legalised`: names of operators that stayed although `te` was set.
    `functions`: the Relax functions that ``main`` calls.
    """

    def __init__(self, te: bool, dimensions: Dimensions) -> None:
        super().__init__()
        self.te = te
        self.dimensions = dimensions
        self.constants = Constants()
        self.not_legalised: set[str] = set()
        self.functions: dict[ir.GlobalVar, relax.Function] = {}
        # Keyed by the hash of a call, which is its address: comparing TVM's expressions gives
        # expressions.
        self._te_calls: dict[int, TeCall] = {}
        self._emitted: list[str] = []
        self._kept: list[Any] = []
        self._stayed: set[str] = set()
        self._legalising = ""
        self._in_float32 = False

    def begin(self) -> None:
        """Start the dataflow block, inside the scope of the function."""
        self._end_block()
        self._begin_dataflow_block()

    def end_node(self) -> tuple[list[Any], tuple[str, ...]]:
        """Close the current node; return its bindings and the operators that it emitted.

        The bindings are all since the last node, by this class or by the normaliser; the operators
        are named as by the rules: ``topi.nn.dense``, ``R.matmul``, ….
        """
        bindings = self.keep()
        self._kept = []
        emitted = tuple(dict.fromkeys(self._emitted)) if self.te else _operators(bindings)
        self._emitted.clear()
        self._stayed.clear()
        return bindings, emitted

    def keep(self) -> list[Any]:
        """Return the bindings of the current node so far; a later `discard_node` keeps them."""
        # `+=` would be handled by TVM's array, which copies both sides into an array each time.
        self._kept.extend(self._end_block().bindings)
        self._begin_dataflow_block()
        return self._kept

    def discard_node(self, *, kept: bool = False) -> None:
        """Drop the bindings of the current node since `keep`; with `kept`, all of it."""
        if kept:
            self._kept = []
        self._end_block()
        self._begin_dataflow_block()
        self._emitted.clear()
        self.not_legalised -= self._stayed
        self._stayed.clear()

    def restore(self, bindings: list[Any]) -> None:
        """Return to a node with its `bindings`, as `end_node` returned them."""
        self._kept = list(bindings)

    @property
    def parameters(self) -> set[Any]:
        """Parameters of the function under construction."""
        return set(self._func._params)

    def finish(self, bindings: list[Any], output: Value) -> None:
        """Make one dataflow block of all `bindings` and return `output` from the function."""
        self._end_block()
        if bindings:
            self._func._blocks.append(relax.DataflowBlock(bindings))
        self._begin_binding_block()
        self.emit_func_output(output)

    def unused_name(self, name: str) -> str:
        """Return a name that no function has yet."""
        known = {str(each.name_hint) for each in (*self.get().get_global_vars(), *self.functions)}
        names = (f"{name}_{number}" if number else name for number in count())
        return next(each for each in names if each not in known)

    def abandon(self) -> None:
        """Drop everything that was built, for a model with uncovered nodes."""
        self._end_block()
        self.end_scope()

    def emit(self, expr: Value, name_hint: str = "") -> Value:
        """Bind `expr`, legalised if `te` is set, and return the variable."""
        expr = self._kept_from_folding(self._normalize_python_tuple(expr))
        if self.te:
            expr = self._legalise(expr)
        if isinstance(expr, ir.Var | ir.GenericConst):
            return expr
        return super().emit(expr, name_hint)

    def _kept_from_folding(self, expr: Value) -> Value:
        """Return an operation on floats that TVM does not simplify as for real numbers.

        It inlines a constant of rank 0 into TensorIR, where ``x * 0`` becomes 0 even for NaN, and
        ``x / 0`` an error; an element of a constant of rank 1 is opaque to it.
        """
        if not (isinstance(expr, ir.Call) and isinstance(expr.op, ir.Op)):
            return expr
        if expr.op.name not in _FOLDED or not any(map(_is_zero, expr.args)):
            return expr
        args = [
            relax.const(each.value.numpy().reshape(1), dtype_of(each)) if _is_zero(each) else each
            for each in expr.args
        ]
        changed = relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        is_number = all(not rank_of(each) for each in expr.args)
        return op.reshape(changed, ()) if is_number else changed

    def call_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Value:
        """Make a PrimFunc of a TE function and return the ``call_tir`` of it."""
        if not self._legalising:
            self._emitted.append(te_name(func))
        listening = Listening(func)
        call = super().call_te(listening, *args, **kwargs)
        self._te_calls[hash(call)] = listening.recorded(call)
        return call

    def te_calls_of(self, bindings: list[Any]) -> dict[str, TeCall]:
        """Return the TE calls of `bindings`, by variable."""
        found = ((each.var.name, getattr(each, "value", None)) for each in bindings)
        return {
            str(name): self._te_calls[hash(value)]
            for name, value in found
            if value is not None and hash(value) in self._te_calls
        }

    def constant(self, tensor: Any) -> Value:
        """Return one of the model's tensors as a Relax constant."""
        constant = self.constants.constant(tensor)
        if self._in_float32 and dtype_of(constant) in HALF:
            return self.emit(op.astype(constant, "float32"))
        return constant

    def optional_constant(self, tensor: Any) -> Value:
        """Return a tensor as a Relax constant; ``None`` for ``None``."""
        return None if tensor is None else self.constant(tensor)

    @contextmanager
    def constants_in_float32(self) -> Iterator[None]:
        """Return half-precision constants as float32 while a rule computes in float32."""
        self._in_float32 = True
        try:
            yield
        finally:
            self._in_float32 = False

    def _legalise(self, expr: Value) -> Value:
        """Return `expr` with every operator call in it legalised; inner calls are bound first."""
        if isinstance(expr, relax.Tuple):
            fields = [self._bind_inner(field) for field in expr.fields]
            same = all(new.same_as(old) for new, old in zip(fields, expr.fields, strict=True))
            return expr if same else relax.Tuple(fields)
        if isinstance(expr, relax.TupleGetItem):
            inner = self._bind_inner(expr.tuple_value)
            return (
                expr if inner.same_as(expr.tuple_value) else relax.TupleGetItem(inner, expr.index)
            )
        if not _is_operator_call(expr):
            return expr
        args = [self._bind_inner(arg) for arg in expr.args]
        if not all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
            expr = relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        return self._legalise_call(expr)

    def _bind_inner(self, expr: Value) -> Value:
        if isinstance(expr, relax.Tuple):
            return self._legalise(expr)
        if isinstance(expr, relax.TupleGetItem) or _is_operator_call(expr):
            return self.emit(expr)
        return expr

    def _legalise_call(self, call: Value) -> Value:
        legalise = call.op.get_attr("FLegalize")
        if legalise is None:
            self._leave(call)
            return call
        outer = self._legalising
        if not outer:
            self._emitted.append(f"legalised {_operator_name(call.op)}")
        self._legalising = call.op.name
        try:
            normal = self.normalize(call)
            legalised = legalise(self, normal)
            if legalised.same_as(normal) or legalised.same_as(call):
                self._leave(call)
                return call
            made = TeCall(legalised, operator=_operator_name(call.op))
            self._te_calls[hash(legalised)] = made
            return self._legalise(legalised)
        finally:
            self._legalising = outer

    def _leave(self, call: Value) -> None:
        name = _operator_name(call.op)
        if name not in self.not_legalised:
            self.not_legalised.add(name)
            self._stayed.add(name)
        self._emitted.append(name)


def without_unused(module: tvm.IRModule) -> tvm.IRModule:
    """Return `module` without uncalled PrimFuncs, which come from discarded nodes."""
    if len(module.functions) == 1:
        return module
    main = module["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    used = {"main", *functions_of(bindings, dict(module.functions_items()))}
    if all(variable.name_hint in used for variable in module.get_global_vars()):
        return module
    functions = {
        variable: function
        for variable, function in module.functions_items()
        if variable.name_hint in used
    }
    return tvm.IRModule(functions, attrs=module.attrs)


def functions_of(
    bindings: Sequence[Any], functions: Mapping[ir.GlobalVar, Any] | None = None
) -> tuple[str, ...]:
    """Return the names of the functions that `bindings` call, each once, in order.

    `functions`: those by variable of which the Relax functions are followed.
    """
    found: dict[str, None] = {}
    relaxed = {
        str(variable.name_hint): each
        for variable, each in (functions or {}).items()
        if isinstance(each, relax.Function)
    }
    waiting = list(bindings)
    while waiting:
        value = getattr(waiting.pop(0), "value", None)
        if isinstance(value, relax.If):
            sides = (value.true_branch, value.false_branch)
            waiting[:0] = [each for side in sides for each in _bindings_of(side)]
        if not isinstance(value, ir.Call):
            continue
        # The called function is the first argument, or the operator itself.
        for called in (value.op, *value.args[:1]):
            if isinstance(called, ir.GlobalVar) and called.name_hint not in found:
                found[str(called.name_hint)] = None
                if called.name_hint in relaxed:
                    waiting[:0] = _bindings_of(relaxed[str(called.name_hint)].body)
    return tuple(found)


def _bindings_of(body: Any) -> list[Any]:
    return [binding for block in body.blocks for binding in block.bindings]


def _is_zero(value: Value) -> bool:
    """Return whether `value` is a float constant of rank 0 that is zero of either sign."""
    if not is_scalar_constant(value) or not is_float(dtype_of(value)):
        return False
    return not value.value.numpy().item()


def _is_operator_call(expr: Value) -> bool:
    return (
        isinstance(expr, ir.Call)
        and isinstance(expr.op, ir.Op)
        and expr.op.name.startswith("relax.")
        and expr.op.name not in _FINAL
    )


def _operators(bindings: list[Any]) -> tuple[str, ...]:
    calls = [binding.value for binding in bindings if isinstance(binding.value, ir.Call)]
    names = [
        _operator_name(call.op)
        for call in calls
        if isinstance(call.op, ir.Op) and call.op.name != "relax.call_tir"
    ]
    return tuple(dict.fromkeys(names))


def _operator_name(operator: Any) -> str:
    return f"R.{operator.name.removeprefix('relax.')}"


def te_name(func: Callable[..., Any]) -> str:
    """Return the name of a TE function: ``topi.nn.dense``, or its own name."""
    module, name = getattr(func, "__module__", ""), getattr(func, "__name__", "te")
    if not module.startswith("tvm.topi"):
        return str(name)
    return f"topi.nn.{name}" if hasattr(topi.nn, name) and ".nn." in module else f"topi.{name}"


def cast(b: NodeBuilder, value: Value, dtype: str) -> Value:
    """Return a tensor, a number or a size as a tensor of `dtype`."""
    if is_size(value):
        value = size_tensor(b, value)
    if not is_tensor(value):
        return scalar(value, dtype)
    if dtype_of(value) == dtype:
        return value
    if is_scalar_constant(value):
        return scalar(value.value.numpy().item(), dtype)
    if is_float(dtype_of(value)) and dtype in _BELOW_32_BITS:
        # As in C: values out of range keep their lowest bits. LLVM leaves the result undefined.
        value = b.emit(op.astype(value, "int32"))
    return b.emit(op.astype(value, dtype))


def size_tensor(b: NodeBuilder, size: Value) -> Value:
    """Return a size of a named dimension as an int64 tensor of rank 0."""
    call = b.call_te(
        lambda value: te.compute((), lambda: value.astype("int64"), name="size"),
        size,
        primfunc_name_hint="size",
    )
    # In a group, FuseTIR fails for an argument that is a variable of no shape there.
    function = call.args[0]
    b.update_func(function, b.get()[function].with_attr("op_pattern", _OPAQUE))
    return b.emit(call)


_OPAQUE = 8
"""Value of ``op_pattern``, TVM's ``OpPatternKind``, of functions that are not fused."""


def as_tensor(b: NodeBuilder, value: Value) -> Value:
    """Return a shape or a size, as which TVM's importer of ONNX has some tensors, as a tensor."""
    if is_size(value):
        return size_tensor(b, value)
    if isinstance(value, ir.Expr) and isinstance(value.ty, relax.ShapeType):
        return b.emit(op.shape_to_tensor(value))
    return value


_BELOW_32_BITS = ("int8", "uint8", "int16", "uint16")


def common_dtype(*values: Value) -> str:
    """Return the dtype to which torch promotes tensors and numbers.

    Raises `UnknownDtype` if TVM has no such dtype.
    """
    return dtype_name(torch_common_dtype(*values))


def torch_common_dtype(*values: Value) -> torch.dtype:
    """Return torch's dtype to which it promotes tensors, complex ones included, and numbers."""
    stand_ins = [_stand_in(value) for value in values]
    result = stand_ins[0]
    for each in stand_ins[1:]:
        result = _stand_in_of(torch.result_type(result, each), result, each)
    return result.dtype if isinstance(result, torch.Tensor) else torch.result_type(result, result)


def to_common_dtype(b: NodeBuilder, *values: Value) -> tuple[Value, ...]:
    """Return `values` as tensors of their common dtype."""
    dtype = common_dtype(*values)
    return tuple(cast(b, value, dtype) for value in values)


def is_nan(b: NodeBuilder, value: Value) -> Value:
    """Return whether each element is NaN; TVM's own does not support bfloat16."""
    return b.emit(op.isnan(cast(b, value, "float32") if dtype_of(value) in HALF else value))


def differs(b: NodeBuilder, first: Value, second: Value) -> Value:
    """Return whether two tensors of one dtype differ elementwise; NaN differs from everything.

    TVM's ``not_equal`` is false if either side is NaN.
    """
    if not is_float(dtype_of(first)):
        return b.emit(op.not_equal(first, second))
    return b.emit(op.logical_not(b.emit(op.equal(first, second))))


def to_float(b: NodeBuilder, value: Value) -> Value:
    """Return a floating-point tensor unchanged, otherwise as float32."""
    return value if is_float(dtype_of(value)) else cast(b, value, "float32")


def _stand_in(value: Value) -> Any:
    """Return a small tensor or number that torch promotes like `value`."""
    if is_size(value):
        return 2  # as any integer
    if isinstance(value, EncodedTensor):
        shape = (1,) if rank_of(value.value) > 1 else ()
        return torch.empty(shape, dtype=getattr(torch, value.dtype), device="meta")
    if not is_tensor(value):
        return value
    shape = (1,) if rank_of(value) else ()
    return torch.empty(shape, dtype=torch_dtype(dtype_of(value)), device="meta")


def _stand_in_of(dtype: torch.dtype, first: Any, second: Any) -> Any:
    ranks = [value.dim() for value in (first, second) if isinstance(value, torch.Tensor)]
    return torch.empty((1,) if any(ranks) else (), dtype=dtype, device="meta")


def te_matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    """Return the product of two matrices."""
    n = A.shape[0]
    m = B.shape[1]
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")


def te_relu(A: te.Tensor) -> te.Tensor:
    """Return the larger of each element and 0, for any rank."""
    # In this order NaN stays NaN, as in torch.
    zero = tirx.const(0, A.dtype)
    return te.compute(A.shape, lambda *i: te.max(zero, A(*i)), name="relu")


def te_dense(A: te.Tensor, W: te.Tensor) -> te.Tensor:
    """Return ``A @ W.T`` for an `A` of any rank, where ``topi.nn.dense`` takes matrices."""
    k = te.reduce_axis((0, W.shape[1]), name="k")

    def product(*i: Any) -> Any:
        return te.sum(A(*i[:-1], k) * W[i[-1], k], axis=k)

    return te.compute((*A.shape[:-1], W.shape[0]), product, name="dense")


def te_grouped_matmul(A: te.Tensor, B: te.Tensor, group: te.Tensor) -> te.Tensor:
    """Return the product of each row with the matrix of its group."""
    k = te.reduce_axis((0, A.shape[1]), name="k")

    def product(i: Any, j: Any) -> Any:
        return te.sum(A[i, k] * B[group[i], k, j], axis=k)

    return te.compute((A.shape[0], B.shape[2]), product, name="grouped_matmul")


def summand(b: NodeBuilder, input: Value, dtype: Any) -> Value:
    """Return the summand as torch does: integers and bools as int64."""
    if dtype is not None:
        return cast(b, input, dtype_name(dtype))
    return input if is_float(dtype_of(input)) else cast(b, input, "int64")


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial by Horner's rule; the last coefficient is the constant one."""
    dtype = str(x.ty.dtype)
    value: Any = tirx.const(coefficients[0], dtype)
    for each in coefficients[1:]:
        value = value * x + tirx.const(each, dtype)
    return value


def double(value: float) -> Any:
    """Return a constant in float64."""
    return tirx.const(value, "float64")
