"""The step that folds batch norms into the convolutions before them, or else into two constants.

TVM's own ``FoldBatchnormToConv2D`` leaves the scaling of the weights to ``FoldConstant``, which
compiles each operation for itself, takes no convolution that has a bias, and renames everything.
``DecomposeOpsForInference`` makes four operations of a norm that is left, and a tuple of which
the first member is read: ``FuseOps`` fuses no activation across it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import ir, relax

from lowerscope.core.model.texts import _

FOLD_BATCH_NORM = "FoldBatchNorm"

_CONVOLUTIONS = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")
_BATCH_NORM = "relax.nn.batch_norm"
_FLOATS = ("float16", "float32", "float64")
_SCALED = ("float32", "float64")
"""Dtypes in which a factor and an offset round no worse than the statistics."""

_Array = np.ndarray[Any, Any]


def fold_batch_norm(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module whose convolutions have the batch norms behind them in weights and bias.

    That is exact for the statistics that a norm has in inference. The variable of the norm's
    result stays, and the convolution gets a new one of the same name, as its value is another.
    Other norms become a multiplication and an addition, as they are computed in torch.
    """
    folded = {}
    for variable, function in module.functions_items():
        if isinstance(function, relax.Function):
            new = _Folding(function).folded()
            if new is not None:
                folded[variable] = new
    if not folded:
        return module
    result = module.clone()
    for variable, function in folded.items():
        result.update_func(variable, function)
    return result


@dataclass(frozen=True)
class Unfolded:
    """A batch norm that is not folded: the variable of its result, and the reason."""

    variable: str
    reason: str


def unfolded(function: relax.Function) -> Unfolded | None:
    """Return the first batch norm of a function that is not folded; ``None`` if there is none."""
    return next(
        (each for each in _Folding(function).foldings() if isinstance(each, Unfolded)), None
    )


@dataclass(frozen=True)
class _Folded:
    """A convolution with the operators folded into it, or a norm that is folded into none.

    `scaled`: the convolution whose weights take the factors, or the norm.
    `gone`: Variables of the bindings that are folded: an addition of a bias, and the norm.
    `result`: the variable of the norm's first result.
    `axis`: of the channels in `result`.
    `scale`, `shift`: Factor and offset of each channel.
    """

    scaled: relax.VarBinding
    gone: tuple[relax.Var, ...]
    result: relax.Var
    axis: int
    scale: _Array
    shift: _Array


