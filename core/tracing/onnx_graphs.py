"""Graphs of ONNX models: values of the nodes, constants among them, and shapes of any size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from lowerscope.core.model.dimensions import sizes_text
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _, enumeration
from lowerscope.core.sources.onnx_models import CONSTANT, OnnxNode, onnx_side
from lowerscope.core.tracing.example_run import NodeInfo, describe, tensors_in
from lowerscope.core.tracing.extents import at_other_sizes, expression_of, sizes_of
from lowerscope.core.tracing.trace_errors import (
    NamedInputs,
    first_line,
    fixed_dimension,
    inputs_do_not_fit,
)

_OF_SHAPE = ("Shape", "Size")
_LARGEST = 4096
"""Most elements of the value of a node that is a constant in the graph."""

_OF_DATA = frozenset(
    {
        *("NonZero", "Unique", "Compress", "NonMaxSuppression", "If", "Loop", "Scan"),
        *("StringSplit", "SequenceMap"),
    }
)
_WITH_SHAPE = frozenset(
    {
        *("Reshape", "Expand", "ConstantOfShape", "Range", "Slice", "Tile", "Resize", "Pad"),
        *("Upsample", "OneHot", "TopK", "Split", "CenterCropPad", "AffineGrid", "Trilu"),
        *("SplitToSequence", "SequenceAt", "ConcatFromSequence", "Col2Im", "MaxUnpool"),
    }
)
"""Operators whose outputs have shapes that an input may hold."""

_CONTRIBUTED = frozenset(
    {
        *("Attention", "BiasAdd", "BiasDropout", "BiasGelu", "BiasSoftmax", "BiasSplitGelu"),
        *("DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "FastGelu"),
        *("EmbedLayerNormalization", "FusedConv", "FusedGemm", "FusedMatMul", "Gelu", "Inverse"),
        *("FusedMatMulActivation", "GatherND", "GridSample", "GroupNorm", "MatMulBnb4"),
        *("MatMulInteger16", "MatMulIntegerToFloat", "MatMulNBits", "MultiHeadAttention"),
        *("NhwcMaxPool", "QAttention", "QEmbedLayerNormalization", "QGemm", "QMoE", "MoE"),
        *("QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv", "QLinearLeakyRelu"),
        *("QLinearGlobalAveragePool", "QLinearMul", "QLinearReduceMean", "QLinearSigmoid"),
        *("QLinearSoftmax", "QLinearWhere", "QuantizeLinear", "QuickGelu", "RelativePositionBias"),
        *("RotaryEmbedding", "SimplifiedLayerNormalization", "SkipGroupNorm"),
        *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "TransposeMatMul"),
    }
)
"""Operators of onnxruntime's own whose shapes follow from those of their inputs."""

Values = Mapping[fx.Node, Any]
AtSizes = list[tuple[dict[str, int], Values]]
"""The values of the nodes at sizes of the named dimensions."""


def values_of(
    graph_module: fx.GraphModule,
    inputs: tuple[torch.Tensor, ...],
    named: NamedInputs | None,
    path: str,
) -> AtSizes:
    """Return the values of the nodes of an ONNX graph at some sizes, the inputs' first.

    What depends on no input, and on none of their sizes, is a constant: see `CONSTANT`.

    Raises `LowerscopeError` if the model fails on these inputs, or does not take all sizes.
    """
    try:
        base = run_nodes(graph_module, inputs)
    except LowerscopeError as error:
        if named is None:
            raise
        sizes = sizes_of(named, inputs)
        raise LowerscopeError(
            _("{error}, at {sizes}", error=error.problem.what, sizes=sizes_text(sizes)),
            where=path,
            todo=_(
                "The model may take only the sizes that it was exported with: give numbers in "
                "place of {names}",
                names=enumeration([*sizes]),
            ),
            details=error.problem.details,
        ) from error
    at_sizes: AtSizes = [({}, base)]
    if named is not None:
        at_sizes = list(_at_sizes(graph_module, inputs, named, base))
    mark_constants(graph_module, [values for _sizes, values in at_sizes])
    return at_sizes


