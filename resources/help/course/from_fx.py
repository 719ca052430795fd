"""A translator of one's own: it walks the FX graph and looks up a map for each node."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import tvm
from te_functions import te_matmul, te_relu
from torch import fx, nn
from tvm import relax


class MatmulRelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(128, 128) / 11)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.matmul(x, self.weight))


def translate(
    traced: fx.GraphModule,
    shapes: Mapping[str, tuple[int, ...]],
    functions: Mapping[Any, Callable[..., relax.Var]],
) -> tvm.IRModule:
    bb = relax.BlockBuilder()
    values: dict[fx.Node, Any] = {}
    with bb.function("main"):
        inputs = []
        with bb.dataflow():
            for node in traced.graph.nodes:
                if node.op == "placeholder":
                    kind = relax.TensorType(shapes[node.target], "float32")
                    inputs.append(relax.Var(node.target, kind))
                    values[node] = inputs[-1]
                elif node.op == "get_attr":
                    parameter = getattr(traced, node.target)
                    values[node] = relax.const(parameter.detach().numpy(), "float32")
                elif node.op == "call_function":
                    arguments = [values[each] for each in node.args]
                    values[node] = functions[node.target](bb, *arguments)
                elif node.op == "output":
                    result = bb.emit_output(values[node.args[0]])
        bb.emit_func_output(result, params=inputs)
    return bb.get()


MAP = {
    torch.matmul: lambda bb, a, b: bb.emit_te(te_matmul, a, b),
    torch.relu: lambda bb, a: bb.emit_te(te_relu, a),
}

model = MatmulRelu()
translated = translate(fx.symbolic_trace(model), {"x": (1, 128)}, MAP)


def reference(x: np.ndarray) -> np.ndarray:
    return model(torch.from_numpy(x)).detach().numpy()


entry = "translated"
