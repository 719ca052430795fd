"""The tracing stage: converts an ``nn.Module`` and example inputs to a `TracedModel`."""

from __future__ import annotations

import inspect
import itertools
import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.model.recipe import TracerName
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sources.onnx_models import PATH, OnnxModel
from lowerscope.core.sources.opened_model import (
    RandomState,
    prepare_compiling,
    without_inference_mode,
    without_logs,
)
from lowerscope.core.sources.pytree import (
    CallSpec,
    by_position,
    forward_signature,
    is_plain,
    leaves,
    plain,
)
from lowerscope.core.tracing import exporting, onnx_graphs, symbolic
from lowerscope.core.tracing.example_run import NodeInfo, outputs_of, run_eagerly, run_once
from lowerscope.core.tracing.extents import at_other_sizes
from lowerscope.core.tracing.fidelity import (
    Observed,
    apart_from,
    as_in_a_run,
    difference,
    differs_from_model,
    unchanged,
)
from lowerscope.core.tracing.grouping import (
    group_numbers,
    has_quantised,
    mark_varying,
    with_sequences_grouped,
)
from lowerscope.core.tracing.onnx_control_flow import without_control_flow
from lowerscope.core.tracing.splitting import OtherStructure, Split
from lowerscope.core.tracing.trace_errors import (
    CONSTRAINT,
    CaughtError,
    NamedInputs,
    cannot_export,
    cannot_name_sizes,
    forward_line,
    made_functional,
    neither_traces,
    returns_nothing,
    took_export,
    where_of,
)

# --- Models that ``torch.jit`` has compiled: converted to an exported program, or one node ---


def converted(
    model: torch.jit.ScriptModule, inputs: tuple[torch.Tensor, ...], calling: CallSpec
) -> torch.export.ExportedProgram | str:
    """Return a compiled model as an exported program, or the reason why it cannot be one."""
    # Imported here since few models need it.
    from torch._export.converter import TS2EPConverter

    args, kwargs = calling.arguments([each.clone() for each in inputs])
    bound = forward_signature(model).bind(*args, **kwargs)
    bound.apply_defaults()
    try:
        # It warns of sizes of 1, as dimensions are named by whoever opens the model.
        with torch.no_grad(), without_logs("torch._export.non_strict_utils"):
            return TS2EPConverter(model, bound.args).convert()
    except BaseException as error:
        if is_interrupt(error):
            raise
        operator = _OPERATOR.search(str(error))
        if operator is None:
            return _("torch.export cannot convert it")
        return _("torch.export cannot convert its {operator}", operator=operator[1])


_OPERATOR = re.compile(r"failed for node ([\w:]+)")


def as_one_node(
    model: torch.nn.Module, calling: CallSpec, outputs: Any, reason: str
) -> tuple[fx.GraphModule, Note]:
    """Return a graph that calls a compiled model, and a note on the reason.

    `outputs`: what the model returns.
    """
    graph = fx.Graph()
    args, kwargs = calling.arguments([graph.placeholder(name) for name in calling.names])
    call = graph.call_module("scripted", args, kwargs)
    results, spec = pytree.tree_flatten(plain(outputs))
    if spec.is_leaf() and isinstance(results[0], torch.Tensor):
        graph.output(call)
    else:
        members = [graph.call_function(operator.getitem, (call, i)) for i in range(len(results))]
        graph.output(pytree.tree_unflatten(members, spec))
        model = _Flattened(model)
    text = _("the module of torch.jit is one node: {reason}", reason=reason)
    return fx.GraphModule({"scripted": model}, graph), Note(text=text)


