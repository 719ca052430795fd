"""Grammars of the text in an exported program that torch turns into code.

`torch.export.load` and ``.module()`` evaluate symbolic expressions and guards, look functions up by
dotted names, and write the names of values, attributes and arguments into Python that they compile.
Each predicate here accepts only text that does nothing but arithmetic, or that stands for itself
wherever torch writes it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import keyword
import math
import re
import typing
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from lowerscope.core.model.texts import _

MOST_BITS = 1 << 16
"""Longest result of an expression, in bits."""
MOST_ROOT_BITS = 1 << 11
"""Longest number whose root may be taken, in bits: SymPy searches for its factors."""
MOST_TERMS = 1 << 12
"""Most terms of an expanded expression; SymPy expands to divide."""
MOST_NODES = 2_000
MOST_EXPONENT = 64

HIGHER_ORDER_OPERATORS = frozenset(
    {
        "associative_scan",
        "auto_functionalized",
        "auto_functionalized_v2",
        "cond",
        "flex_attention",
        "invoke_subgraph",
        "map_impl",
        "out_dtype",
        "scan",
        "strict_mode",
        "while_loop",
        "with_effects",
        "wrap_with_autocast",
        "wrap_with_set_grad_enabled",
    }
)
"""Operators that apply graphs and operators of the program itself, and nothing else."""

OPERATOR_NAMESPACES = frozenset({"aten", "prims", "quantized_decomposed", "torchvision"})

_ARGUMENT_TYPE = re.compile(
    r"(?:(?:Optional|List)\[)*(?:Tensor|int|float|bool|number|complex|Device|Generator)\]*"
)
_TEXT_TYPE = re.compile(r"str|Optional\[str\]")
_TEXT_ARGUMENT = re.compile(
    r"activation|api_name|approximate|assert_msg|device_type|driver|equation|indexing"
    r"|interpolation|mode|norm|ord|p|pad_mode|padding|padding_side|reduce|rounding_mode|side|UPLO"
)
"""Arguments of type ``str`` that choose a variant, or are a message; the others name files."""

_PYTHON_FUNCTION = re.compile(
    r"_operator\.(?:eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|xor"
    r"|not_|abs|lshift|rshift|invert|getitem)"
    r"|math\.(?:ceil|floor|trunc)"
    r"|torch\.sym_(?:float|int|ite|max|min|not|sqrt|sum)"
    r"|torch\._sym_(?:acos|asin|atan|cos|cosh|log2|sin|sinh|sqrt|tan|tanh)"
    r"|torch\._functorch\.predispatch\.(?:_add_batch_dim|_remove_batch_dim"
    r"|_vmap_increment_nesting|_vmap_decrement_nesting|lazy_load_decompositions)"
)
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?", re.ASCII)

_TREE_CONTEXTS = {
    "builtins.tuple": "null",
    "builtins.list": "null",
    "torch.Size": "null",
    "torch.fx.immutable_collections.immutable_list": "null",
    "builtins.dict": "keys",
    "collections.OrderedDict": "keys",
    "torch.fx.immutable_collections.immutable_dict": "keys",
}
_SEGMENT = re.compile(r"[\w\-+:@/ ]+")
_MAGIC = re.compile(r"__.*__")
_SYMBOL = re.compile(r"[a-z]{1,4}\d{1,6}", re.ASCII)
_FLOAT = re.compile(r"-?\d{1,60}(?:\.\d{0,60})?(?:e[+-]?\d{1,3})?", re.ASCII)
_METADATA_TARGET = re.compile(r"(?:torch|_operator|math)(?:\.(?!__)\w{1,80}){1,12}", re.ASCII)

# The names in the srepr of an expression, and the functions of torch.utils._sympy.functions.
_FUNCTION = re.compile(
    r"Add|Mul|Abs|Max|Min|Mod|Eq|Ne|Lt|Le|Gt|Ge|Equality|Unequality|LessThan|GreaterThan"
    r"|StrictLessThan|StrictGreaterThan|And|Or|Not|Piecewise|ExprCondPair|floor|ceiling"
    r"|FloorDiv|ModularIndexing|Where|PythonMod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|FloatTrueDiv"
    r"|IntTrueDiv|IsNonOverlappingAndDenseIndicator|TruncToFloat|TruncToInt|RoundToInt|RoundDecimal"
    r"|ToFloat|Identity"
)
_POWER = re.compile(r"Pow|PowByNatural|FloatPow|LShift|RShift")
_CONSTANT = re.compile(r"true|false|oo|zoo|nan|int_oo")
_ASSUMPTION = re.compile(
    r"commutative|extended_real|finite|integer|negative|nonnegative|nonpositive|nonzero|positive"
    r"|real|zero"
)

# The names in the guards that torch prints.
_GUARD_FUNCTION = re.compile(
    r"abs|max|min|round|IsNonOverlappingAndDenseIndicator|cast_symbool_to_symint_guardless"
    r"|math\.(?:acos|asin|atan|ceil|cos|cosh|floor|isnan|log2|sin|sinh|sqrt|tan|tanh|trunc)"
    r"|torch\.sym_(?:float|int|ite|max|min|not)|torch\._sym_sqrt"
)
_GUARD_CONSTANT = re.compile(r"inf|math\.inf|math\.nan")
_FLOAT_BITS = 1100
_VALUE_BITS = 64
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)

Leaf = Callable[[ast.AST], int]


def identifier(text: str) -> bool:
    """Return whether `text` is the name of a local variable, and no keyword or special name."""
    return (
        text.isidentifier()
        and not keyword.iskeyword(text)
        and unicodedata.normalize("NFKC", text) == text
        and _MAGIC.fullmatch(text) is None
    )


def argument_name(text: str) -> bool:
    """Return whether `text` is the name of an operator's argument, or empty; ``from`` is one."""
    return not text or keyword.iskeyword(text) or identifier(text)


