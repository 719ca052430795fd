"""All commands of the window; the menus and the mode's buttons, which are tables of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_uppercase
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QMenu, QMenuBar, QStackedWidget, QToolBar, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import SearchField
from lowerscope.app.kit.buttons import icon, strategy_icon
from lowerscope.app.kit.commands import MARKED_LETTER, Command, Commands, available, plain
from lowerscope.app.kit.layouts import STRETCH, row_of
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.panes.difference.commands import CompareCommands
from lowerscope.app.panes.inputs.commands import changing_inputs, loading_parameters
from lowerscope.app.panes.relax.commands import NodeCommands, importing
from lowerscope.app.panes.run.bisecting import bisect_commands
from lowerscope.app.panes.run.commands import (
    Reporting,
    fault_commands,
    finding_differences,
    generating,
    run_step_commands,
    running_variants,
    timing_commands,
)
from lowerscope.app.panes.schedule.commands import NumberCommands
from lowerscope.app.panes.sessions.sessions import keeping_sessions
from lowerscope.app.panes.steps.commands import binding, passes
from lowerscope.app.panes.steps.pass_dialog import explaining
from lowerscope.app.shell.desktop_commands import (
    LanguageCommands,
    clearing,
    helping,
    limiting,
    setting_up,
)
from lowerscope.app.shell.modes import BY_KEY, MODES
from lowerscope.app.shell.panes_commands import Pointing
from lowerscope.app.shell.tool_bar import NARROW
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.graph import STRATEGY_LETTERS
from lowerscope.core.model.recipe import STRATEGIES
from lowerscope.core.model.texts import LANGUAGES, _

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.shell.window import MainWindow


def add_commands(commands: Commands, window: MainWindow) -> None:
    """Register every command of the window."""
    document, features = window.document, window.features
    nodes = NodeCommands(document)

    def is_wanted(field: str, value: str) -> bool:
        return document.wanted is not None and getattr(document.wanted, field) == value

    def has_scheme(scheme: str) -> bool:
        return window.settings.scheme == scheme

    def change(**fields: object) -> Callable[[], None]:
        return partial(document.change_fields, **fields)

    def has_rule_to_write() -> bool:
        node = window.extensions.selected()
        return node is not None and bool(node.strategy)

    def has_rule() -> bool:
        node = window.extensions.selected()
        return node is not None and node.rule_line is not None

    for command in (
        Command("open", _("&Open…"), window.choose_file, "Ctrl+O"),
        Command(
            "reload",
            _("&Reload"),
            document.reload,
            "Ctrl+R",
            enabled=lambda: document.is_open() or document.rejected is not None,
        ),
        Command("welcome", _("&Welcome page"), window.show_welcome),
        Command("document", _("&Back to the model"), window.show_panes, enabled=document.is_open),
        *keeping_sessions(
            window, document, window.sessions, window.source_watch, window.open_session
        ),
        window.sandbox.command(),
        Reporting(
            window,
            document,
            features.queries,
            features.runs.variants,
            features.bisecting,
            features.rounding,
        ).command(),
        Command("save-log", _("Save the whole &log…"), lambda: window.panes.log.save_whole()),
        *window.exports.commands(),
        setting_up(window.preferences, window),
        Command("quit", _("&Quit"), window.close, "Ctrl+Q"),
        Command("undo", _("&Undo"), document.undo, "Ctrl+Z", enabled=lambda: document.can_undo),
        Command(
            "redo", _("&Redo"), document.redo, "Ctrl+Shift+Z", enabled=lambda: document.can_redo
        ),
        *nodes.walking(),
        Command(
            "clear-selection", _("&Clear selection"), partial(document.select, ()), "Ctrl+Shift+A"
        ),
        *LanguageCommands(window.settings, window.sessions, window).commands(),
        *(
            Command(
                scheme,
                title,
                partial(window.set_scheme, scheme),
                checked=partial(has_scheme, scheme),
                group="scheme",
            )
            for scheme, title in (
                ("system", _("&System colours")),
                ("light", _("&Light")),
                ("dark", _("&Dark")),
            )
        ),
        *available(
            document.has_torch,
            Command(
                "node-map", _("&Node map"), partial(window.show_page, "node-map"), "Ctrl+Shift+H"
            ),
            Command(
                "translation",
                _("&Translation of the node"),
                partial(window.show_page, "translation"),
                "Ctrl+T",
            ),
        ),
        *window.graphs.commands(),
        *window.exports.picture_commands(),
        *window.code_commands.commands(),
        *Pointing(document, window).commands(),
        *(
            Command(
                strategy,
                title,
                change(lowering=strategy),
                keys,
                enabled=document.has_torch,
                checked=partial(is_wanted, "lowering", strategy),
                group="lowering",
            )
            for strategy, title, keys in (
                ("high-level", _("&High-level"), "Alt+Shift+1"),
                ("te", _("TE"), "Alt+Shift+2"),
                ("library", _("Librar&y"), "Alt+Shift+3"),
            )
        ),
        *nodes.lowering(),
        Command(
            "extensions",
            _("Rules and library files…"),
            window.extensions.show_list,
            "Ctrl+L",
            enabled=document.is_open,
        ),
        Command(
            "write-rule",
            _("&Write a rule for the node…"),
            window.extensions.write_rule,
            enabled=has_rule_to_write,
        ),
        Command(
            "open-rule",
            _("&Open the rule of the node"),
            window.extensions.open_rule,
            enabled=has_rule,
        ),
        Command(
            "load-library",
            _("Load a libr&ary file…"),
            window.extensions.choose_library,
            enabled=document.is_open,
        ),
        Command(
            "reset-overrides",
            _("Reset all &nodes"),
            change(overrides=()),
            enabled=lambda: document.wanted is not None and bool(document.wanted.overrides),
        ),
        *(
            Command(
                tracer,
                title,
                change(tracer=tracer),
                enabled=document.has_torch,
                checked=partial(is_wanted, "tracer", tracer),
                group="tracer",
            )
            for tracer, title in (
                ("auto", _("&Trace automatically")),
                ("fx", _("Trace with torch.&fx")),
                ("export", _("Trace with torch.&export")),
            )
        ),
        *importing(document),
        *loading_parameters(window, document),
        *binding(document, window.pipeline),
        Command(
            "inputs",
            _("Inputs…"),
            window.inputs_form.edit,
            "Ctrl+I",
            enabled=window.inputs_form.can_edit,
        ),
        *changing_inputs(window, features.inputs),
        *passes(
            document,
            features.stepping,
            window.pipeline,
            features.node_steps,
            window.extensions.choose_passes,
        ),
        *window.schedules.commands(),
        *window.tune.commands(),
        *NumberCommands(window.schedules, features.measurements).commands(),
        explaining(window, document, features.queries),
        *CompareCommands(
            window, document, features.pins, lambda: window.panes.show_difference()
        ).commands(),
        Command(
            "run",
            _("Ru&n and compare"),
            features.runs.run,
            "F5",
            enabled=lambda: document.wanted is not None and not document.running,
        ),
        *running_variants(window, document, features.runs),
        generating(window, features.generations),
        Command(
            "stop",
            _("Sto&p"),
            features.cancel,
            "Shift+F5",
            enabled=lambda: bool(document.job.text) or document.running,
        ),
        *fault_commands(features.faults),
        *bisect_commands(document, features.bisecting, window),
        *limiting(window.preferences, window),
        clearing(document, window),
        Command("restart", _("Restart &engine and worker"), features.restart),
        *finding_differences(window, document, window.show_tensor, window.show_alone),
        *run_step_commands(document, features.stepping, features.run_steps),
        *timing_commands(document, features.runs, window),
        *window.targets.commands(),
        *window.pane_commands.commands(),
        Command("tour", _("Take the &tour"), window.take_tour),
        *helping(window.show_palette, commands, window.help, window.preferences, window),
    ):
        if command.enabled is not None and command.reason is None:
            command = replace(command, reason=partial(_reason, document, command.id))
        commands.add(command)
    commands.take_keys(window)
    commands.follow(
        document.changed,
        features.runs.variants.changed,
        features.generations.changed,
        features.run_steps.breaks_changed,
        features.faults.changed,
        features.bisecting.changed,
        features.pins.changed,
        features.stepping.moment_changed,
        features.stepping.schedule_moved,
        features.stepping.run_moved,
        features.stepping.list_changed,
        features.stepping.section_changed,
        features.scheduling.changed,
        features.variants.left_over.changed,
        features.tuning.changed,
        features.colouring.changed,
        window.sandbox.sandboxing.changed,
    )


def _reason(document: Document, key: str) -> str:
    """Return why a command is disabled; empty if its name says it."""
    if key == "leave-steps":
        # Escape is pressed for many things.
        return ""
    if not document.is_open():
        return _("open a model first (Ctrl+O)")
    if document.running and key in ("first-difference", "next-difference", "previous-difference"):
        return _("a run is in progress")
    return next((words for words, keys in REASONS.items() if key in keys), "")


REASONS: dict[str, tuple[str, ...]] = {
    _("select a node first"): (
        *("selection-high-level", "selection-te", "selection-library", "selection-reset"),
        *("open-rule", "write-rule"),
    ),
    _("for PyTorch models only"): (
        *("high-level", "te", "library", "auto", "fx", "export", "next-node", "previous-node"),
        *("node-map", "translation", "lowerscope", "tvm-fx", "tvm-export"),
    ),
    _("run first (F5), then select a node"): ("compare-values", "run-alone"),
    _("the last run does not differ"): ("bisect",),
    _("find the faulty step first"): ("save-reproduction",),
    _("no node is known to differ; compare node by node first (Ctrl+N)"): (
        *("first-difference", "next-difference", "previous-difference"),
    ),
    _("nothing has been changed"): ("undo",),
    _("nothing to redo"): ("redo",),
    _("there is no such step"): ("previous-step", "first-step", "last-step", "play"),
    _("there is no step after this one; Build and Run (F5) add theirs"): ("next-step",),
    _("select a step first (Step mode)"): ("pin-step", "export-step"),
    _("no difference is shown; select a step first (Step mode)"): (
        "next-change",
        "previous-change",
    ),
    _("pin a step first"): ("compare-pinned", "swap-sides", "unpin"),
    _("select a step of the pipeline first (Step mode)"): (
        *("step-options", "switch-step", "duplicate-step", "delete-step"),
        *("move-step-up", "move-step-down"),
    ),
    _("select a TensorIR function first"): (
        *("workbench", "schedule-moves", "by-rule", "tune", "apply-to-model", "new-variant"),
        *("copy-schedule", "save-schedule", "load-schedule", "export-function"),
    ),
    _("select a step of the schedule first (Schedule mode)"): (
        *("edit-primitive", "switch-primitive", "insert-primitive", "primitive-up"),
        *("primitive-down", "delete-primitive"),
    ),
    _("no tuning is in progress"): (
        "tune-page",
        "tune-pause",
        "tune-resume",
        "tune-stop",
        "tune-more",
    ),
    _("a run is in progress"): ("run", "run-variants"),
    _("nothing is in progress"): ("stop",),
    _("the file has no next_inputs"): ("generate-tokens",),
    _("run first (F5)"): ("measure-again", "variants", "export-report", "colours-time"),
    _("there is no breakpoint"): ("next-break", "previous-break", "clear-breaks"),
    _("select a node or a line first"): ("toggle-break", "play-until"),
    _("another mode has this pane"): (*("pane-model", "pane-details", "pane-pipeline"),),
    _("go back to the model first (File)"): (
        *("maximise-pane", "pane-window", "drawer", "reset-layout"),
    ),
}
"""Reasons why commands are disabled, each with those that it is for."""

Entry = str | tuple[str, tuple[str, ...]]
"""A command, a separator (``""``), or a submenu with its commands."""

SAMPLES, RECENT = "*samples", "*recent"
"""Entries that are menus of sources."""

MENUS: dict[str, tuple[Entry, ...]] = {
    _("&File"): (
        "open",
        SAMPLES,
        RECENT,
        "reload",
        "document",
        "welcome",
        "",
        "save-session",
        "reopen",
        "",
        (
            _("&Export"),
            ("export-files", "export-function", "export-step", "save-patch", "export-report"),
        ),
        (_("Save &picture"), ("save-picture", "save-picture-seen")),
        "",
        "settings",
        "quit",
    ),
    _("&Edit"): (
        "undo",
        "redo",
        "",
        "next-node",
        "previous-node",
        "clear-selection",
        "",
        "find-in-text",
        "go-to-line",
        "",
        "inputs",
        (
            _("&Parameters"),
            ("load-parameters", "own-parameters", "params-as-inputs", "bind-params"),
        ),
    ),
    _("&View"): (
        *(f"mode-{mode.key}" for mode in MODES),
        "",
        (_("&Panes"), ("pane-model", "pane-details", "pane-pipeline")),
        "drawer",
        "maximise-pane",
        "pane-window",
        (_("&Go to"), ("next-pane", "previous-pane", "columns", "tip")),
        "reset-layout",
        "",
        (
            _("G&raph"),
            (
                "find-node",
                "",
                "fit-graph",
                "zoom-to-selection",
                "graph-size",
                "",
                "collapse-all",
                "expand-all",
                "fitting-level",
                "",
                "edge-labels",
                "graph-overview",
                "node-colours",
                "colours-time",
                "colours-error",
            ),
        ),
        (_("&Text"), ("fold-all", "unfold-all", "line-colours")),
        (_("&Colours"), ("system", "light", "dark")),
        (_("&Language"), tuple(f"language-{code}" for code in LANGUAGES)),
    ),
    "explore": (
        (
            _("Lower the selectio&n"),
            ("selection-high-level", "selection-te", "selection-library", "selection-reset"),
        ),
        (_("Lower &all nodes as"), ("high-level", "te", "library", "", "reset-overrides")),
        "",
        "expand-module",
        "go-to-source",
        "translation",
        "node-map",
        (
            _("&Code"),
            ("compact", "wrap-lines", "show-types", "follow-selection", "", "copy-script"),
        ),
        "",
        "open-rule",
        "write-rule",
        "extensions",
        "load-library",
        "",
        (_("&Trace with"), ("auto", "fx", "export")),
        (_("Translate &with"), ("lowerscope", "tvm-fx", "tvm-export")),
    ),
    "step": (
        "next-step",
        "previous-step",
        "play",
        "play-until",
        "leave-steps",
        "",
        "difference",
        "next-change",
        "previous-change",
        "unified",
        "why-fused",
        (
            _("&Compare"),
            (
                "pin-step",
                "compare-pinned",
                "swap-sides",
                "unpin",
                "",
                "compare-before",
                "",
                "compare-high-level",
                "compare-te",
                "compare-library",
                "",
                *(f"compare-steps-{preset.name}" for preset in PRESETS),
            ),
        ),
        "",
        (
            _("Selected s&tep"),
            (
                "step-options",
                "switch-step",
                "duplicate-step",
                "delete-step",
                "move-step-up",
                "move-step-down",
            ),
        ),
        (
            _("P&ipeline"),
            (
                "add-pass",
                "",
                *(f"pipeline-{preset.name}" for preset in PRESETS),
                "",
                "save-pipeline",
                "load-pipeline",
                "load-passes",
            ),
        ),
        (
            _("&Go to"),
            (
                "first-step",
                "last-step",
                "",
                "section-translate",
                "section-passes",
                "section-build",
                "section-run",
                "section-schedule",
                "",
                "filter-steps",
                "hide-unchanged",
            ),
        ),
        (
            _("&Breakpoints"),
            ("toggle-break", "break-pass", "next-break", "previous-break", "clear-breaks"),
        ),
    ),
    "schedule": (
        *(f"primitive-{name}" for name in ("split", "reorder", "fuse")),
        (
            _("&Parallel, vectorize, unroll"),
            tuple(f"primitive-{name}" for name in ("parallel", "vectorize", "unroll")),
        ),
        (_("&Cache"), ("primitive-cache_read", "primitive-cache_write")),
        (_("Compute a&t"), ("primitive-compute_at", "primitive-reverse_compute_at")),
        "schedule-moves",
        "",
        "by-rule",
        "tune",
        "measure-function",
        "apply-to-model",
        "",
        (
            _("&History"),
            (
                "edit-primitive",
                "switch-primitive",
                "insert-primitive",
                "primitive-up",
                "primitive-down",
                "delete-primitive",
                "",
                "copy-schedule",
                "save-schedule",
                "load-schedule",
            ),
        ),
        (
            _("&Variants"),
            (
                "new-variant",
                "duplicate-variant",
                "rename-variant",
                "delete-variant",
                "unscheduled",
                "",
                "measure-variants",
                "left-over",
            ),
        ),
        (
            _("&More"),
            (
                "workbench",
                "numbers",
                "measure-peaks",
                "rules-in-model",
                "",
                "tune-page",
                "tune-pause",
                "tune-resume",
                "tune-stop",
                "tune-more",
            ),
        ),
    ),
    "run": (
        "run",
        "stop",
        "measure-again",
        "",
        "compare-nodes",
        "compare-values",
        "run-alone",
        (_("&Reference"), ("reference-torch", "reference-float64")),
        (
            _("&Differences"),
            (
                *("first-difference", "bisect", "save-reproduction", ""),
                *("next-start", "previous-start", "", "next-difference", "previous-difference"),
            ),
        ),
        "",
        (_("&Variants"), ("run-variants", "variants")),
        "generate-tokens",
        (
            _("&Input"),
            ("input-page", "input-file", "input-random", "input-folder", "input-archive"),
        ),
        (
            _("&Target"),
            ("target-native", "target-llvm", "target-other", "target-remote", "target-here"),
        ),
        "tolerances",
        (_("&Measuring"), ("measuring", "torch-compile")),
        "go-back",
    ),
    _("&Tools"): (
        "palette",
        "",
        "sandbox",
        "watch",
        "",
        "memory-limit",
        "keep",
        "clear-caches",
        "",
        "restart",
        "save-log",
    ),
    _("&Help"): (
        "help",
        "help-contents",
        "shortcuts",
        "",
        "tour",
        "tour-page",
        "course",
        "glossary",
        "about",
    ),
}
"""The menus by their titles, and those of the modes by their keys; each command is in one."""

LETTERED = {
    "explore": _("E&xplore"),
    "step": _("&Step"),
    "schedule": _("&Schedule"),
    "run": _("&Run"),
}
"""Titles of the modes' menus, with letters that the other menus do not have."""


