"""The list of steps: translation, passes, build and run, with the pipeline edited in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.shared import Shared
from lowerscope.app.document.stepping import ORDER, SECTION_TITLES, StepFilter, StepLine
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton, icon, push_button
from lowerscope.app.kit.dialogs import filter_field
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.step_slider import Dot, StepSlider
from lowerscope.app.kit.tables.step_list import NARROW, StepList, StepRow
from lowerscope.app.panes.common.descriptions import (
    changed_text,
    left_out_text,
    nothing_words,
    step_text,
)
from lowerscope.app.panes.steps.pass_dialog import PassDialog
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import Moment, Section
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CatalogueQuery, ChangingPassesQuery
from lowerscope.core.model.recipe import (
    OptionValue,
    Recipe,
    Step,
    changed,
    inserted,
    moved,
    removed,
)
from lowerscope.core.model.snapshot import PassType
from lowerscope.core.model.texts import _, _n

# --- The rows of the list of steps: sections, steps with those inside of them, and folded runs ---

_SECTIONS: Mapping[str, Section] = {
    "step": "passes",
    "passes": "passes",
    "translate": "translate",
    "build": "build",
    "run": "run",
}
"""Sections by the beginning of a row's key."""


def moment_of(row: StepRow) -> tuple[Section, int] | None:
    """Return the section and the index of a row; ``None`` for one that was not applied."""
    section = _SECTIONS.get(row.key.partition(":")[0])
    return (section, row.value) if section is not None and row.value else None


def section_key(section: Section) -> str:
    """Return the key of a section's header."""
    return f"section:{section}"


def section_of(key: str) -> Section | None:
    """Return the section of a header's key; ``None`` for another row."""
    head, _sep, name = key.partition(":")
    return _SECTIONS[name] if head == "section" else None


def options_text(options: dict[str, OptionValue]) -> str:
    """Return options as in a call: ``fuse_opt_level=1, entry_functions=[main]``."""
    return ", ".join(f"{name}={_value_text(value)}" for name, value in options.items())