class _Flattened(torch.nn.Module):
    """A module that returns the members of the nest that another one returns, as a tuple of
    tensors: numbers are tensors of one element."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        found = pytree.tree_leaves(plain(self.model(*args, **kwargs)))
        numbers = (bool, int, float, complex)
        return tuple(torch.tensor(each) if isinstance(each, numbers) else each for each in found)


_RESULTS = (fx.Node, bool, int, float)
"""Types of the outputs of a graph that are lowered."""


def positional_call(model: torch.nn.Module, count: int) -> CallSpec:
    """Return the call of ``forward`` with `count` tensors; ``*rest`` names them rest_0, …"""
    names: list[str] = []
    for parameter in forward_signature(model).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{index}" for index in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    names += [f"input_{index}" for index in range(len(names), count)]
    return by_position(names[:count])


def check_call(model: torch.nn.Module, calling: CallSpec) -> None:
    """Check that ``forward`` takes the arguments of `calling`.

    Raises `LowerscopeError` if it cannot, with the names of its parameters.
    """
    if _plainly_takes(model.forward, calling):
        return
    signature = forward_signature(model)
    try:
        signature.bind(*calling.args, **calling.kwargs)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        count = len(calling.args) + len(calling.kwargs)
        raise LowerscopeError(
            _n(
                "{name} takes ({names}) and got {count} input",
                "{name} takes ({names}) and got {count} inputs",
                count,
                name=type(model).__name__,
                names=names,
            ),
            where=where_of(forward_line(model)),
            todo=_("give one input for each: --input x=1,784:float32"),
        ) from error


def _plainly_takes(function: Any, calling: CallSpec) -> bool:
    """Return whether a function has a parameter for each tensor, and a default for all others.

    This is the usual case; making a signature takes as long as tracing a layer.
    """
    code: CodeType | None = getattr(function, "__code__", None)
    told = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
    if code is None or told or code.co_kwonlyargcount or not calling.is_flat:
        return False
    most = code.co_argcount - inspect.ismethod(function)
    return most - len(function.__defaults__ or ()) <= len(calling.args) <= most


@dataclass(frozen=True)
class TracedModel:
    """An FX graph in one form for both tracers, and descriptions of its nodes.

    `graph_module`: nodes are ``placeholder``, ``get_attr``, ``call_function``, ``call_method``,
        ``call_module`` and ``output``; parameters are ``get_attr`` nodes or inside modules.
    `values`: description of each node's value, by node name.
    `lines`: the line of the user's own file that each node comes from, by node name. Nodes without
        one are absent.
    `modules`: dotted path of the module that each node comes from, by node name; empty for the
        root.
    `mutations`: for each node that changes a tensor in place, the earlier nodes that read as the
        node's own value from then on.
    `alone`: whether the other tracer is known to fail.
    `agrees`: whether it computes what the model does on the example inputs.
    """

    graph_module: torch.fx.GraphModule
    values: Mapping[str, NodeInfo]
    lines: Mapping[str, SourceLine]
    modules: Mapping[str, str]
    mutations: Mapping[str, tuple[str, ...]]
    tracer: str
    notes: tuple[Note, ...] = ()
    alone: bool = False
    agrees: bool = True


def trace(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    tracer: TracerName,
    exported: torch.export.ExportedProgram | None = None,
    calling: CallSpec | None = None,
    named: NamedInputs | None = None,
    *,
    decomposed: bool = False,
) -> TracedModel:
    """Trace `model` on example `inputs`.

    `model`: in the mode (training or not) that is to be lowered; neither it nor `inputs` is
        changed.
    `inputs`: the tensors among the inputs, in order.
    `tracer`: ``"fx"`` for ``torch.fx.symbolic_trace``, ``"export"`` for ``torch.export``,
        ``"auto"`` for the first of them that succeeds, with a note if that is the second.
    `calling`: the call of the model with these tensors; ``None`` for by position.
    `named`: the dimensions that take any size of a range, beyond the one of `inputs`; the
        descriptions of nodes then use their names. ``None`` for none.
    `decomposed`: whether the export tracer decomposes operators to core ATen, as TVM's own importer
        of exported programs does.

    Raises `LowerscopeError` if the model fails on these inputs, returns nothing, does not take all
    sizes (code ``fixed-dimension``), or the tracer cannot trace it (codes ``try-export`` and
    ``try-fx`` if the other tracer may).
    """
    calling = calling or positional_call(model, len(inputs))
    check_call(model, calling)
    prepare_compiling(model)
    with warnings.catch_warnings(), without_inference_mode():
        # torch warns of its own internals: of padding copies, of deprecations.
        warnings.simplefilter("ignore")
        if isinstance(model, OnnxModel):
            with unchanged(model):
                graph_module = without_control_flow(model, inputs, named)
                graph_module = with_sequences_grouped(graph_module, inputs)
                at_sizes = onnx_graphs.values_of(graph_module, inputs, named, model.path)
                values = onnx_graphs.described(at_sizes)
                mark_varying(
                    graph_module, values, itertools.chain([inputs], symbolic.varied(inputs))
                )
                if named is not None:
                    values = onnx_graphs.with_names(graph_module, values, at_sizes, named)
                modules = {each.name: each.meta.get(PATH, "") for each in graph_module.graph.nodes}
                traced = TracedModel(graph_module, values, {}, modules, {}, "onnx")
        else:
            traced = _trace_module(model, inputs, tracer, exported, calling, named, decomposed)
    output = next(node for node in traced.graph_module.graph.nodes if node.op == "output")
    if not any(isinstance(leaf, _RESULTS) for _other, leaf in leaves(output.args[0])):
        raise returns_nothing(forward_line(model))
    return traced


def _trace_module(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    tracer: TracerName,
    exported: torch.export.ExportedProgram | None,
    calling: CallSpec,
    named: NamedInputs | None,
    decomposed: bool,
) -> TracedModel:
    # Before all else, as it finds out which parameters are to be restored.
    observed = Observed(model, inputs, calling)
    with unchanged(model) as own:
        if isinstance(model, torch.jit.ScriptModule):
            return _trace_scripted(model, inputs, calling, observed, named)
        if tracer == "auto" and exported is None:
            return _trace_by_either(model, inputs, calling, observed, named, own)
        if exported is not None:
            observed.check()
            return _described_program(exported, inputs, named, decomposed=decomposed)
        return _trace_by_one(model, inputs, tracer, calling, observed, named, own, decomposed)


def _trace_scripted(
    model: torch.jit.ScriptModule,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
) -> TracedModel:
    behaviour = observed.behaviour
    program = converted(model, inputs, calling)
    if not isinstance(program, str):
        traced = _described_program(program, inputs, named, decomposed=False)
        if _agrees(traced, model, inputs, calling):
            return replace(traced, notes=(*traced.notes, *behaviour.notes))
        program = _("its outputs differ as an exported program")
    if named is not None:
        raise cannot_name_sizes(program)
    graph_module, note = as_one_node(model, calling, behaviour.outputs, program)
    values, mutations, _other = run_once(graph_module, inputs, {})
    mark_varying(graph_module, values, itertools.chain([inputs], symbolic.varied(inputs)))
    modules = symbolic.module_paths(graph_module)
    notes = (note, *behaviour.notes)
    return TracedModel(graph_module, values, {}, modules, mutations, "fx", notes)


def _trace_by_either(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
    own: Sequence[torch.Tensor],
) -> TracedModel:
    try:
        with unchanged(model):
            traced, outputs = _trace_fx(model, inputs, calling, named, own)
    except LowerscopeError as error:
        by_fx = error.problem
        # A size may be fixed by torch's own Python code, which export traces into.
        if by_fx.code not in ("try-export", CONSTRAINT) and observed.fails:
            raise
        caught = isinstance(error, CaughtError)
    else:
        return _check_trace(traced, outputs, model, inputs, calling, observed, named, own)
    try:
        traced = _trace_export(model, inputs, calling, observed, named)
    except LowerscopeError as error:
        if error.problem.code != "try-fx":
            raise
        reason = neither_traces(by_fx, error.problem)
        return _trace_split(model, inputs, calling, observed, own, reason, named)
    traced = replace(traced, notes=(took_export(by_fx), *traced.notes))
    if named is None and caught and traced.agrees and not _agrees(traced, model, inputs, calling):
        traced = replace(traced, agrees=False)
    return traced if named is not None else _right(traced, model, inputs, calling, observed, own)


def _right(
    traced: TracedModel,
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    own: Sequence[torch.Tensor],
) -> TracedModel:
    """Return a graph that is right, or else one of the model split, if that is right."""
    if not traced.agrees:
        reason = LowerscopeError(_("Python takes another branch while tracing"))
        with suppress(LowerscopeError):
            split = _trace_split(model, inputs, calling, observed, own, reason)
            if split.agrees:
                return split
    return traced


def _trace_by_one(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    tracer: TracerName,
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
    own: Sequence[torch.Tensor],
    decomposed: bool,
) -> TracedModel:
    """Return the graph of the tracer that the user has chosen."""
    try:
        if tracer == "export":
            return _trace_export(model, inputs, calling, observed, named, decomposed=decomposed)
        with unchanged(model):
            traced, outputs = _trace_fx(model, inputs, calling, named, own)
    except LowerscopeError as error:
        if error.problem.code in ("try-export", "try-fx"):
            _check_advice(error, model, inputs, calling, observed, named, own)
        raise
    behaviour = observed.behaviour
    wrong = differs_from_model(outputs, behaviour, "fx", model)
    notes = (*traced.notes, *behaviour.notes, *wrong)
    return replace(traced, notes=notes, agrees=not wrong)


def _check_advice(
    error: LowerscopeError,
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
    own: Sequence[torch.Tensor],
) -> None:
    """Check that the other tracer traces the model, as the error of one says that it may.

    Raises `LowerscopeError` with another advice if it does not.
    """
    problem = error.problem
    try:
        if problem.code == "try-export":
            _trace_export(model, inputs, calling, observed, named)
            return
        with unchanged(model):
            _trace_fx(model, inputs, calling, named, own)
            return
    except LowerscopeError as second:
        other = second.problem
    by_fx, by_export = (problem, other) if problem.code == "try-export" else (other, problem)
    reason = neither_traces(by_fx, by_export)
    if named is not None:
        raise reason from error
    _trace_split(model, inputs, calling, observed, own, reason)
    raise LowerscopeError(
        problem.what,
        where=problem.where,
        todo=_(
            "let the tracer be chosen: --tracer auto; the parts that depend on the values of "
            "tensors then run in torch"
        ),
        details=reason.problem.details,
    ) from error


_MOST_SPLITS = 200
"""Most attempts to trace a model that is split; each adds a statement that runs in torch."""


def _trace_split(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    own: Sequence[torch.Tensor],
    reason: LowerscopeError,
    named: NamedInputs | None = None,
) -> TracedModel:
    """Trace a model with the statements that cannot be traced as parts that run in torch.

    Raises `reason` if that is not possible.
    """
    behaviour = observed.behaviour
    changes_state = behaviour.in_place or behaviour.trains
    split = Split(model, changes_state=changes_state, named=named)
    for _turn in range(_MOST_SPLITS):
        try:
            with unchanged(model), split.applied():
                traced, outputs = _trace_fx(model, inputs, calling, named, own, split)
        except LowerscopeError as error:
            if not split.extend(error.__cause__ or error):
                raise reason from error
            continue
        wrong = differs_from_model(outputs, behaviour, "fx", model)
        checks = split.selects or named is not None
        agrees = not wrong and (not checks or _agrees(traced, model, inputs, calling, named))
        if split.selects and not agrees:
            split.run_branches()
            continue
        if not wrong and not agrees:
            # Its sizes are those of the example inputs.
            raise reason
        if wrong and split.coarsen(_("Python takes another branch while tracing")):
            continue
        for part in split.parts:
            part.attach()
        notes = (*traced.notes, *split.notes(), *behaviour.notes, *wrong)
        return replace(traced, notes=notes, alone=True, agrees=not wrong)
    raise reason


def _agrees(
    traced: TracedModel,
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    named: NamedInputs | None = None,
) -> bool:
    """Return whether a graph computes what the model does on other inputs that the model takes."""
    resized = [] if named is None else [each for _sizes, each in at_other_sizes(named, inputs)]
    for values in itertools.chain([inputs], symbolic.varied(inputs), resized):
        # Places out of range are an error, and not a read out of bounds.
        checked = torch.sparse.check_sparse_tensor_invariants()  # type: ignore[no-untyped-call]
        with unchanged(model) as own, checked:
            try:
                result = run_eagerly(model, values, calling)
                expected = apart_from((*own, *model.parameters()), result)
            except LowerscopeError:
                continue
        try:
            outputs = outputs_of(traced.graph_module, values)
        except LowerscopeError as error:
            if isinstance(error.__cause__, OtherStructure):
                continue
            return False
        if difference(outputs, plain(expected), compare_values=True):
            return False
    return True


def _check_trace(
    traced: TracedModel,
    outputs: Any,
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
    own: Sequence[torch.Tensor],
) -> TracedModel:
    """Return a graph of the fx tracer, or torch.export's if that is incomplete."""
    behaviour = observed.behaviour
    wrong = differs_from_model(outputs, behaviour, "fx", model)
    doubts = (*traced.notes, *wrong, *behaviour.notes)
    if not doubts:
        return traced
    try:
        other = _trace_export(model, inputs, calling, observed, named)
    except LowerscopeError:
        traced = replace(traced, notes=doubts, agrees=not wrong)
        return (
            traced if named is not None else _right(traced, model, inputs, calling, observed, own)
        )
    by_export = [each for each in other.notes if each not in behaviour.notes]
    if not wrong and not other.agrees:
        return replace(traced, notes=doubts)
    first, rest = doubts[0], [each for each in behaviour.notes if each is not doubts[0]]
    took = Note(text=_("{text}; torch.export traced it", text=first.text), where=first.where)
    other = replace(other, notes=(took, *rest, *by_export))
    return other if named is not None else _right(other, model, inputs, calling, observed, own)


