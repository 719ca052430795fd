"""ONNX models: read from a file, and run node by node or whole by onnxruntime.

Without onnxruntime, ONNX's own reference evaluator runs them, which is slow. Files with external
data are read from the model's folder alone.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import keyword
import operator
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from lowerscope.core.files.paths import check_readable
from lowerscope.core.files.sources import DTYPES
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.texts import _
from lowerscope.core.sources.array_files import UnreadableArrays, check_bytes
from lowerscope.core.sources.examples import Parameter, Signature

_INSTALL = _("Install it with: pip install 'lowerscope[onnx]'")
_LARGEST = 1_900_000_000
"""Limit on a model that onnxruntime is given as bytes: protobuf has none above 2 GB."""

_TIMED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Attention")
"""Operators that onnxruntime runs on several threads also alone."""

RANDOM = (
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("Multinomial", "Bernoulli"),
)
"""Operators that draw random numbers."""


CONSTANT = "constant"
"""Key of the value in the ``meta`` of an FX node that it has for all inputs."""

PATH = "path"
"""Key of the dotted path in the ``meta`` of an FX node of the module that it comes from."""


class OnnxNode(nn.Module):
    """One node of an ONNX graph; it has a subclass for each operator.

    `kind`, `domain`, `version`: its operator, and the version of the operator's set.
    `content`: the node as protobuf has it, with numbered names unless it has graphs of its own.
    `imports`: versions of all sets of operators of the model.
    `inputs`: for each input, the name in `content`, or ``""`` for an optional one that is absent;
        after the operator's own, those of values that graphs of its own read.
    `reads`: the names of the inputs in the model.
    `tensors`: initializers that are part of the node, as protobuf has them.
    `outputs`: names of the outputs that exist.
    """

    def __init__(self, node: Any, imports: Mapping[str, int], tensors: Mapping[str, Any]) -> None:
        super().__init__()
        captured = tuple(dict.fromkeys(_captured(node)))
        self.kind = str(node.op_type)
        self.domain = "" if node.domain == "ai.onnx" else str(node.domain)
        self.version = imports.get(self.domain, 1)
        self.imports = tuple(sorted(imports.items()))
        names = tuple(node.input)
        if not captured and next(_graphs(node), None) is None:
            node = _numbered(node)
        outer = dict(zip(node.input, names, strict=True))
        # onnxruntime's own operators pack weights, and round otherwise where these are inputs; a
        # zero point of int4, which torch does not have, tells the dtype of the result.
        packed = {
            each: tensors[name]
            for each, name in outer.items()
            if hasattr(tensors.get(name), "dims")
            and (self.domain or (self.kind == "QuantizeLinear" and _is_narrow(tensors[name])))
        }
        self.tensors = tuple(_named(tensor, each) for each, tensor in packed.items())
        inputs = [each for each in node.input if each not in packed]
        self.inputs = (*inputs, *captured)
        self.reads = (*(outer[each] for each in inputs), *captured)
        self.outputs = tuple(filter(None, node.output))
        self.content = bytes(node.SerializeToString(deterministic=True))
        self.eval()

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxNode:
        return self

    def forward(self, *inputs: Any) -> Any:
        """Run the node alone."""
        given = {
            name: value
            for name, value in zip(self.inputs, inputs, strict=True)
            if name and value is not None
        }
        try:
            return self._run(given)
        except RuntimeError:
            wide = {
                name: value.double()
                if isinstance(value, torch.Tensor) and value.is_floating_point()
                else value
                for name, value in given.items()
            }
            before = {_type_of(value) for value in given.values()}
            if "float64" not in before or before == {_type_of(value) for value in wide.values()}:
                raise
            # In a run in float64, others compute constants of their own dtype.
            return self._run(wide)

    def _run(self, given: Mapping[str, Any]) -> Any:
        types = tuple((name, _type_of(value)) for name, value in given.items())
        threads = torch.get_num_threads() if self.kind in _TIMED else 1
        run = _of_node(self.content, self.imports, types, self.tensors, self.outputs, threads)
        results = [_tensors(each) for each in run({k: _arrays(v) for k, v in given.items()})]
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def proto(self) -> Any:
        """The node as protobuf has it."""
        import onnx

        node = onnx.NodeProto()
        node.ParseFromString(self.content)
        return node

    def arranged(self, inputs: Sequence[Any]) -> list[Any]:
        """Return what is given for `inputs` in the order of the operator's own inputs.

        What is part of the node is among them, as tensors; ``None`` for an absent one.
        """
        known = dict(zip(self.inputs, inputs, strict=True)) | self._parts
        return [known[each] if each else None for each in self.proto.input]

    @cached_property
    def _parts(self) -> dict[str, torch.Tensor]:
        """Tensors that are part of the node, by name; constants of lowered modules share them."""
        import onnx

        protos = [onnx.TensorProto.FromString(each) for each in self.tensors]
        return {each.name: _tensor_of(_array_of(each)) for each in protos}

    @property
    def is_random(self) -> bool:
        """True for an operator that draws random numbers."""
        return self.kind in RANDOM


class OnnxModel(nn.Module):
    """A model of a file: its initializers as parameters, and its nodes as modules.

    `graph`: the nodes, in their order.
    """

    def __init__(self, model: Any, path: Path) -> None:
        super().__init__()
        self.path = str(path)
        self._content = b"" if model.ByteSize() > _LARGEST else _unshared(model).SerializeToString()
        self.names = tuple(each.name for each in _inputs(model.graph))
        self._dtypes = tuple(
            str(_dtype_of(each.type.tensor_type.elem_type)) for each in _inputs(model.graph)
        )
        self.outputs = tuple(each.name for each in model.graph.output)
        # Set before tensors and nodes are, none of which may take its name.
        self.graph = fx.Graph()
        imports = {str(each.domain): int(each.version) for each in model.opset_import}
        imports.setdefault("", imports.get("ai.onnx", 1))
        self.graph = _Builder(self, self.path, model.graph, imports).graph()
        self.eval()

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxModel:
        return self

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Run the model, with one output as a tensor and more as a dict by name.

        With tensors of other dtypes than the model's, as float64, its nodes are run one by one.
        """
        if tuple(_type_of(each) for each in inputs) != self._dtypes:
            return fx.Interpreter(self, graph=self.graph).run(*inputs, enable_io_processing=False)
        run = _of_model(self._content, self.path, self.outputs, torch.get_num_threads())
        given = {name: _arrays(each) for name, each in zip(self.names, inputs, strict=True)}
        results = [_tensors(each) for each in run(given)]
        if len(results) == 1:
            return results[0]
        return dict(zip(self.outputs, results, strict=True))


