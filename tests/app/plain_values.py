"""Records as plain values, and the features' models with a test in the place of both children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Change, Document, Version
from lowerscope.app.engine.child_process import Ending
from lowerscope.app.shell.features import Features
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role, RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import CallRun, RunRecord
from lowerscope.core.model.snapshot import FunctionRecord, FxNode, ModelRecord, Snapshot, TextRecord
from lowerscope.core.sandbox.running_call import RunningCall


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
    on_progress: Callable[[str, float | None], None] | None = None
    fate: str = ""

    def answer(self, answer: Any) -> None:
        self.fate = self.fate or "answered"
        self.on_answer(answer)

    def progress(self, text: str, fraction: float | None = None) -> None:
        assert self.on_progress is not None
        self.on_progress(text, fraction)

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
        self.part = ""
        self.pid: int | None = None
        self.sandbox: Any = None
        self.approved: Callable[[], Any] | None = None
        self.memory_limit: int | None = None
        self.sent: list[Sent] = []
        self.restarts = 0

    def start(self) -> None:
        """Do nothing: it is ready."""

    def stop(self) -> None:
        self.state = "stopped"

    dismiss = stop

    def restart(self) -> None:
        self.restarts += 1

    def be(self, state: str) -> None:
        """Change the state, as a child does that works."""
        self.state = state
        self.state_changed.emit(state)

    def request(
        self,
        query: Query[Any],
        on_result: Callable[[Any], None],
        on_problem: Callable[[Problem], None],
        on_progress: Callable[[str, float | None], None] | None = None,
    ) -> int:
        self.sent.append(Sent(query, on_result, on_problem, on_progress))
        return len(self.sent) - 1

    def reach(self, remote: Remote, go: Callable[[], None]) -> None:
        """Allow any machine."""
        go()

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


RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"))
TE = msgspec.structs.replace(RECIPE, lowering="te")
OTHER = Recipe(source=Source(spec="sample:resnet18"))
WRONG = Problem(what="It is wrong")
CRASHED = Problem(what="The engine crashed", code="crashed")
CANCELLED = Problem(what="", code="cancelled")
RECORD = RunRecord(
    verdict="match",
    reason="",
    max_abs_error=0.0,
    max_rel_error=0.0,
    rtol=1e-4,
    atol=1e-4,
    torch_ms=1.0,
    tvm_ms=1.0,
    build_ms=1.0,
    functions=1,
    outputs=(),
    key="1",
    calls=(
        CallRun(function="dense", milliseconds=2.0, nodes=("fx:dense",), entity="tir:dense"),
        CallRun(function="relu", milliseconds=1.0, nodes=("fx:relu",), entity="tir:relu"),
    ),
)


class Bench:
    """The models, and what they have sent."""

    def __init__(self) -> None:
        self.features = Features()
        self.document = self.features.document
        processes: Any = self.features.processes
        self.engine: Client = processes.engine
        self.worker: Client = processes.worker
        self.notices: list[str] = []
        self.document.changed.connect(self._note)

    def _note(self, change: Change) -> None:
        if "notice" in change.fields and change.after.notice is not None:
            self.notices.append(change.after.notice.text)

    def sent(self, query: type[Query[Any]]) -> Sent:
        """Return the last query of a type, which has not been discarded."""
        found = [
            each
            for client in (self.engine, self.worker)
            for each in client.sent
            if isinstance(each.query, query) and not each.fate
        ]
        return found[-1]

    def count(self, query: type[Query[Any]]) -> int:
        """Return the number of queries of a type."""
        return sum(
            isinstance(each.query, query)
            for client in (self.engine, self.worker)
            for each in client.sent
        )

    def derive(self, key: str = "1") -> None:
        """Answer the engine's query for records."""
        records = msgspec.structs.replace(snapshot("dense", "relu"), key=key)
        self.sent(SnapshotQuery).answer(records)

    def open(self, recipe: Recipe, key: str = "1") -> None:
        """Open a recipe whose records arrive."""
        self.document.open(recipe)
        self.derive(key)

    def change(self, recipe: Recipe) -> None:
        """Change the recipe; its records arrive."""
        self.document.change(recipe)
        self.derive()

    def run(self, record: RunRecord = RECORD) -> None:
        """Run, with this outcome."""
        self.features.runs.run()
        self.sent(RunQuery).answer(record)


def crash(bench: Bench, client: Client, part: str = "") -> None:
    """Let a child crash while it applies a part of the recipe."""
    ending = Ending(role=client.role, how="signal", call=RunningCall(part=part))
    client.crashed.emit(ending)
