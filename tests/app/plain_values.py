"""Records as plain values, and children in whose place a test answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.history import Version
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.snapshot import FunctionRecord, FxNode, ModelRecord, Snapshot, TextRecord


def snapshot(*nodes: str, kind: str = "torch") -> Snapshot:
    """Return records of a model with a function for each of these nodes."""
    words = dict.fromkeys(("target", "args", "kwargs", "dtype", "type", "label"), "")
    return Snapshot(
        model=ModelRecord(title="m", path="", kind=kind, description="", inputs=()),
        fx=tuple(
            FxNode(id=f"fx:{name}", name=name, opcode="call_module", shape=None, **words)
            for name in nodes
        ),
        tracer="fx",
        fx_graph=None,
        relax=TextRecord(text="", language="python"),
        functions=tuple(
            FunctionRecord(id=f"tir:{name}", name=name, kind="tensorir") for name in nodes
        ),
        links=tuple((f"fx:{name}", f"tir:{name}") for name in nodes),
    )


@dataclass
class Sent:
    """A query that a client was given."""

    query: Query[Any]
    on_answer: Callable[[Any], None]
    on_problem: Callable[[Problem], None]
    fate: str = ""

    def answer(self, answer: Any) -> None:
        self.fate = self.fate or "answered"
        self.on_answer(answer)

    def refuse(self, problem: Problem) -> None:
        self.fate = self.fate or "refused"
        self.on_problem(problem)


def document_of(recipe: Recipe, *nodes: str) -> Document:
    """Return a document that shows a recipe."""
    document = Document()
    show(document, recipe, *nodes)
    return document


def show(document: Document, recipe: Recipe, *nodes: str, key: str = "") -> None:
    """Show a recipe with records of its own, as if the engine had derived it."""
    records = msgspec.structs.replace(snapshot(*(nodes or ("dense", "relu"))), key=key)
    document.show(Version(recipe), records)


class Client(QObject):
    """Stands for a child: a test answers in its place."""

    state_changed = Signal(str)
    crashed = Signal(object)
    killed = Signal()
    log = Signal(str)
    printed = Signal(bytes)
    unseen = Signal(object)

    def __init__(self, role: Role, *, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.role = role
        self.state = "ready"
        self.received_bytes = 1000
        self.hands_over = False
        self.pid: int | None = None
        self.sandbox: Any = None
        self.approved: Callable[[], Any] | None = None
        self.memory_limit: int | None = None
        self.sent: list[Sent] = []

    def request(
        self,
        query: Query[Any],
        on_result: Callable[[Any], None],
        on_problem: Callable[[Problem], None],
        _on_progress: object = None,
    ) -> int:
        self.sent.append(Sent(query, on_result, on_problem))
        return len(self.sent) - 1

    def start(self) -> None:
        """Start nothing: it is there."""

    def stop(self) -> None:
        """Stop nothing."""

    def restart(self) -> None:
        """Restart nothing."""

    def drop(self, id: int) -> None:
        self.sent[id].fate = "dropped"

    def abandon(self, id: int, grace_ms: int) -> None:
        self.sent[id].fate = f"killed after {grace_ms}"

    def cancel(self, id: int, _grace_ms: int = 0) -> None:
        self.sent[id].fate = "cancelled"

    def under_way(self) -> dict[int, Query[Any]]:
        return {number: each.query for number, each in enumerate(self.sent) if not each.fate}

    def last(self) -> Sent:
        """Return the query that was sent last."""
        return self.sent[-1]
