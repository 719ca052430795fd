"""TVM's own importers as the translator: ``from_fx`` and ``from_exported_program``.

Their converters run node by node on a builder of ours, in the order and on the values of the stock
methods, so that each binding is known to be a node's. Their errors are not corrected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import tvm
from torch import fx
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter
from tvm.relax.frontend.torch.fx_translator import TorchFXImporter

from lowerscope.core.lowering.builder import NodeBuilder, without_unused
from lowerscope.core.lowering.built_in import (
    Current,
    Notes,
    Uncovered,
    attribute,
    reason_of,
    uncovered_error,
)
from lowerscope.core.lowering.partial_module import with_constants
from lowerscope.core.lowering.rule_table import Refused
from lowerscope.core.lowering.torch_operators import is_random, qualified_name
from lowerscope.core.lowering.translator import (
    InputSpec,
    input_variable,
    output_value,
    random_in_outputs,
)
from lowerscope.core.lowering.types import LoweredModel, NodeLowering, Traced
from lowerscope.core.lowering.values import Dimensions, Value
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError
from lowerscope.core.model.recipe import Recipe, TracerName, Translator, overrides_on
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _

IMPORTERS: dict[Translator, tuple[str, TracerName]] = {
    "tvm-fx": ("from_fx", "fx"),
    "tvm-export": ("from_exported_program", "export"),
}
"""TVM's name of each importer, and the tracer whose graphs it takes."""

_OWN = _("choose Lowerscope's own translator: --importer lowerscope")


def tracer_of(recipe: Recipe, *, exported: bool) -> TracerName:
    """Return the tracer that a recipe selects.

    `exported`: whether the source is an exported program, which is traced already.

    Raises `LowerscopeError` if the recipe's importer does not support graphs of that tracer.
    """
    chosen: TracerName = "export" if exported else recipe.tracer
    if recipe.translator not in IMPORTERS:
        return chosen
    name, needed = IMPORTERS[recipe.translator]
    if chosen in ("auto", needed):
        return needed
    what = _("an exported program") if exported else _("a graph of torch.{chosen}", chosen=chosen)
    other = "tvm-export" if needed == "fx" else "tvm-fx"
    importer = f"--importer {other}" + ("" if exported else " --tracer auto")
    raise LowerscopeError(
        _(
            "TVM's {name} takes graphs of torch.{needed}; this is {what}",
            name=name,
            needed=needed,
            what=what,
        ),
        where=f"--importer {recipe.translator}",
        todo=_("choose the other importer: {importer}; or {own}", importer=importer, own=_OWN),
        code="own-translator",
    )


def lower_by_importer(
    traced: Traced, inputs: Sequence[InputSpec], recipe: Recipe, ranges: dict[str, tuple[int, int]]
) -> LoweredModel:
    """Lower a traced model with the TVM importer that a recipe names.

    `traced`: Made by the tracer of `tracer_of`; for ``"tvm-export"``, decomposed as TVM does it.

    Raises `LowerscopeError` if the recipe has options that no importer supports, or the importer
    does not cover a node.
    """
    name = IMPORTERS[recipe.translator][0]
    _check(recipe, name)
    with warnings.catch_warnings():
        # TVM warns of its own deprecations while it builds.
        warnings.simplefilter("ignore")
        made = _Import(traced, recipe, name, ranges).run(inputs)
    unused = tuple(
        Note(text=_("its rules are not used: TVM's {name} translates", name=name), where=each.path)
        for each in recipe.extensions
        if each.on and each.kind == "rules"
    )
    return replace(made, notes=(*made.notes, *unused))


def _check(recipe: Recipe, name: str) -> None:
    if recipe.lowering == "library":
        raise LowerscopeError(
            _("TVM's {name} does not support library functions", name=name),
            where="--lowering library",
            todo=_("lower to high-level or te, or {own}", own=_OWN),
            code="own-translator",
        )
    overrides = overrides_on(recipe)
    if overrides:
        first = overrides[0]
        raise LowerscopeError(
            _("TVM's {name} translates all nodes in one way", name=name),
            where=f"--override {first.pattern}={first.strategy}",
            todo=_("reset the overrides, or {own}", own=_OWN),
            code="own-translator",
        )