def attribute(text: str) -> bool:
    """Return whether `text` is the dotted name of a parameter, a buffer or a submodule.

    Torch quotes a part that is no identifier: it holds neither quotes nor backslashes.
    """
    return all(
        _SEGMENT.fullmatch(part) is not None and _MAGIC.fullmatch(part) is None
        for part in text.split(".")
    )


def plain(text: str) -> bool:
    """Return whether `text` stands for itself between quotes of either kind."""
    return text.isprintable() and not any(mark in text for mark in "'\"\\")


def free_text(text: str) -> bool:
    """Return whether `text` ends neither a comment nor a string of three quotes.

    Torch writes it only with `repr`, or, to show it, into either of these.
    """
    lines = text.replace("\t", " ").split("\n")
    return '"""' not in text and all(line.isprintable() for line in lines)


def free_json(value: object) -> bool:
    """Return whether all text in a JSON document is `free_text`."""
    match value:
        case dict():
            return all(free_text(key) and free_json(entry) for key, entry in value.items())
        case list():
            return all(free_json(entry) for entry in value)
        case str():
            return free_text(value)
        case _:
            return True


def sources(text: str) -> bool:
    """Return whether `text` lists the functions that a node comes from, as ``name,target;…``.

    Torch looks the targets up, and calls none of them.
    """
    for entry in text.split(";"):
        name, comma, target = entry.partition(",")
        if not comma or not free_text(name) or not free_text(target):
            return False
        looked_up = target.startswith(("torch", "_operator", "math", "#"))
        if looked_up and _METADATA_TARGET.fullmatch(target) is None:
            return False
    return True