@dataclass(frozen=True)
class Button:
    """A button of a mode: its command, an icon, and a short word."""

    command: str
    icon: str
    word: str = ""  # Empty for an icon alone.


BUTTONS: dict[str, tuple[Button | None, ...]] = {
    "explore": (
        Button("selection-high-level", "high-level", STRATEGY_LETTERS["high-level"]),
        Button("selection-te", "te", STRATEGY_LETTERS["te"]),
        Button("selection-library", "library", STRATEGY_LETTERS["library"]),
        Button("selection-reset", "undo", _("Default")),
        None,
        Button("translation", "arrows", _("Translation")),
        Button("node-map", "table", _("Node map")),
        Button("open-rule", "rule", _("Open rule")),
        Button("extensions", "list", _("Rule files")),
    ),
    "step": (),
    "schedule": (
        Button("undo", "undo"),
        Button("redo", "redo"),
        None,
        Button("schedule-moves", "search", _("Primitives")),
        Button("measure-function", "measure", _("Measure")),
        Button("new-variant", "plus", _("Variant")),
    ),
    "run": (
        Button("measure-again", "measure", _("Measure")),
        Button("run-variants", "play", _("Variants")),
        Button("compare-values", "values", _("Values")),
        Button("next-difference", "next", _("Next difference")),
    ),
}
"""Frequent commands of each mode that have no button in its panes; ``None`` is a gap."""


