"""Wrong passes, as a user's own file of passes has them.

Each makes one mistake of the kind that compilers make, wherever it finds the place for it, so that
a part of a model shows it as the whole does. Those of `BEFORE` are for operators of Relax, and come
before ``LegalizeOps``; those of `AFTER` are for TensorIR functions.
"""

from __future__ import annotations

import re

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

BEFORE: list[str] = []
AFTER: list[str] = []


@mutator
class Calls(PyExprMutator):
    """Replaces the calls of an operator."""

    def __init__(self, module, operator, change):
        super().__init__(module)
        self.operator, self.change = operator, change

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != f"relax.{self.operator}":
            return call
        made = self.change(call.attrs, *call.args)
        return call if made is None else made


def of_relax(operator):
    """Make a pass of a function that replaces calls of an operator; ``None`` leaves one."""

    def decorate(change):
        @tvm.transform.module_pass(opt_level=0, name=change.__name__)
        def apply(module, context):
            main = Calls(module, operator, change).visit_expr(module["main"])
            module = tvm.IRModule(module.functions, attrs=module.attrs)
            module.update_func(module.get_global_var("main"), main)
            return module

        BEFORE.append(change.__name__)
        return apply

    return decorate


def of_tir(name, function, pattern, replacement):
    """Return a pass that replaces text in the scripts of functions whose names begin alike."""

    @tvm.transform.module_pass(opt_level=0, name=name)
    def apply(module, context):
        module = module.clone()
        for variable in module.get_global_vars():
            if not str(variable.name_hint).startswith(function):
                continue
            made = module[variable]
            text = made.script(name=str(variable.name_hint))
            changed = re.sub(pattern, replacement, text)
            if changed != text:
                parsed = tvm.script.from_source(changed, check_well_formed=False)
                module.update_func(variable, parsed.with_attrs(dict(made.attrs.items())))
        return module

    AFTER.append(name)
    return apply


def shape(value):
    return tuple(int(each) for each in value.ty.shape.values)


def swapped(count, one, other):
    """Return the axes of a transpose of two of them."""
    order = list(range(count))
    order[one], order[other] = order[other], order[one]
    return order


@of_relax("permute_dims")
def dropped_transpose(attrs, x):
    return x if attrs.axes is None and len(set(shape(x))) == 1 else None


@of_relax("permute_dims")
def wrong_permutation(attrs, x):
    axes = [int(each) for each in attrs.axes or ()]
    same = len(axes) == 4 and shape(x)[axes[2]] == shape(x)[axes[3]]
    return relax.op.permute_dims(x, [axes[0], axes[1], axes[3], axes[2]]) if same else None


@of_relax("divide")
def swapped_operands(attrs, x, y):
    return relax.op.divide(y, x)


@of_relax("divide")
def dropped_division(attrs, x, y):
    return x


@of_relax("nn.softmax")
def lost_negative_axis(attrs, x):
    return relax.op.nn.softmax(x, axis=1)


@of_relax("nn.layer_norm")
def wrong_epsilon(attrs, x, gamma, beta):
    return relax.op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=0.5)


@of_relax("nn.layer_norm")
def doubled_scale(attrs, x, gamma, beta):
    return relax.op.nn.layer_norm(x, relax.op.add(gamma, gamma), beta, axes=[-1])


@of_relax("nn.gelu")
def gelu_as_relu(attrs, x):
    return relax.op.nn.relu(x)


@of_relax("add")
def dropped_bias(attrs, x, y):
    return x if len(shape(y)) == 1 or shape(x) != shape(y) else None


@of_relax("add")
def dropped_residual(attrs, x, y):
    return x if shape(x) == shape(y) else None


@of_relax("matmul")
def half_product(attrs, x, y):
    product = relax.op.matmul(relax.op.astype(x, "float16"), relax.op.astype(y, "float16"))
    return relax.op.astype(product, "float32")


@of_relax("nn.relu")
def relu_as_absolute(attrs, x):
    return relax.op.abs(x)