def side_of(model: torch.nn.Module | None) -> str:
    """Return the name of what runs a model."""
    return onnx_side() if isinstance(model, OnnxModel) else "torch"


def onnx_side() -> str:
    """Return the name of what runs ONNX models here."""
    return "onnxruntime" if find_spec("onnxruntime") else "onnx"


def load_onnx(path: Path) -> tuple[OnnxModel, Signature, tuple[Path, ...]]:
    """Open an ONNX file; return the model, its inputs, and the files of its external data.

    Raises `LowerscopeError` if onnx is not installed, or the file is damaged, incomplete, or of a
    kind that cannot be opened.
    """
    check_readable(path)
    if find_spec("onnx") is None:
        raise LowerscopeError(
            _("opening an ONNX model requires the package onnx"), where=str(path), todo=_INSTALL
        )
    import onnx

    try:
        check_bytes(path.stat().st_size)
        model = onnx.load_model(str(path), load_external_data=False)
    except UnreadableArrays as error:
        raise _unreadable(path, str(error)) from None
    except Exception as error:  # protobuf raises types of its own
        raise _unreadable(path, last_line(error)) from None
    if not model.graph.output:
        raise _unreadable(path, _("its graph has no outputs"))
    model = _inlined(model, path)
    files = _load_external(model, path)
    signature = Signature(tuple(_parameters(model.graph, path)), tensors_only=True, draws=DTYPES)
    try:
        made = OnnxModel(model, path)
        _of_model(made._content, made.path, made.outputs, torch.get_num_threads())
    except LowerscopeError:
        raise
    except Exception as error:  # onnxruntime and NumPy raise any type for an invalid model
        raise _unreadable(path, _reason(error)) from None
    return made, signature, files


