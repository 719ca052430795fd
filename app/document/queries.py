"""Queries of the window: sending, caching and display of the answers.

A view states which query it shows and how; `Queries.watch` does the rest. A cached answer is shown
at once; a new query supersedes the previous one, which is cancelled; a hidden view sends none; a
query whose child crashed is sent once more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document, Of
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query, Role
from lowerscope.core.model.recipe import Recipe

CANCEL_MS = 700
"""Time in which a child must answer a cancellation before it is killed."""

SUPERSEDED_MS = 3000
"""Grace period, in ms, of a child that works on a query of a recipe that is no longer shown."""

HIDDEN_MS = 20_000
"""Grace period, in ms, of a worker that works on a query of a hidden view."""

CACHE_BYTES = 16 * 2**20
"""Bound on the encoded size of the cached answers, in bytes."""

KNOWN_KEYS = 1000
"""Number of recipes whose key is remembered."""

A = TypeVar("A")
OnProblem = Callable[[Problem], None]
OnProgress = Callable[[str, float | None], None]
Key = tuple[int, Query[Any]]


class Client(Protocol):
    """A child as queries know it: see `EngineClient`."""

    role: Role

    @property
    def hands_over(self) -> bool:
        """Return whether the child cannot write to the user's folders."""

    @property
    def part(self) -> str:
        """The part of the recipe that the child is applying: see `recipe.part_of`."""

    @property
    def received_bytes(self) -> int:
        """Encoded size of the answer that is being delivered, in bytes."""

    def request(
        self,
        query: Query[A],
        on_result: Callable[[A], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Send a query, and return the id of the request."""

    def cancel(self, request_id: int, grace_ms: int = CANCEL_MS) -> None:
        """Cancel a request: its problem has the code ``"cancelled"``."""

    def drop(self, request_id: int) -> None:
        """Drop a request: none of its callbacks is called any more."""

    def abandon(self, request_id: int, grace_ms: int) -> None:
        """Drop a request, and kill a child that does not stop in time."""

    def reach(self, remote: Remote, go: Callable[[], None]) -> None:
        """Call `go` as soon as the child may reach a remote machine."""


@dataclass(frozen=True)
class Pending:
    """A query that was sent; its methods do nothing once it has been answered."""

    client: Client
    id: int

    def cancel(self, grace_ms: int = CANCEL_MS) -> None:
        """Cancel it, with a grace period; its problem has the code ``"cancelled"``."""
        self.client.cancel(self.id, grace_ms)

    def drop(self) -> None:
        """Discard it: neither its answer nor a problem is reported."""
        if self.client.role == "worker":
            self.client.abandon(self.id, HIDDEN_MS)
        else:
            self.client.drop(self.id)

    def supersede(self) -> None:
        """Discard it, and kill a child that does not stop soon."""
        self.client.abandon(self.id, SUPERSEDED_MS)


class _Ahead:
    """A query that was sent before its answer is wanted, and what is done with it then."""

    def __init__(self, query: Query[Any], on_answer: Callable[[Any], None]) -> None:
        self.query = query
        self.pending: Pending | None = None
        self.on_answer = on_answer
        self.on_problem: OnProblem = lambda _problem: None
        self.on_progress: OnProgress = lambda _text, _fraction: None


class Slot:
    """Slot for one query of a feature: a new query replaces the pending one."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._pending: Pending | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether a query is pending."""
        return self._pending is not None

    def ask(
        self,
        query: Query[A],
        on_answer: Callable[[A], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> None:
        """Send a query, in place of the pending one."""
        self.drop()

        def take(answer: A) -> None:
            self._pending = None
            on_answer(answer)

        def refuse(problem: Problem) -> None:
            self._pending = None
            on_problem(problem)

        self._pending = self._queries.ask(query, take, refuse, on_progress)

    def cancel(self, grace_ms: int = CANCEL_MS) -> None:
        """Cancel the query; its problem has the code ``"cancelled"``."""
        if self._pending is not None:
            self._pending.cancel(grace_ms)

    def drop(self) -> None:
        """Discard the query: neither its answer nor a problem is reported."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.drop()

    def supersede(self) -> None:
        """Discard the query, and kill a child that does not stop soon."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.supersede()


class Queries(QObject):
    """Sender of queries to the engine and the worker, with a cache of answers.

    Answers to ``cached_first`` queries are cached: they depend on the query and its files alone.
    """

    def __init__(self, engine: Client, worker: Client, parent: QObject) -> None:
        super().__init__(parent)
        self._clients: dict[Role, Client] = {"engine": engine, "worker": worker}
        self._cache: OrderedDict[Query[Any], tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._ahead: _Ahead | None = None
        self._keys: dict[Recipe, str] = {}
        self._watches: WeakValueDictionary[int, Watch] = WeakValueDictionary()
        self._count = count()
        self._reads_files = False
        self.version = 0

    def ask(
        self,
        query: Query[A],
        on_answer: Callable[[A], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> Pending:
        """Send a query without reading the cache; cache the answer if it is ``cached_first``."""
        ahead = self._ahead
        if ahead is not None and ahead.pending is not None and type(ahead.query) is type(query):
            if ahead.query != query:
                self._drop_ahead()
            else:
                self._ahead = None
                ahead.on_answer, ahead.on_problem = on_answer, on_problem
                ahead.on_progress = on_progress or ahead.on_progress
                return ahead.pending
        return self._send(query, on_answer, on_problem, on_progress)

    def _send(
        self,
        query: Query[A],
        on_answer: Callable[[A], None],
        on_problem: OnProblem,
        on_progress: OnProgress | None = None,
    ) -> Pending:
        client, version = self._clients[query.child], self.version

        def take(answer: A) -> None:
            if query.cached_first and version == self.version:
                self._keep(query, answer, client.received_bytes)
            on_answer(answer)

        return Pending(client, client.request(query, take, on_problem, on_progress))

    def ask_ahead(self, query: Query[A], on_answer: Callable[[A], None]) -> None:
        """Send a ``cached_first`` query whose answer may be wanted next, in place of the last one.

        Where it is wanted while it is under way, it is not sent again; where another one of its
        kind is wanted, it is dropped.

        Args:
            on_answer: Called with the answer, if that comes before it is wanted.
        """
        assert query.cached_first
        before = self._ahead
        if query in self._cache or (before is not None and before.query == query):
            return
        self._drop_ahead()
        ahead = self._ahead = _Ahead(query, on_answer)

        def end() -> None:
            if self._ahead is ahead:
                self._ahead = None

        def take(answer: Any) -> None:
            end()
            ahead.on_answer(answer)

        def refuse(problem: Problem) -> None:
            end()
            ahead.on_problem(problem)

        def tell(text: str, fraction: float | None) -> None:
            ahead.on_progress(text, fraction)

        ahead.pending = self._send(query, take, refuse, tell)

    def _drop_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.pending is not None:
            ahead.pending.drop()

    def client(self, role: Role) -> Client:
        """Return the client of a child."""
        return self._clients[role]

    def cached(self, query: Query[A]) -> A | None:
        """Return the cached answer to a query, if any."""
        if not query.cached_first or query not in self._cache:
            return None
        self._cache.move_to_end(query)
        answer: A = self._cache[query][0]
        return answer

    def watch(
        self,
        owner: QObject,
        query: Callable[[], Query[A] | None],
        show: Callable[[A], None],
        refuse: Callable[[Problem], None],
        set_busy: Callable[[bool], None] | None = None,
        on_progress: OnProgress | None = None,
        *,
        while_hidden: bool = False,
    ) -> Watch:
        """Keep a view, or a model, up to date with the answer to a query.

        Args:
            owner: The view or the model, which owns the result; a model is never hidden.
            query: Returns the query for the owner's current state; ``None`` for none.
            show, refuse: Called with the answer, or with the problem.
            set_busy: Called with whether an answer is pending.
            while_hidden: Send queries even while the view is hidden.
        """
        watch = Watch(self, owner, query, show, refuse, set_busy, on_progress, while_hidden)
        self._watches[next(self._count)] = watch
        return watch

    def show(self, recipe: Recipe, key: str) -> None:
        """Note that another recipe is shown, or the same one derived again.

        Supersedes the queries that the worker was sent for the previous recipe. Clears the cache if
        the files of the recipe have changed.

        Args:
            key: Identifies the result of the recipe and its files.
        """
        if self._keys.pop(recipe, key) != key or self._reads_files:
            self.clear()
        self._keys[recipe] = key
        while len(self._keys) > KNOWN_KEYS:
            del self._keys[next(iter(self._keys))]
        for each in tuple(self._watches.values()):
            each.supersede_worker()

    def retry(self) -> None:
        """Send queries once more that failed: a crashed child has been replaced."""
        for each in tuple(self._watches.values()):
            each.retry()

    def note_reload(self) -> None:
        """Note that files are read again: answers count as outdated once a recipe is shown.

        Where the reload fails, views keep what they show.
        """
        self._reads_files = True

    def clear(self) -> None:
        """Forget all cached answers, and count those that are shown as outdated."""
        self.version += 1
        self._reads_files = False
        self._drop_ahead()
        self._cache.clear()
        self._bytes = 0

    def _keep(self, query: Query[Any], answer: Any, size: int) -> None:
        """Cache an answer of `size` bytes, evicting the least recently used ones."""
        _, before = self._cache.pop(query, (None, 0))
        self._cache[query] = (answer, size)
        self._bytes += size - before
        while self._bytes > CACHE_BYTES:
            _, (_, oldest) = self._cache.popitem(last=False)
            self._bytes -= oldest


class Watch(QObject):
    """A view's query and its answer; see `Queries.watch`."""

    def __init__(
        self,
        queries: Queries,
        owner: QObject,
        query: Callable[[], Query[Any] | None],
        show: Callable[[Any], None],
        refuse: Callable[[Problem], None],
        set_busy: Callable[[bool], None] | None,
        on_progress: OnProgress | None,
        while_hidden: bool,
    ) -> None:
        super().__init__(owner)
        self._queries = queries
        self._owner = owner
        self._query = query
        self._show = show
        self._refuse = refuse
        self._set_busy = set_busy or (lambda _: None)
        self._on_progress = on_progress
        self._while_hidden = while_hidden or not isinstance(owner, QWidget)
        self._slot = Slot(queries)
        self._asked: Key | None = None
        self._shown: Key | None = None
        self._refused: Key | None = None
        self._retried: Key | None = None
        owner.installEventFilter(self)

    @property
    def shown(self) -> Query[Any] | None:
        """The query whose answer is shown."""
        return None if self._shown is None else self._shown[1]

    @property
    def pending(self) -> Query[Any] | None:
        """The query that was sent and is not answered yet."""
        return None if self._asked is None else self._asked[1]

    @property
    def refused(self) -> Query[Any] | None:
        """The query whose problem is shown."""
        return None if self._refused is None else self._refused[1]

    @property
    def was_retried(self) -> bool:
        """Return whether the query that failed had been sent again after a crash."""
        return self._refused is not None and self._refused == self._retried

    @property
    def is_current(self) -> bool:
        """Return whether the answer to the current query is shown."""
        query = self._query()
        return self._shown == (None if query is None else (self._queries.version, query))

    def update(self) -> None:
        """Show the answer to the current query once it is available and the view is visible."""
        query = self._query()
        if query is None:
            self._drop()
            self._shown = self._refused = None
            return
        if not self._is_seen():
            self._drop()
            return
        key = self._queries.version, query
        if key in (self._shown, self._refused):
            self._drop()
        elif key != self._asked:
            self._drop()
            self._refused = None
            answer = self._queries.cached(query)
            if answer is not None:
                self._shown = key
                self._show(answer)
            else:
                self._send(key)

    def refresh(self) -> None:
        """Mark the answer or problem that is shown as outdated, and update."""
        self._drop()
        self._shown = self._refused = self._retried = None
        self.update()

    def cancel(self) -> None:
        """Cancel the pending query; its problem has the code ``"cancelled"``."""
        self._slot.cancel()

    def supersede_worker(self) -> None:
        """Supersede a query that the worker was sent."""
        if self._asked is not None and self._asked[1].child == "worker":
            self._slot.supersede()
            self._end()

    def retry(self) -> None:
        """Send a query again that failed, once: a second crash may be due to it.

        One that has no answer yet is under way in the next child, or in the one that did not crash.
        """
        failed = self._refused
        if failed is not None and failed != self._retried:
            self._refused, self._retried = None, failed
            self.update()

    def _is_seen(self) -> bool:
        owner = self._owner
        return self._while_hidden or (isinstance(owner, QWidget) and owner.isVisible())

    def _send(self, key: Key) -> None:
        # The view may say that it waits, in place of the answer that it has shown until now.
        self._asked, self._shown = key, None
        self._set_busy(True)

        def take(answer: Any) -> None:
            self._end()
            self._shown, self._retried = key, None
            self._show(answer)

        def refuse(problem: Problem) -> None:
            self._end()
            self._shown, self._refused = None, key
            self._refuse(problem)

        self._slot.ask(key[1], take, refuse, self._on_progress)

    def _end(self) -> None:
        self._asked = None
        self._set_busy(False)

    def _drop(self) -> None:
        if self._asked is not None:
            self._slot.drop()
            self._end()

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show:
            self._refused = None
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide):
            self.update()
        return super().eventFilter(watched, event)


# --- A long query that the user starts, with its progress and its last answer ---


class KeptAnswer(QObject, Generic[A]):
    """The query in progress, and the last answer, which is shown for the recipes it is for.

    Args:
        of: Owner of the job in the status bar.
    """

    changed = Signal()  # `record`, `running`, `progress` or `problem` changed.

    def __init__(self, document: Document, queries: Queries, of: Of) -> None:
        super().__init__(document)
        self._document = document
        self._slot = Slot(queries)
        self._of = of
        self._asked: Recipe | None = None
        self._outcome: tuple[Recipe, A] | None = None
        # Description of the current work, and the fraction done.
        self.progress: tuple[str, float | None] = ("", None)
        self.problem: Problem | None = None  # The problem that prevented an answer.

    @property
    def running(self) -> bool:
        """Return whether the query is in progress."""
        return self._slot.is_busy

    @property
    def record(self) -> A | None:
        """The answer for the recipe shown."""
        return self.record_of(self._document.recipe)

    def record_of(self, recipe: Recipe | None) -> A | None:
        """Return the answer for a recipe, if it is the last one."""
        if self._outcome is None or recipe is None or self._outcome[0] != self._part_of(recipe):
            return None
        return self._outcome[1]

    def cancel(self) -> None:
        """Cancel the query; a previous answer stays."""
        self._slot.cancel()

    def follow_changes(self) -> None:
        """Supersede the query while the document changes."""
        if self.running and self._document.is_changing:
            self._slot.supersede()
            self._end()
        self.changed.emit()

    def _part_of(self, recipe: Recipe) -> Recipe:
        """Return a recipe without what the answer does not depend on."""
        return recipe

    def _start(self, recipe: Recipe, query: Query[A], doing: str) -> None:
        self._slot.supersede()
        self._asked, self.problem = self._part_of(recipe), None
        self._tell(doing)
        self._slot.ask(query, self._accept, self._refuse, self._tell)
        self.changed.emit()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self.progress = (text, fraction)
        self._document.say(text, fraction, of=self._of, cancel=self.cancel)
        self.changed.emit()

    def _accept(self, record: A) -> None:
        assert self._asked is not None
        self._outcome = (self._asked, record)
        self._end()

    def _refuse(self, problem: Problem) -> None:
        self.problem = None if problem.code == "cancelled" else problem
        self._end()

    def _end(self) -> None:
        self.progress = ("", None)
        self._document.say("", of=self._of)
        self.changed.emit()
