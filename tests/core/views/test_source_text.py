"""The user's own file, with the nodes that its lines make."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.translation import source_text

MODEL = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 1
        return y * y


def example_inputs():
    return torch.ones(2, 3)


entry = Net
"""


def test_each_line_has_the_nodes_that_it_makes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(MODEL, encoding="utf-8")
    recipe = Recipe(source=Source(spec=str(file)), tracer="fx", lowering="te")
    pipeline = Pipeline()
    record = pipeline.answer(TextQuery(recipe, str(file), "source"))
    assert record.text == MODEL.rstrip("\n")
    assert record.language == "python"
    nodes = {node.name: node for node in pipeline.stages(recipe).traced.graph_module.graph.nodes}
    assert {"relu", "add", "mul"} <= set(nodes)
    lines = record.text.split("\n")
    spans = {span.entity: lines[span.first - 1].strip() for span in record.spans}
    assert spans[f"torch:{file}:6"] == "y = torch.relu(x) + 1"
    assert spans[f"torch:{file}:7"] == "return y * y"


def test_a_file_that_no_node_comes_from(tmp_path: Path) -> None:
    known = SourceLine(file=str(tmp_path / "gone.py"), line=1)
    with pytest.raises(LowerscopeError, match="no FX node comes from other"):
        source_text("other.py", [known])
    linecache.clearcache()
    with pytest.raises(LowerscopeError, match="cannot be read"):
        source_text(known.file, [known])
