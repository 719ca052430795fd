"""Graphs of ONNX models: values of the nodes, constants among them, and shapes of any size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.texts import _
from lowerscope.core.sources.onnx_models import CONSTANT, OnnxModel, OnnxNode, side
from lowerscope.core.tracing.example_run import NodeInfo, describe, tensors_in
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

Values = Mapping[fx.Node, Any]
AtSizes = list[tuple[dict[str, int], Values]]
"""The values of the nodes at sizes of the named dimensions."""


def graph_of(
    model: OnnxModel, inputs: tuple[torch.Tensor, ...], named: NamedInputs | None
) -> tuple[fx.GraphModule, AtSizes]:
    """Return the graph of an ONNX model, and its nodes' values at some sizes, the inputs' first.

    What depends on no input, and on none of their sizes, is a constant: see `CONSTANT`.

    Raises `LowerscopeError` if the model fails on these inputs, or does not take all sizes.
    """
    graph_module = fx.GraphModule(model, model.graph)
    base = _run(graph_module, inputs)
    at_sizes: AtSizes = [({}, base)]
    if named is not None:
        at_sizes = list(_at_sizes(graph_module, inputs, named, base))
    _mark_constants(graph_module, [values for _sizes, values in at_sizes])
    return graph_module, at_sizes


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
        return True
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


def _run(graph_module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Values:
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


def _mark_constants(graph_module: fx.GraphModule, found: Sequence[Values]) -> None:
    """Store the values of nodes that are the same for all inputs and sizes in their ``meta``."""
    known: set[fx.Node] = set()
    unsure: set[fx.Node] = set()  # Their shapes may depend on data.
    first, *others = [_by_name(values) for values in found]
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            known.add(node)
        elif node.op in ("call_module", "call_function"):
            module = _module_of(graph_module, node)
            if not unsure.isdisjoint(node.all_input_nodes) or (
                module is not None and depends_on_data(module, node)
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


def _module_of(graph_module: fx.GraphModule, node: fx.Node) -> OnnxNode | None:
    if node.op != "call_module":
        return None
    module = graph_module.get_submodule(str(node.target))
    assert isinstance(module, OnnxNode)
    return module


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
    sizes = {
        name: size
        for shape, value in zip(named.shapes, inputs, strict=True)
        for name, size in zip(shape, value.shape, strict=True)
        if isinstance(name, str)
    }
    yield sizes, base
    for changed in _others(sizes, named):
        values = [
            _resized(value, [changed[each] if isinstance(each, str) else each for each in shape])
            for shape, value in zip(named.shapes, inputs, strict=True)
        ]
        try:
            found = _run(graph_module, values)
        except Exception as error:
            cause = error.__cause__ or error
            demand = ", ".join(f"{name} == {size}" for name, size in sizes.items())
            raise fixed_dimension(
                f"{demand} ({first_line(cause)})", named, None, engine=side()
            ) from error
        yield changed, found


def _others(sizes: Mapping[str, int], named: NamedInputs) -> Iterator[dict[str, int]]:
    tried: dict[str, list[int]] = {}
    for name, size in sizes.items():
        low, high = named.ranges[name]
        near = [*range(size + 1, size + 6), *range(size - 1, max(low, 2) - 1, -1)]
        tried[name] = [each for each in near if low <= each <= high][:5]
        yield from ({**sizes, name: each} for each in tried[name])
    if len(sizes) > 1:
        for turn in range(3):
            yield {
                n: (found[turn % len(found)] if (found := tried[n]) else sizes[n]) for n in sizes
            }


def _resized(value: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Return a tensor of another shape, with elements of `value` in turn."""
    for axis, size in enumerate(shape):
        if size != value.shape[axis]:
            value = value.index_select(axis, torch.arange(size) % value.shape[axis])
    return value


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
        raise fixed_dimension(_("a result of fixed rank"), named, None, node, side())
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
    first, extent = found[0]
    if all(each == extent for _sizes, each in found):
        return extent
    for text, compute in _candidates(found, first, extent):
        if all(compute(sizes) == each for sizes, each in found):
            return text
    raise fixed_dimension(
        _("a result whose shape is a simple expression of the sizes"), named, None, node, side()
    )


Formula = tuple[str, Callable[[Mapping[str, int]], int]]


def _candidates(
    found: Sequence[tuple[dict[str, int], int]], first: Mapping[str, int], extent: int
) -> Iterator[Formula]:
    """Yield expressions that may give the extent, the plainest first."""
    names = list(first)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            whole = _product(first, chosen)
            text = "*".join(chosen)
            if extent % whole == 0:
                factor = extent // whole
                yield _times(factor, text), _formula(chosen, factor, 0, 1)
            for factor in range(1, 9):
                yield (
                    _plus(_times(factor, text), extent - factor * whole),
                    _formula(chosen, factor, extent - factor * whole, 1),
                )
    for name in names:
        for divisor in range(2, 65):
            for offset in range(-2 * divisor, 2 * divisor + 1):
                more = extent - (first[name] + offset) // divisor
                inner = f"({_plus(name, offset)})" if offset else name
                formula = _formula((name,), 1, offset, divisor, more)
                yield _plus(f"{inner}//{divisor}", more), formula
    if len(names) > 1:
        # A sum of several, as of a past and a present length.
        for count in range(2, len(names) + 1):
            for chosen in itertools.combinations(names, count):
                more = extent - sum(first[name] for name in chosen)
                yield _plus(" + ".join(chosen), more), _sum(chosen, more)


def _product(sizes: Mapping[str, int], names: Sequence[str]) -> int:
    whole = 1
    for name in names:
        whole *= sizes[name]
    return whole


def _formula(
    names: Sequence[str], factor: int, offset: int, divisor: int, more: int = 0
) -> Callable[[Mapping[str, int]], int]:
    return lambda sizes: (factor * _product(sizes, names) + offset) // divisor + more


def _sum(names: Sequence[str], more: int) -> Callable[[Mapping[str, int]], int]:
    return lambda sizes: sum(sizes[name] for name in names) + more


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"{factor}*{text}"


def _plus(text: str, number: int) -> str:
    if not number:
        return text
    return f"{text} + {number}" if number > 0 else f"{text} - {-number}"