def described(at_sizes: AtSizes) -> dict[str, NodeInfo]:
    """Return the descriptions of the values on the inputs, by node."""
    return {node.name: describe(value) for node, value in at_sizes[0][1].items()}


def with_names(
    graph_module: fx.GraphModule,
    infos: Mapping[str, NodeInfo],
    at_sizes: AtSizes,
    named: NamedInputs,
) -> dict[str, NodeInfo]:
    """Return descriptions with the names of dimensions in the shapes.

    Raises `LowerscopeError` if an extent is no simple expression of the sizes, unless it is marked
    as one that depends on data.
    """
    of_data: dict[str, list[Sequence[bool]]] = {}
    for node in graph_module.graph.nodes:
        if node.op == "output":
            found = [of_data[each.name] for each in pytree.tree_leaves(node.args)]
            of_data[node.name] = [*itertools.chain.from_iterable(found)]
        else:
            none = [(False,) * each.dim() for each in tensors_in(at_sizes[0][1][node])]
            of_data[node.name] = node.meta.get("varies", none)
    by_name = [(sizes, _by_name(values)) for sizes, values in at_sizes]
    return {
        node: _fitted(
            info,
            [(sizes, values[node]) for sizes, values in by_name],
            named,
            node,
            iter(of_data[node]),
        )
        for node, info in infos.items()
    }


def depends_on_data(module: OnnxNode, node: fx.Node) -> bool:
    """Return whether the shape of a node's value may depend on more than the inputs' shapes."""
    if module.kind in _OF_DATA or module.domain:
        return module.domain != "com.microsoft" or module.kind not in _CONTRIBUTED
    if module.kind not in _WITH_SHAPE or CONSTANT in node.meta:
        return False
    of_shape = node.args if module.kind in ("ConstantOfShape", "Range") else node.args[1:]
    read = [each for each in of_shape if isinstance(each, fx.Node)]
    return any(each.op != "get_attr" and CONSTANT not in each.meta for each in read)


