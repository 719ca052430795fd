"""Write the page of operators from the table of the tests: ``python -m tests.operator_page``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.core.lowering.operator_table.entries import Entry
from tests.core.lowering.operator_table.table import ENTRIES, FAMILIES

PAGE = Path(__file__).parent.parent / "resources" / "help" / "operators.md"

_INTRODUCTION = """\
# Operators

This page lists the operators of torch that Lowerscope lowers, by kind: {entries} entries with
{forms:,} forms of calls. Ctrl+F finds one.

| strategy | the operator becomes |
|---|---|
| HL | Relax operators (high-level) |
| TE | calls of TensorIR functions (`call_tir`) |
| LIB | a call of torch (library) |

A form with LIB alone runs in torch in every strategy, for the stated reason. An operator that
is not listed runs in torch, or in parts if torch decomposes it into operators of this list.

- **Half precision** is computed in float32 and rounded at the end, as in torch.
- **NaN** is propagated by activations, pooling, maximum and minimum, as in torch, also where TVM's
  own functions lose it. `sort`, `argsort`, `topk` and `median` treat NaN as the largest value.
- **Ties:** `topk` returns the first of equal elements; torch returns any of them. A run that
  differs by that alone differs by rounding.

The tests compare values, dtype and shape of every form with torch, in every strategy, over shapes,
dtypes, memory layouts (transposed, sliced, expanded, channels last), negative axes and indices.
`python -m tests.operator_page` writes this page from the table in
`tests/core/lowering/operator_table/`.
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
        yield _row(entry.name, tuple(forms), f"LIB: {reason}", dtypes)


def _row(name: str, forms: tuple[str, ...], strategies: str, dtypes: str) -> str:
    shown = "<br>".join(f"`{form}`".replace("|", "\\|") for form in forms)
    return f"| {name} | {shown} | {strategies} | {dtypes} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