def _unreadable(path: Path, reason: str) -> LowerscopeError:
    return LowerscopeError(
        _("this ONNX model cannot be read: {reason}", reason=reason),
        where=str(path),
        todo=_("Export it again, for example with torch.onnx.export"),
    )


_MOST_NODES = 1_000_000
"""Most nodes of a model with its functions in place of their calls."""


def _inlined(model: Any, path: Path) -> Any:
    """Return a model with the nodes of its functions in place of their calls."""
    if not model.functions:
        return model
    from onnx.inliner import inline_local_functions

    functions = {(each.domain, each.name): each for each in model.functions}
    counts: dict[tuple[str, str], int] = {}

    def count(nodes: Iterable[Any]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key not in counts and key in functions:
                # Found again inside of itself, it counts as too many.
                counts[key] = _MOST_NODES + 1
                counts[key] = count(functions[key].node)
            total += counts.get(key, 1) + sum(count(each.node) for each in _graphs(node))
        return total

    try:
        if count(model.graph.node) > _MOST_NODES:
            raise _unreadable(
                path,
                _("its functions call themselves, or are more than {most} nodes", most=_MOST_NODES),
            )
        return inline_local_functions(model)
    except RecursionError:
        raise _unreadable(path, _("its functions call each other too deeply")) from None
    except LowerscopeError:
        raise
    except Exception as error:  # onnx raises several types for an invalid function
        raise _unreadable(path, last_line(error)) from None


_PREFIX = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : "
    r"(?:Non-zero status code returned while running \w+ node\. Name:'[^']*' Status Message: )?"
)
_PLACE = re.compile(r"\S*/onnxruntime/\S+:\d+ [^\n]*?\) ")


def _reason(error: BaseException) -> str:
    """Return the sentence in an error of onnxruntime, which starts with codes and places."""
    text = _PLACE.sub("", _PREFIX.sub("", str(error).strip()))
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return lines[0][:300].rstrip(". ") if lines else type(error).__name__


# --- External data ---


def _load_external(model: Any, path: Path) -> tuple[Path, ...]:
    """Read the data that is in other files, each of them below the model's folder."""
    from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data

    folder = path.parent.resolve()
    files: dict[Path, None] = {}
    total = 0
    for tensor in _all_tensors(model.graph):
        if not uses_external_data(tensor):
            continue
        given = {each.key: each.value for each in tensor.external_data}
        location = given.get("location", "")
        file = _resolved(folder, location)
        if file is None:
            raise LowerscopeError(
                _(
                    "the data of {name} is outside of the model's folder: {location!r:.80}",
                    name=tensor.name,
                    location=location,
                ),
                where=str(path),
                todo=_("Save the model with its data beside it"),
            )
        if not file.is_file():
            raise LowerscopeError(
                _("the file with the data of {name} is missing", name=tensor.name),
                where=str(file),
                todo=_("Put it beside the model, {name}", name=path.name),
            )
        check_readable(file)
        if file not in files:
            files[file] = None
            total += file.stat().st_size
        try:
            check_bytes(total)
            load_external_data_for_tensor(tensor, str(folder))
        except Exception as error:  # onnx raises several types for offsets outside of the file
            raise _unreadable(
                path, _("the data of {name}: {error}", name=tensor.name, error=last_line(error))
            ) from None
        tensor.data_location = tensor.DEFAULT
        del tensor.external_data[:]
    return tuple(files)


