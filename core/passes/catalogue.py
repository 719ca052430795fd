"""Passes of the installed TVM that a step of a recipe can name, with their options."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import tvm
import tvm_ffi
from tvm import ir, relax, tirx
from tvm.ir import GenericConst
from tvm.target import Target

from lowerscope.core.files.sources import APPLY_DATABASE, check_database
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import BIND_PARAMS, OptionValue
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_SCHEDULES, APPLY_TUNED, VECTOR_MATH
from lowerscope.core.model.schedule_records import RULE_SECONDS
from lowerscope.core.model.snapshot import OptionKind, PassOption, PassType, SourceLine
from lowerscope.core.model.texts import _, alternatives
from lowerscope.core.passes.batch_norm_folding import FOLD_BATCH_NORM, fold_batch_norm
from lowerscope.core.passes.bfloat16_products import MULTIPLY_BFLOAT16, multiply_bfloat16
from lowerscope.core.passes.chosen_branches import CHOOSE_BRANCHES, choose_branches
from lowerscope.core.passes.integer_products import MULTIPLY_INTEGERS, multiply_integers
from lowerscope.core.passes.matrix_transposes import FUSE_TRANSPOSE, fuse_transposes
from lowerscope.core.passes.own_passes import ATTACH, attach_layout_free_buffers
from lowerscope.core.passes.padded_convolutions import PAD_CONVOLUTION, pad_convolutions
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED, split_transposed
from lowerscope.core.passes.vector_math import with_vector_math
from lowerscope.core.passes.winograd import WINOGRAD, winograd

# --- LegalizeOps with a cache for equal calls, and cancellation, for large models ---
#
# TVM makes a function for each call of an operator, and drops it if the module has an equal one: 4
# ms of the processor for a layer of six calls. A call of the same operator with the same attributes
# on tensors of the same types has the function of the first one: 0.5 ms.

Legalise = Callable[[relax.BlockBuilder, Any], Any]

LEGALISE = "LegalizeOps"

_CALL_TIR = tvm.ir.Op.get("relax.call_tir")


def legalise_operators(make: Callable[..., Any], check: Callable[[], None], **given: Any) -> Any:
    """Return the pass ``LegalizeOps``, which does what TVM's does.

    Args:
        check: Called before each call of an operator; may raise to cancel.
    """
    legalised = _Legalised(check)
    forms = {
        name: legalised.form(name, stock)
        for name in _relax_operators(len(tvm.ir.Op.list_op_names()))
        if (stock := tvm.ir.Op.get(name).get_attr("FLegalize"))
    }
    return make(customize_legalize_map=forms, **given)


@lru_cache(maxsize=1)
def _relax_operators(_count: int) -> tuple[str, ...]:
    """Return the names of all operators of Relax, of so many operators in all.

    They are only ever added, and going through TVM's array takes a tenth of opening a small model.
    """
    return tuple(name for name in tvm.ir.Op.list_op_names() if name.startswith("relax."))


@dataclass(frozen=True)
class _Known:
    """Legalised form of a call: its attributes and type, and the arguments passed."""

    attrs: Any
    type: Any
    result: Any
    places: tuple[int, ...]


class _Legalised:
    """Legalised calls in one module."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._known: dict[Hashable, list[_Known]] = {}

    def form(self, name: str, stock: Legalise) -> Legalise:
        """Return the legalisation of an operator: `stock`, for the first of equal calls only."""

        def legalise(builder: relax.BlockBuilder, call: Any) -> Any:
            self._check()
            key = _key(name, call)
            alike = [] if key is None else self._known.setdefault(key, [])
            for known in alike:
                if _equal(known.attrs, call.attrs) and _equal(known.type, call.ty):
                    return _again(known, call)
            result = stock(builder, call)
            places = None if key is None else _places(result, call)
            if places is not None:
                alike.append(_Known(call.attrs, call.ty, result, places))
            return result

        return legalise


