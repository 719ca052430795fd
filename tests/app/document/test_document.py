"""The document: its fields change in transactions, without processes, torch and TVM."""

from __future__ import annotations

import subprocess
import sys
from weakref import ref

import msgspec
import pytest
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import (
    Change,
    Document,
    History,
    Version,
    calls_among,
    with_strategy,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Override, Recipe, Source, Step
from lowerscope.core.model.schedule import Schedule
from lowerscope.core.model.snapshot import FunctionRecord
from tests.app.plain_values import OTHER, RECIPE, TE, WRONG, snapshot

BOUND = msgspec.structs.replace(TE, params_as_inputs=True)
SCHEDULED = msgspec.structs.replace(RECIPE, schedules=(Schedule(function="dense"),))


def settle(document: Document, *nodes: str) -> None:
    """Let the pending version become the document's, as an answer of the engine does."""
    assert document.pending is not None
    document.show(document.pending, snapshot(*(nodes or ("dense", "relu"))))


@pytest.fixture
def document() -> Document:
    """Return a document that shows a recipe."""
    document = Document()
    document.open(RECIPE)
    settle(document)
    return document


def recorded(document: Document) -> list[Change]:
    found: list[Change] = []
    document.changed.connect(found.append)
    return found


# Transactions


def test_a_transaction_tells_once_what_changed_with_all_fields_before_and_after() -> None:
    document = Document()
    changes = recorded(document)
    with document.changing():
        document.set(recipe=RECIPE)
        document.set(recipe=TE, problems=(WRONG,))
        assert document.recipe == TE
        assert changes == []
    (change,) = changes
    assert change.fields == {"recipe", "problems"}
    assert (change.before.recipe, change.after.recipe) == (None, TE)
    assert change.after.problems == (WRONG,)
    assert change.after is document.state


def test_what_is_equal_is_no_change_and_records_derived_again_are_one(document: Document) -> None:
    changes = recorded(document)
    document.set(recipe=msgspec.structs.replace(RECIPE), running=False)
    document.select(())
    with document.changing():
        document.set(running=True)
        document.set(running=False)
    assert changes == []
    document.show(Version(RECIPE), snapshot("dense", "relu"))
    assert ["snapshot" in change.fields for change in changes] == [True]


def test_a_change_made_in_answer_to_another_is_a_change_of_its_own(document: Document) -> None:
    def answer(change: Change) -> None:
        if change.after.running and not change.before.running:
            document.set(running=False)

    document.changed.connect(answer)
    changes = recorded(document)
    document.set(running=True)
    # The inner one comes first to those who connected later.
    assert [change.after.running for change in changes] == [False, True]
    assert not document.running


class Follower(QObject):
    """Counts the changes that it is told."""

    told = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.count = 0

    def note(self) -> None:
        self.count += 1


def test_a_follower_is_told_of_its_fields_alone_and_only_while_it_exists(
    document: Document,
) -> None:
    follower = Follower()
    document.on(("selection", "problems"), follower.note)
    document.select(("fx:dense",))
    document.report(WRONG)
    document.set(running=True)
    assert follower.count == 2
    weak = ref(follower)
    del follower
    assert weak() is None
    document.clear_problems()


def test_a_signal_can_follow(document: Document) -> None:
    follower = Follower(document)
    follower.told.connect(follower.note)
    document.on(("running",), follower.told)
    document.set(running=True)
    assert follower.count == 1


# The recipe and its history


def test_a_recipe_is_pending_until_its_records_arrive() -> None:
    document = Document()
    document.open(RECIPE)
    assert (document.recipe, document.wanted, document.is_open()) == (None, RECIPE, False)
    assert document.is_changing
    settle(document)
    assert (document.recipe, document.wanted, document.is_open()) == (RECIPE, RECIPE, True)
    assert not document.is_changing
    assert document.has_torch()


def test_each_change_is_a_step_to_undo_and_to_redo(document: Document) -> None:
    document.change(TE)
    settle(document)
    document.change(BOUND)
    settle(document)
    assert (document.before, document.can_redo) == (TE, False)
    document.undo()
    settle(document)
    document.undo()
    settle(document)
    assert (document.recipe, document.can_undo, document.can_redo) == (RECIPE, False, True)
    document.redo()
    settle(document)
    assert document.recipe == TE
    document.change(RECIPE)
    settle(document)
    assert not document.can_redo


def test_a_change_back_to_what_is_shown_withdraws_what_is_pending(document: Document) -> None:
    document.change(TE)
    document.change(RECIPE)
    assert document.pending is None
    assert not document.can_undo
    document.change(TE)
    document.undo()
    assert (document.wanted, document.can_redo) == (RECIPE, True)


def test_undo_leads_to_the_steps_that_were_being_applied() -> None:
    document = Document()
    fused = msgspec.structs.replace(RECIPE, steps=(Step(name="FuseOps"),))
    document.open(fused)
    document.show_lowered(snapshot("dense", "relu"))
    assert document.recipe == msgspec.structs.replace(fused, steps=())
    document.change(msgspec.structs.replace(fused, lowering="te"))
    settle(document)
    document.undo()
    assert document.wanted == fused
    settle(document)
    assert not document.can_undo


def test_an_opened_source_can_be_withdrawn_by_undo(document: Document) -> None:
    other = Recipe(source=Source(spec="sample:resnet18"))
    document.open(other)
    assert document.can_undo
    document.undo()
    assert (document.wanted, document.pending) == (RECIPE, None)


def test_the_open_source_opened_with_other_choices_can_be_undone(document: Document) -> None:
    document.change(SCHEDULED)
    document.open(TE)
    settle(document)
    document.undo()
    assert document.wanted == SCHEDULED


def test_a_change_of_schedules_that_are_not_applied_needs_no_records(document: Document) -> None:
    document.report(WRONG)
    changes = recorded(document)
    document.change(SCHEDULED)
    assert (document.recipe, document.pending, document.before) == (SCHEDULED, None, RECIPE)
    assert [change.fields for change in changes] == [{"recipe", "history", "problems"}]
    document.amend(RECIPE)
    assert (document.recipe, document.before) == (RECIPE, RECIPE)


def test_a_rejected_version_leaves_what_is_shown_and_can_be_tried_again(document: Document) -> None:
    document.change(TE)
    document.reject(WRONG)
    assert (document.recipe, document.wanted) == (RECIPE, RECIPE)
    assert (document.rejected, document.problems) == (TE, (WRONG,))
    document.retry(BOUND)
    assert document.history == History(undo=(RECIPE,))
    settle(document)
    assert (document.recipe, document.before, document.problems) == (BOUND, RECIPE, ())


def test_a_cancelled_version_is_no_problem(document: Document) -> None:
    document.change(TE)
    document.reject(Problem(what="", code="cancelled"))
    assert (document.wanted, document.problems, document.rejected) == (RECIPE, (), None)


def test_a_reload_requests_the_same_version_anew(document: Document) -> None:
    document.change(TE)
    changes = recorded(document)
    document.reload()
    assert document.pending == Version(TE, History((RECIPE,)), reads_files=True)
    document.reload()
    assert [change.fields for change in changes] == [{"pending"}] * 2
    document.reject(WRONG)
    document.reload()
    assert document.wanted == TE


def test_a_failure_of_what_is_shown_ends_when_it_is_derived_again(document: Document) -> None:
    document.reject_shown(WRONG)
    assert (document.recipe, document.rejected) == (RECIPE, RECIPE)
    document.accept_shown()
    assert document.problems == ()
    document.report(WRONG)
    document.accept_shown()
    assert document.problems == (WRONG,)


def test_fields_of_the_wanted_recipe_are_changed_as_one_step(document: Document) -> None:
    document.change_fields(lowering="te")
    document.change_fields(params_as_inputs=True)
    assert document.wanted == BOUND
    settle(document)
    assert document.before == RECIPE


def test_nodes_are_lowered_as_one_step(document: Document) -> None:
    document.lower_nodes(["fx:dense", "fx:relu", "tir:dense"], "te")
    assert document.wanted is not None
    assert document.wanted.overrides == (
        Override(pattern="fx:dense", strategy="te"),
        Override(pattern="fx:relu", strategy="te"),
    )
    assert document.history == History(undo=(RECIPE,))


# Selection, jobs and notices


def test_what_still_exists_stays_selected(document: Document) -> None:
    document.select(("fx:dense", "fx:relu"))
    document.change(TE)
    settle(document, "relu")
    assert document.selection.chosen == ("fx:relu",)
    assert document.selection.linked == {"fx:relu", "tir:relu"}
    assert document.linked_to("tir:relu") == {"fx:relu"}


def test_nothing_is_selected_in_another_model(document: Document) -> None:
    document.select(("fx:relu",))
    document.open(OTHER)
    settle(document, "relu")
    assert document.selection.chosen == ()


def test_entities_are_added_to_the_selection_and_removed(document: Document) -> None:
    document.select(("fx:dense",))
    document.select(("fx:relu", "fx:dense"), extend=True)
    assert document.selection.chosen == ("fx:relu",)
    document.select(("fx:nowhere",))
    assert document.selection.chosen == ()


def test_functions_of_a_step_can_be_selected_while_it_is_current(document: Document) -> None:
    fused = FunctionRecord(id="tir:fused", name="fused", kind="tensorir", calls=("fx:dense",))
    document.show_functions((fused,))
    document.select(("tir:fused",))
    assert document.selection.chosen == ("tir:fused",)
    assert document.function_at_step("tir:fused/block") == fused
    document.show_functions(())
    assert document.selection.chosen == ("fx:dense",)


def test_a_notice_is_told_again_and_a_job_once(document: Document) -> None:
    changes = recorded(document)
    document.notify("Saved", "info")
    document.notify("Saved", "info")
    document.say("Compiling", 0.5, of="run")
    document.say("Compiling", 0.5, of="run")
    document.say("", of="change")
    assert [change.fields for change in changes] == [{"notice"}, {"notice"}, {"jobs"}]
    assert document.job.text == "Compiling"


def test_the_document_needs_no_widgets_no_torch_and_no_tvm() -> None:
    code = (
        "import sys, lowerscope.app.document.document\n"
        "late = {'torch', 'tvm', 'numpy', 'PySide6.QtWidgets', 'PySide6.QtGui'}\n"
        "engine = [m for m in sys.modules if m.startswith('lowerscope.app.engine.client')]\n"
        "print(sorted(late & set(sys.modules)), engine)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] []"


def test_the_job_reported_last_is_shown_until_its_owner_ends_it(document: Document) -> None:
    document.say("Compiling", 0.5, of="run")
    document.say("Opening")
    assert (document.job.text, document.job.fraction) == ("Opening", None)
    document.say("")
    assert (document.job.text, document.job.fraction) == ("Compiling", 0.5)
    document.say("", of="run")
    assert not document.job.text


def test_jobs_are_cancelled_by_their_owners(document: Document) -> None:
    cancelled: list[str] = []
    document.say("Waiting", of="run", cancel=lambda: cancelled.append("run"))
    document.say("Exporting", of="export", cancel=lambda: cancelled.append("export"))
    document.say("Opening")
    # Progress does not say again how it is cancelled.
    document.say("Compiling", 0.5, of="run")
    document.cancel_jobs()
    assert cancelled == ["export", "run"]
    document.say("", of="run")
    document.cancel_jobs()
    assert cancelled == ["export", "run", "export"]


# Strategies of single nodes


PATTERNED = Recipe(
    source=Source(spec="sample:conv_net"), overrides=(Override(pattern="conv*", strategy="te"),)
)


def test_a_node_has_one_strategy_of_its_own() -> None:
    te = with_strategy(PATTERNED, ["fx:relu", "fx:relu"], "te")
    assert [each.pattern for each in te.overrides] == ["conv*", "fx:relu"]
    library = with_strategy(te, ["fx:relu"], "library")
    assert library.overrides[1:] == (Override(pattern="fx:relu", strategy="library"),)


def test_resetting_a_node_leaves_patterns_and_other_nodes() -> None:
    both = with_strategy(PATTERNED, ["fx:relu", "fx:conv"], "te")
    assert with_strategy(both, ["fx:conv"], None).overrides == (
        *PATTERNED.overrides,
        Override(pattern="fx:relu", strategy="te"),
    )


def test_what_is_no_call_has_no_strategy() -> None:
    records = snapshot("x", "relu", "output")
    fx = tuple(
        msgspec.structs.replace(node, opcode=opcode)
        for node, opcode in zip(records.fx, ("placeholder", "call_module", "output"), strict=True)
    )
    chosen = ["fx:x", "fx:relu", "fx:output", "module:relu"]
    assert calls_among(msgspec.structs.replace(records, fx=fx), chosen) == ["fx:relu"]