def _resolved(folder: Path, location: str) -> Path | None:
    """Return the path of a file with data; ``None`` unless it is below the model's folder."""
    if not location or PurePosixPath(location).is_absolute():
        return None
    try:
        file = (folder / location).resolve()
        file.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):  # a name that no file can have
        return None
    return file if file.is_relative_to(folder) else None


def _all_tensors(graph: Any) -> Iterator[Any]:
    sparse = list(graph.sparse_initializer)
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
        for each in _graphs(node):
            yield from _all_tensors(each)
    for each in sparse:
        yield from (each.values, each.indices)


# --- Nodes and graphs ---


def _graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs that are attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _captured(node: Any) -> Iterator[str]:
    """Yield the names of the outer values that the graphs of a node read."""
    for graph in _graphs(node):
        known = {each.name for each in (*graph.input, *graph.initializer)}
        for inner in graph.node:
            yield from (each for each in (*inner.input, *_captured(inner)) if each not in known)
            known.update(inner.output)
        yield from (each.name for each in graph.output if each.name not in known)


def _numbered(node: Any) -> Any:
    """Return a node with numbers for names, so that equal nodes have equal content."""
    import onnx

    made = onnx.NodeProto()
    made.CopyFrom(node)
    names = {
        name: f"x{index}" for index, name in enumerate(dict.fromkeys(filter(None, node.input)))
    }
    del made.input[:], made.output[:], made.metadata_props[:]
    made.input.extend(names.get(each, "") for each in node.input)
    made.output.extend(f"y{index}" if each else "" for index, each in enumerate(node.output))
    made.name = made.doc_string = ""
    return made


def _named(tensor: Any, name: str) -> bytes:
    """Return the content of a tensor of protobuf's with another name."""
    made = type(tensor)()
    made.CopyFrom(tensor)
    made.name = name
    return bytes(made.SerializeToString(deterministic=True))


def _without_unread(node: Any, read: set[str]) -> Any:
    """Return a node without its last outputs that nothing reads, if they are optional."""
    count = len(node.output)
    while count > 1 and node.output[count - 1] not in read:
        count -= 1
    if (
        count == len(node.output)
        or node.op_type == "Split"
        or next(_graphs(node), None) is not None
    ):
        return node
    made = type(node)()
    made.CopyFrom(node)
    del made.output[count:]
    return made


def _unshared(model: Any) -> Any:
    """Return a model in which each node whose weights onnxruntime repacks has weights of its own.

    It repacks those of int8, and fails for an initializer that several nodes read.
    """
    import onnx

    initializers = {each.name: each for each in model.graph.initializer}
    packed = [
        (node, index)
        for node in model.graph.node
        if node.op_type in _SATURATING
        for index, name in enumerate(node.input)
        if name in initializers and initializers[name].data_type == onnx.TensorProto.INT8
    ]
    readers = Counter(node.input[index] for node, index in packed)
    if all(count == 1 for count in readers.values()):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    taken = {*initializers, *(each for node in made.graph.node for each in node.output)}
    for node in made.graph.node:
        if node.op_type in _SATURATING:
            for index, name in enumerate(node.input):
                if readers[name] > 1:
                    own = next(n for i in itertools.count() if (n := f"{name}_{i}") not in taken)
                    taken.add(own)
                    made.graph.initializer.add().CopyFrom(initializers[name])
                    made.graph.initializer[-1].name = own
                    node.input[index] = own
    return made


def _inputs(graph: Any) -> list[Any]:
    """Return the inputs of a graph that are no initializers."""
    known = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in known]