def _key(name: str, call: Any) -> Hashable | None:
    """Return the key of a call's function besides attributes; ``None`` if unknown."""
    parts = []
    for number, each in enumerate(call.args):
        part = _part(each)
        if part is None:
            return None
        # A tensor passed twice is one argument of the function.
        same = next(place for place, other in enumerate(call.args) if each.same_as(other))
        parts.append((part, number if same == number else same))
    return (name, *parts)


def _part(value: Any) -> Hashable | None:
    if isinstance(value, relax.ShapeExpr):
        return _numbers(value)
    if not isinstance(value, relax.Expr) or not isinstance(value.ty, relax.TensorType):
        return None
    if isinstance(value, GenericConst) and value.ty.ndim == 0:
        # It becomes a number in the function.
        return str(value.ty.dtype), value.value.numpy().tobytes()
    if value.ty.vdevice is not None or not isinstance(value.ty.shape, relax.ShapeExpr):
        return None
    numbers = _numbers(value.ty.shape)
    return None if numbers is None else (str(value.ty.dtype), numbers)


def _numbers(shape: relax.ShapeExpr) -> tuple[int, ...] | None:
    values = tuple(shape.values)
    if not all(isinstance(each, tirx.IntImm) for each in values):
        return None
    return tuple(int(each) for each in values)


def _places(result: Any, call: Any) -> tuple[int, ...] | None:
    """Return the arguments that a call's function takes; ``None`` if it is more than a call."""
    if not isinstance(result, tvm.ir.Call) or not _CALL_TIR.same_as(result.op):
        return None
    if len(result.args) != 2 or not isinstance(result.args[1], relax.Tuple):
        return None
    places = []
    for each in result.args[1].fields:
        place = next((i for i, given in enumerate(call.args) if each.same_as(given)), None)
        if place is None:
            return None
        places.append(place)
    return tuple(places)


def _again(known: _Known, call: Any) -> Any:
    """Return the call of the same function with another call's arguments."""
    given = relax.Tuple([call.args[place] for place in known.places])
    result = known.result
    return relax.Call(_CALL_TIR, [result.args[0], given], result.attrs, result.ty_args)


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return bool(tvm_ffi.structural_equal(one, other))


Convert = Callable[[Any], Any]

_PARAMETER = re.compile(r"^(\w+)\s*(?::\s*(\S.*)?)?$")
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
_SECTION = re.compile(r"^[-=]{3,}\s*$")

CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("TopologicalSort", "order"): ("depth-first", "breadth-first"),
    ("TopologicalSort", "direction"): ("from-inputs", "from-outputs"),
    ("s_tir.HoistIfThenElse", "variant"): ("basic",),
}
"""Allowed values of options whose docstrings give them in prose."""

DEFAULTS: Mapping[str, str] = {"func_name": "main"}
"""Values of options without a default in TVM that nearly always have this value."""


@dataclass(frozen=True)
class Option:
    """An option: its record, and the conversion of a value for the pass.

    ``context_key`` is its key in TVM's ``PassContext``; empty for a parameter.
    """

    record: PassOption
    convert: Convert
    context_key: str = ""


class NoField(Exception):
    """A parameter without a default has a type that no field supports."""