@of_relax("nn.relu")
def clipped_relu(attrs, x):
    return relax.op.clip(x, 0, 0.25)


@of_relax("nn.conv2d")
def transposed_kernel(attrs, x, weight):
    if shape(weight)[2] != shape(weight)[3] or shape(weight)[2] == 1:
        return None
    options = {name: getattr(attrs, name) for name in ("strides", "padding", "dilation", "groups")}
    return relax.op.nn.conv2d(x, relax.op.permute_dims(weight, [0, 1, 3, 2]), **options)


@of_relax("nn.conv2d")
def shifted_padding(attrs, x, weight):
    padding = [int(each) for each in attrs.padding]
    if not padding[0]:
        return None
    moved = [padding[0] + 1, padding[1], padding[2] - 1, padding[3]]
    options = {name: getattr(attrs, name) for name in ("strides", "dilation", "groups")}
    return relax.op.nn.conv2d(x, weight, padding=moved, **options)


@of_relax("nn.conv2d")
def half_convolution(attrs, x, weight):
    options = {name: getattr(attrs, name) for name in ("strides", "padding", "dilation", "groups")}
    x, weight = relax.op.astype(x, "float16"), relax.op.astype(weight, "float16")
    return relax.op.astype(relax.op.nn.conv2d(x, weight, **options), "float32")


@of_relax("nn.max_pool2d")
def pooled_by_average(attrs, x):
    options = {name: getattr(attrs, name) for name in ("pool_size", "strides", "padding")}
    return relax.op.nn.avg_pool2d(x, **options)


@of_relax("nn.batch_norm")
def dropped_shift(attrs, x, gamma, beta, mean, variance):
    zeros = relax.op.zeros_like(beta)
    return relax.op.nn.batch_norm(x, gamma, zeros, mean, variance, axis=1, training=False)


@of_relax("nn.batch_norm")
def mean_as_variance(attrs, x, gamma, beta, mean, variance):
    return relax.op.nn.batch_norm(x, gamma, beta, mean, relax.op.abs(mean), axis=1, training=False)


@of_relax("reshape")
def reshaped_transpose(attrs, x, target):
    if len(shape(x)) != 4 or len(target.values) == 4:
        return None
    return relax.op.reshape(relax.op.permute_dims(x, [0, 3, 2, 1]), target)


LOOPS = r"(for (?:\w+, )+\w+ in T\.grid\(.*)T\.int64\((\d+)\)(\):\n\s+with T\.sblock\(\"%s\"\))"


def shorter(match):
    """Make the last loop of a nest one iteration shorter."""
    extent = int(match[2])
    return f"{match[1]}T.int64({max(extent - 1, 1)}){match[3]}"


short_product = of_tir("short_product", "matmul", LOOPS % "matmul", shorter)
short_convolution = of_tir("short_convolution", "conv2d", LOOPS % "conv2d_nchw", shorter)
short_sum = of_tir("short_sum", "softmax", LOOPS % "T_softmax_expsum", shorter)
wrong_start = of_tir(
    "wrong_start", "matmul", r"(matmul\[[^\]]*\] = )T\.float32\(0\.0\)", r"\1T.float32(0.5)"
)
subtracted = of_tir("subtracted", "add", r"(T_add\[[^=]*= .*\]) \+ ", r"\1 - ")
high_start = of_tir("high_start", "max_pool2d", r'T\.float32\("-inf"\)', "T.float32(0.5)")
late_padding = of_tir("late_padding", "conv2d", r"T\.int64\((\d)\) <= v_i2", r"T.int64(\1) < v_i2")
wrong_mean = of_tir("wrong_mean", "layer_norm", r"T\.float32\(256\.0\)", "T.float32(200.0)")
leaking = of_tir("leaking", "relu", r"T\.float32\(0\.0\)", "T.float32(-0.125)")
forgotten_rows = of_tir("forgotten_rows", "relu", LOOPS % "compute", shorter)