def _trace_fx(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    named: NamedInputs | None,
    own: Sequence[torch.Tensor],
    split: Split | None = None,
) -> tuple[TracedModel, Any]:
    """Return the graph, and its outputs."""
    random_state = RandomState.present()
    try:
        # The graph runs from the state from which the model was traced.
        with unchanged(model), as_in_a_run(model):
            graph_module, lines, notes, errors = symbolic.trace_symbolically(
                model, inputs, calling, own, split
            )
    finally:
        random_state.restore()
    values, mutations, outputs = run_once(graph_module, inputs, lines)
    if has_quantised(graph_module, values):
        # Imported here since it takes long, and few models need it.
        from lowerscope.core.tracing.quantised import with_integers

        for averages, sums in itertools.product((True, False), (torch.float32, torch.float64)):
            written_out = with_integers(graph_module, inputs, lines, averages=averages, sums=sums)
            if written_out is None:
                break
            found = run_once(written_out, inputs, lines)
            if not difference(found[2], outputs, compare_values=True):
                graph_module, (values, mutations, outputs) = written_out, found
                break
    grouped = group_numbers(graph_module, values, lines)
    if grouped:
        values, mutations, outputs = run_once(graph_module, inputs, lines)
    if named is None or split is not None or grouped:
        variants = itertools.chain([inputs], symbolic.varied(inputs))
        mark_varying(graph_module, values, variants, of_data=split is not None)
    if named is not None:
        # Imported here since it takes seconds, and few models need it.
        from lowerscope.core.tracing.symbolic_sizes import run_symbolically

        values = run_symbolically(graph_module, inputs, named, lines)
    modules = symbolic.module_paths(graph_module)
    traced = TracedModel(graph_module, values, lines, modules, mutations, "fx", notes)
    if errors and not _agrees(traced, model, inputs, calling):
        raise CaughtError(errors[-1]) from errors[-1]
    return traced, outputs


