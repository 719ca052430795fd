"""Schema of exported programs that are pure data, field by field.

The tables have the names of the classes in ``torch/_export/serde/schema.py`` and their fields, and
a rule for each. A document with anything else in it counts as code: another version, another field,
another type, or text outside its field's grammar.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lowerscope.core.sources import program_text as grammar

READER = (8, 20)
"""Version of the schema that torch reads and these tables follow."""
WRITERS = frozenset((8, minor) for minor in range(21))
"""Accepted versions of files; a minor version adds fields, which have a default."""

Rule = Callable[[Any], Iterator[str]]
"""Function that yields a short description of each suspect part of a value."""


def suspects(document: object) -> Iterator[str]:
    """Yield a short description of each suspect part of a model's JSON."""
    from torch._export.serde.schema import SCHEMA_VERSION

    if SCHEMA_VERSION != READER:
        yield "a program for a version of torch that is not known"
    match document:
        case {"schema_version": {"major": int() as major, "minor": int() as minor}} if (
            major,
            minor,
        ) in WRITERS:
            pass
        case {"schema_version": _}:
            yield "a version of exported programs that is not known"
    yield from _record("ExportedProgram")(document)


def suspects_of_payload(document: object, file: str) -> Iterator[str]:
    """Yield the suspect parts of the list of weights, or of constants.

    Parameters
    ----------
    document
        The list.
    file
        Prefix of the names of the files with the values.
    """
    numbered = re.compile(rf"{file}\d{{1,9}}", re.ASCII)

    def path(value: object) -> Iterator[str]:
        match value:
            case str() if numbered.fullmatch(value):
                return
            case str() if value.startswith(("custom_obj_", "opaque_obj_")):
                yield f"an object of a class of its own ({value[:60]})"
            case _:
                yield f"the file {_shown(value)}"

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
            yield from _other("the entry", value)
            return
        for entry in value:
            yield from of(entry)

    return rule


def _table(name: Rule, of: Rule) -> Rule:
    def rule(value: object) -> Iterator[str]:
        if not isinstance(value, dict):
            yield from _other("the entry", value)
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
        yield from _other("the entry", value)
        return
    for key, entry in value.items():
        rule = known.get(key)
        if rule is None:
            yield f"the unknown field {_shown(key)}"
        else:
            yield from rule(entry)


def _record(name: str) -> Rule:
    return lambda value: _fields(RECORDS[name], value)


def _union(name: str) -> Rule:
    def rule(value: object) -> Iterator[str]:
        yield from _fields(UNIONS[name], value)
        if isinstance(value, dict) and len(value) != 1:
            yield from _other("the entry", value)

    return rule


def _boolean(value: object) -> Iterator[str]:
    if not isinstance(value, bool):
        yield from _other("the value", value)


def _integer(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 64:
        yield from _other("the value", value)


def _number(value: object) -> Iterator[str]:
    match value:
        case "Infinity" | "-Infinity" | "NaN":
            return
        case float() if math.isfinite(value):
            return
        case _:
            yield from _integer(value)


def _own_class(value: object) -> Iterator[str]:
    yield f"an object of a class of its own ({_shown(value)})"


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
                    isinstance(entry, (str, int)) and grammar.free_json(entry)
                    for key, entry in value.items()
                    if key != "from_node"
                )
            )
        case _:
            return False


_name = _text(grammar.identifier, "the name")
_argument_name = _text(grammar.argument_name, "the name")
_attribute = _text(grammar.attribute, "the name")
_module_path = _text(lambda text: not text or grammar.attribute(text), "the name")
_plain = _text(grammar.plain, "the text")
_free = _text(grammar.free_text, "the text")
_expression = _text(grammar.harmless_expression, "the expression")
_guard = _text(grammar.harmless_guard, "the guard")
_in_spec = _text(lambda text: grammar.tree(text, calling=True), "the description")
_out_spec = _text(lambda text: grammar.tree(text, calling=False), "the description")
_custom = _json(grammar.free_json, "the metadata")
_device_type = _text(
    frozenset({"cpu", "cuda", "meta", "mps", "xpu", "hpu", "mtia"}).__contains__, "the device"
)
_dialect = _text(frozenset({"ATEN", "TRAINING"}).__contains__, "the verifier")
_torch_version = _text(
    lambda text: re.fullmatch(r"[<=]{0,2}\d[\w.+\-]{0,60}", text) is not None, "the version"
)