def options_of(name: str, function: Callable[..., Any], given: str = "") -> tuple[Option, ...]:
    """Return the options of a function that makes a pass.

    A parameter that has a default, and a type that no field supports, is no option.

    `given`: a parameter that is no option since it is given otherwise.

    Raises `NoField` if another parameter has a type that no field supports.
    """
    docs = dict(_documented(inspect.getdoc(function) or ""))
    return tuple(
        option
        for parameter in signature_of(function).parameters.values()
        if parameter.name != given
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (option := _option(name, parameter, *docs.get(parameter.name, ("", "")))) is not None
    )


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature with its annotations evaluated where possible."""
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        # Names imported for type checkers only.
        return inspect.signature(function)


def _option(name: str, parameter: inspect.Parameter, type_text: str, doc: str) -> Option | None:
    required = parameter.default is parameter.empty
    annotation = parameter.annotation
    if annotation is parameter.empty:
        annotation = type_text if required or parameter.default is None else type(parameter.default)
    found = _field(annotation)
    if found is None:
        if required:
            written = inspect.formatannotation(annotation).strip("'") if annotation else "a value"
            raise NoField(
                _(
                    "it takes {name}: {sub}, which cannot be entered",
                    name=parameter.name,
                    sub=_MODULE.sub("", written),
                )
            )
        return None
    kind, convert, nullable = found
    default = DEFAULTS.get(parameter.name) if required else parameter.default
    required = required and default is None
    return Option(
        PassOption(
            name=parameter.name,
            kind=kind,
            default=default,
            required=required,
            nullable=nullable or (default is None and not required),
            choices=CHOICES.get((name, parameter.name), ()),
            doc=doc,
        ),
        convert,
    )


def _field(annotation: Any) -> tuple[OptionKind, Convert, bool] | None:
    """Return kind, conversion, and whether ``None`` is allowed; or ``None`` for no field."""
    if isinstance(annotation, str):
        return _field_of_text(annotation)
    plain = _PLAIN.get(annotation)
    if plain is not None:
        return plain, _same, False
    if annotation is Target:
        return "text", Target, False
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        nullable = type(None) in arguments
        for each in arguments:
            found = _field(each)
            if found is not None:
                return found[0], found[1], nullable or found[2]
        return None
    if origin in (list, tuple, typing.Sequence) and arguments[:1] == (str,):
        return "names", list, False
    if origin is typing.Literal and all(isinstance(each, str) for each in arguments):
        return "text", _same, False
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        key, value = arguments
        if key is not str and str not in get_args(key):
            return None
        if value == list[str]:
            return "pairs", _layouts, False
        if value is ir.Expr:
            return "pairs", _extents, False
    return None


def _field_of_text(text: str) -> tuple[OptionKind, Convert, bool] | None:
    """Parse the type of a parameter in a docstring, such as ``Optional[String]``."""
    nullable = "Optional" in text or "None" in text
    bare = re.sub(r"Optional\[(.*)\]", r"\1", text.split(",")[0]).strip().lower()
    kinds: Mapping[str, OptionKind] = {
        "bool": "bool",
        "boolean": "bool",
        "int": "int",
        "float": "float",
        "str": "text",
        "string": "text",
    }
    if bare in ("target", "tvm.target.target"):
        return "text", Target, nullable
    return (kinds[bare], _same, nullable) if bare in kinds else None


_PLAIN: Mapping[Any, OptionKind] = {bool: "bool", int: "int", float: "float", str: "text"}


def _same(value: Any) -> Any:
    return value


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    for text in value:
        name, _sep, rest = text.partition("=")
        yield name.strip(), rest.strip()


def _layouts(value: Any) -> dict[str, list[str]]:
    return {name: rest.split() for name, rest in _pairs(value)}


def _extents(value: Any) -> dict[str, Any]:
    return {name: tirx.const(int(rest), "int64") for name, rest in _pairs(value)}


def _documented(doc: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, type and text of each parameter in a numpydoc docstring."""
    lines = doc.splitlines()
    at = next(
        (
            index + 2
            for index, line in enumerate(lines[:-1])
            if line.strip() == "Parameters" and _SECTION.match(lines[index + 1].strip())
        ),
        len(lines),
    )
    name, kind, text = "", "", list[str]()
    for index in range(at, len(lines)):
        line = lines[index]
        if index + 1 < len(lines) and _SECTION.match(lines[index + 1].strip()):
            break
        begins = None if line.startswith(" ") else _PARAMETER.match(line)
        if begins is not None:
            if name:
                yield name, (kind, "\n".join(text).strip())
            name, kind, text = begins[1], begins[2] or "", []
        else:
            text.append(line.strip())
    if name:
        yield name, (kind, "\n".join(text).strip())