def _trace_export(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    observed: Observed,
    named: NamedInputs | None,
    *,
    decomposed: bool = False,
) -> TracedModel:
    # torch.export computes no values, and so misses shapes and dtypes that do not fit.
    behaviour = observed.behaviour

    def traced(
        context: AbstractContextManager[None], dispatched: bool = False
    ) -> tuple[TracedModel, tuple[Note, ...]]:
        plain_output = is_plain(behaviour.outputs)
        random_state = RandomState.present()
        try:
            with unchanged(model), context:
                program = exporting.export(
                    model,
                    inputs,
                    calling,
                    plain_output=plain_output,
                    named=named,
                    dispatched=dispatched,
                )
        finally:
            random_state.restore()
        try:
            with unchanged(model):
                found = _described_program(program, inputs, named, decomposed=decomposed)
            if behaviour.in_place:
                return found, ()
            with unchanged(model):
                outputs = outputs_of(found.graph_module, inputs)
            if any(isinstance(each, FakeTensor) for _path, each in leaves(outputs)):
                # A gradient of torch.func, for one, leaves tensors without values in the graph.
                reason = _("a tensor in its graph has no value")
                raise cannot_export(RuntimeError(reason), model)
        except LowerscopeError as error:
            if dispatched or error.problem.code != "try-fx":
                raise
            return traced(context, dispatched=True)
        return found, differs_from_model(outputs, behaviour, "export", model)

    found, wrong = traced(nullcontext())
    if wrong:
        # Torch's own control flow cannot be exported with replaced answers.
        with suppress(LowerscopeError):
            other, still_wrong = traced(as_in_a_run(model))
            found, wrong = (found, wrong) if still_wrong else (other, ())
    notes = (*found.notes, *behaviour.notes, *wrong)
    return replace(found, notes=notes, agrees=not wrong)