def tree(text: str, *, calling: bool) -> bool:
    """Return whether `text` describes nested tuples, lists and dictionaries, as torch writes them.

    Args:
        text: JSON, with the keys of each dictionary as JSON inside of it.
        calling: It describes the arguments of a call: those by name are written into code.
    """
    try:
        match json.loads(text):
            case [1, dict() as root]:
                pass
            case _:
                return False
        if calling:
            match root:
                case {"type": "builtins.tuple", "children_spec": [_, {"context": str() as keys}]}:
                    names = json.loads(keys)
                    if names is not None and not all(
                        isinstance(name, str) and identifier(name) for name in names
                    ):
                        return False
        return _harmless_tree(root)
    except (ValueError, TypeError, RecursionError):
        return False


def _harmless_tree(node: object) -> bool:
    match node:
        case {"type": None, "context": None, "children_spec": [], **rest}:
            return not rest
        case {
            "type": str() as kind,
            "context": str() as context,
            "children_spec": list() as inner,
            **rest,
        }:
            if rest or not all(map(_harmless_tree, inner)):
                return False
            match _TREE_CONTEXTS.get(kind):
                case "null":
                    return context == "null"
                case "keys":
                    keys = json.loads(context)
                    return isinstance(keys, list) and all(map(_harmless_key, keys))
    return False


def _harmless_key(key: object) -> bool:
    return plain(key) if isinstance(key, str) else isinstance(key, int)


def harmless_paths(value: object) -> bool:
    """Return whether the paths to the example inputs, which are written into code, are harmless."""
    match value:
        case dict():
            return all(_harmless_key(key) and harmless_paths(entry) for key, entry in value.items())
        case list() | tuple():
            return all(map(harmless_paths, value))
        case _:
            return value is None or isinstance(
                value, (torch.Tensor, str, int, float, complex, torch.dtype, torch.device)
            )


@functools.cache
def harmless_target(text: str) -> bool:
    """Return whether the function called `text` is an operator that only computes."""
    if _PYTHON_FUNCTION.fullmatch(text):
        return True
    operator = _OPERATOR.fullmatch(text)
    if operator is None:
        return False
    namespace, name, overload = operator.groups()
    if namespace == "higher_order":
        return overload is None and name in HIGHER_ORDER_OPERATORS
    if namespace not in OPERATOR_NAMESPACES:
        return False
    schemas = [
        schema
        for schema in torch._C._jit_get_schemas_for_operator(f"{namespace}::{name}")
        if overload is None or schema.overload_name == ("" if overload == "default" else overload)
    ]
    return bool(schemas) and all(
        _harmless_argument(argument) for schema in schemas for argument in schema.arguments
    )


def _harmless_argument(argument: torch._C.Argument) -> bool:
    kind = str(argument.type)
    if _TEXT_TYPE.fullmatch(kind):
        return _TEXT_ARGUMENT.fullmatch(argument.name) is not None
    return _ARGUMENT_TYPE.fullmatch(kind) is not None


def harmless_expression(text: str) -> bool:
    """Return whether evaluating the symbolic expression `text` with SymPy only does arithmetic."""
    return text.isascii() and _is_arithmetic(text, _symbolic)


def harmless_guard(text: str) -> bool:
    """Return whether the guard `text` only does arithmetic on the sizes of the inputs.

    Torch writes it into code twice: as it is, and between double quotes.
    """
    return _is_arithmetic(text, _of_inputs)


def _is_arithmetic(text: str, leaf: Leaf) -> bool:
    # SymPy joins lines, so comments and escapes differ there and between quotes.
    if not text.isprintable() or any(mark in text for mark in '"\\#'):
        return False
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
        return (
            sum(1 for _other in ast.walk(parsed)) <= MOST_NODES
            and _bits(parsed, leaf) <= MOST_BITS
            and _terms(parsed) <= MOST_TERMS
        )
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return False


def _bits(node: ast.AST, leaf: Leaf) -> int:
    """Return a bound on the length in bits of the value of `node`.

    Raises `ValueError` if it is not known to be arithmetic, or the number is too long.
    """
    found = _bits_of(node, leaf)
    if found > MOST_BITS:
        raise ValueError(node)
    return found