def paths() -> dict[str, tuple[str, ...]]:
    """Return where each command stands: the titles of its menu and submenu, without ampersands."""
    found: dict[str, tuple[str, ...]] = {}
    for title, entries in MENUS.items():
        name = BY_KEY[title].title if title in BY_KEY else plain(title)
        for entry in entries:
            if isinstance(entry, tuple):
                found.update((each, (name, plain(entry[0]))) for each in entry[1] if each)
            elif entry and entry not in (SAMPLES, RECENT):
                found[entry] = (name,)
    return found


class Menus(QObject):
    """The six menus of the bar; the fourth is that of the current mode."""

    def __init__(self, bar: QMenuBar, commands: Commands, sources: Mapping[str, QMenu]) -> None:
        super().__init__(bar)
        self._commands = commands
        self._sources = sources
        self._of_modes: dict[str, QMenu] = {}
        for title, entries in MENUS.items():
            mode = BY_KEY.get(title)
            menu = bar.addMenu(title if mode is None else LETTERED[title])
            if mode is not None:
                self._of_modes[title] = menu
            self._fill(menu, entries)

    def show_mode(self, key: str) -> None:
        """Show the menu of a mode in place of the others."""
        for mode, menu in self._of_modes.items():
            menu.menuAction().setVisible(mode == key)
            # Qt takes the letter of a hidden menu for a key of the bar, too.
            menu.setTitle(LETTERED[mode] if mode == key else plain(LETTERED[mode]))

    def _fill(self, menu: QMenu, entries: Sequence[Entry]) -> None:
        # They say why a command is disabled.
        menu.setToolTipsVisible(True)
        menu.aboutToShow.connect(self._commands.refresh)
        taken = {letter for entry in entries if (letter := _letter(self._title(entry)))}
        for entry in entries:
            if isinstance(entry, tuple):
                self._fill(menu.addMenu(entry[0]), entry[1])
            elif entry in self._sources:
                menu.addMenu(self._sources[entry])
            elif entry:
                action = self._commands.action(entry)
                action.setText(_with_free_letter(action.text(), taken))
                menu.addAction(action)
            else:
                menu.addSeparator()

    def _title(self, entry: Entry) -> str:
        """Return the title of a submenu; empty for a command."""
        if isinstance(entry, tuple):
            return entry[0]
        return self._sources[entry].title() if entry in self._sources else ""


