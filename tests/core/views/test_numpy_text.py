"""Low-level NumPy of PrimFuncs: run, it gives the numbers of the compiled function."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax, s_tir, te, tirx

from lowerscope.core.views.programs.numpy_text import numpy_text
from tests.core.quick_code import quick_code
from tests.core.schedule.functions import product_of

Make = Callable[..., Any]
Shape = tuple[int, ...]
nn = relax.op.nn

OPERATORS: dict[str, tuple[Make, tuple[Shape, ...]]] = {
    "dense": (lambda x, w: relax.op.matmul(x, relax.op.permute_dims(w)), ((2, 5), (3, 5))),
    "matmul": (relax.op.matmul, ((2, 3, 4), (2, 4, 5))),
    "add": (relax.op.add, ((2, 3), (3,))),
    "relu": (nn.relu, ((2, 5),)),
    "conv2d": (
        lambda x, w: nn.conv2d(x, w, padding=1, strides=2, groups=2),
        ((1, 4, 5, 5), (4, 2, 3, 3)),
    ),
    "max_pool2d": (lambda x: nn.max_pool2d(x, (3, 3), strides=2, padding=1), ((1, 2, 6, 6),)),
    "avg_pool2d": (lambda x: nn.avg_pool2d(x, (2, 2), strides=2, padding=1), ((1, 2, 5, 5),)),
    "adaptive": (lambda x: nn.adaptive_avg_pool2d(x, (3, 2)), ((1, 2, 5, 7),)),
    "softmax": (nn.softmax, ((3, 4),)),
    "log_softmax": (nn.log_softmax, ((3, 4),)),
    "layer_norm": (lambda x, g, b: nn.layer_norm(x, g, b, axes=[-1]), ((2, 3, 8), (8,), (8,))),
    "batch_norm": (
        lambda x, g, b, m, v: nn.batch_norm(x, g, b, m, v, axis=1, training=False)[0],
        ((2, 3, 2, 2), (3,), (3,), (3,), (3,)),
    ),
    "gelu": (nn.gelu, ((2, 5),)),
    "gelu_tanh": (nn.gelu_tanh, ((2, 5),)),
    "silu": (nn.silu, ((2, 5),)),
    "leaky": (nn.leakyrelu, ((2, 5),)),
    "transpose": (lambda x: relax.op.permute_dims(x, [2, 0, 1]), ((2, 3, 4),)),
    "reshape": (lambda x: relax.op.reshape(x, (4, 6)), ((2, 3, 4),)),
    "mean": (lambda x: relax.op.mean(x, axis=[1]), ((2, 3, 4),)),
    "variance": (lambda x: relax.op.variance(x, axis=[1]), ((2, 3, 4),)),
    "concat": (lambda x, y: relax.op.concat([x, y], axis=1), ((2, 3), (2, 2))),
    "slice": (lambda x: relax.op.strided_slice(x, [1], [4], [0], [-2]), ((2, 5),)),
    "tril": (relax.op.tril, ((4, 4),)),
    "argmax": (lambda x: relax.op.argmax(x, axis=1), ((3, 6),)),
    "where": (lambda x, y: relax.op.where(relax.op.greater(x, y), x, y), ((2, 5), (2, 5))),
    "round": (relax.op.round, ((2, 5),)),
    "floor": (relax.op.floor, ((2, 5),)),
    "sigmoid": (relax.op.sigmoid, ((2, 5),)),
    "tanh": (relax.op.tanh, ((2, 5),)),
    "sqrt": (lambda x: relax.op.sqrt(relax.op.abs(x)), ((2, 5),)),
    "power": (lambda x: relax.op.power(relax.op.abs(x), relax.const(1.5, "float32")), ((2, 5),)),
    "minimum": (relax.op.minimum, ((2, 5), (2, 5))),
    "divide": (relax.op.divide, ((2, 5), (2, 5))),
    "cast": (lambda x: relax.op.astype(relax.op.astype(x, "int32"), "float64"), ((2, 5),)),
    "resize": (
        lambda x: relax.op.image.resize2d(x, (4, 6), layout="NCHW", method="linear"),
        ((1, 1, 2, 3),),
    ),
}


def of_operator(name: str) -> dict[str, Any]:
    """Return the PrimFuncs that an operator is legalised to."""
    make, shapes = OPERATORS[name]
    builder = relax.BlockBuilder()
    inputs = [relax.Var(f"x{i}", relax.TensorType(s, "float32")) for i, s in enumerate(shapes)]
    with builder.function("main", inputs):
        builder.emit_func_output(builder.emit(make(*inputs)))
    module = relax.transform.LegalizeOps()(builder.get())
    functions = {
        f"{name}_{variable.name_hint}": function
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }
    assert functions
    return functions


def random_array(variable: Any, sizes: dict[str, int]) -> np.ndarray:
    """Return values for an argument; `sizes` are those of its symbolic extents."""
    shape = [int(sizes.get(str(extent), 0) or extent) for extent in variable.ty.shape]
    values = np.random.default_rng(len(shape)).standard_normal(shape) * 3
    dtype = str(variable.ty.dtype.dtype)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def compiled(functions: dict[str, Any]) -> Any:
    """Return the functions, as machine code that nothing has reordered."""
    module = tvm.IRModule(
        {name: each.with_attr("global_symbol", name) for name, each in functions.items()}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quick_code(module, tvm.target.Target("llvm"))


def run(function: Any, name: str, arrays: list[Any]) -> list[Any]:
    """Return copies of `arrays` after the NumPy program has worked on them."""
    names: dict[str, Any] = {}
    exec(numpy_text(function, name).text, names)
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arrays]
    with np.errstate(all="ignore"):
        names[f"lnumpy_{name}"](*copies)
    return copies


def check(
    function: Any,
    name: str,
    arrays: list[Any] | None = None,
    sizes: dict[str, int] | None = None,
    *,
    executable: Any = None,
    rtol: float = 1e-5,
) -> list[Any]:
    """Assert that the NumPy program leaves what the compiled function does, and return that."""
    if arrays is None:
        arrays = [random_array(each, sizes or {}) for each in function.params]
    expected = [tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
    (executable or compiled({name: function}))[name](*expected)
    actual = run(function, name, arrays)
    for one, two in zip(actual, expected, strict=True):
        if isinstance(one, np.ndarray):
            # NumPy compares what it knows; bfloat16 is not among it.
            wide = one.astype("float64"), two.numpy().astype("float64")
            np.testing.assert_allclose(*wide, rtol=rtol, atol=rtol)
    return actual


def spans_of(function: Any, name: str) -> dict[str, list[str]]:
    record = numpy_text(function, name)
    lines = record.text.split("\n")
    return {span.entity: lines[span.first - 1 : span.last] for span in record.spans}


@pytest.fixture(scope="module")
def operators() -> tuple[dict[str, dict[str, Any]], Any]:
    """Return the PrimFuncs of all operators, and all of them compiled at once."""
    functions = {name: of_operator(name) for name in OPERATORS}
    return functions, compiled({k: v for each in functions.values() for k, v in each.items()})


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_the_numbers_of_the_compiled_function(
    operators: tuple[dict[str, dict[str, Any]], Any], name: str
) -> None:
    functions, executable = operators
    for title, function in functions[name].items():
        check(function, title, executable=executable)


def test_scheduled_loops_keep_their_meaning() -> None:
    schedule = s_tir.Schedule(product_of(6, 7, 5))
    block = schedule.get_sblock("matmul")
    i, j, k = schedule.get_loops(block)
    outer, inner = schedule.split(j, [None, 4])
    schedule.reorder(i, outer, k, inner)
    schedule.parallel(i)
    schedule.vectorize(inner)
    schedule.unroll(k)
    cache = schedule.cache_read(block, 1, "global")
    schedule.compute_at(cache, outer)
    schedule.cache_write(block, 0, "global")
    schedule.decompose_reduction(block, k)
    function = schedule.mod["main"]
    a, b, c = check(function, "scheduled")
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    spans = spans_of(function, "scheduled")
    loops = [lines[0].strip() for entity, lines in spans.items() if entity.endswith("/i")]
    assert "for i in range(6):  # parallel" in loops
    text = numpy_text(function, "scheduled").text
    assert "for k in range(5):  # unrolled" in text
    assert "# vectorized" in text
    assert re.search(r"if j_0 \* 4 \+ j_1\w* < 7:", text)


def test_init_runs_where_all_reduced_axes_begin_in_any_order() -> None:
    schedule = s_tir.Schedule(of_operator("conv2d")["conv2d_conv2d"])
    block = schedule.get_sblock("group_conv2d_nchw")
    *outer, rc, ry, rx = schedule.get_loops(block)
    schedule.reorder(rx, rc, ry, *outer)
    schedule.split(rx, [2, None])
    check(schedule.mod["main"], "reordered")


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_divide_as_tvm_does(dtype: str) -> None:
    a, b = (te.placeholder((4,), name=name, dtype=dtype) for name in "AB")

    def each(make: Make) -> Any:
        return te.compute((4,), lambda i: make(a[i], b[i]), name=make.__name__)

    parts = [
        each(make) for make in (tirx.floordiv, tirx.floormod, tirx.truncdiv, tirx.truncmod, te.max)
    ]
    function = te.create_prim_func([a, b, *parts])
    values = np.array([7, 7, 9, 100], dtype), np.array([2, 3, 3, 7], dtype)
    if dtype != "uint8":
        values = np.array([7, -7, 7, -7], dtype), np.array([2, 2, -2, -2], dtype)
    check(function, "divided", [*values, *(np.empty(4, dtype) for _ in parts)])


def test_what_is_no_number_goes_the_way_it_does_in_machine_code() -> None:
    a, b = (te.placeholder((4,), name=name) for name in "AB")
    larger = te.compute((4,), lambda i: te.max(a[i], b[i]), name="larger")
    smaller = te.compute((4,), lambda i: te.min(a[i], b[i]), name="smaller")
    relu = te.compute((4,), lambda i: te.max(a[i], tirx.const(0, "float32")), name="relu")
    one = np.array([np.nan, 1, np.nan, -np.inf], "float32")
    two = np.array([1, np.nan, np.nan, np.inf], "float32")
    out = [np.empty(4, "float32") for _ in range(3)]
    check(te.create_prim_func([a, b, larger, smaller, relu]), "extremes", [one, two, *out])


def test_of_a_condition_one_side_is_computed() -> None:
    a = te.placeholder((3,), name="A")
    b = te.compute(
        (9,),
        lambda i: tirx.if_then_else(
            tirx.all(i >= 3, tirx.any(i < 5, tirx.Not(i > 5))),
            a[i - 3],
            tirx.Select(i < 3, tirx.const(-1, "float32"), tirx.const(2, "float32")),
        ),
        name="B",
    )
    check(te.create_prim_func([a, b]), "padded")