def arguments_of(
    options: tuple[Option, ...], values: Mapping[str, OptionValue], where: str
) -> dict[str, Any]:
    """Return the arguments of a pass for the values of its options.

    Raises `LowerscopeError` if there is no such option, a value does not fit it, or one is missing;
    it is named.
    """
    known = {each.record.name: each for each in options}
    for name in values:
        if name not in known:
            raise LowerscopeError(
                _("there is no option {name}", name=name),
                where=where,
                todo=_("Its options are: {known}", known=_(", ").join(known))
                if known
                else _("It has no options"),
            )
    arguments: dict[str, Any] = {}
    for name, option in known.items():
        record = option.record
        if name not in values:
            if record.required:
                raise LowerscopeError(
                    _("the option {name} is missing", name=name),
                    where=where,
                    todo=_("Give {described}", described=_described(record)),
                )
            if name in DEFAULTS:
                arguments[name] = record.default
            continue
        value = values[name]
        if not _fits(record, value):
            raise LowerscopeError(
                _("the option {name} cannot be {value!r}", name=name, value=value),
                where=where,
                todo=_("Give {described}", described=_described(record)),
            )
        try:
            arguments[name] = None if value is None else option.convert(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise LowerscopeError(
                _(
                    "the option {name} cannot be {value!r}: {error}",
                    name=name,
                    value=value,
                    error=error,
                ),
                where=where,
                todo=_("Give {described}", described=_described(record)),
            ) from error
    return arguments


def _fits(option: PassOption, value: OptionValue) -> bool:
    if value is None:
        return option.nullable
    if option.choices:
        return value in option.choices
    match option.kind:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "names":
            return isinstance(value, tuple)
        case "pairs":
            return isinstance(value, tuple) and all("=" in each for each in value)


def _described(option: PassOption) -> str:
    """Describe the accepted values of an option."""
    words = {
        "bool": _("true or false"),
        "int": _("a whole number"),
        "float": _("a number"),
        "text": _("a string"),
        "names": _("a list of strings, such as [a,b]"),
        "pairs": _("a list of name=value, such as [a=1,b=2]"),
    }
    described = alternatives(option.choices) if option.choices else words[option.kind]
    return _("{described}, or null", described=described) if option.nullable else described


def _bounded(seconds: float = RULE_SECONDS) -> None:
    """Schedule by rules.

    `seconds`: bound on the time that rules may take for one function.
    """


_BOUND = options_of(APPLY_RULES, _bounded)


_KINDS: Mapping[str, OptionKind] = {"bool": "bool", "int": "int", "float": "float", "str": "text"}
_PYTHON: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "text": str}
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def context_options(name: str, dialect: str) -> Iterator[Option]:
    """Yield the options of a pass in the context.

    For ``tirx.UnrollLoop`` it has an object with fields, for ``relax.FuseOps`` a value,
    ``relax.FuseOps.max_depth``. Entries under other names are for several passes, or for the build,
    and belong to no pass.
    """
    title = name.rpartition(".")[2]
    names = {f"{dialect}.{title}", f"{dialect}.{_WORD.sub('_', title).lower()}"}
    for key, kind in _configurations().items():
        if key in names:
            yield from _fields(key)
        elif key.rpartition(".")[0] in names and kind in _KINDS:
            record = PassOption(
                name=key.rpartition(".")[2],
                kind=_KINDS[kind],
                nullable=True,
                doc=_("{key} of the PassContext; TVM's own where it is null.", key=key),
            )
            yield Option(record, _PYTHON[record.kind], key)