def _letter(text: str) -> str:
    return text[text.index("&") + 1].upper() if "&" in text else ""


def _with_free_letter(text: str, taken: set[str]) -> str:
    """Return the text of a command with its letter, or with another that the menu does not have."""
    if marked := MARKED_LETTER.search(text):
        choices = (marked[1].upper(), *ascii_uppercase)
        free = next((each for each in choices if each not in taken), "")
        taken.add(free)
        return text.replace(marked[0], f"(&{free})" if free else "")
    bare = text.replace("&", "")
    title = bare.partition("\t")[0]
    letters = (
        _letter(text),
        *(each.upper() for each in title if each.isascii() and each.isalnum()),
    )
    free = next((each for each in letters if each and each not in taken), "")
    if not free:
        return bare
    taken.add(free)
    place = text.index("&") if free == _letter(text) else title.upper().index(free)
    return f"{bare[:place]}&{bare[place:]}"


class ModeBar(QStackedWidget):
    """The buttons of the current mode; without their words where there is no room for them."""

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._bars: dict[str, QToolBar] = {}
        self._rooms: dict[str, int] = {}
        self._mode = ""
        self.setAccessibleName(_("Commands of the mode"))
        theme.notifier().changed.connect(self._draw)

    def show_mode(self, key: str) -> None:
        """Show the buttons of a mode."""
        self._mode = key
        if key not in self._bars:
            self._bars[key] = self._make(key)
            self.addWidget(self._bars[key])
        self.setCurrentWidget(self._bars[key])

    def fit(self, room: int) -> None:
        """Show the words if there is room for all of them."""
        bar = self._bars.get(self._mode)
        if bar is not None and self._rooms.get(self._mode) != room:
            self._rooms[self._mode] = room
            self._fit(bar, room)
        # At once: where Qt finds it too narrow in between, its button for the rest stays.
        width = 0 if bar is None else bar.sizeHint().width()
        self.setFixedWidth(max(0, min(width, room)))

    def forget_sizes(self) -> None:
        """Let `fit` find out again what there is room for."""
        self._rooms.clear()

    def _make(self, key: str) -> QToolBar:
        bar = QToolBar(self)
        bar.setIconSize(QSize(16, 16))
        for each in BUTTONS[key]:
            if each is None:
                bar.addSeparator()
                continue
            action = self._commands.action(each.command)
            # The whole name and the keys are in the menus.
            action.setIconText(each.word or plain(action.text()))
            action.setIconVisibleInMenu(False)
            bar.addAction(action)
            button = bar.widgetForAction(action)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setAccessibleName(plain(action.text()))
            self._draw_icon(each)
        return bar

    def _fit(self, bar: QToolBar, room: int) -> None:
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        only = Qt.ToolButtonStyle.ToolButtonIconOnly
        shown = [each for each in BUTTONS[self._mode] if each]
        # A square of a colour alone would be a riddle: a strategy keeps its letters for longer.
        for kept in (shown, [each for each in shown if each.icon in STRATEGIES], ()):
            for each in shown:
                button = bar.widgetForAction(self._commands.action(each.command))
                assert isinstance(button, QToolButton)
                # Its size is that of the theme, before it is shown.
                button.ensurePolished()
                button.setToolButtonStyle(beside if each.word and each in kept else only)
            if (layout := bar.layout()) is not None:
                # Its sizes are those from before, until it is told.
                layout.invalidate()
            if bar.sizeHint().width() <= room:
                break

    def _draw(self) -> None:
        for mode in self._bars:
            for each in BUTTONS[mode]:
                if each is not None:
                    self._draw_icon(each)

    def _draw_icon(self, button: Button) -> None:
        drawn = strategy_icon if button.icon in STRATEGIES else icon
        self._commands.action(button.command).setIcon(drawn(button.icon))


