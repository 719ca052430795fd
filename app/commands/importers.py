"""Commands that select the translator of the graph: Lowerscope's rules or TVM's importers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command
from lowerscope.core.recipe import TRANSLATORS

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document


def importing(document: Document) -> tuple[Command, ...]:
    """Return the choices of a translator, for the menu Lowering."""
    tr = document.tr
    titles = {
        "lowerscope": tr("Translate with Lowerscope's r&ules"),
        "tvm-fx": tr("Translate with TVM's fro&m_fx"),
        "tvm-export": tr("Translate with TVM's from_exported_&program"),
    }

    def chosen(translator: str) -> bool:
        return document.wanted is not None and document.wanted.translator == translator

    return tuple(
        Command(
            translator,
            tr("&Lowering"),
            titles[translator],
            partial(document.change_fields, translator=translator),
            enabled=document.has_torch,
            checked=partial(chosen, translator),
            group="translator",
            separated=translator == TRANSLATORS[0],
        )
        for translator in TRANSLATORS
    )
