"""Reasons why a pass changes nothing in a module: a rule for each pass of the presets.

A rule reads the module alone, and returns the pass's precondition that is not met, with the first
binding or function that does not meet it. Tests compare the rules with what the passes do: a pass
that changed a module has no reason, and one that changed nothing has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import ir, relax, tirx

from lowerscope.core.ir.relax import Bound, binding_ids, operator_of, relax_functions
from lowerscope.core.ir.tensorir import collected, prim_funcs_of
from lowerscope.core.model.recipe import BIND_PARAMS
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_SCHEDULES, VECTOR_MATH
from lowerscope.core.model.texts import _
from lowerscope.core.passes.batch_norm_folding import unfolded
from lowerscope.core.passes.bfloat16_products import narrow_factors
from lowerscope.core.passes.fusion import Partition
from lowerscope.core.passes.integer_products import integer_products
from lowerscope.core.passes.matrix_transposes import readers_of_transposes
from lowerscope.core.passes.padded_convolutions import is_convolution as is_any_convolution
from lowerscope.core.passes.padded_convolutions import unpadded
from lowerscope.core.passes.transposed import unsplit
from lowerscope.core.passes.vector_math import vector_math
from lowerscope.core.passes.winograd import is_convolution, unfit
from lowerscope.core.schedule.loop_primitives import LAYOUT_REWRITE
from lowerscope.core.views.fusion import fusion_reason


@dataclass(frozen=True)
class Unmet:
    """A precondition of a pass that a module does not meet.

    `text`: in words, as a clause.
    `cites`: the ids of the binding or function that does not meet it.
    `needs`: passes that may make it met when they come before.
    """

    text: str
    cites: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


FUSING = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps")

Rule = Callable[[tvm.IRModule], Unmet | None]


def why_unchanged(name: str, module: tvm.IRModule) -> Unmet | None:
    """Return why a pass leaves a module as it is; ``None`` if no rule expects that."""
    rule = _RULES.get(name.removeprefix("relax."))
    return None if rule is None else rule(module)


def _values(module: tvm.IRModule) -> Iterator[tuple[Bound, Any]]:
    for bound in binding_ids(module):
        yield bound, bound.value


_NO_TENSORIR = Unmet(_("the module has no TensorIR function"), needs=("LegalizeOps",))


def _without(words: str, *operators: str, needs: tuple[str, ...] = ()) -> Rule:
    """Return the rule of a pass that replaces calls of some operators."""
    names = {f"relax.{each}" for each in operators}

    def rule(module: tvm.IRModule) -> Unmet | None:
        found = any(operator_of(value) in names for _bound, value in _values(module))
        return None if found else Unmet(words, needs=needs)

    return rule


def _batch_norm(module: tvm.IRModule) -> Unmet | None:
    if not any(operator_of(value) == "relax.nn.batch_norm" for _bound, value in _values(module)):
        return Unmet(_("the module has no batch norm"))
    for name, function in relax_functions(module):
        found = unfolded(function)
        if found is not None:
            text = _(
                "{norm} cannot be folded: {reason}", norm=f"`{found.variable}`", reason=found.reason
            )
            return Unmet(text, (f"relax:{name}/{found.variable}",))
    return None


def _branches(module: tvm.IRModule) -> Unmet | None:
    if not any(operator_of(value) == "relax.where" for _bound, value in _values(module)):
        return Unmet(_("nothing is selected by R.where"))
    return Unmet(_("no branch on values has a large side that nothing else needs"))


def _transposed(module: tvm.IRModule) -> Unmet | None:
    if any(readers_of_transposes(function) for _name, function in relax_functions(module)):
        return None
    for bound, value in _values(module):
        if operator_of(value) == "relax.matmul":
            text = _("no factor of {name} is a transposed matrix", name=f"`{bound.name}`")
            return Unmet(text, (bound.id,))
    return Unmet(_("the module has no matrix product, and reduces no transpose"))


def _narrow(module: tvm.IRModule) -> Unmet | None:
    if not any(narrow_factors(function) for _name, function in relax_functions(module)):
        return Unmet(_("no product of bfloat16 fits the instruction"))
    return Unmet(_("the target has no instruction for products of bfloat16 (avx512bf16)"))


def _integers(module: tvm.IRModule) -> Unmet | None:
    if not any(any(integer_products(function)) for _name, function in relax_functions(module)):
        return Unmet(_("no product or convolution multiplies bytes by constants"))
    return Unmet(_("the target has no instruction for products of bytes (avx512vnni)"))


def _refused(
    applies: Callable[[Any], bool], reason_of: Callable[[Any], str], words: str, without: str
) -> Rule:
    """Return the rule of a pass that rewrites each call that it finds no reason against."""

    def rule(module: tvm.IRModule) -> Unmet | None:
        found = [(bound, reason_of(value)) for bound, value in _values(module) if applies(value)]
        if not found:
            return Unmet(without)
        if not all(reason for _bound, reason in found):
            return None
        bound, reason = found[0]
        return Unmet(words.format(name=f"`{bound.name}`", reason=reason), (bound.id,))

    return rule


def _legalised(module: tvm.IRModule) -> Unmet | None:
    left = None
    for bound, value in _values(module):
        name = operator_of(value)
        if not name or name.startswith(
            ("relax.call_", "relax.builtin.", "relax.memory.", "relax.vm.")
        ):
            continue
        if ir.Op.get(name).get_attr("FLegalize"):
            return None
        left = left or Unmet(
            _(
                "the operator of {name}, {operator}, has no TensorIR form",
                name=f"`{bound.name}`",
                operator=f"`{name}`",
            ),
            (bound.id,),
        )
    return left or Unmet(_("no binding calls an operator: all are legalised"))


def _annotated(module: tvm.IRModule) -> Unmet | None:
    functions = prim_funcs_of(module).values()
    if any("op_pattern" not in (each.attrs or {}) for each in functions):
        return None
    if not functions:
        return _NO_TENSORIR
    return Unmet(_("every TensorIR function has a pattern kind"))


def _folded(module: tvm.IRModule) -> Unmet | None:
    # It also removes bindings that nothing uses.
    if _has_unused_bindings(module):
        return None
    first = None
    for bound, value in _values(module):
        name = operator_of(value)
        if not name or (name.startswith("relax.call_") and name != "relax.call_tir"):
            continue
        arguments = list(_arguments(value))
        given = next((each for each in arguments if not isinstance(each, ir.GenericConst)), None)
        if given is None and arguments:
            return None
        if first is None and given is not None:
            first = Unmet(
                _(
                    "no call has only constants as arguments: {name}, the first, reads {input}",
                    name=f"`{bound.name}`",
                    input=f"`{getattr(given, 'name', given)}`",
                ),
                (bound.id,),
            )
    return first or Unmet(_("the module has no call with arguments"))


def _arguments(value: Any) -> Iterator[Any]:
    """Yield the tensors that a call reads."""
    for each in value.args:
        if isinstance(each, relax.Tuple):
            yield from each.fields
        elif not isinstance(each, (ir.GlobalVar, relax.ExternFunc, relax.ShapeExpr)):
            yield each


def _grouped(module: tvm.IRModule) -> Unmet | None:
    partition = Partition(module)
    first = None
    for vertex in partition.vertices.values():
        for user, _kind in vertex.users:
            if vertex.group.root is user.group.root:
                return None
            if first is None:
                cause, _where, text = fusion_reason(vertex, user, module)
                needs = FUSING if cause in ("not-legalised", "not-annotated") else ()
                first = Unmet(text, (vertex.bound.id, user.bound.id), needs)
    return first or Unmet(_("no binding reads the result of another one"))


def _merged(module: tvm.IRModule) -> Unmet | None:
    for _name, function in relax_functions(module):
        if (function.attrs or {}).get("Primitive", 0):
            return None
    # It also removes second names of values.
    if any(isinstance(value, relax.Var) for _bound, value in _values(module)):
        return None
    return Unmet(_("the module has no fused function, which FuseOps makes"), needs=FUSING)


def _eliminated(module: tvm.IRModule) -> Unmet | None:
    if _has_unused_functions(module) or _has_unused_bindings(module):
        return None
    return Unmet(_("every binding and every function is used"))


def _has_unused_functions(module: tvm.IRModule) -> bool:
    called = {str(each.name_hint) for each in _read(module, ir.GlobalVar)}
    return any(
        str(variable.name_hint) not in called and "global_symbol" not in (function.attrs or {})
        for variable, function in module.functions_items()
    )


def _has_unused_bindings(module: tvm.IRModule) -> bool:
    read = {hash(each) for each in _read(module, relax.Var)}
    return any(
        isinstance(bound.binding, relax.VarBinding) and hash(bound.binding.var) not in read
        for bound, _value in _values(module)
    )


def _read(module: tvm.IRModule, kind: type) -> Iterator[Any]:
    """Yield the variables of a kind that the values of bindings and results name."""
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, kind):
            found.append(expression)

    for _name, function in relax_functions(module):
        relax.analysis.post_order_visit(function.body.body, visit)
    for _bound, value in _values(module):
        if value is not None:
            relax.analysis.post_order_visit(value, visit)
    yield from found


def _vector_math(module: tvm.IRModule) -> Unmet | None:
    functions = prim_funcs_of(module).values()
    if any(not vector_math(each).same_as(each) for each in functions):
        return None
    if not functions:
        return _NO_TENSORIR
    return Unmet(_("no function calls exp, erf, tanh or another function that it can expand"))


def _repacked(module: tvm.IRModule) -> Unmet | None:
    for function in prim_funcs_of(module).values():
        blocks = collected(function.body, tvm.s_tir.SBlock)
        if any(LAYOUT_REWRITE in each.annotations for each in blocks):
            return None
    return Unmet(_("no function's schedule repacks its weights"), needs=(APPLY_RULES,))


def _reshaped(module: tvm.IRModule) -> Unmet | None:
    first = None
    for bound, value in _values(module):
        if operator_of(value) != "relax.call_tir":
            continue
        function = module.functions.get(value.args[0])
        if function is None or not relax.analysis.has_reshape_pattern(function):
            continue
        if isinstance(bound.binding.var, relax.DataflowVar):
            return None
        first = first or Unmet(
            _(
                "{name} is only a reshape, but an output of its dataflow block, which needs memory "
                "of its own",
                name=f"`{bound.name}`",
            ),
            (bound.id,),
        )
    return first or Unmet(_("no TensorIR function is only a reshape"))


def _dataflow(module: tvm.IRModule) -> Unmet | None:
    for _name, function in relax_functions(module):
        if any(isinstance(block, relax.DataflowBlock) for block in function.body.blocks):
            return None
    return Unmet(_("the module has no dataflow block"))


def _with_attribute(attribute: str, kind: Any, words: str) -> Rule:
    def rule(module: tvm.IRModule) -> Unmet | None:
        functions = (each for _name, each in module.functions_items() if isinstance(each, kind))
        missing = any(attribute not in (each.attrs or {}) for each in functions)
        return None if missing else Unmet(words)

    return rule


def _planned(module: tvm.IRModule) -> Unmet | None:
    escaping: set[int] = set()
    tensors = []
    for _name, function in relax_functions(module):
        escaping.add(hash(function.body.body))
    for bound, value in reversed(list(_values(module))):
        mine = hash(bound.binding.var)
        if isinstance(value, relax.Tuple) and mine in escaping:
            escaping.update(map(hash, value.fields))
        elif isinstance(value, relax.Var) and mine in escaping:
            escaping.add(hash(value))
        elif operator_of(value) == "relax.builtin.alloc_tensor":
            if mine not in escaping:
                return None
            tensors.append(bound)
    if not tensors:
        return Unmet(_("no tensor is allocated"))
    first = tensors[-1]
    return Unmet(
        _(
            "every tensor is an output, as {name} is, and keeps a storage of its own",
            name=f"`{first.name}`",
        ),
        (first.id,),
    )


def _cuda_graph(module: tvm.IRModule) -> Unmet | None:
    del module
    if tvm.transform.PassContext.current().config.get("relax.backend.use_cuda_graph", False):
        return None
    return Unmet(_("relax.backend.use_cuda_graph is off: CUDA graphs exist on a GPU only"))


def _bound_parameters(module: tvm.IRModule) -> Unmet | None:
    if any(name == "main" and function.params for name, function in relax_functions(module)):
        return None
    return Unmet(_("main has no parameters"))


def _unscheduled(module: tvm.IRModule) -> Unmet | None:
    return None if prim_funcs_of(module) else _NO_TENSORIR


_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max)


def _computed(module: tvm.IRModule) -> Unmet | None:
    for _bound, value in _values(module):
        for each in getattr(value, "args", ()):
            if isinstance(each, _ARITHMETIC):
                return None
    return Unmet(_("no binding computes a number from shapes"))


_DESTINATION = ("call_tir", "call_dps_packed", "call_tir_inplace", "call_inplace_packed")

_RULES: Mapping[str, Rule] = {
    BIND_PARAMS: _bound_parameters,
    "ComputeChosenBranches": _branches,
    "FoldBatchNorm": _batch_norm,
    "MultiplyIntegers": _integers,
    "SplitTransposedConvolution": _refused(
        lambda value: operator_of(value).endswith("d_transpose"),
        unsplit,
        _("{name} cannot be split: {reason}"),
        _("the module has no transposed convolution"),
    ),
    "WinogradConvolution": _refused(
        is_convolution,
        unfit,
        _("{name} is unchanged: {reason}"),
        _("the module has no convolution in two or three dimensions"),
    ),
    "PadConvolution": _refused(
        is_any_convolution,
        unpadded,
        _("{name} is unchanged: {reason}"),
        _("the module has no convolution"),
    ),
    "MultiplyBfloat16": _narrow,
    "FuseMatrixTranspose": _transposed,
    "DecomposeOpsForInference": _without(
        _("the module has no batch norm and no tensor_to_shape"),
        *("nn.batch_norm", "tensor_to_shape"),
    ),
    "DispatchSampling": _without(
        _("the module draws no samples by multinomial_from_uniform"), "multinomial_from_uniform"
    ),
    "DispatchSortScan": _without(
        _("the module has no sort, argsort, topk, cumsum, cumprod or bucketize"),
        *("sort", "argsort", "topk", "cumsum", "cumprod", "bucketize"),
    ),
    "LegalizeOps": _legalised,
    "AnnotateTIROpPattern": _annotated,
    "FoldConstant": _folded,
    "FuseOps": _grouped,
    "FuseTIR": _merged,
    "DeadCodeElimination": _eliminated,
    VECTOR_MATH: _vector_math,
    "AttachAttrLayoutFreeBuffers": _without(_("no binding calls a TensorIR function"), "call_tir"),
    APPLY_RULES: _unscheduled,
    APPLY_SCHEDULES: _unscheduled,
    "SplitLayoutRewritePreproc": _repacked,
    "RewriteDataflowReshape": _reshaped,
    "ToNonDataflow": _dataflow,
    "RemovePurityChecking": _with_attribute(
        "relax.force_pure",
        relax.Function,
        _("every Relax function is exempt from the check already"),
    ),
    "CallTIRRewrite": _without(
        _("the module has no call_tir or call_dps_packed"), *_DESTINATION, needs=("LegalizeOps",)
    ),
    "StaticPlanBlockMemory": _planned,
    "RewriteCUDAGraph": _cuda_graph,
    "LowerAllocTensor": _without(
        _("the memory plan has a storage for every tensor"), "builtin.alloc_tensor"
    ),
    "KillAfterLastUse": _without(
        _("no tensor or storage is allocated"),
        *("memory.alloc_storage", "memory.alloc_tensor", "builtin.alloc_tensor"),
    ),
    "LowerRuntimeBuiltin": _without(
        _("no remaining operator is a function of the virtual machine"),
        *("memory.alloc_storage", "memory.alloc_tensor", "builtin.alloc_tensor", "reshape"),
        *("memory.kill_tensor", "memory.kill_storage", "shape_of", "to_vdevice"),
        *("tensor_to_shape", "call_py_func", "vm.call_tir_dyn", "make_closure", "invoke_closure"),
        "invoke_pure_closure",
    ),
    "ComputePrimValue": _computed,
    "AttachGlobalSymbol": _with_attribute(
        "global_symbol", ir.BaseFunc, _("every function has a global symbol")
    ),
}
"""The rules, by pass."""
