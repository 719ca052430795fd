"""The code of a traced graph, with the nodes of its lines."""

from __future__ import annotations

import torch
from torch import fx, nn

from lowerscope.core.views.graph_records import fx_code


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x @ self.weight)
        return y, y.sum(dim=1, keepdim=True)


def test_each_node_has_its_line() -> None:
    traced = fx.symbolic_trace(Net())
    record = fx_code(traced)
    assert record.text.startswith("def forward(self, x")
    lines = record.text.split("\n")
    shown = {span.entity: lines[span.first - 1].strip() for span in record.spans}
    assert set(shown) == {f"fx:{node.name}" for node in traced.graph.nodes if node.name != "x"}
    assert shown["fx:weight"].startswith("weight = self.weight")
    assert shown["fx:matmul"].startswith("matmul = x @ weight")
    assert shown["fx:sum_1"].startswith("sum_1 = relu.sum(dim = 1")
    assert shown["fx:output"] == "return (relu, sum_1)"