class _Folding:
    """One function, with the bindings and readers of its variables."""

    def __init__(self, function: relax.Function) -> None:
        self._function = function
        self._blocks = (
            tuple(function.body.blocks) if isinstance(function.body, relax.SeqExpr) else ()
        )
        self._bindings = {
            each.var: each
            for block in self._blocks
            for each in block.bindings
            if isinstance(each, relax.VarBinding)
        }
        self._reads: dict[relax.Var, int] = {}
        for value in (*(each.value for each in self._bindings.values()), *self._ends()):
            relax.analysis.post_order_visit(value, self._count)

    def _ends(self) -> Sequence[Any]:
        ends: list[Any] = [self._function.body.body] if self._blocks else []
        for block in self._blocks:
            ends += [
                each.value for each in block.bindings if not isinstance(each, relax.VarBinding)
            ]
        return ends

    def _count(self, expression: Any) -> None:
        if isinstance(expression, relax.Var):
            self._reads[expression] = self._reads.get(expression, 0) + 1

    def folded(self) -> relax.Function | None:
        """Return the function with its norms folded; ``None`` if there is none to fold."""
        found = [each for each in self.foldings() if isinstance(each, _Folded)]
        if not found:
            return None
        by_scaled = {each.scaled.var: each for each in found}
        by_result = {each.result: each for each in found}
        gone = {variable for each in found for variable in each.gone}
        scaled: dict[relax.Var, relax.Var] = {}
        builder = relax.BlockBuilder()
        blocks = []
        for block in self._blocks:
            bindings: list[Any] = []
            for binding in block.bindings:
                if binding.var in by_scaled:
                    value = builder.normalize(_scaled(binding.value, by_scaled[binding.var]))
                    kind = type(binding.var)
                    scaled[binding.var] = kind(binding.var.name, value.ty)
                    bindings.append(relax.VarBinding(scaled[binding.var], value))
                elif binding.var in by_result:
                    fold = by_result[binding.var]
                    value = builder.normalize(_shifted(scaled[fold.scaled.var], fold))
                    bindings.append(relax.VarBinding(binding.var, value))
                elif binding.var not in gone:
                    bindings.append(binding)
            blocks.append(type(block)(bindings))
        old = self._function
        body = relax.SeqExpr(blocks, old.body.body)
        return relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)

    def foldings(self) -> Iterator[_Folded | Unfolded]:
        """Yield the folding of each batch norm, or the reason why it has none."""
        for each in self._bindings.values():
            item = each.value
            norm = self._bindings.get(getattr(item, "tuple_value", None))
            if norm is not None and item.index == 0 and _operator(norm.value) == _BATCH_NORM:
                fold = self._fold(each, norm)
                yield Unfolded(norm.var.name, fold) if isinstance(fold, str) else fold

    def _fold(self, binding: relax.VarBinding, norm: relax.VarBinding) -> _Folded | str:
        """Return the folding of a norm, whose first result `binding` is, or why there is none."""
        if self._reads.get(norm.var) != 1:
            return _("more than its first result is used")
        if norm.value.attrs.training:
            return _("it is in training mode")
        arrays = [self._array(each) for each in norm.value.args[1:]]
        if any(each is None for each in arrays):
            return _("its statistics are not constants")
        rank = binding.var.ty.ndim
        if rank < 1:
            return _("its rank is not known")
        axis = int(norm.value.attrs.axis) % rank
        gamma, beta, mean, variance = (np.asarray(each, "float64") for each in arrays)
        scale = (gamma if norm.value.attrs.scale else 1.0) / np.sqrt(
            variance + float(norm.value.attrs.epsilon)
        )
        shift = (beta if norm.value.attrs.center else 0.0) - mean * scale
        into = self._convolution(norm.value.args[0], axis, rank)
        if into is None:
            if str(binding.var.ty.dtype) not in _SCALED:
                return _("it follows no convolution, and is of half precision")
            return _Folded(norm, (), binding.var, axis, scale, shift)
        convolution, bias, gone = into
        if bias is not None:
            shift = shift + bias.reshape(-1).astype("float64") * scale
        return _Folded(convolution, (*gone, norm.var), binding.var, axis, scale, shift)

    def _convolution(
        self, data: Any, axis: int, rank: int
    ) -> tuple[relax.VarBinding, _Array | None, tuple[relax.Var, ...]] | None:
        """Return the convolution that a norm of `data` can be folded into, if there is one.

        With it, the bias that is added to its result, and the variable of the sum.
        """
        bias: _Array | None = None
        gone: tuple[relax.Var, ...] = ()
        added = self._only_call(data, ("relax.add",))
        if added is not None:
            bias, data = self._array(added.value.args[1]), added.value.args[0]
            if bias is None or not _is_per_channel(bias, axis, rank):
                return None
            gone = (added.var,)
        convolution = self._only_call(data, _CONVOLUTIONS)
        if convolution is None or self._array(convolution.value.args[1]) is None:
            return None
        attrs = convolution.value.attrs
        if str(attrs.out_layout or attrs.data_layout).index("C") != axis:
            return None
        return convolution, bias, gone

    def _only_call(self, variable: Any, operators: Sequence[str]) -> relax.VarBinding | None:
        """Return the binding of a variable that is read once, if it calls one of some operators."""
        binding = self._bindings.get(variable) if isinstance(variable, relax.Var) else None
        if binding is None or self._reads.get(variable) != 1:
            return None
        return binding if _operator(binding.value) in operators else None

    def _array(self, value: Any) -> _Array | None:
        """Return a constant as an array, possibly reshaped; ``None`` for other values."""
        if isinstance(value, relax.Var) and value in self._bindings:
            value = self._bindings[value].value
        if _operator(value) == "relax.reshape":
            array, shape = self._array(value.args[0]), value.ty.shape
            if array is None or not isinstance(shape, relax.ShapeExpr):
                return None
            return array.reshape([int(each) for each in shape.values])
        tensor = value.value if isinstance(value, ir.GenericConst) else None
        if not isinstance(tensor, tvm.runtime.Tensor) or str(tensor.dtype) not in _FLOATS:
            return None
        return _data(tensor)


def _operator(value: Any) -> str:
    return str(getattr(value.op, "name", "")) if isinstance(value, relax.Call) else ""


def _is_per_channel(bias: _Array, axis: int, rank: int) -> bool:
    shape = (1,) * (rank - bias.ndim) + bias.shape
    return bias.ndim <= rank and all(size == 1 for at, size in enumerate(shape) if at != axis)


def _scaled(call: Any, fold: _Folded) -> Any:
    """Return a convolution with its weights scaled by output channel, or the product of a norm."""
    if _operator(call) == _BATCH_NORM:
        return relax.op.multiply(call.args[0], _by_channel(fold.scale, fold))
    weight = _data(call.args[1].value)
    shape = [1] * weight.ndim
    shape[str(call.attrs.kernel_layout).index("O")] = -1
    scaled = (weight.astype("float64") * fold.scale.reshape(shape)).astype(weight.dtype)
    return relax.Call(
        call.op, [call.args[0], relax.const(scaled, str(scaled.dtype))], call.attrs, call.ty_args
    )


def _shifted(variable: relax.Var, fold: _Folded) -> Any:
    return relax.op.add(variable, _by_channel(fold.shift, fold))


def _by_channel(values: _Array, fold: _Folded) -> Any:
    """Return one constant per channel, of the dtype and rank of a norm's result."""
    kind = fold.result.ty
    shape = [1] * kind.ndim
    shape[fold.axis] = -1
    return relax.const(values.reshape(shape), str(kind.dtype))


def _data(tensor: tvm.runtime.Tensor) -> _Array:
    array = tensor.numpy()
    assert isinstance(array, np.ndarray)
    return array