def _described_program(
    program: torch.export.ExportedProgram,
    inputs: tuple[torch.Tensor, ...],
    named: NamedInputs | None,
    *,
    decomposed: bool,
) -> TracedModel:
    """Return the graph of a program in its least decomposed form that can be shown."""
    if named is not None:
        placeholders = exporting.whole_graph(program)
        exporting.check_ranges(program, exporting.names_of_symbols(placeholders, named), named)
    if decomposed:
        return _described(exporting.decomposed_graph(program), inputs, named, is_functional=True)
    whole = exporting.whole_graph(program)
    if exporting.has_casts(whole) or exporting.has_levels(whole):
        return _described(exporting.functional_graph(program), inputs, named, is_functional=True)
    try:
        return _described(whole, inputs, named, is_functional=False)
    except LowerscopeError as error:
        if error.problem.code != "try-export":
            raise
        functional = exporting.functional_graph(program)
        traced = _described(functional, inputs, named, is_functional=True)
        # For a change of the model's own state, the note on its outcome is better.
        notes = traced.notes or (made_functional(error.problem),)
        return replace(traced, notes=notes)


def _described(
    graph_module: fx.GraphModule,
    inputs: tuple[torch.Tensor, ...],
    named: NamedInputs | None,
    *,
    is_functional: bool,
) -> TracedModel:
    """Return an exported graph with the descriptions of its nodes."""
    names: Mapping[Any, Any] = {}
    if named is not None:
        names = exporting.names_of_symbols(graph_module, named)
        exporting.drop_checks_of_sizes(graph_module, names, named)
    notes = exporting.drop_what_is_not_read(graph_module, is_functional=is_functional)
    lines = exporting.source_lines(graph_module)
    known = exporting.described_values(graph_module) if exporting.is_described(graph_module) else {}
    is_known = bool(known) and not any(each.layout for each in known.values())
    if is_known and not group_numbers(graph_module, known, lines):
        values: Mapping[str, NodeInfo] = known
        mutations: Mapping[str, tuple[str, ...]] = {}
    else:
        values, mutations, _other = run_once(graph_module, inputs, lines)
        if group_numbers(graph_module, values, lines):
            values, mutations, _other = run_once(graph_module, inputs, lines)
        if named is not None:
            values |= exporting.described_values(graph_module, names)
    modules = exporting.module_paths(graph_module)
    return TracedModel(graph_module, values, lines, modules, mutations, "export", notes)