class MenuCorner(QWidget):
    """The right part of the menu row: the buttons of the mode, and the search.

    Args:
        bar: The menu bar, whose menus keep their room.
    """

    def __init__(self, bar: QMenuBar, buttons: ModeBar, search: SearchField) -> None:
        super().__init__(bar)
        self._bar = bar
        self._buttons = buttons
        self.search = search
        self._room = 0
        row_of(self, STRETCH, buttons, search, margins=(0, 0, 12, 0), spacing=12)
        bar.setCornerWidget(self, Qt.Corner.TopRightCorner)
        self.show()
        bar.installEventFilter(self)

    def show_mode(self, key: str) -> None:
        """Show the buttons of a mode."""
        self._buttons.show_mode(key)
        self._fit(self._bar.width())

    def _fit(self, width: int) -> None:
        # The places of the menus are known later than their titles.
        metrics = self._bar.fontMetrics()
        shown = [each.text().replace("&", "") for each in self._bar.actions() if each.isVisible()]
        menus = sum(metrics.horizontalAdvance(title) + _AROUND for title in shown)
        room = max(0, width - menus - _AROUND)
        self.search.setFixedWidth(_SEARCH[0] if width >= NARROW else _SEARCH[1])
        self._buttons.fit(room - self.search.width() - 36)
        self._room = room
        # The bar places it on its own changes of size only.
        self.setGeometry(width - room, _INSET, room, self._bar.height() - 2 * _INSET)

    # Qt

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._buttons.forget_sizes()
            self._fit(self._bar.width())

    def sizeHint(self) -> QSize:
        return QSize(self._room, self._bar.height() - 2 * _INSET)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and isinstance(event, QResizeEvent):
            self._fit(event.size().width())
        return False


_AROUND = 32
"""Pixels that a menu has beside its title, at most."""

_INSET = 2
"""Pixels above and below it, as of the menus."""

_SEARCH = (304, 240)
"""Widths of the search, in a wide and in a narrow window."""


class SourcesMenu(QMenu):
    """A menu of sources that can be opened, filled when it is opened.

    Args:
        sources: Returns the specification, the title and a description of each.
        act: Opens one.
    """

    def __init__(
        self,
        title: str,
        sources: Callable[[], Sequence[tuple[str, str, str]]],
        act: Callable[[str], object],
        parent: QWidget,
    ) -> None:
        super().__init__(title, parent)
        self._sources = sources
        self._act = act
        self.setToolTipsVisible(True)
        self.aboutToShow.connect(self._fill)
        self.triggered.connect(self._open)

    def _fill(self) -> None:
        self.clear()
        for spec, title, description in self._sources():
            action = self.addAction(literal(title))
            action.setToolTip(description)
            action.setData(spec)
        if self.isEmpty():
            self.addAction(_("None yet")).setEnabled(False)

    def _open(self, action: QAction) -> None:
        if action.data():
            self._act(action.data())
