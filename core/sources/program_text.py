"""What the JSON in an exported program would make torch run when it is opened.

`torch.export.load` evaluates symbolic expressions as Python, looks up any function by its dotted
name, and writes names into code that it compiles: what is not plainly harmless is reported here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

OPERATOR_NAMESPACES = ("aten", "prims", "higher_order", "quantized_decomposed", "torchvision")
FORBIDDEN_OPERATORS = ("from_file", "save", "load")
"""Operators that touch files."""

_OPERATOR = re.compile(
    r"torch\.ops\.(\w+)\.(_?[A-Za-z]\w*|__i?(?:and|or|xor|lshift|rshift)__)(\._?[A-Za-z]\w*)?"
)
_PYTHON_OPERATORS = re.compile(
    r"_operator\.(eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|xor"
    r"|not_|abs|lshift|rshift|invert|getitem)"
)
_SYMBOLIC = re.compile(r"math\.[a-z]\w*|torch\.(_sym_\w+|sym_\w+)")

# What sympy's srepr writes, and the functions of torch.utils._sympy.functions.
_FUNCTIONS = re.compile(
    r"Symbol|Dummy|Integer|Float|Rational|Add|Mul|Pow|Abs|Max|Min|Mod|Eq|Ne|Lt|Le|Gt|Ge"
    r"|Equality|Unequality|LessThan|GreaterThan|StrictLessThan|StrictGreaterThan|And|Or|Not|Xor"
    r"|Piecewise|ExprCondPair|Tuple|floor|ceiling|sqrt|exp|log|sin|cos|tan"
    r"|FloorDiv|ModularIndexing|Where|PythonMod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift|RShift"
    r"|PowByNatural|FloatPow|FloatTrueDiv|IntTrueDiv|IsNonOverlappingAndDenseIndicator"
    r"|TruncToFloat|TruncToInt|RoundToInt|RoundDecimal|ToFloat|Identity"
)
_CONSTANTS = re.compile(r"true|false|oo|zoo|nan|pi|E|I|int_oo")
_SYMBOL = re.compile(r"[a-z]{1,4}\d+")
_WORD = re.compile(r"[\w.+-]*")
_QUOTED_NAME = re.compile(r"[^\"'\\\n\r\0()\[\]{}]*")
_NODES = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.keyword,
)
_FREE_TEXT = frozenset(
    {"metadata", "as_string", "as_strings", "in_spec", "out_spec", "guards_code"}
)
_TREES = frozenset({"in_spec", "out_spec"})


def suspects(value: object, key: str = "") -> Iterator[str]:
    """Yield what in a program is not plainly harmless, each in a few words."""
    match value:
        case dict():
            for name, entry in value.items():
                if isinstance(name, str) and not _QUOTED_NAME.fullmatch(name):
                    yield f"the name {name[:60]!r}"
                if name not in _FREE_TEXT or name in _TREES:
                    yield from suspects(entry, str(name))
        case list():
            for entry in value:
                yield from suspects(entry, key)
        case str():
            yield from _suspect_text(value, key)


def _suspect_text(text: str, key: str) -> Iterator[str]:
    if key in _TREES:
        if "__enum__" in text or "default_factory_module" in text:
            yield "an import in the description of its inputs"
    elif key == "expr_str":
        if not harmless_expression(text):
            yield f"the expression {text[:60]!r}"
    elif key == "target" and not harmless_target(text):
        yield text[:60]
    elif not _QUOTED_NAME.fullmatch(text):
        yield f"the name {text[:60]!r}"
    elif key == "path_name" and text.startswith(("custom_obj_", "opaque_obj_")):
        yield f"an object of a class of its own ({text[:60]})"


def harmless_target(text: str) -> bool:
    """Whether the function called `text` is an operator that computes and does nothing else."""
    operator = _OPERATOR.fullmatch(text)
    if operator is not None:
        namespace, name = operator[1], operator[2]
        return namespace in OPERATOR_NAMESPACES and name not in FORBIDDEN_OPERATORS
    return any(known.fullmatch(text) for known in (_PYTHON_OPERATORS, _SYMBOLIC))


def harmless_expression(text: str) -> bool:
    """Whether evaluating the symbolic expression `text` as Python only does arithmetic."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_harmless_node(node) for node in ast.walk(tree))


def _harmless_node(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return any(known.fullmatch(name) for known in (_FUNCTIONS, _CONSTANTS, _SYMBOL))
        case ast.Call(func=ast.Name(id=name)):
            return _FUNCTIONS.fullmatch(name) is not None
        case ast.Constant(value=str(text)):
            return _WORD.fullmatch(text) is not None
        case ast.Constant(value=constant):
            return constant is None or isinstance(constant, (bool, int, float))
        case ast.Tuple():
            return True
        case _:
            return isinstance(node, _NODES)