def split(options: Sequence[Option], arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the arguments of a pass without those of the context, and the context's values."""
    config: dict[str, Any] = {}
    own = dict(arguments)
    for option in options:
        name = option.record.name
        if not option.context_key or name not in own:
            continue
        value = own.pop(name)
        if value is None:
            continue
        if option.context_key.endswith(f".{name}"):
            config[option.context_key] = value
        else:
            config.setdefault(option.context_key, {})[name] = value
    return own, config


@cache
def _configurations() -> Mapping[str, str]:
    """Return the keys of the context with their types."""
    known = tvm.transform.PassContext.list_configs()
    return {str(key): str(about["type"]) for key, about in sorted(known.items())}


def _fields(key: str) -> Iterator[Option]:
    """Yield the options of an object in the context, from TVM's description of its fields."""
    made = tvm.transform.PassContext(config={key: {}}).config[key]
    for field in type(made).__tvm_ffi_type_info__.fields:
        schema = json.loads((field.metadata or {}).get("type_schema", "{}"))
        kind = _KINDS.get(schema.get("type", ""))
        if kind is not None:
            convert = _PYTHON[kind]
            record = PassOption(
                name=str(field.name),
                kind=kind,
                default=convert(getattr(made, field.name)),
                doc=str(field.doc or ""),
            )
            yield Option(record, convert, key)


Values = Mapping[str, Any]
"""Known tensors of arguments of ``main``, by name."""

MODULES = (
    ("relax", "tvm.relax.transform"),
    ("relax", "tvm.relax.backend"),
    ("tirx", "tvm.tirx.transform"),
    ("s_tir", "tvm.s_tir.transform"),
)
"""TVM's modules of passes, with their dialects."""

_BASES = (
    tvm.transform.Pass,
    tvm.transform.ModulePass,
    tvm.transform.Sequential,
    relax.transform.FunctionPass,
    relax.transform.DataflowBlockPass,
    tirx.transform.PrimFuncPass,
)

_RUN_CODE = ("MetaScheduleTuneIRMod", "MetaScheduleTuneTIR")
"""Passes that measure candidates: the process that applies passes never runs generated code."""

Running = Callable[[str], AbstractContextManager[None]]
"""Function that returns the context of a user's code; takes the operation, for messages."""


@dataclass(frozen=True)
class Pass:
    """One pass of the catalogue.

    `make`: takes the options, and returns TVM's pass.
    `given`: a parameter of `make` that takes a part of the recipe: ``"params"`` for the parameters,
        ``"schedule"`` for the function that applies its schedules to a module, ``"rules"`` for that
        which schedules the others by rules, ``"tuned"`` for that which does so by tuning results,
        ``"check"`` for the cancellation check, ``"leave_out"`` for the callback for functions left
        out; empty for none.
    `running`: the context in which it is made and applied.
    """

    type: PassType
    make: Callable[..., Any]
    options: tuple[Option, ...] = ()
    given: str = ""
    running: Running = lambda _unused: nullcontext()


def _own_pass(
    name: str,
    dialect: str,
    doc: str,
    change: Callable[..., tvm.IRModule] | None = None,
    given: str = "",
    options: tuple[Option, ...] = (),
) -> Pass:
    """Return one of Lowerscope's passes.

    `change`: returns the transformed module, and takes the options by name; ``None`` if a part of
        the recipe provides it, as `given`.
    """

    def make(**arguments: Any) -> Any:
        applied = arguments.pop(given) if change is None else change

        def apply(module: tvm.IRModule, context: Any) -> tvm.IRModule:
            return applied(module, **arguments)

        return tvm.transform.module_pass(apply, opt_level=0, name=name)

    records = tuple(each.record for each in options)
    record = PassType(name=name, dialect=dialect, doc=doc, options=records)
    return Pass(record, make, options, given)


OWN_PASSES = (
    _own_pass(
        APPLY_SCHEDULES,
        "s_tir",
        _(
            "Apply the schedules of Schedule mode to their functions.\n\nA schedule fits a "
            "function of the structure that it was made for, under any name; or one of its name, "
            "where it is bound to the name alone. Steps of a schedule that cannot be applied are "
            "skipped, and a note lists them."
        ),
        given="schedule",
    ),
    _own_pass(
        APPLY_RULES,
        "s_tir",
        _(
            "Schedule by rules the functions that have no schedule of their own.\n\nA rule writes "
            "the same steps as *Auto-schedule*. A function that no rule fits stays as it is, and "
            "so does one for which rules exceed their time limit: a note names the function and "
            "the rule."
        ),
        given="rules",
        options=_BOUND,
    ),
    _own_pass(
        APPLY_TUNED,
        "s_tir",
        _(
            "Schedule as found by tuning the functions that have no schedule of their own.\n\nIt "
            "is the best history in the database for a function of this structure, for this "
            "target, machine and number of threads. A function that was not tuned is scheduled by "
            "a rule, and a note says so."
        ),
        given="tuned",
        options=_BOUND,
    ),
    _own_pass(
        CHOOSE_BRANCHES,
        "relax",
        _(
            "Compute only the side of a branch that is chosen.\n\nA branch on the values of "
            "tensors is lowered with both sides, and a condition selects the results. What only "
            "one side needs becomes a function of its own, and R.If calls one of the two. This is "
            "done where a side is large and its shapes are numbers; calls of torch stay outside. "
            "The nodes inside are not compared one by one; the results of the branch are.\n\nThis "
            "step is Lowerscope's own."
        ),
        change=choose_branches,
    ),
    _own_pass(
        FOLD_BATCH_NORM,
        "relax",
        _(
            "Fold batch norms into weights and bias of the preceding convolutions.\n\nIn "
            "inference, a batch norm multiplies each channel by a constant and adds another. If "
            "weights, bias and statistics are constants, this is done to the weights once, with or "
            "without a bias in between. The convolution then has other values than torch's, and is "
            "not compared; the result of the norm is. A norm that follows no such convolution "
            "becomes a multiplication and an addition.\n\nThis step is Lowerscope's own: "
            "FoldBatchnormToConv2D of TVM takes no convolution with a bias, and FoldConstant then "
            "compiles some hundred small operations for a ResNet."
        ),
        change=fold_batch_norm,
    ),
    _own_pass(
        SPLIT_TRANSPOSED,
        "relax",
        _(
            "Turn each transposed convolution into a plain one.\n\nAt a stride of 2, every "
            "second element of the output is a convolution of the input with every second weight. "
            "All of these become channels of one convolution, whose results are interleaved. TVM "
            "inserts zeros between the elements of the input instead, and multiplies by them. It "
            "takes convolutions with constant weights and no dilation.\n\nThis step is "
            "Lowerscope's own."
        ),
        change=split_transposed,
    ),
    _own_pass(
        WINOGRAD,
        "relax",
        _(
            "Compute 3×3 convolutions by Winograd's algorithm.\n\nIt computes tiles of 2×2 outputs "
            "from 4×4 inputs with 16 multiplications per pair of channels in place of 36; in three "
            "dimensions tiles of 2×2×2 outputs, with 64 multiplications in place of 216, and where "
            "the output is small, each plane of an n×3×3 kernel as above. Inputs, "
            "weights and products are transformed by sums and differences. The weights are "
            "transformed once, here. The result is about as exact in float32; an infinite input "
            "makes the other outputs of its tile NaN. It takes convolutions in float32 with "
            "constant weights, stride 1, no dilation, one group and input channels in multiples of "
            "16, whose output is not small. Where few filters are missing from a multiple of 16, "
            "filters of zeros are added, and left out of the result.\n\nThis step is Lowerscope's "
            "own."
        ),
        change=winograd,
    ),
    _own_pass(
        PAD_CONVOLUTION,
        "relax",
        _(
            "Fill vector registers in convolutions whose sizes leave lanes empty.\n\nFilters are "
            "the lanes of registers, and several values of a row use each vector of weights that "
            "is read. Where the filters are no multiple of 8, such as the 255 of a detector, "
            "filters of zeros are added to the weights, here; where the length of a row has no "
            "divisor for a tile, or is named, the row gets longer. What these compute is left out "
            "of the result. The filters of a group get an axis of their own. It takes convolutions "
            "in float32 with constant weights.\n\nThis step is Lowerscope's own."
        ),
        change=pad_convolutions,
    ),
    _own_pass(
        FUSE_TRANSPOSE,
        "relax",
        _(
            "Multiply by a transposed matrix, and reduce a transposed tensor, without transposing "
            "it first.\n\nA linear layer "
            "multiplies by the transpose of its weights. Where that transpose is folded into a "
            "constant, the weights take twice the memory; where it is computed, it is copied in "
            "each run. The product becomes a function that reads the matrix by columns, and a "
            "schedule lays it out once. The product of a transposed matrix and a vector becomes "
            "that of the vector and the matrix, that of single rows and a stack of transposed "
            "matrices reads these, and a sum, mean, product or extremum of a "
            "transpose becomes that of the tensor itself: these read each element once, and a copy "
            "would take longer.\n\nThis step is Lowerscope's own: TVM's "
            "FuseTransposeMatmul takes all stacks of matrices, whose transpose is better fused "
            "into what computes them, and renames the bindings."
        ),
        change=fuse_transposes,
    ),
    _own_pass(
        MULTIPLY_BFLOAT16,
        "relax",
        _(
            "Multiply bfloat16 without widening it to float32 first.\n\nA product of bfloat16 is "
            "lowered to one of float32. Where its weights are folded as constants, they take "
            "twice the memory then, and twice the time to read. With this step, the product reads "
            "both factors as they are, and schedules use the processor's instruction that adds "
            "products of pairs of bfloat16 in float32. It takes products by matrices of 16 "
            "columns or more that are constants, or that at least 8 rows are multiplied by, where "
            "the target has that instruction (avx512bf16). The instruction takes denormal "
            "numbers, those below 1.2e-38, for 0.\n\nThis step is Lowerscope's own."
        ),
        change=multiply_bfloat16,
    ),
    _own_pass(
        MULTIPLY_INTEGERS,
        "relax",
        _(
            "Multiply quantised tensors by the processor's instruction for bytes.\n\nA quantised "
            "layer multiplies the integers of its input by those of its weights, and is lowered "
            "to a product in float32. With this step, bytes are multiplied as they are, and "
            "schedules use the processor's instruction that adds four of their products to a sum "
            "in 32 bits. The zero point of the input is subtracted from the sums, times the sums "
            "of the weights. The sums are the same integers. Convolutions, and what "
            "follows them element by element, have the channels last. It takes products with "
            "constants where the target has that instruction (avx512vnni).\n\nThis step is "
            "Lowerscope's own."
        ),
        change=multiply_integers,
    ),
    _own_pass(
        VECTOR_MATH,
        "s_tir",
        _(
            "Write exp, log, pow, erf, sigmoid, trigonometric and hyperbolic functions as "
            "arithmetic that vectorizes.\n\nLLVM has no vector versions of them: it calls the C "
            "library for each element. For float32, float16 and bfloat16, and exp, log, sigmoid, "
            "tanh and erf of float64; the results differ by a few units in the last place of "
            "float32. NaN stays NaN. The sine, cosine and tangent of angles beyond 2^50 are "
            "arbitrary. It changes TensorIR, so it belongs after LegalizeOps and FuseTIR, and "
            "before the schedules.\n\nA function with float8 is skipped, and a note says so: TVM "
            "computes it in float32, and its rewriting gives wrong code for values that are bound"
            " in an expression."
        ),
        change=with_vector_math,
        given="leave_out",
    ),
)
"""Lowerscope's passes, in the order of the catalogue."""


Catalogue = Mapping[str, Pass]
"""Passes by name."""


@cache
def catalogue() -> Catalogue:
    """Return the passes of TVM by name, in the order of dialects and names."""
    return {each.type.name: each for each in _passes()}


def _passes() -> Iterator[Pass]:
    yield from OWN_PASSES
    for dialect, path in MODULES:
        module = importlib.import_module(path)
        for title in sorted(vars(module)):
            made = getattr(module, title)
            if title[0].isupper() and (is_pass_class(made) or inspect.isfunction(made)):
                yield _pass(title if dialect == "relax" else f"{dialect}.{title}", dialect, made)


def is_pass_class(value: Any) -> bool:
    """Return whether a value is a class decorated as a pass by TVM."""
    return isinstance(value, type) and issubclass(value, tvm.transform.Pass) and value not in _BASES


def _pass(name: str, dialect: str, make: Callable[..., Any]) -> Pass:
    given = _GIVEN.get(name, "")
    options: tuple[Option, ...] = ()
    if name in _RUN_CODE:
        hindrance = _(
            "it measures the code that it generates, and passes are applied without running code"
        )
    else:
        options, hindrance = _options_or_reason(name, make, given)
    if not hindrance:
        taken = {each.record.name for each in options}
        options += tuple(
            each for each in context_options(name, dialect) if each.record.name not in taken
        )
    record = PassType(
        name=name,
        dialect=dialect,
        doc=inspect.getdoc(make) or "",
        options=tuple(each.record for each in options),
        hindrance=hindrance,
    )
    if name == APPLY_DATABASE:
        make = partial(_apply_database, make)
    elif name == LEGALISE:
        make = partial(legalise_operators, make)
    elif name == ATTACH:
        make = partial(attach_layout_free_buffers, make)
    return Pass(record, make, options, given)


def _options_or_reason(
    name: str, make: Callable[..., Any], given: str = ""
) -> tuple[tuple[Option, ...], str]:
    """Return the options of a pass, or why it cannot be a step."""
    try:
        return options_of(name, make, given), ""
    except NoField as reason:
        return (), str(reason)


_GIVEN = {BIND_PARAMS: "params", LEGALISE: "check"}


def _apply_database(make: Callable[..., Any], work_dir: str | None = None, **given: Any) -> Any:
    check_database(work_dir)
    return make(work_dir=work_dir, **given)


def find(name: str, passes: Catalogue, where: str) -> Pass:
    """Return the pass that a step names.

    A Relax pass may be named with its dialect; others may be named without it if the name is
    unique.

    Raises `LowerscopeError` if there is no such pass, several have the name, or it cannot be used.
    """
    found = passes.get(name) or passes.get(name.removeprefix("relax."))
    if found is None:
        same = [each for each in passes if each.rpartition(".")[2] == name]
        if len(same) > 1:
            raise LowerscopeError(
                _("several passes are called {name}", name=name),
                where=where,
                todo=_("Give {same}", same=alternatives(same)),
            )
        found = passes[same[0]] if same else None
    if found is None:
        near = difflib.get_close_matches(name, passes, n=3)
        raise LowerscopeError(
            _("there is no pass {name}", name=name),
            where=where,
            todo=_("Did you mean {near}?", near=alternatives(near))
            if near
            else _("See the list: lowerscope passes --catalogue"),
        )
    if found.type.hindrance:
        raise LowerscopeError(
            _("{name} cannot be a step: {hindrance}", name=name, hindrance=found.type.hindrance),
            where=where,
            todo=_("Write it into a file of passes, and load that: --passes FILE"),
        )
    return found


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def user_passes(module: ModuleType, path: Path, running: Running) -> Iterator[Pass]:
    """Yield the passes that a file defines, which was run as `module`.

    They are the public names at its top level: passes of TVM, such as functions decorated by
    ``tvm.transform.module_pass``; classes decorated so; and functions whose return annotation is a
    pass, whose parameters are the options.
    """
    # Decoded as by Python: the file may declare another encoding.
    lines = importlib.util.decode_source(path.read_bytes()).split("\n")
    for node in ast.parse("\n".join(lines)).body:
        for name in _names(node):
            value = vars(module).get(name)
            if name.startswith("_") or not _is_pass(value):
                continue
            line = SourceLine(file=str(path), line=node.lineno, text=lines[node.lineno - 1].strip())
            doc = (ast.get_docstring(node) or "") if isinstance(node, _DEFINITIONS) else ""
            yield _user_pass(f"{path.stem}.{name}", value, doc, line, running)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _is_pass(value: Any) -> bool:
    if isinstance(value, tvm.transform.Pass) or is_pass_class(value):
        return True
    if not inspect.isfunction(value):
        return False
    made = signature_of(value).return_annotation
    if isinstance(made, str):
        # A name imported for type checkers only.
        return made.rpartition(".")[2].endswith("Pass")
    return isinstance(made, type) and issubclass(made, tvm.transform.Pass)


def _user_pass(name: str, value: Any, doc: str, line: SourceLine, running: Running) -> Pass:
    make: Callable[..., Any] = value
    options: tuple[Option, ...] = ()
    hindrance = ""
    if isinstance(value, tvm.transform.Pass):

        def make() -> Any:
            return value
    else:
        options, hindrance = _options_or_reason(name, value)
    record = PassType(
        name=name,
        dialect=name.partition(".")[0],
        doc=doc,
        options=tuple(each.record for each in options),
        hindrance=hindrance,
        line=line,
    )
    return Pass(record, make, options, running=running)