def _inputs_by_name(graph: Any) -> Iterator[tuple[Any, str]]:
    """Yield the inputs of a graph with different identifiers for their names."""
    taken: set[str] = set()
    for each in _inputs(graph):
        plain = _identifier(each.name, "input")
        numbered = (f"{plain}_{number}" for number in itertools.count(2))
        name = next(made for made in itertools.chain([plain], numbered) if made not in taken)
        taken.add(name)
        yield each, name


def _dtype_of(number: int) -> Any:
    """Return NumPy's dtype for ONNX's number of it; ``""`` for a number that stands for none."""
    from onnx.helper import tensor_dtype_to_np_dtype

    try:
        return tensor_dtype_to_np_dtype(number)
    except KeyError:
        return ""


def _parameters(graph: Any, path: Path) -> Iterator[Parameter]:
    for each, name in _inputs_by_name(graph):
        kind = each.type.WhichOneof("value")
        tensor = each.type.tensor_type
        dtype = ""
        if kind == "tensor_type":
            dtype = str(_dtype_of(tensor.elem_type))
        if dtype not in DTYPES:
            what = dtype if dtype not in ("", "object") else _("no tensor of numbers")
            raise LowerscopeError(
                _("its input {name} is {what}", name=each.name, what=what),
                where=str(path),
                todo=_("Its inputs may be {dtypes}", dtypes=_(", ").join(DTYPES)),
            )
        # Some exporters write -1 for a size that is not known.
        shape = tuple(
            dim.dim_value
            if dim.HasField("dim_value") and dim.dim_value >= 0
            else _identifier(dim.dim_param, f"dim{axis}")
            for axis, dim in enumerate(tensor.shape.dim)
        )
        yield Parameter(name, shape=shape if tensor.HasField("shape") else None, dtype=dtype)


_OTHER = re.compile(r"\W+", re.ASCII)


def _identifier(name: str, other: str) -> str:
    """Return a name with underscores in place of what no identifier has."""
    made = _OTHER.sub("_", name).strip("_") or other
    made = f"{other}_{made}" if made[0].isdecimal() else made
    return f"{made}_" if keyword.iskeyword(made) else made