class _Values(fx.Interpreter):
    """Interpreter that keeps the value of each node."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module, garbage_collect_values=False)
        self.extra_traceback = False
        self.now = ""

    def run_node(self, n: fx.Node) -> Any:
        self.now = n.name
        return super().run_node(n)


def run_nodes(graph_module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Values:
    """Return the value of each node.

    Raises `LowerscopeError` if one fails, with its operator.
    """
    run = _Values(graph_module)
    try:
        with torch.no_grad():
            run.run(*inputs, enable_io_processing=False)
    except Exception as error:  # onnxruntime has a type for each kind of failure
        node = next(each for each in graph_module.graph.nodes if each.name == run.now)
        kind = type(graph_module.get_submodule(str(node.target))).__name__
        names = tuple(each.name for each in graph_module.graph.nodes if each.op == "placeholder")
        raise inputs_do_not_fit(error, None, f"{run.now} ({kind})", names) from error
    return dict(run.env)


def _by_name(values: Values) -> dict[str, Any]:
    return {node.name: value for node, value in values.items()}


def mark_constants(graph_module: fx.GraphModule, found: Sequence[Values]) -> None:
    """Store the values of nodes that are the same for all inputs and sizes in their ``meta``."""
    known: set[fx.Node] = set()
    unsure: set[fx.Node] = set()  # Their shapes may depend on data.
    first, *others = [_by_name(values) for values in found]
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            known.add(node)
        elif node.op in ("call_module", "call_function"):
            module = module_of(graph_module, node)
            is_group = module is None and node.op == "call_module"
            if (
                is_group
                or not unsure.isdisjoint(node.all_input_nodes)
                or (module is not None and depends_on_data(module, node))
            ):
                unsure.add(node)
            of_shape = module is not None and module.kind in _OF_SHAPE and node not in unsure
            fixed = of_shape or all(each in known for each in node.all_input_nodes)
            draws = module is not None and module.is_random
            value = first[node.name]
            if fixed and not draws and all(_same(value, each[node.name]) for each in others):
                known.add(node)
                if isinstance(value, torch.Tensor) and value.numel() <= _LARGEST:
                    node.meta[CONSTANT] = value


def module_of(graph_module: fx.GraphModule, node: fx.Node) -> OnnxNode | None:
    """Return what a node calls if it is of the ONNX model."""
    if node.op != "call_module":
        return None
    module = graph_module.get_submodule(str(node.target))
    return module if isinstance(module, OnnxNode) else None


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return (
            value.shape == other.shape
            and value.dtype == other.dtype
            and bool(torch.isclose(value, other, rtol=0, atol=0, equal_nan=True).all())
        )
    if isinstance(value, (tuple, list)):
        return len(value) == len(other) and all(map(_same, value, other))
    return bool(value == other)


# --- Named dimensions ---


def _at_sizes(
    graph_module: fx.GraphModule,
    inputs: tuple[torch.Tensor, ...],
    named: NamedInputs,
    base: Values,
) -> Iterator[tuple[dict[str, int], Values]]:
    """Yield the nodes' values at the sizes of the inputs, and at some others.

    Raises `LowerscopeError` if the model does not take one of these sizes.
    """
    sizes = sizes_of(named, inputs)
    yield sizes, base
    for changed, values in at_other_sizes(named, inputs):
        try:
            found = run_nodes(graph_module, values)
        except Exception as error:
            cause = error.__cause__ or error
            demand = ", ".join(f"{name} == {size}" for name, size in sizes.items())
            raise fixed_dimension(
                f"{demand} ({first_line(cause)})", named, None, engine=onnx_side()
            ) from error
        yield changed, found


def _fitted(
    info: NodeInfo,
    found: Sequence[tuple[dict[str, int], Any]],
    named: NamedInputs,
    node: str,
    of_data: Iterator[Sequence[bool]],
) -> NodeInfo:
    """Return the description of a value with the names of dimensions in its shape.

    `of_data`: for each tensor in the value, the axes whose extents depend on data.

    Raises `LowerscopeError` if an extent is no simple expression of the sizes.
    """
    if info.items:
        # The output of several values is a dict.
        first = found[0][1]
        keys = list(first) if isinstance(first, dict) else range(len(first))
        items = tuple(
            _fitted(item, [(sizes, value[key]) for sizes, value in found], named, node, of_data)
            for key, item in zip(keys, info.items, strict=True)
        )
        if isinstance(first, dict):
            text = ", ".join(f"{k}: {each.text}" for k, each in zip(keys, items, strict=True))
            return NodeInfo(None, "", f"{{{text}}}", items)
        return NodeInfo(None, "", f"({', '.join(each.text for each in items)})", items)
    if info.shape is None:
        return info
    values = [value for _sizes, value in found]
    if any(each.dim() != len(info.shape) for each in values):
        raise fixed_dimension(_("a result of fixed rank"), named, None, node, onnx_side())
    varies = next(of_data)
    shape = tuple(
        size
        if varies[axis]
        else _expression([(sizes, value.shape[axis]) for sizes, value in found], named, node)
        for axis, size in enumerate(info.shape)
    )
    return NodeInfo(shape, info.dtype, f"{shape_text(shape)} {info.dtype}")


def _expression(
    found: Sequence[tuple[dict[str, int], int]], named: NamedInputs, node: str
) -> int | str:
    """Return an extent as a number or an expression of the names that gives all that were found."""
    expression = expression_of(found)
    if expression is None:
        raise fixed_dimension(
            _("a result whose shape is a simple expression of the sizes"),
            named,
            None,
            node,
            onnx_side(),
        )
    text, _compute = expression
    return int(text) if text.isdecimal() else text