def _value_text(value: OptionValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class SectionRows:
    """The rows of one section.

    Args:
        chosen: The filter. Without a text, runs of unchanged steps are folded to a row.
        unfolded: Numbers of the expanded steps.
        here: Number of the current step, if it is in this section.
        opened: Keys of the folds that the user has opened.
        breaks: Numbers of the steps at which playing stops.
    """

    section: Section
    title: str
    words: str
    lines: Sequence[StepLine]
    chosen: StepFilter
    unfolded: frozenset[int]
    shown: bool
    here: int = 0
    opened: Collection[str] = ()
    breaks: Collection[int] = ()
    nothing: str = ""

    def rows(self, steps: Iterable[StepRow] | None = None) -> list[StepRow]:
        """Return the header and the rows of the section.

        Args:
            steps: Rows of the recipe's steps; by default, those of the lines.
        """
        key = section_key(self.section)
        facts = ((self.words, ""),)
        head = StepRow(key, "", self.title, "section", facts, unfolded=self.shown)
        if not self.shown:
            return [head]
        rows = list(self._of_lines(self.lines, key) if steps is None else steps)
        if not rows and self.lines:
            return [head]
        if not rows:
            return [head, StepRow(f"none:{self.section}", "", self.nothing, "fold", parent=key)]
        return [head, *self._folded(rows)]

    def _of_lines(self, lines: Sequence[StepLine], root: str) -> Iterator[StepRow]:
        # A pass is shown with those that contain it.
        wanted = {line.number for line in lines if self._named(line)}
        for line in reversed(lines):
            if line.number in wanted and line.parent:
                wanted.add(line.parent)
        numbers = {line.number for line in lines}
        longest = self._longest(lines)
        for line in lines:
            if line.number in wanted:
                yield StepRow(
                    f"{self.section}:{line.number}",
                    line.label.rpartition(".")[2],
                    line.title,
                    facts=step_facts(line),
                    time=_time(line),
                    share=_share(line, longest),
                    parent=f"{self.section}:{line.parent}" if line.parent in numbers else root,
                    unfolded=line.number in self.unfolded,
                    value=line.number,
                    state=_state(line),
                    is_break=line.is_break or line.number in self.breaks,
                    tooltip=step_text(line),
                )

    def _named(self, line: StepLine) -> bool:
        return not self.chosen.text or self.chosen.takes(line)

    def _longest(self, lines: Sequence[StepLine]) -> float:
        return max((line.milliseconds or 0.0 for line in lines if not line.depth), default=0.0)

    def of_recipe(
        self, steps: Sequence[Step], known: Sequence[Step], current: int = 0
    ) -> Iterator[StepRow]:
        """Yield the rows of the recipe's steps, with the passes inside of them.

        Args:
            steps: Steps of the wanted recipe.
            known: Steps of the recipe of the lines, which are valid up to the first difference.
            current: The step that is being applied, from 1; 0 for none.
        """
        same = 0
        while same < min(len(steps), len(known)) and steps[same] == known[same]:
            same += 1
        heads = {line.step: line for line in self.lines if line.depth == 0}
        root, longest = section_key("passes"), self._longest(self.lines)
        for place, step in enumerate(steps):
            line = heads.get(place + 1) if place < same else None
            if line is None:
                if self.chosen.text.casefold() in step.name.casefold():
                    yield _waiting_row(step, place, root, current)
                continue
            inside = [each for each in self.lines if each.step == place + 1 and each.depth > 0]
            nested = list(self._of_lines(inside, f"step:{place}"))
            if nested or self._named(line):
                row = _head_row(step, place, line, root, _share(line, longest))
                is_open = bool(inside) and line.number in self.unfolded
                is_break = line.number in self.breaks
                yield replace(row, unfolded=is_open, is_break=is_break)
                yield from nested

    # Runs of unchanged steps

    def _folded(self, rows: Sequence[StepRow]) -> Iterator[StepRow]:
        """Yield the rows, with a row for each run of unchanged steps that have the same parent."""
        if not self.chosen.hide_unchanged or self.chosen.text or self.section == "run":
            yield from rows
            return
        by_number = {line.number: line for line in self.lines}
        changing = self._changing(by_number)
        run: list[StepRow] = []
        hidden: set[str] = set()
        for row in rows:
            if row.parent in hidden:
                # Inside of a step of the run.
                hidden.add(row.key)
                run.append(row)
                continue
            line = by_number.get(row.value)
            small = line is not None and line.status == "done" and line.number not in changing
            if small and row.state == "quiet" and (not run or run[0].parent == row.parent):
                hidden.add(row.key)
                run.append(row)
                continue
            yield from self._run(run)
            run, hidden = [], set()
            if small and row.state == "quiet":
                hidden.add(row.key)
                run.append(row)
            else:
                yield row
        yield from self._run(run)

    def _changing(self, by_number: Mapping[int, StepLine]) -> set[int]:
        """Return the steps that changed something, failed, or contain such a step."""
        changing: set[int] = set()
        for line in by_number.values():
            if line.changed or line.status == "failed" or line.left_out:
                above: StepLine | None = line
                while above is not None:
                    changing.add(above.number)
                    above = by_number.get(above.parent)
        return changing

    def _run(self, run: Sequence[StepRow]) -> Iterator[StepRow]:
        if not run:
            return
        parent = run[0].parent
        # The passes inside of a step are numbered through, whatever contains them.
        through = not parent.startswith("section:")
        outer = [row for row in run if through or row.parent == parent]
        key = f"fold:{run[0].key}"
        numbers = (outer[0].number, outer[-1].number)
        has_here = any(row.value == self.here for row in run) and bool(self.here)
        unfolded = key in self.opened or has_here
        number = numbers[0] if len(outer) == 1 else "–".join(numbers)
        title = _("{count} unchanged", count=len(outer))
        names = _(", ").join(row.title for row in outer[:12]) + (" …" if len(outer) > 12 else "")
        yield StepRow(key, number, title, "fold", parent=parent, unfolded=unfolded, tooltip=names)
        for row in run:
            yield replace(row, parent=key) if row.parent == parent else row


def with_pin(rows: Sequence[StepRow], moment: Moment | None) -> list[StepRow]:
    """Return the rows with the one of a step as pinned."""
    at = None if moment is None else (moment.section, moment.index)
    return [replace(row, pinned=True) if at and moment_of(row) == at else row for row in rows]


def step_facts(line: StepLine) -> tuple[tuple[str, str], ...]:
    """Return the outcome of a step as texts with their roles: ``8 functions``, ``+7``, ``~1``."""
    if line.status == "failed":
        return ((_("✕ failed"), "wrong"), (line.error, ""))
    if line.status != "done" or line.note or not line.changed:
        return ((changed_text(line), ""),)
    count = len(line.changed)
    words = line.changed[0] if count == 1 else _n("1 function", "{count} functions", count)
    rest = count - line.added - line.removed
    counts = ((f"+{line.added}", "right", line.added), (f"−{line.removed}", "wrong", line.removed))
    numbers = [(text, role) for text, role, number in counts if number]
    if rest and count > 1:
        numbers.append((f"~{rest}", "unsure"))
    return ((words, ""), *numbers)


def _head_row(step: Step, place: int, line: StepLine, root: str, share: float) -> StepRow:
    return StepRow(
        f"step:{place}",
        line.label,
        step.name,
        facts=step_facts(line),
        note=_note(step, line),
        unsure=bool(line.left_out),
        time=_time(line),
        share=share,
        parent=root,
        on=step.on,
        value=line.number,
        place=place,
        state=_state(line),
        tooltip=step_text(line),
    )


def _note(step: Step, line: StepLine) -> str:
    if line.status == "failed":
        return ""
    parts = (left_out_text(line), options_text(step.options))
    return " · ".join(each for each in parts if each)


def _waiting_row(step: Step, place: int, root: str, current: int) -> StepRow:
    words = "…" if place >= current else _("applied") if place + 1 < current else _("in progress…")
    return StepRow(
        f"step:{place}",
        str(place + 1),
        step.name,
        facts=((words if step.on else _("switched off"), ""),),
        note=options_text(step.options),
        parent=root,
        on=step.on,
        place=place,
        state="" if step.on else "quiet",
    )


def _time(line: StepLine) -> str:
    return "" if line.milliseconds is None else duration_text(line.milliseconds)


def _share(line: StepLine, longest: float) -> float:
    """Return the length of a step's bar; its square is the share of the longest step's time."""
    return min(1.0, ((line.milliseconds or 0.0) / longest) ** 0.5) if longest else 0.0


def _state(line: StepLine) -> str:
    if line.status == "failed":
        return "wrong"
    is_small = not line.changed and line.note == ""
    return "quiet" if line.status in ("skipped", "off") or is_small else ""


# --- The view of the list, with the buttons that edit the pipeline ---


class PipelineView(Pane):
    """The list of steps; ``export_wanted`` is for the module at a `Moment`."""

    export_wanted = Signal(object)

    def __init__(self, shared: Shared) -> None:
        super().__init__(_("Steps"))
        self._document = document = shared.document
        self._queries = shared.queries
        self._pins = pins = shared.pins
        self._build = build = shared.build
        self._run_steps = shared.run_steps
        self._stepping = stepping = shared.stepping
        self.dialog: PassDialog | None = None  # The open dialog, if any.
        self._marked_in: Recipe | None = None  # Recipe of the row that was marked last.
        self._shown: set[Section] = {"passes"}  # Sections that are unfolded.
        self._step_shown = 0  # The step that is shown as being applied.
        self._opened: set[str] = set()  # Folds of unchanged steps that are.
        self._pinned = pins.first
        self._revealed: Section | None = None  # Section to scroll to once it has rows.
        self.list = StepList(_("Steps"))
        self.list.set_pinned([section_key(each) for each in ("build", "run")])
        self.add = push_button(
            _("Add pass"), _("Add a pass from the catalogue, after the selected step")
        )
        self.step = IconButton("more", _("Commands for the selected step"))
        self.step.setPopupMode(IconButton.ToolButtonPopupMode.InstantPopup)
        self.step.setMenu(QMenu(self))
        self.step.menu().aboutToShow.connect(self._fill_step_menu)
        self.filter = filter_field(
            _("Filter by pass or function"),
            _("Filter by the name of a pass, or of a function that it changed (/)"),
        )
        self.filter.textChanged.connect(self._filter)
        self.back = IconButton("left", _("Previous step (Shift+F10)"))
        self.on = IconButton("right", _("Next step (F10)"))
        self.play = push_button(_("Play"), _("Play or pause (Space)"))
        self.slider = StepSlider(_("Step"))
        self._lay_out()
        self.add.clicked.connect(self.add_pass)
        self.list.key_pressed.connect(self._press)
        back = QShortcut(QKeySequence("Shift+F10"), self, self._step_back)
        back.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.back.clicked.connect(self._step_back)
        self.on.clicked.connect(self._step_on)
        self.play.clicked.connect(stepping.play_or_pause)
        self.slider.chosen.connect(self._go_to_dot)
        self.slider.stepped.connect(stepping.step)
        # Queued: Qt is still handling an event of a row that may be deleted.
        queued = Qt.ConnectionType.QueuedConnection
        self.list.row_activated.connect(self._go, queued)
        self.list.switched.connect(self._switch)
        self.list.moved.connect(self._move)
        self.list.removed.connect(self._remove)
        self.list.folded.connect(self._fold, queued)
        self.list.menu_wanted.connect(self._open_menu)
        self.list.currentItemChanged.connect(self._note_selected)
        document.on(("recipe", "pending"), self._show_rows)
        document.on(("run", "running"), self._show_rows)
        document.on(("jobs",), self._show_step)
        build.changed.connect(self._show_rows)
        pins.changed.connect(self._show_pin)
        stepping.list_changed.connect(self._show_rows)
        stepping.section_changed.connect(self._show_section)
        for signal in (stepping.moment_changed, stepping.run_moved, stepping.schedule_moved):
            signal.connect(self._show_moment)
        stepping.playing_changed.connect(self._show_playing)
        theme.notifier().changed.connect(self._show_playing)
        self._show_rows()
        self._show_playing()

    def _lay_out(self) -> None:
        page, strip, foot = QWidget(), QWidget(), QWidget()
        self._wide = (strip, self.slider, self.play, self.add, self.step, self.header.title)
        row_of(strip, (self.filter, 1), margins=(10, 6, 10, 6))
        row_of(foot, self.back, (self.slider, 1), self.on, self.play, margins=(6, 3, 10, 3))
        foot.setFixedHeight(40)
        foot.setProperty("edge", "top")
        foot.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        advance = self.play.fontMetrics().horizontalAdvance
        # The icon and the paddings take the rest.
        self.play.setFixedWidth(max(advance(_("Play")), advance(_("Pause"))) + 42)
        column_of(page, strip, (self.list, 1), foot)
        self.add_page("steps", _("Steps"), page)
        self.header.tabs.hide()
        self.add_corner(self.add)
        self.add_corner(self.step)

    # The selected step

    def _row(self) -> StepRow | None:
        """The selected row, or that of the current step."""
        return self.list.row(self.list.current_key()) or self.list.row(self.list.marked())

    def selected_place(self) -> int:
        """Return the index of the selected step in the recipe; -1 for none."""
        row = self._row()
        return -1 if row is None else row.place

    def selected_line(self) -> StepLine | None:
        """Return the pass of the selected row, or the current one."""
        row = self._row()
        at = None if row is None else moment_of(row)
        return self._stepping.line if at is None else self._stepping.lines(at[0])[at[1] - 1]

    def selected_moment(self) -> Moment | None:
        """Return the selected step as a `Moment`, or the current one."""
        row = self._row()
        at = None if row is None else moment_of(row)
        return self._stepping.moment if at is None else Moment(section=at[0], index=at[1])

    def toggle_break(self) -> None:
        """Let playing stop at the pass of the selected row, or not."""
        line = self.selected_line()
        if line is not None:
            self._stepping.toggle_break(line)

    def _steps(self) -> tuple[Step, ...]:
        recipe = self._document.wanted
        return () if recipe is None else recipe.steps

    # Commands

    def change_steps(self, steps: tuple[Step, ...]) -> None:
        """Switch to other steps, as one undo step."""
        self._document.change_fields(steps=steps)

    def add_pass(self) -> None:
        """Show the dialog that selects a pass, and insert it after the selected step."""
        self._open_dialog(None)

    def add_named_pass(self, name: str) -> None:
        """Show the dialog that adds this pass, with its options."""
        self._open_dialog(None)
        assert self.dialog is not None
        self.dialog.line.setText(name)

    def edit_options(self) -> None:
        """Show the dialog with the options of the selected step."""
        place = self.selected_place()
        if place >= 0:
            self._open_dialog(self._steps()[place])

    def duplicate(self) -> None:
        """Insert a copy of the selected step after it."""
        place = self.selected_place()
        if place >= 0:
            steps = self._steps()
            self.change_steps(inserted(steps, place, steps[place]))
            self.select_place(place + 1)

    def remove(self) -> None:
        """Remove the selected step from the pipeline."""
        place = self.selected_place()
        if place >= 0:
            self.change_steps(removed(self._steps(), place))
            self.select_place(min(place, len(self._steps()) - 1))

    def move_step(self, by: int) -> None:
        """Move the selected step up or down."""
        place = self.selected_place()
        if place >= 0 and 0 <= place + by < len(self._steps()):
            self._move(place, place + by)

    def switch(self) -> None:
        """Enable or disable the selected step."""
        row = self._row()
        if row is not None:
            self._switch(row.key)

    def go_to_selected(self) -> None:
        """Show the module after the selected step."""
        row = self._row()
        if row is not None:
            self._go(row.key)

    def pin(self) -> None:
        """Pin the selected step as one side of the comparison."""
        self._pins.pin(self.selected_moment())

    def compare(self) -> None:
        """Compare the pinned step with the selected one, or that with the one before."""
        pins = self._pins
        if pins.first is None:
            self.go_to_selected()
            pins.wanted.emit()
        else:
            pins.compare(self.selected_moment())

    # The list

    def _show_section(self) -> None:
        self._show_dots()
        self._show_moment()

    def _show_rows(self) -> None:
        document, stepping = self._document, self._stepping
        chosen = stepping.filter
        if self.filter.text() != chosen.text:
            self.filter.setText(chosen.text)
        wanted, shown = document.wanted, document.recipe
        self.add.setEnabled(shown is not None)
        self.list.empty.set_text(*nothing_words(document))
        if wanted is None:
            self.list.set_rows(())
            self.set_context("")
        else:
            rows = [row for section in ORDER for row in self._section(section)]
            pinned = self._pins.first
            if pinned is not None and pinned.recipe == shown:
                rows = with_pin(rows, pinned.moment)
            self.list.set_rows(rows)
            self._show_context()
            self._reveal()
        self._show_section()
        self._note_selected()

    def _applied(self) -> int:
        """Return the step of the wanted recipe that is being applied, from 1; 0 for none."""
        return next((each.step for each in self._document.state.jobs if each.of == "change"), 0)

    def _show_step(self) -> None:
        if self._applied() != self._step_shown:
            self._show_rows()

    def _reveal(self) -> None:
        """Scroll to the section that was unfolded, once it has steps."""
        section = self._revealed
        if section is not None and self._stepping.lines(section):
            self._revealed = None
            if not self.list.has_room_below(section_key(section)):
                self.list.reveal(section_key(section))

    def _show_pin(self) -> None:
        # The sides change with the step; the rows, with what is pinned.
        if self._pinned != self._pins.first:
            self._pinned = self._pins.first
            self._show_rows()

    def _section(self, section: Section) -> list[StepRow]:
        stepping, wanted, shown = self._stepping, self._document.wanted, self._document.recipe
        assert wanted is not None
        same = shown is not None and shown.source == wanted.source
        lines = stepping.lines(section) if same else ()
        line = stepping.line
        here = line.number if line is not None and stepping.section == section else 0
        rows = SectionRows(
            section,
            SECTION_TITLES[section],
            self._words(section, lines),
            lines,
            stepping.filter,
            stepping.unfolded(section),
            section in self._shown,
            here,
            self._opened,
            {each.number for each in lines if section == "passes" and stepping.stops_at(each)},
            self._nothing(section),
        )
        if section != "passes":
            return rows.rows()
        known = shown.steps if shown is not None and same else ()
        self._step_shown = self._applied()
        return rows.rows(list(rows.of_recipe(wanted.steps, known, self._step_shown)))

    def _words(self, section: Section, lines: tuple[StepLine, ...]) -> str:
        """Return the number of steps of a section, how many changed something, and their time."""
        made = [line for line in lines if not line.depth and line.status != "off"]
        if section == "build":
            made = [line for line in self._stepping.dots(section) if line.status == "done"]
        if not made:
            return self._nothing(section) if not lines else ""
        wanted, shown = self._document.wanted, self._document.recipe
        if section != "translate" and wanted is not None and wanted != shown:
            # The lines are those of the previous pipeline.
            return _("in progress…") if section == "passes" else _("outdated")
        time = sum(line.milliseconds or 0.0 for line in lines if not line.depth)
        text = duration_text(time) if time else ""
        if section == "translate":
            count = _n("{count} node", "{count} nodes", len(made))
        elif section == "run":
            count = _n("{count} call", "{count} calls", len(made))
        else:
            changed_steps = sum(bool(line.changed) for line in made)
            count = _("{changed} of {count} changed", changed=changed_steps, count=len(made))
        return f"{count} · {text}" if text else count

    def _nothing(self, section: Section) -> str:
        """Return the reason that a section has no steps."""
        build = self._build
        if self._document.recipe is None:
            return ""
        if section == "build" and build.busy:
            return _("compiling…")
        if section == "build" and build.problem is not None:
            return build.problem.line()
        if section == "run" and self._document.running:
            return _("running…")
        return {
            "translate": _("already a module"),
            "passes": _("no pass"),
            "build": _("not built"),
            "run": self._run_steps.why_none or _("not run (F5)"),
        }[section]

    def _show_context(self) -> None:
        recipe = self._document.wanted
        count = 0 if recipe is None else len(recipe.steps)
        text = _n("1 pass", "{count} passes", count)
        self.set_context("" if self.width() < NARROW else text)

    def _show_dots(self) -> None:
        stepping = self._stepping
        lines = stepping.dots(stepping.section)
        start = Dot(0, big=True, state="start", tooltip=_("before the first step"))
        self.slider.set_dots([start, *(self._dot(line) for line in lines)] if lines else ())
        for button in (self.back, self.on, self.play):
            button.setEnabled(bool(lines))

    def _dot(self, line: StepLine) -> Dot:
        stepping = self._stepping
        state = {"failed": "wrong", "skipped": "skipped", "off": "off"}.get(line.status, "")
        big = stepping.takes(line) and line.status in ("done", "failed")
        if stepping.section == "run":
            big = line.heavy
        is_break = line.is_break or stepping.stops_at(line)
        text = step_text(line)
        if is_break:
            text = _("{text} · breakpoint", text=text)
        return Dot(line.number, big=big, state=state, tooltip=text, is_break=is_break)

    def _show_moment(self) -> None:
        here, line = self._stepping.here, self._stepping.line
        if here is not None and here.section in ORDER and here.section not in self._shown:
            self._shown.add(here.section)
            self._show_rows()
            return
        at = None if here is None or line is None else (here.section, line.number)
        rows = () if at is None else (row for row in self.list.rows() if row.value == at[1])
        key = next((row.key for row in rows if moment_of(row) == at), "")
        self._fold_runs(key)
        # The same step may have another place in a changed pipeline: what is selected stays.
        recipe, self._marked_in = self._marked_in, self._document.recipe
        self.list.set_marked(key, select=recipe is self._marked_in)
        number = None if here is None else 0 if line is None else line.number
        self.slider.set_current(number)
        self._note_selected()

    def _fold_runs(self, key: str) -> None:
        """Unfold the run of unchanged steps that a current step is in, and fold the others."""
        opened, row = set(self._opened), self.list.row(key)
        while row is not None:
            opened.add(row.parent)
            row = self.list.row(row.parent)

        def is_wrong(row: StepRow) -> bool:
            return row.key.startswith("fold:") and row.unfolded != (row.key in opened)

        rows = self.list.rows()
        if any(row.kind == "fold" and is_wrong(row) for row in rows):
            self.list.set_rows(
                [replace(row, unfolded=not row.unfolded) if is_wrong(row) else row for row in rows]
            )

    def _show_playing(self) -> None:
        playing = self._stepping.playing
        self.play.setText(_("Pause") if playing else _("Play"))
        self.play.setIcon(icon("play"))

    def _press(self, key: str) -> None:
        acts = {
            "play": self._stepping.play_or_pause,
            "filter": self.focus_filter,
            "first": self._stepping.first,
            "last": self._stepping.last,
        }
        acts[key]()

    def focus_filter(self) -> None:
        """Give the filter the keyboard focus."""
        self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.filter.selectAll()

    def _step_back(self) -> None:
        self._stepping.pause()
        self._stepping.step(-1)

    def _step_on(self) -> None:
        self._stepping.pause()
        self._stepping.step(1)

    def _go_to_dot(self, number: int) -> None:
        self._stepping.pause()
        self._stepping.go(Moment(section=self._stepping.section, index=number))

    def _note_selected(self) -> None:
        row = self._row()
        self.step.setEnabled(row is not None and row.kind == "step")

    def select_place(self, place: int) -> None:
        """Select the step at an index of the recipe."""
        for row in self.list.rows():
            if row.place == place:
                self.list.select(row.key)

    def _filter(self) -> None:
        text = self.filter.text().strip()
        self._stepping.set_filter(replace(self._stepping.filter, text=text))

    def _go(self, key: str) -> None:
        row = self.list.row(key)
        at = None if row is None else moment_of(row)
        if at is not None:
            self._stepping.pause()
            self._stepping.go(Moment(section=at[0], index=at[1]))

    def _switch(self, key: str) -> None:
        row = self.list.row(key)
        if row is not None and row.place >= 0:
            steps = self._steps()
            self.change_steps(changed(steps, row.place, on=not steps[row.place].on))

    def _move(self, place: int, to: int) -> None:
        self.change_steps(moved(self._steps(), place, to))
        self.select_place(to)

    def _remove(self, _key: str) -> None:
        self.remove()

    def _fold(self, key: str, unfolded: bool) -> None:
        row = self.list.row(key)
        section = section_of(key)
        at = None if row is None else moment_of(row)
        if section is not None:
            (self._shown.add if unfolded else self._shown.discard)(section)
            self._revealed = section if unfolded else None
            if section == "build":
                self._build.look(unfolded)
        elif key.startswith("fold:"):
            (self._opened.add if unfolded else self._opened.discard)(key)
        elif at is not None:
            self._stepping.set_unfolded(at[0], at[1], unfolded)
            return
        self._show_rows()

    # Menus and dialogs

    def _open_menu(self, _key: str, place: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._fill(menu)
        menu.popup(place)

    def _fill_step_menu(self) -> None:
        menu = self.step.menu()
        menu.clear()
        self._fill(menu)

    def _fill(self, menu: QMenu) -> None:
        row = self._row()
        if row is None or row.kind != "step":
            return
        at, editable = moment_of(row), row.place >= 0
        applied = at is not None
        menu.addAction(_("Go to this step"), self.go_to_selected).setEnabled(applied)
        menu.addAction(_("Pin"), self.pin).setEnabled(applied)
        pinned = self._pins.first is not None
        words = _("Compare with the pinned step") if pinned else _("Compare with the previous step")
        menu.addAction(words, self.compare).setEnabled(applied)
        export = partial(self.export_wanted.emit, self.selected_moment())
        exported = at is not None and at[0] == "passes"
        menu.addAction(_("Export its module…"), export).setEnabled(exported)
        stop = menu.addAction(_("Stop here when playing"), self.toggle_break)
        stop.setCheckable(True)
        line = self.selected_line()
        stop.setChecked(line is not None and line.title in self._stepping.breaks)
        stop.setEnabled(at is not None and at[0] != "run")
        menu.addSeparator()
        for words, act in (
            (_("Options…"), self.edit_options),
            (_("Switch off") if row.on else _("Switch on"), self.switch),
            (_("Duplicate"), self.duplicate),
            (_("Delete"), self.remove),
        ):
            menu.addAction(words, act).setEnabled(editable)

    def _open_dialog(self, step: Step | None) -> None:
        self.dialog = PassDialog(step, self.window())
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.dialog.accepted.connect(self._take_chosen)
        self.dialog.finished.connect(self._forget_dialog)
        self.dialog.changing_wanted.connect(self._try_passes)
        recipe = self._document.recipe
        assert recipe is not None
        self._queries.ask(CatalogueQuery(recipe), self._take_catalogue, self._take_problem)
        self.dialog.open()

    def _forget_dialog(self) -> None:
        self.dialog = None

    def _take_catalogue(self, types: tuple[PassType, ...]) -> None:
        if self.dialog is not None:
            self.dialog.show_catalogue(types)

    def _try_passes(self) -> None:
        recipe, place = self._document.recipe, self.selected_place()
        if recipe is not None:
            query = ChangingPassesQuery(recipe, place + 1 if place >= 0 else len(recipe.steps))
            self._queries.ask(query, self._take_changing, self._take_problem)

    def _take_changing(self, names: tuple[str, ...]) -> None:
        if self.dialog is not None:
            self.dialog.show_changing(names)

    def _take_problem(self, problem: Problem) -> None:
        if self.dialog is not None:
            self.dialog.show_problem(problem.line())

    def _take_chosen(self) -> None:
        dialog = self.dialog
        if dialog is None or dialog.chosen is None:
            return
        steps, place = self._steps(), self.selected_place()
        if dialog.edits:
            if place >= 0:
                options = dialog.chosen.options
                self.change_steps(changed(steps, place, options=options))
            return
        to = place + 1 if place >= 0 else len(steps)
        self.change_steps(inserted(steps, to, dialog.chosen))
        self.select_place(to)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        for widget in self._wide:
            widget.setHidden(narrow)
        self._show_context()