def _target(value: object) -> Iterator[str]:
    if not isinstance(value, str) or not grammar.harmless_target(value):
        yield value[:60] if isinstance(value, str) and value.isprintable() else _shown(value)


_METADATA: dict[str, Rule] = {
    "stack_trace": _free,
    "nn_module_stack": _free,
    "torch_fn": _free,
    "source_fn_stack": _text(grammar.sources, "the metadata"),
    "custom": _custom,
    "from_node": _json(_from_node, "the metadata"),
}


def _arguments(text: Rule, graph: Rule) -> dict[str, Rule]:
    """Return the fields of an argument whose strings have the rule `text`."""
    tensor, tensors = _record("TensorArgument"), _array(_record("TensorArgument"))
    fields = {
        "as_none": _boolean,
        "as_tensor": tensor,
        "as_tensors": tensors,
        "as_int": _integer,
        "as_ints": _array(_integer),
        "as_float": _number,
        "as_floats": _array(_number),
        "as_string": text,
        "as_strings": _array(text),
        "as_sym_int": _union("SymIntArgument"),
        "as_sym_ints": _array(_union("SymIntArgument")),
        "as_scalar_type": _integer,
        "as_memory_format": _integer,
        "as_layout": _integer,
        "as_device": _record("Device"),
        "as_bool": _boolean,
        "as_bools": _array(_boolean),
        "as_sym_bool": _union("SymBoolArgument"),
        "as_sym_bools": _array(_union("SymBoolArgument")),
        "as_graph": graph,
        "as_optional_tensors": _array(_union("OptionalTensorArgument")),
        "as_custom_obj": _own_class,
        "as_operator": _target,
        "as_sym_float": _union("SymFloatArgument"),
        "as_sym_floats": _array(_union("SymFloatArgument")),
        "as_optional_tensor": _union("OptionalTensorArgument"),
        "as_complex": _record("ComplexValue"),
        "as_nested_tensors": _array(tensors),
        "as_int_lists": _array(_array(_integer)),
        "as_float_lists": _array(_array(_number)),
    }
    return fields | {"as_string_to_argument": _table(text, lambda value: _fields(fields, value))}


_value = _union("Value")
"""An argument whose text torch writes between quotes, not with `repr`: an input or output."""

UNIONS: dict[str, dict[str, Rule]] = {
    "SymExprHint": {"as_int": _integer, "as_bool": _boolean, "as_float": _number},
    "SymInt": {"as_expr": _record("SymExpr"), "as_int": _integer},
    "SymFloat": {"as_expr": _record("SymExpr"), "as_float": _number},
    "SymBool": {"as_expr": _record("SymExpr"), "as_bool": _boolean},
    "SymIntArgument": {"as_name": _name, "as_int": _integer},
    "SymFloatArgument": {"as_name": _name, "as_float": _number},
    "SymBoolArgument": {"as_name": _name, "as_bool": _boolean},
    "OptionalTensorArgument": {"as_tensor": _record("TensorArgument"), "as_none": _boolean},
    "Argument": _arguments(_free, _record("GraphArgument")),
    "Value": _arguments(_plain, _record("GraphArgument")),
    "ConstantValue": {
        "as_none": _boolean,
        "as_int": _integer,
        "as_float": _number,
        "as_string": _plain,
        "as_bool": _boolean,
    },
    "InputSpec": {
        "user_input": _record("UserInputSpec"),
        "parameter": _record("InputToParameterSpec"),
        "buffer": _record("InputToBufferSpec"),
        "tensor_constant": _record("InputToTensorConstantSpec"),
        "custom_obj": _own_class,
        "token": _record("InputTokenSpec"),
        "constant_input": _record("InputToConstantInputSpec"),
    },
    "OutputSpec": {
        "user_output": _record("UserOutputSpec"),
        "loss_output": _record("LossOutputSpec"),
        "buffer_mutation": _record("BufferMutationSpec"),
        "gradient_to_parameter": _record("GradientToParameterSpec"),
        "gradient_to_user_input": _record("GradientToUserInputSpec"),
        "user_input_mutation": _record("UserInputMutationSpec"),
        "token": _record("OutputTokenSpec"),
        "parameter_mutation": _record("ParameterMutationSpec"),
    },
}