def _bits_of(node: ast.AST, leaf: Leaf) -> int:
    match node:
        case ast.Constant(value=bool()):
            return 1
        case ast.Constant(value=int(number)):
            return number.bit_length()
        case ast.Constant(value=float(number)) if math.isfinite(number):
            return _FLOAT_BITS
        case ast.UnaryOp(operand=operand):
            return _bits(operand, leaf)
        case ast.BoolOp(values=values):
            return max(_bits(value, leaf) for value in values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return max(_bits(value, leaf) for value in (test, body, orelse))
        case ast.Compare(left=left, ops=ops, comparators=others):
            if not all(isinstance(each, _COMPARISONS) for each in ops):
                raise ValueError(node)
            for value in (left, *others):
                if not _is_text(value):
                    _bits(value, leaf)
            return 1
        case ast.BinOp(left=left, op=ast.Pow() | ast.LShift() | ast.RShift(), right=right):
            return _power(left, right, leaf)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
            return _bits(left, leaf) + _bits(right, leaf)
        case _:
            return leaf(node)


def _terms(node: ast.AST) -> int:
    """Return a bound on the terms of an expanded arithmetic expression.

    Raises `ValueError` if there are too many.
    """
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            found = _terms_of_power(left, right)
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if _POWER.fullmatch(name):
            found = _terms_of_power(left, right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            found = _terms(left) * _terms(right)
        case ast.Call(func=ast.Name(id="Mul"), args=args):
            found = math.prod(map(_terms, args))
        case ast.Call(func=ast.Name(id="Add"), args=args):
            found = sum(map(_terms, args))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            found = _terms(left) + _terms(right)
        case ast.UnaryOp(operand=operand):
            found = _terms(operand)
        case _:
            for each in ast.iter_child_nodes(node):
                _terms(each)
            found = 1
    if found > MOST_TERMS:
        raise ValueError(node)
    return found


def _terms_of_power(base: ast.AST, exponent: ast.AST) -> int:
    found: int = _terms(base) ** math.ceil(abs(_number(exponent) or 0))
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and plain(node.value)


def _power(base: ast.AST, exponent: ast.AST, leaf: Leaf) -> int:
    """Return a bound on the bits of a power or a shift by a literal number."""
    number = _number(exponent)
    if number is None or not abs(number) <= MOST_EXPONENT:
        raise ValueError(exponent)
    bits = _bits(base, leaf)
    if not number.is_integer():
        _check_root(bits)
    return bits * max(1, math.ceil(abs(number))) + MOST_EXPONENT


def _check_root(bits: int) -> None:
    if bits > MOST_ROOT_BITS:
        raise ValueError(_("a root of a {bits}-bit number", bits=bits))


def _number(node: ast.AST) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = _number(operand)
            return None if found is None else -found
        case ast.Call(func=ast.Name(id="Integer"), args=[argument], keywords=[]):
            return _number(argument)
        case ast.Call(func=ast.Name(id="Rational"), args=[over, under], keywords=[]):
            above, below = _number(over), _number(under)
            return above / below if above is not None and below else None
        case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str(text)), *_]):
            return float(text) if _FLOAT.fullmatch(text) else None
        case _:
            return None


def _symbolic(node: ast.AST) -> int:
    """Return the bits of a symbol, a constant or a call in a symbolic expression."""
    match node:
        case ast.Name(id=name) if _CONSTANT.fullmatch(name) or _SYMBOL.fullmatch(name):
            return _VALUE_BITS
        case ast.Call(
            func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))], keywords=given
        ) if _SYMBOL.fullmatch(name) and all(
            each.arg is not None
            and _ASSUMPTION.fullmatch(each.arg)
            and isinstance(each.value, ast.Constant)
            and isinstance(each.value.value, bool)
            for each in given
        ):
            return _VALUE_BITS
        case ast.Call(
            func=ast.Name(id="Float"),
            args=[ast.Constant(value=str(text))],
            keywords=[] | [ast.keyword(arg="precision", value=ast.Constant(value=53))],
        ) if _FLOAT.fullmatch(text):
            return 4 * _FLOAT_BITS
        case ast.Call(func=ast.Name(id="Integer" | "Rational"), args=args, keywords=[]) if args:
            if any(_number(each) is None for each in args):
                raise ValueError(node)
            return sum(_bits(each, _symbolic) for each in args)
        case ast.Call(func=ast.Name(id=name), args=[base, exponent], keywords=[]) if (
            _POWER.fullmatch(name)
        ):
            return _power(base, exponent, _symbolic)
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            bits = _bits(argument, _symbolic)
            _check_root(bits)
            return bits
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if _FUNCTION.fullmatch(name):
            return 1 + sum(_bits(each, _symbolic) for each in args)
        case _:
            raise ValueError(node)


