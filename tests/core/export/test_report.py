"""Reports: one file without a network, with the figures of the records."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.files.report import write_report
from lowerscope.core.model.comparison_records import ErrorBudget, NodeErrors, Variant
from lowerscope.core.model.explanation_records import BisectRecord, WrittenFile
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Source, from_json
from lowerscope.core.model.run_records import RunRecord

WRONG = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU, strategy="te")
def shifted(builder, node, x):
    return builder.emit(relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32")))
"""

WITHOUT_END = ("meta", "link", "img", "br", "hr", "input")


class Page(HTMLParser):
    """The contents of a report.

    Attributes
    ----------
    tables
        The rows of each table by its name, the titles first; a cell is its words and its figure.
    texts
        The words of elements with an id.
    references
        Attributes by which an element would fetch something.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[list[list[str]]]]] = {}
        self.texts: dict[str, str] = {}
        self.references: list[str] = []
        self.open: list[str] = []
        self._table: list[list[list[str]]] | None = None
        self._place = ""
        self.feed(text)
        assert self.open == [], "an element has no end"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.references += [f"{tag} {name}" for name in given if name in ("src", "href", "srcset")]
        if tag not in WITHOUT_END:
            self.open.append(tag)
        if tag == "table":
            self._table = []
            self.tables.setdefault(given["aria-label"], []).append(self._table)
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th") and self._table is not None:
            self._table[-1].append(["", given.get("data-value", "")])
        elif tag == "pre":
            self._place = given["id"]
            self.texts[self._place] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self._table = None
        elif tag == "pre":
            self._place = ""

    def handle_data(self, data: str) -> None:
        if self._place:
            self.texts[self._place] += data
        elif self._table and self._table[-1] and {"td", "th"} & set(self.open):
            self._table[-1][-1][0] += data


def rows(page: Page, name: str, place: int = 0) -> dict[str, dict[str, tuple[str, str]]]:
    """Return the rows of a table by their first cell, each by its titles."""
    titles, *others = page.tables[name][place]
    names = [title for title, _ in titles]
    return {
        row[0][0]: {each: (words, figure) for each, (words, figure) in zip(names, row, strict=True)}
        for row in others
    }


def test_a_report_on_a_run_has_its_figures_and_opens_without_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.html"
    file.write_text("what was there before")
    arguments = ["run", "sample:fashion_mlp", "--lowering", "te", "--json", "--html", str(file)]
    assert main(arguments) == 0
    record = json.loads(capsys.readouterr().out)
    text = file.read_text(encoding="utf-8")
    page = Page(text)
    assert page.references == []
    assert not re.search(r"https?:|//\w|@import|url\(", text)
    assert "<title>fashion_mlp – Lowerscope</title>" in text
    assert "✓ matches torch" in text
    assert duration_text(record["tvm_ms"]) in text
    nodes = rows(page, "Nodes")
    assert list(nodes) == ["x", "linear0", "relu", "linear1", "output"]
    for node in record["nodes"]:
        if node["id"].startswith("fx:"):
            row = nodes[node["id"].removeprefix("fx:")]
            for title, field in (("abs error", "max_abs_error"), ("TVM", "milliseconds")):
                assert row[title][1] == ("" if node[field] is None else repr(node[field]))
            assert bool(row["torch"][1]) == bool(row["how"][0])
    assert nodes["linear0"]["how"][0] == "TE"
    assert nodes["linear0"]["functions"][0] == "dense, add"
    calls = rows(page, "Calls")
    spent = {call["function"]: call["milliseconds"] for call in record["calls"]}
    assert {name: float(row["time"][1]) for name, row in calls.items()} == spent
    recipe = from_json(page.texts["recipe0"])
    assert recipe == Recipe(
        source=Source(spec="sample:fashion_mlp"), lowering="te", target="native"
    )
    facts = {row[0][0]: row[1][0] for row in page.tables["Versions and machine"][0]}
    assert {"Lowerscope", "torch", "TVM", "Python", "processor", "threads"} <= set(facts)


def test_a_report_on_variants_has_a_bar_for_each_and_names_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, file = tmp_path / "wrong.py", tmp_path / "compare.html"
    wrong.write_text(WRONG)
    options = ["--rules", str(wrong), "--lowering", "te", "--lowering", "high-level"]
    options += ["--html", str(file)]
    assert main(["compare", "sample:fashion_mlp", *options, "--json"]) == 1
    variants = json.loads(capsys.readouterr().out)["variants"]
    page = Page(file.read_text(encoding="utf-8"))
    assert page.references == []
    shown = rows(page, "Variants")
    assert list(shown) == ["TE", "high-level", "torch"]
    times = {each["name"]: each["record"]["tvm_ms"] for each in variants}
    longest = max(*times.values(), *(each["record"]["torch_ms"] for each in variants))
    assert shown["torch"]["median"][1] == repr(variants[0]["record"]["torch_ms"])
    for each in variants:
        row, record = shown[each["name"]], each["record"]
        assert row["median"][1] == repr(record["tvm_ms"])
        assert row["torch"][1] == repr(record["torch_ms"])
        assert row["functions"][0] == str(record["functions"])
        assert float(row["time"][1]) == pytest.approx(record["tvm_ms"] / longest)
    assert shown["TE"]["verdict"][0] == "✕ differs from torch"
    assert "The first node that differs is <b>relu</b>" in file.read_text(encoding="utf-8")
    relu = rows(page, "Nodes")["relu"]
    assert relu["status"][0].startswith("✕ differs")
    assert relu["status"][0].endswith("first difference")
    assert [from_json(page.texts[f"recipe{place}"]).lowering for place in (0, 1)] == [
        "te",
        "high-level",
    ]


def test_what_names_say_is_no_html(tmp_path: Path) -> None:
    spec = str(tmp_path / "<script>{{body}}&.py")
    variant = Variant(name="<b>bold</b>", recipe=Recipe(source=Source(spec=spec)))
    problem = LowerscopeError("a < b & c", where="<here>").problem
    variant = Variant(name=variant.name, recipe=variant.recipe, problem=problem)
    file = write_report(str(tmp_path / "report.html"), (variant, variant))
    text = file.read_text(encoding="utf-8")
    assert Page(text).texts["recipe0"].count("<script>{{body}}&.py") == 1
    assert text.count("<script>") == 1
    assert "a &lt; b &amp; c" in text
    assert "<b>bold" not in text


def test_the_wrong_step_is_in_it_with_its_program(tmp_path: Path) -> None:
    record = BisectRecord(
        outcome="found",
        text="The module differs after step 4 (FuseOps).",
        files=(WrittenFile(name="reproduce.py", content=b"assert 1 < 2\n"),),
    )
    figures = dict.fromkeys(
        ("max_abs_error", "rtol", "atol", "torch_ms", "tvm_ms", "build_ms"), 1.0
    )
    run = RunRecord(
        verdict="differ", reason="", max_rel_error=1.0, functions=1, outputs=(), **figures
    )
    recipe = Recipe(source=Source(spec="sample:matmul"))
    errors = NodeErrors(id="fx:relu", item=0, operator="relu", tvm=4e-6, torch=1e-6, made=1e-7)
    budget = ErrorBudget(nodes=(errors,))
    variant = Variant(
        name="one",
        recipe=recipe,
        record=run,
        wrong_step=record,
        rounding=budget,
        reasons=(("10 FuseOps", "Nothing was grouped"),),
    )
    text = write_report(str(tmp_path / "report.html"), (variant,)).read_text()
    page = Page(text)
    assert "assert 1 < 2\n" in page.texts.values()
    row = rows(page, "Errors against float64")["relu"]
    assert (row["nearer"][0], row["torch"][1]) == ("torch", "1e-06")
    assert budget.text in text
    assert rows(page, "Why")["10 FuseOps"]["explanation"][0] == "Nothing was grouped"