_tensor = _record("TensorArgument")

RECORDS: dict[str, dict[str, Rule]] = {
    "Device": {"type": _device_type, "index": _maybe(_integer)},
    "SymExpr": {"expr_str": _expression, "hint": _maybe(_union("SymExprHint"))},
    "TensorMeta": {
        "dtype": _integer,
        "sizes": _array(_union("SymInt")),
        "requires_grad": _boolean,
        "device": _record("Device"),
        "strides": _array(_union("SymInt")),
        "storage_offset": _union("SymInt"),
        "layout": _integer,
    },
    "TensorArgument": {"name": _name},
    "TokenArgument": {"name": _name},
    "GraphArgument": {"name": _name, "graph": _record("Graph")},
    "ComplexValue": {"real": _number, "imag": _number},
    "NamedArgument": {
        "name": _argument_name,
        "arg": _union("Argument"),
        "kind": _maybe(_integer),
    },
    "Node": {
        "target": _target,
        "inputs": _array(_record("NamedArgument")),
        "outputs": _array(_union("Argument")),
        "metadata": lambda value: _fields(_METADATA, value),
        "is_hop_single_tensor_return": _maybe(_boolean),
        "name": _maybe(_name),
    },
    "Graph": {
        "inputs": _array(_value),
        "outputs": _array(_value),
        "nodes": _array(_record("Node")),
        "tensor_values": _table(_name, _record("TensorMeta")),
        "sym_int_values": _table(_name, _union("SymInt")),
        "sym_bool_values": _table(_name, _union("SymBool")),
        "is_single_tensor_return": _boolean,
        "custom_obj_values": _table(_name, _own_class),
        "sym_float_values": _table(_name, _union("SymFloat")),
    },
    "UserInputSpec": {"arg": _value},
    "InputToConstantInputSpec": {"name": _name, "value": _union("ConstantValue")},
    "InputToParameterSpec": {"arg": _tensor, "parameter_name": _attribute},
    "InputToBufferSpec": {"arg": _tensor, "buffer_name": _attribute, "persistent": _boolean},
    "InputToTensorConstantSpec": {"arg": _tensor, "tensor_constant_name": _attribute},
    "InputTokenSpec": {"arg": _record("TokenArgument")},
    "UserOutputSpec": {"arg": _value},
    "LossOutputSpec": {"arg": _tensor},
    "BufferMutationSpec": {"arg": _tensor, "buffer_name": _attribute},
    "ParameterMutationSpec": {"arg": _tensor, "parameter_name": _attribute},
    "GradientToParameterSpec": {"arg": _tensor, "parameter_name": _attribute},
    "GradientToUserInputSpec": {"arg": _tensor, "user_input_name": _name},
    "UserInputMutationSpec": {"arg": _tensor, "user_input_name": _name},
    "OutputTokenSpec": {"arg": _record("TokenArgument")},
    "GraphSignature": {
        "input_specs": _array(_union("InputSpec")),
        "output_specs": _array(_union("OutputSpec")),
    },
    "RangeConstraint": {"min_val": _maybe(_integer), "max_val": _maybe(_integer)},
    "ModuleCallSignature": {
        "inputs": _array(_value),
        "outputs": _array(_value),
        "in_spec": _in_spec,
        "out_spec": _out_spec,
        "forward_arg_names": _maybe(_array(_name)),
    },
    "ModuleCallEntry": {"fqn": _module_path, "signature": _maybe(_record("ModuleCallSignature"))},
    "NamedTupleDef": {"field_names": _array(_name)},
    "GraphModule": {
        "graph": _record("Graph"),
        "signature": _record("GraphSignature"),
        "module_call_graph": _array(_record("ModuleCallEntry")),
        "metadata": lambda value: _fields({"custom": _custom}, value),
        "treespec_namedtuple_fields": _table(_attribute, _record("NamedTupleDef")),
    },
    "SchemaVersion": {"major": _integer, "minor": _integer},
    "ExportedProgram": {
        "graph_module": _record("GraphModule"),
        "opset_version": _table(_name, _integer),
        "range_constraints": _table(_expression, _record("RangeConstraint")),
        "schema_version": _record("SchemaVersion"),
        "verifiers": _array(_dialect),
        "torch_version": _torch_version,
        "guards_code": _array(_guard),
    },
}
