"""Writes the page of operators from the table of the tests: ``python -m tests.operator_page``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.core.lowering.operator_table.entries import Entry
from tests.core.lowering.operator_table.table import ENTRIES, FAMILIES

PAGE = Path(__file__).parent.parent / "resources" / "help" / "operators.md"

_INTRODUCTION = """\
# Operators

Written by `python -m tests.operator_page` from the table that the tests run, in
`tests/core/lowering/operator_table/`: {entries} entries with {forms} forms. Every form is compared
with torch, its values, dtype and shape, in every strategy that it has, over shapes, dtypes, layouts
(transposed, sliced, expanded, channels last), negative axes and indices.

HL is high-level (Relax operators), TE a `call_tir` of TensorIR functions, LIB a call of torch. A
form that has LIB alone runs in torch whatever is chosen; the page says why. What is not listed runs
in torch as well, or in parts, if torch breaks it up into operators that are listed.

In half precision, what is computed is computed in float32 and rounded at the end, as torch does it.
NaN stays NaN in activations, pooling, and the largest or smallest along an axis: where TVM's own
TensorIR of a Relax operator loses it, Lowerscope's takes its place, and `rfactor` knows it as well.
`sort`, `argsort`, `topk` and `median` take NaN as the largest, as torch does. Of equal elements,
`topk` names those that come first, where torch names any; a run's comparison of indices
shows it.
"""


def page() -> str:
    """Return the text of the page."""
    forms = sum(len(entry.all_forms) for entry in ENTRIES.values())
    lines = [_INTRODUCTION.format(entries=len(ENTRIES), forms=forms)]
    for title, family in FAMILIES.items():
        lines += [f"\n## {title}\n", "| operator | forms | strategies | dtypes |"]
        lines.append("|---|---|---|---|")
        lines += [line for entry in family.ENTRIES for line in _rows(entry)]
    return "\n".join(lines) + "\n"


def _rows(entry: Entry) -> Iterator[str]:
    dtypes = ", ".join(entry.dtypes())
    if entry.forms:
        stay = " (a Relax operator stays)" if entry.operators_stay else ""
        yield _row(entry.name, entry.forms, f"HL TE{stay} LIB", dtypes)
    reasons: dict[str, list[str]] = {}
    for form, reason in entry.in_torch.items():
        reasons.setdefault(reason.removesuffix(" for"), []).append(form)
    for reason, forms in reasons.items():
        compared = "; values are not compared" if entry.random else ""
        yield _row(entry.name, tuple(forms), f"LIB: {reason}{compared}", dtypes)


def _row(name: str, forms: tuple[str, ...], strategies: str, dtypes: str) -> str:
    shown = "<br>".join(f"`{form}`".replace("|", "\\|") for form in forms)
    return f"| {name} | {shown} | {strategies} | {dtypes} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
