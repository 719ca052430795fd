"""Bodies of generated rules: explicit for short formulas; others call the built-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    """Body of a rule, with ``x`` for its first argument.

    Attributes
    ----------
    imports
        Import lines besides those of every rule file.
    lines
        Of the function, without indentation.
    parameters
        Of the function, after ``x``.
    """

    imports: tuple[str, ...]
    lines: tuple[str, ...]
    parameters: tuple[str, ...] = ()


BUILT_IN = Body((), ("return node.built_in({call})",))
"""Body of all other rules, which call the built-in."""

_TE = "from tvm import te"
_RELAX = "from tvm import relax"

_FORMULAS: Mapping[str, str] = {
    # In this order NaN stays NaN, as in torch.
    "relu": "te.max(tirx.const(0, a.dtype), a(*i))",
    "relu6": "te.min(tirx.const(6, a.dtype), te.max(tirx.const(0, a.dtype), a(*i)))",
    "sigmoid": "te.sigmoid(a(*i))",
    "tanh": "te.tanh(a(*i))",
    "exp": "te.exp(a(*i))",
    "log": "te.log(a(*i))",
    "sqrt": "te.sqrt(a(*i))",
    "abs": "te.abs(a(*i))",
    "floor": "te.floor(a(*i))",
    "ceil": "te.ceil(a(*i))",
    "cos": "te.cos(a(*i))",
    "sin": "te.sin(a(*i))",
    "neg": "-a(*i)",
    "square": "a(*i) * a(*i)",
    "reciprocal": "tirx.const(1, a.dtype) / a(*i)",
    "silu": "a(*i) * te.sigmoid(a(*i))",
    "gelu": "a(*i) * (te.erf(a(*i) * 0.5**0.5) + 1.0) * 0.5",
}
"""One element of the result, by operator: of the tensor ``a`` at the indices ``i``."""

_OPERATORS: Mapping[str, str] = {
    "relu": "nn.relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "cos": "cos",
    "sin": "sin",
    "neg": "negative",
    "square": "square",
    "silu": "nn.silu",
    "gelu": "nn.gelu",
}
"""Unary Relax operators, by operator."""

_LINEAR_TE = Body(
    (_TE,),
    (
        "weight = builder.constant(node.module.weight)",
        "",
        "def te_linear(a, w):",
        '    k = te.reduce_axis((0, w.shape[1]), name="k")',
        "",
        "    def product(*i):",
        "        return te.sum(a(*i[:-1], k) * w[i[-1], k], axis=k)",
        "",
        '    return te.compute((*a.shape[:-1], w.shape[0]), product, name="linear")',
        "",
        "def te_bias(a, b):",
        '    return te.compute(a.shape, lambda *i: a(*i) + b[i[-1]], name="bias")',
        "",
        "y = builder.emit_te(te_linear, x, weight)",
        "if node.module.bias is None:",
        "    return y",
        "return builder.emit_te(te_bias, y, builder.constant(node.module.bias))",
    ),
)
_LINEAR = Body(
    (_RELAX,),
    (
        "weight = builder.constant(node.module.weight)",
        "y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))",
        "if node.module.bias is None:",
        "    return y",
        "return relax.op.add(y, builder.constant(node.module.bias))",
    ),
)
_GELU_OF_MODULE = (
    'if node.module.approximate != "none":',
    "    return node.built_in(x)",
)
_GELU = (
    'if approximate != "none":',
    "    return node.built_in(x, approximate=approximate)",
)


def body_of(operator: str, strategy: str, *, unary: bool, module: bool) -> Body:
    """Return the body of a rule.

    Parameters
    ----------
    operator
        As `operator_name` gives it.
    strategy
        ``"high-level"`` or ``"te"``.
    unary
        Whether the call is of one tensor of floats, and of nothing else.
    module
        Whether a module is called.
    """
    if operator == "linear" and unary and module:
        return _LINEAR_TE if strategy == "te" else _LINEAR
    if not unary:
        return BUILT_IN
    guard: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    if operator == "gelu":
        guard = _GELU_OF_MODULE if module else _GELU
        parameters = () if module else ('approximate="none"',)
    if strategy == "te" and operator in _FORMULAS:
        formula = _FORMULAS[operator]
        imports = ("from tvm import te, tirx",) if "tirx." in formula else (_TE,)
        lines = (
            f"def te_{operator}(a):",
            f'    return te.compute(a.shape, lambda *i: {formula}, name="{operator}")',
            "",
            f"return builder.emit_te(te_{operator}, x)",
        )
        return Body(imports, (*guard, *lines), parameters)
    if strategy != "te" and operator in _OPERATORS:
        result = f"return relax.op.{_OPERATORS[operator]}(x)"
        return Body((_RELAX,), (*guard, result), parameters)
    return BUILT_IN