class _Builder:
    """The FX graph of an ONNX graph, whose nodes and tensors are attributes of `root`.

    `path`: the model's file, for errors.
    `imports`: versions of the sets of operators.
    `captured`: names of outer values that it reads, which are its last inputs.
    """

    def __init__(
        self,
        root: nn.Module,
        path: str,
        proto: Any,
        imports: Mapping[str, int],
        captured: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._path = path
        self._graph = fx.Graph()
        self._proto = proto
        self._imports = imports
        self._captured = captured
        self._values: dict[str, fx.Node] = {}
        self._tensors: dict[str, Any] = {each.name: each for each in self._proto.initializer}

    def graph(self) -> fx.Graph:
        """Return the graph with what the outputs depend on; several outputs are a dict by name."""
        values = self._results()
        outputs = {each.name: made for each, made in zip(self._proto.output, values, strict=True)}
        self._graph.output(outputs if len(outputs) > 1 else next(iter(outputs.values())))
        return self._graph

    def body(self) -> fx.GraphModule:
        """Return the graph of an attribute of a node, whose outputs are a tuple."""
        self._graph.output(tuple(self._results()))
        return fx.GraphModule(self._root, self._graph)

    def _results(self) -> list[fx.Node]:
        if self._proto.sparse_initializer:
            raise LowerscopeError(
                _("it has sparse initializers"),
                where=self._path,
                todo=_("Export it with dense ones"),
            )
        for each, name in _inputs_by_name(self._proto):
            self._values[each.name] = self._graph.placeholder(name)
        for outer in self._captured:
            self._values.setdefault(outer, self._graph.placeholder(_identifier(outer, "outer")))
        for each in self._needed():
            self._add(each)
        return [self._value(each.name) for each in self._proto.output]

    def _needed(self) -> list[Any]:
        """Return the nodes that outputs depend on; a constant is a tensor and no node."""
        read = {each.name for each in self._proto.output}
        found = []
        for node in reversed(self._proto.node):
            if read.isdisjoint(node.output):
                continue
            if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
                self._tensors[node.output[0]] = node
                continue
            found.append(_without_unread(node, read))
            read.update((*node.input, *_captured(node)))
            read.discard("")
        return found[::-1]

    def _add(self, node: Any) -> None:
        module = _class_of(str(node.op_type))(node, self._imports, self._tensors)
        args = tuple(self._value(each) if each else None for each in module.reads)
        path, leaf = _path_of(node)
        target = _attach(self._root, path, leaf, module)
        made = self._graph.call_module(target, args)
        made.meta[PATH] = target.rpartition(".")[0]
        if len(module.outputs) == 1:
            self._values[next(filter(None, node.output))] = made
            return
        for index, name in enumerate(filter(None, node.output)):
            self._values[name] = member = self._graph.call_function(operator.getitem, (made, index))
            member.meta[PATH] = made.meta[PATH]

    def _value(self, name: str) -> fx.Node:
        if name not in self._values:
            if name not in self._tensors:
                raise LowerscopeError(
                    _("no node computes {name}, which is read", name=name),
                    where=self._path,
                    todo=_("Export it again, for example with torch.onnx.export"),
                )
            tensor = self._tensor(name, self._tensors[name])
            *path, leaf = [part for part in re.split(r"[./:]+", name) if part] or ["tensor"]
            path, leaf = [_OTHER.sub("_", each) for each in path], _identifier(leaf, "tensor")
            target = _attach(self._root, path, leaf, tensor)
            self._values[name] = self._graph.get_attr(target)
        return self._values[name]

    def _tensor(self, name: str, proto: Any) -> torch.Tensor:
        try:
            given = proto if not hasattr(proto, "op_type") else _constant_of(proto)
            tensor = _tensor_of(_array_of(given) if hasattr(given, "dims") else np.asarray(given))
        except Exception as error:  # NumPy raises several types for sizes that do not fit
            raise _unreadable(
                Path(self._path), _("the tensor {name}: {error}", name=name, error=error)
            ) from None
        return nn.Parameter(tensor, requires_grad=False) if tensor.is_floating_point() else tensor


def _is_narrow(tensor: Any) -> bool:
    from onnx import TensorProto

    return TensorProto.DataType.Name(tensor.data_type).lower() in _NARROW


def _array_of(tensor: Any) -> Any:
    """Return a tensor of protobuf's as an array.

    Raises an error of several types if it is none.
    """
    from onnx.helper import tensor_dtype_to_np_dtype
    from onnx.numpy_helper import to_array

    if hasattr(tensor, "indices"):
        raise TypeError(_("it is sparse"))
    if any(each < 0 for each in tensor.dims):
        raise ValueError(_("its shape has a negative size"))
    try:
        tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError:
        raise TypeError(_("its dtype {number} is unknown", number=tensor.data_type)) from None
    return to_array(tensor)


def _constant_of(node: Any) -> Any:
    """Return the value of a node ``Constant``: a tensor of protobuf's, a number or a list."""
    from onnx.helper import get_attribute_value

    if len(node.attribute) != 1:
        raise ValueError(_("it has {count} values", count=len(node.attribute)))
    attribute = node.attribute[0]
    value = get_attribute_value(attribute)
    if attribute.name in ("value_float", "value_floats"):
        return np.asarray(value, np.float32)
    return np.asarray(value, np.int64) if attribute.name.startswith("value_int") else value


def bodies_of(module: OnnxNode) -> dict[str, fx.GraphModule]:
    """Return the graphs of a node with control flow, by attribute.

    Each takes its own inputs, and then the values that any of them captures: the last inputs of
    the node. It gives a tuple.
    """
    node = module.proto
    captured = module.inputs[len(node.input) :]
    return {
        str(attribute.name): _Builder(
            nn.Module(), "", attribute.g, dict(module.imports), captured
        ).body()
        for attribute in node.attribute
        if attribute.HasField("g")
    }


def node_of(
    kind: str, imports: Mapping[str, int], inputs: Sequence[str], **attributes: Any
) -> OnnxNode:
    """Return a node of one of ONNX's own operators with one output.

    `inputs`: different names; ``""`` for one that is absent.
    """
    from onnx.helper import make_node

    return _class_of(kind)(make_node(kind, inputs, ["y"], **attributes), imports, {})


@cache
def _class_of(kind: str) -> type[OnnxNode]:
    """Return the class of an operator's nodes."""
    name = _identifier(kind, "Operator")
    return type(name, (OnnxNode,), {"__module__": "onnx", "__qualname__": name})


def _path_of(node: Any) -> tuple[list[str], str]:
    """Return the path of a node's module, and its own name there, as torch's exporters write it."""
    given = {each.key: each.value for each in node.metadata_props}
    scopes: Any = None
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        scopes = ast.literal_eval(given.get("pkg.torch.onnx.name_scopes", ""))
    if isinstance(scopes, list) and len(scopes) > 1 and all(type(each) is str for each in scopes):
        return _parts(scopes[-2].split(".")), _leaf(node.op_type)
    parts = [each for each in node.name.split("/") if each]
    if node.name.startswith("/") and len(parts) > 1:
        path: list[str] = []
        for before, part in zip(["", *parts], parts[:-1], strict=False):
            path += part.removeprefix(f"{before}.").split(".") if before else part.split(".")
        return _parts(path), _leaf(parts[-1])
    return [], _leaf(node.name or node.op_type)


def _parts(path: Iterable[str]) -> list[str]:
    return [_OTHER.sub("_", each) for each in path if each]


def _leaf(name: str) -> str:
    return _identifier(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(), "node")


def _attach(root: nn.Module, path: Sequence[str], leaf: str, value: Any) -> str:
    """Set an attribute of the module at a path, which is made; return its whole path.

    A name that is taken is numbered.
    """
    at, names = root, list[str]()
    for part in path:
        child = at._modules.get(part)
        while (child is None and hasattr(at, part)) or isinstance(child, OnnxNode):
            part = f"{part}_"
            child = at._modules.get(part)
        if child is None:
            child = nn.Module()
            at.add_module(part, child)
        at, names = child, [*names, part]
    name, counts = leaf, at.__dict__.setdefault("_numbers", Counter())
    while hasattr(at, name):
        counts[leaf] += 1
        name = f"{leaf}_{counts[leaf]}"
    if isinstance(value, nn.Module):
        at.add_module(name, value)
    elif isinstance(value, nn.Parameter):
        at.register_parameter(name, value)
    else:
        at.register_buffer(name, value)
    return ".".join([*names, name])


# --- Running ---

Run = Callable[[dict[str, Any]], list[Any]]


@lru_cache(maxsize=4)
def _of_model(content: bytes, path: str, outputs: tuple[str, ...], threads: int) -> Run:
    return _session(content or path, outputs, threads)


@lru_cache(maxsize=2048)
def _of_node(
    content: bytes,
    imports: tuple[tuple[str, int], ...],
    types: tuple[tuple[str, str], ...],
    tensors: tuple[bytes, ...],
    outputs: tuple[str, ...],
    threads: int,
) -> Run:
    """Return what runs a model of one node, with inputs of these types and these initializers."""
    import onnx
    from onnx import helper

    node = onnx.NodeProto()
    node.ParseFromString(content)
    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_value_info(name, _proto_of(kind)) for name, kind in types],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.TensorProto.FromString(each) for each in tensors],
    )
    sets = [helper.make_opsetid(domain, version) for domain, version in imports]
    model = helper.make_model(graph, opset_imports=sets, ir_version=min(10, onnx.IR_VERSION))
    if node.op_type in _SATURATING and any(kind == "int8" for _name, kind in types):
        # onnxruntime has precise ones for weights that are initializers only.
        return _evaluator(model.SerializeToString(), outputs)
    return _session(model.SerializeToString(), outputs, threads)


