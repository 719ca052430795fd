"""TensorIR functions of all shapes, drawn at random: what models and users' files may hold.

Each takes a matrix and writes another of the same shape and dtype, so that they can be chained.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from hypothesis import strategies as st

DTYPES = ("float32", "float32", "float64", "float16", "bfloat16", "int32")
ROWS = (1, 3, 16, 33, "n")
COLUMNS = (1, 5, 16, 40)

_FLOATS = (
    "{x} * T.{dtype}(0.5) + T.{dtype}(1)",
    "T.exp({x})",
    "T.tanh({x}) * {x}",
    "T.sigmoid({x}) * (T.{dtype}(1) - T.sigmoid({x}))",
    "T.max({x}, T.{dtype}(0)) - T.exp(T.exp(T.{dtype}(0) - {x} * {x}))",
    'T.Cast("{dtype}", T.erf(T.Cast("float32", {x})))',
    'T.Cast("{dtype}", T.sinh(T.Cast("float32", {x})))',
)
_INTEGERS = ("{x} * 3 + 1", "T.max({x}, 0) - {x}", "T.bitwise_xor({x}, 5)")

_ELEMENT = """\
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("b{k}"):
        v, w = T.axis.remap("SS", [i{k}, j{k}])
        {to}[v, w] = {value}
"""
_OPAQUE = """\
with T.sblock("opaque{k}"):
    T.reads({of}[0:{n}, 0:{m}])
    T.writes({to}[0:{n}, 0:{m}])
    for i{k}, j{k} in T.grid({n}, {m}):
        {to}[i{k}, j{k}] = {zero}
    for i{k}_1, j{k}_1 in T.grid({n}, {m}):
        {to}[i{k}_1, j{k}_1] = {to}[i{k}_1, j{k}_1] + {value_1}
"""
_SCAN = """\
with T.sblock("scan{k}"):
    T.reads({of}[0:{n}, 0:{m}])
    T.writes({to}[0:{n}, 0:{m}])
    for i{k} in T.parallel({n}):
        {to}[i{k}, 0] = {of}[i{k}, 0]
        for j{k} in range({m} - 1):
            {to}[i{k}, j{k} + 1] = {to}[i{k}, j{k}] * {half} + {of}[i{k}, j{k} + 1]
"""
_BARE = """\
for i{k}, j{k} in T.grid({n}, {m}):
    {to}[i{k}, j{k}] = {value_0}
"""
_EXTERN = """\
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("extern{k}"):
        v, w = T.axis.remap("SS", [i{k}, j{k}])
        {to}[v, w] = T.Cast(
            "{dtype}", T.call_pure_extern("float32", "fabsf", T.Cast("float32", {of}[v, w]))
        )
"""
_DATA_LOOP = """\
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("steps{k}"):
        v, w = T.axis.remap("SS", [i{k}, j{k}])
        {to}[v, w] = {zero}
        for s{k} in range(T.Cast("int32", T.min(T.max({of}[v, w], {zero}), {two})) + 1):
            {to}[v, w] = {to}[v, w] + {of}[v, w]
"""
_BRANCH = """\
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("branch{k}"):
        v, w = T.axis.remap("SS", [i{k}, j{k}])
        if {of}[v, w] > {zero}:
            {to}[v, w] = {value}
        else:
            {to}[v, w] = {of}[v, w] - {two}
"""
_SCATTER = """\
with T.sblock("scatter{k}"):
    T.reads({of}[0:{n}, 0:{m}])
    T.writes({to}[0:{n}, 0:{m}])
    for i{k}, j{k} in T.grid({n}, {m}):
        {to}[i{k}, j{k}] = {zero}
    for i{k}_1, j{k}_1 in T.grid({n}, {m}):
        {to}[i{k}_1, T.Cast("int32", T.min(T.max({of}[i{k}_1, j{k}_1], {zero}), {zero}))] = (
            {of}[i{k}_1, j{k}_1]
        )
"""
_REDUCTION = """\
r{k} = T.sblock_alloc_buffer(({n},), "{dtype}")
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("sum{k}"):
        v, w = T.axis.remap("SR", [i{k}, j{k}])
        with T.init():
            r{k}[v] = {zero}
        r{k}[v] = r{k}[v] + {of}[v, w]
for i{k}_1, j{k}_1 in T.grid({n}, {m}):
    with T.sblock("less{k}"):
        v, w = T.axis.remap("SS", [i{k}_1, j{k}_1])
        {to}[v, w] = {of}[v, w] - r{k}[v] * {half}
"""
_NESTED = """\
for i{k} in range({n}):
    with T.sblock("outer{k}"):
        v = T.axis.spatial({n}, i{k})
        for j{k} in range({m}):
            with T.sblock("inner{k}"):
                w = T.axis.spatial({m}, j{k})
                {to}[v, w] = {value}
"""
_CHAIN = """\
for i{k}, j{k} in T.grid({n}, {m}):
    with T.sblock("chain{k}"):
        v, w = T.axis.remap("SS", [i{k}, j{k}])
        {to}[v, w] = {of}[v, w] * {half} + {of}[v, {m} - 1 - w] * {of}[v, w] * {half}
"""

FORMS = {
    "element": _ELEMENT,
    "opaque": _OPAQUE,
    "scan": _SCAN,
    "bare": _BARE,
    "extern": _EXTERN,
    "loop": _DATA_LOOP,
    "branch": _BRANCH,
    "scatter": _SCATTER,
    "reduction": _REDUCTION,
    "nested": _NESTED,
    "chain": _CHAIN,
}
"""The statements that a function is made of, one after the other."""


@st.composite
def functions(draw: Any) -> tuple[str, tuple[int | str, int], str]:
    """Draw the script of a function, its shape and its dtype."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.sampled_from(ROWS)), draw(st.sampled_from(COLUMNS))
    return script(draw, shape, dtype), shape, dtype


def script(draw: Any, shape: tuple[int | str, int], dtype: str) -> str:
    """Draw the script of a function of a shape and a dtype."""
    n, m = shape
    # A chain doubles the reads of what is before it with each link.
    forms = draw(
        st.one_of(
            st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=4),
            st.just(["chain"] * 24),
        )
    )
    values = _INTEGERS if dtype.startswith("int") else _FLOATS
    number = "{}" if dtype.startswith("int") else f"T.{dtype}({{}})"
    half = "2" if dtype.startswith("int") else number.format(0.25)
    lines = []
    for k, form in enumerate(forms):
        of = "x" if k == 0 else f"t{k - 1}"
        to = "y" if k == len(forms) - 1 else f"t{k}"
        if to != "y":
            lines.append(f'{to} = T.sblock_alloc_buffer(({n}, {m}), "{dtype}")')
        expression = draw(st.sampled_from(values))
        places = {"value": "v, w", "value_0": f"i{k}, j{k}", "value_1": f"i{k}_1, j{k}_1"}
        made = {
            name: expression.format(x=f"{of}[{at}]", dtype=dtype) for name, at in places.items()
        }
        lines.append(
            FORMS[form].format(
                k=k,
                n=n,
                m=m,
                of=of,
                to=to,
                dtype=dtype,
                half=half,
                zero=number.format(0),
                two=number.format(2),
                **made,
            )
        )
    head = [f'{n} = TypeVar("{n}")'] if isinstance(n, str) else []
    return "\n".join(
        [
            *head,
            "@T.prim_func(s_tir=True, private=True)",
            f'def f(x: T.Buffer(({n}, {m}), "{dtype}"), y: T.Buffer(({n}, {m}), "{dtype}")):',
            indent("\n".join(lines), "    "),
            "",
        ]
    )