def _of_inputs(node: ast.AST) -> int:
    """Return the bits of a size, an input, a constant or a call in a guard."""
    match node:
        case ast.Name() | ast.Attribute() if _GUARD_CONSTANT.fullmatch(_dotted(node)):
            return _VALUE_BITS
        case ast.Call(func=function, args=args, keywords=[]) if _GUARD_FUNCTION.fullmatch(
            _dotted(function)
        ):
            return 1 + sum(_bits(each, _of_inputs) for each in args)
        case ast.Subscript(
            value=ast.Call(
                func=ast.Attribute(value=value, attr="size" | "stride"), args=[], keywords=[]
            ),
            slice=ast.Constant(value=int()),
        ) if _is_input(value):
            return _VALUE_BITS
        case ast.Call(
            func=ast.Attribute(value=value, attr="storage_offset"), args=[], keywords=[]
        ) if _is_input(value):
            return _VALUE_BITS
        case ast.Subscript() if _is_input(node):
            return _VALUE_BITS
        case _:
            raise ValueError(node)


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
        case _:
            return ""


def _is_input(node: ast.AST) -> bool:
    """Return whether `node` is ``L['name']``, or an element of it at any depth."""
    match node:
        case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=str(name))):
            return plain(name)
        case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as key)):
            return _is_input(value) and _harmless_key(key)
        case _:
            return False


READER = (8, 20)
"""Version of the schema that torch reads, and for whose texts the grammars are."""
WRITERS = frozenset((8, minor) for minor in range(21))
"""Accepted versions of files; a minor version adds fields, which have a default."""

Rule = Callable[[Any], Iterator[str]]
"""Function that yields a short description of each suspect part of a value."""


def suspects(document: object) -> Iterator[str]:
    """Yield a short description of each suspect part of a model's JSON.

    The classes in ``torch/_export/serde/schema.py`` say which fields there are, and of which types;
    texts have a grammar for each field. A document with anything else in it counts as code: another
    version, another field, another type, or text outside its field's grammar.
    """
    from torch._export.serde.schema import SCHEMA_VERSION

    if SCHEMA_VERSION != READER:
        yield _("a program for an unknown version of torch")
    match document:
        case {"schema_version": {"major": int() as major, "minor": int() as minor}} if (
            major,
            minor,
        ) in WRITERS:
            pass
        case {"schema_version": _}:
            yield _("an unknown version of exported programs")
    yield from _record("ExportedProgram")(document)


def suspects_of_payload(document: object, file: str) -> Iterator[str]:
    """Yield the suspect parts of the list of weights, or of constants.

    Args:
        file: Prefix of the names of the files with the values.
    """
    numbered = re.compile(rf"{file}\d{{1,9}}", re.ASCII)

    def path(value: object) -> Iterator[str]:
        match value:
            case str() if numbered.fullmatch(value):
                return
            case str() if value.startswith(("custom_obj_", "opaque_obj_")):
                yield _("an object of a custom class ({value})", value=value[:60])
            case _:
                yield _("the file {shown}", shown=_shown(value))

    meta = {
        "path_name": path,
        "is_param": _boolean,
        "use_pickle": _boolean,
        "tensor_meta": _maybe(_record("TensorMeta")),
    }
    yield from _fields({"config": _table(_attribute, lambda value: _fields(meta, value))}, document)