class _FxImporter(TorchFXImporter):  # type: ignore[misc]
    """TVM's importer of FX graphs; each tensor of the model becomes a constant once."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, tuple[torch.Tensor, Any]] = {}

    def _convert_torch_tensor_to_relax(self, tensor: torch.Tensor) -> Any:
        if id(tensor) not in self.made:
            constant = TorchFXImporter._convert_torch_tensor_to_relax(tensor)
            self.made[id(tensor)] = (tensor, constant)
        return self.made[id(tensor)][1]


class _Import:
    """One run of an importer, node by node."""

    def __init__(
        self, traced: Traced, recipe: Recipe, name: str, ranges: dict[str, tuple[int, int]]
    ) -> None:
        self._traced = traced
        self._graph_module = traced.graph_module
        self._strategy = recipe.lowering
        self._name = name
        self._dimensions = Dimensions(ranges)
        self._builder = NodeBuilder(te=recipe.lowering == "te", dimensions=self._dimensions)
        self._modules = dict(traced.graph_module.named_modules(remove_duplicate=False))
        self._of_fx = recipe.translator == "tvm-fx"
        self._importer: Any = _FxImporter() if self._of_fx else ExportedProgramImporter()
        self._importer.block_builder = self._builder
        self._importer.named_modules = self._modules
        # An exported program's tensors are variables during conversion.
        self._tensors: dict[Any, tuple[torch.Tensor, Any]] = {}

    def run(self, inputs: Sequence[InputSpec]) -> LoweredModel:
        self._check_covered()
        if self._of_fx:
            self._enter_parameters()
        builder, graph = self._builder, self._graph_module.graph
        variables = [input_variable(self._dimensions, *spec) for spec in inputs]
        placeholders = iter(variables)
        nodes: dict[str, NodeLowering] = {}
        bindings: list[Any] = []
        output: Value = None
        with builder.function("main", params=variables):
            builder.begin()
            for node in graph.nodes:
                now = Current(self._strategy)
                try:
                    value = self._converted(node, placeholders, now)
                except (*TVM_ERRORS, Refused) as error:
                    builder.abandon()
                    raise self._refusal([self._uncovered(node, _reason(error))]) from error
                self._importer.env[node] = value
                bound, emitted = builder.end_node()
                bindings.extend(bound)
                output = value
                nodes[node.name] = self._provenance(node, now, bound, emitted)
            builder.finish(bindings, output)
        module = without_unused(builder.get())
        constants = {variable: constant for variable, (_other, constant) in self._tensors.items()}
        module = with_constants(module, constants)
        notes = Notes(self._traced.lines).all(builder.not_legalised, ())
        kept = (self._importer.made if self._of_fx else self._tensors).values()
        return LoweredModel(
            module,
            nodes,
            notes,
            random=random_in_outputs(self._traced, self._importer.env),
            constants=tuple(kept),
            te_calls=builder.te_calls_of(bindings),
        )

    def _check_covered(self) -> None:
        """Reject nodes without a converter, all in one line."""
        uncovered = [
            self._uncovered(node, _("it has no converter for it"))
            for node in self._graph_module.graph.nodes
            if node.op.startswith("call_") and self._converter(node) is None
        ]
        if uncovered:
            raise self._refusal(uncovered)

    def _converter(self, node: fx.Node) -> Callable[[fx.Node], Any] | None:
        target: Any = node.target
        if node.op == "call_module":
            target = type(self._modules[target])
        elif node.op == "call_function":
            target = target.__name__
        found: Callable[[fx.Node], Any] | None = self._importer.convert_map.get(target)
        return found

    def _enter_parameters(self) -> None:
        for name, parameter in self._graph_module.named_parameters():
            if parameter.dtype not in (torch.float32, torch.float16):
                dtype = str(parameter.dtype).removeprefix("torch.")
                raise LowerscopeError(
                    _("TVM's {name} takes no parameters of {dtype}", name=self._name, dtype=dtype),
                    where=name,
                    todo=_OWN,
                    code="own-translator",
                )
            constant = self._importer._convert_torch_tensor_to_relax(parameter)
            self._importer.params[parameter] = constant

    def _converted(self, node: fx.Node, placeholders: Any, now: Current) -> Value:
        if node.op == "placeholder":
            return next(placeholders)
        if node.op == "output":
            value = self._importer.retrieve_args(node)[0]
            value = output_value(self._builder, self._graph_module, value)
            return self._builder.emit_output(value)
        if node.op == "get_attr":
            return self._attribute(node)
        converter = self._converter(node)
        assert converter is not None
        now.rule = f"{self._name} {qualified_name(node, self._modules)}"
        now.note_rule("tvm", now.rule, converter)
        return converter(node)

    def _attribute(self, node: fx.Node) -> Value:
        if self._of_fx:
            return self._importer._fetch_attr(self._graph_module, node.target)
        value = attribute(self._graph_module, str(node.target))
        if not isinstance(value, torch.Tensor):
            return value
        constant = relax.const(self._importer._convert_pytorch_tensor_to_tvm(value))
        variable = relax.Var(node.name, constant.ty)
        self._tensors[variable] = (value, constant)
        return variable

    def _provenance(
        self, node: fx.Node, now: Current, bound: list[Any], emitted: tuple[str, ...]
    ) -> NodeLowering:
        value = self._importer.env[node]
        if node.op == "get_attr" and isinstance(value, tvm.ir.Var) and value in self._tensors:
            value = self._tensors[value][1]
        random = is_random(node, self._modules)
        made = now.provenance(node, bound, emitted, value, (), is_random=random, functions={})
        return replace(made, random=random)

    def _uncovered(self, node: fx.Node, reason: str) -> Uncovered:
        line = self._traced.lines.get(node.name)
        called = node.op.startswith("call_")
        name = qualified_name(node, self._modules) if called else node.op
        return Uncovered(name, node.name, line, reason)

    def _refusal(self, uncovered: Sequence[Uncovered]) -> LowerscopeError:
        what = _("TVM's {name} does not translate {nodes}", name=self._name, nodes="{nodes}")
        return uncovered_error(uncovered, what, _OWN, "own-translator")


def _reason(error: Exception) -> str:
    """Return a short reason why a converter failed."""
    text = reason_of(error)
    return text if isinstance(error, Refused) else f"{type(error).__name__}: {text}"