_SATURATING = ("MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv")
"""Operators whose sums of products of uint8 and int8 saturate in onnxruntime on some processors."""


def _session(model: bytes | str, outputs: tuple[str, ...], threads: int) -> Run:
    if onnx_side() == "onnx":
        return _evaluator(model, outputs)
    # It reports its use to its makers otherwise, from the import on.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Absent

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # It would compute quantised layers in integers, which rounds otherwise than the graph's nodes.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    # Without it, sums of products of uint8 and int8 saturate on processors without VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Absent:
        # Some operators and dtypes have no implementation for processors.
        return _evaluator(model, outputs)
    except Exception as error:  # onnxruntime has a type for each kind of failure
        raise RuntimeError(_reason(error)) from None
    if any(each.type in _NOT_PASSED for each in (*session.get_inputs(), *session.get_outputs())):
        return _evaluator(model, outputs)

    def run(given: dict[str, Any]) -> list[Any]:
        try:
            return list(session.run(list(outputs), given))
        except Exception as error:  # onnxruntime has a type for each kind of failure
            raise RuntimeError(_reason(error)) from None

    return run


_NOT_PASSED = (
    *("tensor(bfloat16)", "tensor(int4)", "tensor(uint4)", "tensor(int2)", "tensor(uint2)"),
    *(f"tensor(float8{each})" for each in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")),
)
"""Types of inputs and outputs that onnxruntime has no arrays for."""


def _evaluator(model: bytes | str, outputs: tuple[str, ...]) -> Run:
    import onnx
    from onnx.reference import ReferenceEvaluator

    proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    evaluator = ReferenceEvaluator(proto)
    return lambda given: list(evaluator.run(list(outputs), given))


def _arrays(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_arrays(each) for each in value]
    value = value.detach().contiguous()
    kind = str(value.dtype).removeprefix("torch.")
    if kind in _BITS:
        import ml_dtypes

        return value.view(getattr(torch, _BITS[kind])).numpy().view(getattr(ml_dtypes, kind))
    return value.numpy()


def _tensors(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(each) for each in value]
    return None if value is None else _tensor_of(value)


def _tensor_of(value: Any) -> torch.Tensor:
    """Return a copy of an array as a tensor.

    Raises a `TypeError` if torch does not have its dtype.
    """
    array = np.array(value, order="C")
    kind = array.dtype.name
    if kind in _NARROW:
        array, kind = array.astype(_NARROW[kind]), _NARROW[kind]
    if kind in _BITS:
        return torch.from_numpy(array.view(_BITS[kind])).view(getattr(torch, kind))
    if array.dtype.kind not in "biufc":
        what = _("strings") if array.dtype.kind in "OUS" else kind
        raise TypeError(_("torch has no tensors of {what}", what=what))
    # Of several types of C of one size, torch knows one.
    return torch.from_numpy(array.view(kind)).reshape(array.shape)


_BITS = {
    "bfloat16": "uint16",
    **dict.fromkeys(
        ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), "uint8"
    ),
}
"""Dtypes of torch that NumPy has from a package, with the dtype of the same bits."""


_NARROW = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
"""Integers of less than a byte, which torch has no tensors of, with those that hold them."""


def _type_of(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"seq({_type_of(value[0]) if value else 'float32'})"
    return str(value.dtype).removeprefix("torch.")


def _proto_of(kind: str) -> Any:
    from onnx import helper

    if kind.startswith("seq("):
        return helper.make_sequence_type_proto(_proto_of(kind[4:-1]))
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, kind) if kind in _BITS else kind)
    element = helper.np_dtype_to_tensor_dtype(dtype)
    return helper.make_tensor_type_proto(element, None)