def _shown(value: object) -> str:
    return repr(value)[:60]


def _other(what: str, value: object) -> Iterator[str]:
    yield f"{what} {_shown(value)}"


def _text(accepts: Callable[[str], bool], what: str) -> Rule:
    def rule(value: object) -> Iterator[str]:
        if not isinstance(value, str) or not accepts(value):
            yield from _other(what, value)

    return rule


def _json(accepts: Callable[[Any], bool], what: str) -> Rule:
    """Return the rule for a string that holds JSON."""

    def decoded(text: str) -> bool:
        try:
            return accepts(json.loads(text))
        except (ValueError, RecursionError):
            return False

    return _text(decoded, what)


def _array(of: Rule) -> Rule:
    def rule(value: object) -> Iterator[str]:
        if not isinstance(value, list):
            yield from _other(_("the entry"), value)
            return
        for entry in value:
            yield from of(entry)

    return rule


def _table(name: Rule, of: Rule) -> Rule:
    def rule(value: object) -> Iterator[str]:
        if not isinstance(value, dict):
            yield from _other(_("the entry"), value)
            return
        for key, entry in value.items():
            yield from name(key)
            yield from of(entry)

    return rule


def _maybe(of: Rule) -> Rule:
    def rule(value: object) -> Iterator[str]:
        if value is not None:
            yield from of(value)

    return rule


def _fields(known: Mapping[str, Rule], value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield from _other(_("the entry"), value)
        return
    for key, entry in value.items():
        rule = known.get(key)
        if rule is None:
            yield _("the unknown field {shown}", shown=_shown(key))
        else:
            yield from rule(entry)


def _record(name: str) -> Rule:
    return lambda value: _fields(rules()[name], value)


def _union(name: str) -> Rule:
    def rule(value: object) -> Iterator[str]:
        yield from _fields(rules()[name], value)
        if isinstance(value, dict) and len(value) != 1:
            yield from _other(_("the entry"), value)

    return rule


def _boolean(value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        yield from _other(_("the value"), value)


def _integer(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 64:
        yield from _other(_("the value"), value)


def _numeral(value: object) -> Iterator[str]:
    match value:
        case "Infinity" | "-Infinity" | "NaN":
            return
        case float() if math.isfinite(value):
            return
        case _:
            yield from _integer(value)


def _own_class(value: object) -> Iterator[str]:
    yield _("an object of a custom class ({shown})", shown=_shown(value))


def _from_node(value: object) -> bool:
    known = {"name", "target", "graph_id", "pass_name", "action", "from_node"}
    match value:
        case None:
            return True
        case list():
            return all(map(_from_node, value))
        case dict():
            return (
                value.keys() <= known
                and _from_node(value.get("from_node"))
                and all(
                    isinstance(entry, (str, int)) and free_json(entry)
                    for key, entry in value.items()
                    if key != "from_node"
                )
            )
        case _:
            return False


_name = _text(identifier, _("the name"))
_argument_name = _text(argument_name, _("the name"))
_attribute = _text(attribute, _("the name"))
_plain = _text(plain, _("the text"))
_free = _text(free_text, _("the text"))
_expression = _text(harmless_expression, _("the expression"))
_custom = _json(free_json, _("the metadata"))


def _target(value: object) -> Iterator[str]:
    if not isinstance(value, str) or not harmless_target(value):
        yield value[:60] if isinstance(value, str) and value.isprintable() else _shown(value)


_TEXTS: dict[str, Rule] = {
    **dict.fromkeys(
        (
            *("name", "as_name", "user_input_name", "forward_arg_names", "field_names"),
            *("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"),
            *("custom_obj_values", "opset_version"),
        ),
        _name,
    ),
    **dict.fromkeys(
        ("parameter_name", "buffer_name", "tensor_constant_name", "treespec_namedtuple_fields"),
        _attribute,
    ),
    **dict.fromkeys(("as_string", "as_strings", "as_string_to_argument"), _free),
    # Torch writes these between quotes, not with `repr`.
    **dict.fromkeys(
        (
            *("Value.as_string", "Value.as_strings", "Value.as_string_to_argument"),
            "ConstantValue.as_string",
        ),
        _plain,
    ),
    **dict.fromkeys(("expr_str", "range_constraints"), _expression),
    **dict.fromkeys(("target", "as_operator"), _target),
    "NamedArgument.name": _argument_name,
    "type": _text(
        frozenset({"cpu", "cuda", "meta", "mps", "xpu", "hpu", "mtia"}).__contains__,
        _("the device"),
    ),
    "in_spec": _text(lambda text: tree(text, calling=True), _("the description")),
    "out_spec": _text(lambda text: tree(text, calling=False), _("the description")),
    "fqn": _text(lambda text: not text or attribute(text), _("the name")),
    "verifiers": _text(frozenset({"ATEN", "TRAINING"}).__contains__, _("the verifier")),
    "torch_version": _text(
        lambda text: re.fullmatch(r"[<=]{0,2}\d[\w.+\-]{0,60}", text) is not None, _("the version")
    ),
    "guards_code": _text(harmless_guard, _("the guard")),
}
"""The rules for texts, and for the keys of tables, by field, or by class and field."""

_METADATA: dict[str, dict[str, Rule]] = {
    "Node": {
        "stack_trace": _free,
        "nn_module_stack": _free,
        "torch_fn": _free,
        "source_fn_stack": _text(sources, _("the metadata")),
        "custom": _custom,
        "from_node": _json(_from_node, _("the metadata")),
    },
    "GraphModule": {"custom": _custom},
}
"""The rules for the fields of ``metadata``, by class."""

_OWN_CLASSES = ("CustomObjArgument", "InputToCustomObjSpec")
"""Classes of torch's schema for objects of classes of their own."""

_OF_VALUES = ("Value", "Graph", "UserInputSpec", "UserOutputSpec", "ModuleCallSignature")
"""Classes whose arguments are inputs and outputs, and their strings between quotes: values."""


@functools.cache
def rules() -> Mapping[str, Mapping[str, Rule]]:
    """Return the rule for each field of a model's JSON, by class and field of torch's schema.

    ``Value`` is an ``Argument`` that is an input or an output.
    """
    from torch._export.serde import schema

    classes = {name: each for name, each in vars(schema).items() if dataclasses.is_dataclass(each)}
    return {
        name: {
            field.name: _rule_of(typing.get_type_hints(each)[field.name], name, field.name)
            for field in dataclasses.fields(each)
        }
        for name, each in (*classes.items(), ("Value", schema.Argument))
    }


def text_rule(owner: str, field: str) -> Rule | None:
    """Return the rule for the texts of a field; ``None`` if none is known."""
    return _TEXTS.get(f"{owner}.{field}") or _TEXTS.get(field)


def _rule_of(kind: Any, owner: str, field: str) -> Rule:
    """Return the rule for values of a type of torch's schema, in a field."""
    from torch._export.serde.union import _Union

    text = text_rule(owner, field) or partial(_other, _("the text"))
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if field == "metadata":
        return lambda value: _fields(_METADATA[owner], value)
    if origin is list:
        return _array(_rule_of(inner[0], owner, field))
    if origin is dict:
        return _table(text, _rule_of(inner[1], owner, field))
    if inner:
        return _maybe(_rule_of(inner[0], owner, field))
    if kind in (str, bool, float):
        return {str: text, bool: _boolean, float: _numeral}[kind]
    if issubclass(kind, int):
        return _integer
    if kind.__name__ in _OWN_CLASSES:
        return _own_class
    name = "Value" if kind.__name__ == "Argument" and owner in _OF_VALUES else kind.__name__
    return _union(name) if issubclass(kind, _Union) else _record(name)
