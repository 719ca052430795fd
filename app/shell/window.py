"""The main window: menus, tool bar, banner, and the welcome page or the panes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtWidgets import QMainWindow, QMenu, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.document.settings import Settings
from lowerscope.app.kit import theme
from lowerscope.app.shell.welcome_page import WelcomePage
from lowerscope.core.model.texts import _
from lowerscope.resources import ICONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QPaintEvent

    from lowerscope.app.document.document import Change, Document
    from lowerscope.app.kit.commands import Commands, V
    from lowerscope.app.kit.pane_messages import Toast
    from lowerscope.app.panes.relax.extensions import Extensions
    from lowerscope.app.panes.schedule.commands import ScheduleCommands
    from lowerscope.app.panes.sessions.opening import Opening
    from lowerscope.app.panes.sessions.sessions import Sessions
    from lowerscope.app.panes.sessions.source_watch import SourceWatch
    from lowerscope.app.panes.sessions.trust import Trusting
    from lowerscope.app.panes.steps.commands import PipelineEditing
    from lowerscope.app.shell.features import Features
    from lowerscope.app.shell.guided_tour import GuidedTour
    from lowerscope.app.shell.help_commands import Help
    from lowerscope.app.shell.menus import MenuCorner, Menus, ModeBar
    from lowerscope.app.shell.palette import PaletteEntries
    from lowerscope.app.shell.panes import Panes
    from lowerscope.app.shell.preferences import PreferenceStore
    from lowerscope.app.shell.sandbox_commands import SandboxCommands
    from lowerscope.app.shell.status_bar import StatusBar
    from lowerscope.app.shell.tool_bar import ToolBar
    from lowerscope.app.shell.view_commands import Graphs
    from lowerscope.core.model.module_steps import DifferenceRecord
    from lowerscope.core.model.recipe import Recipe, WindowLayout

SIZE = (1440, 900)
SMALLEST = (1000, 600)
MENU_HEIGHT = 28


class MainWindow(QMainWindow):
    """The window with one document, or none.

    It opens with the welcome page alone, since slow imports must not delay the first paint. `begin`
    adds the rest.

    Args:
        welcome: Whether to open with the welcome page; otherwise with an empty one, for a document
            that is about to be opened.
    """

    painted = Signal()  # The window was painted for the first time.

    document: Document  # The open document, and the models that follow it.
    features: Features
    # The session file of the document; its source files, their approval, and their sandbox.
    sessions: Sessions
    source_watch: SourceWatch
    trusting: Trusting
    sandbox: SandboxCommands
    commands: Commands
    preferences: PreferenceStore
    opening: Opening
    extensions: Extensions
    pipeline: PipelineEditing
    schedules: ScheduleCommands
    graphs: Graphs
    help: Help
    menus: Menus
    mode_bar: ModeBar
    menu_corner: MenuCorner
    tool_bar: ToolBar
    banner: Toast
    status: StatusBar

    def __init__(self, *, welcome: bool = True) -> None:
        super().__init__()
        self._was_painted = self._is_complete = False
        self._noticed: tuple[str, str] | None = None  # Document that the notice is about.
        self.setWindowTitle("Lowerscope")
        self.setAcceptDrops(True)
        self.settings = Settings()  # Persistent settings.
        self._middle = middle = QWidget(self)
        self.setCentralWidget(middle)
        self.pages = QStackedWidget(middle)
        self.welcome = WelcomePage(self.pages)  # The page without a document.
        self.welcome.show_recent(self.settings.recent())
        self.pages.addWidget(self.welcome)
        if not welcome:
            self.pages.setCurrentIndex(self.pages.addWidget(QWidget(self.pages)))
        self._panes: Panes | None = None
        self.tour: GuidedTour | None = None  # The tour, once it has been taken.
        self._column = QVBoxLayout(middle)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.pages, 1)
        self.menuBar().setFixedHeight(MENU_HEIGHT)
        self.statusBar().setSizeGripEnabled(False)
        # With a large scale, the screen may be smaller.
        self.setMinimumSize(QSize(*SMALLEST).boundedTo(self.screen().availableSize()))
        self.resize(*SIZE)
        self.restoreGeometry(self.settings.geometry())

    def begin(self, recipe: Recipe | None, session: str = "") -> None:
        """Complete the window, start the engine, and open a recipe or the file of a session."""
        theme.follow_system()
        self._complete()
        self.features.start()
        if recipe is not None:
            self.trusting.allow(recipe)
            self.document.open(recipe)
            self.show_panes()
        elif session:
            self.open_source(session)
        else:
            self.welcome.show_last(self.sessions.last())

    def _complete(self) -> None:
        self._make_parts()
        self._make_bars()
        self._connect()
        self._is_complete = True

    def _make_parts(self) -> None:
        from dataclasses import asdict, replace

        from PySide6.QtGui import QIcon

        from lowerscope.app.document.stepping import Following
        from lowerscope.app.kit.commands import Commands
        from lowerscope.app.panes.export.commands import ExportCommands
        from lowerscope.app.panes.inputs.commands import Dropping, InputsForm
        from lowerscope.app.panes.relax.extensions import Extensions
        from lowerscope.app.panes.remote.commands import TargetCommands
        from lowerscope.app.panes.schedule.commands import ScheduleCommands
        from lowerscope.app.panes.sessions.opening import Opening
        from lowerscope.app.panes.sessions.sessions import Sessions
        from lowerscope.app.panes.sessions.source_watch import SourceWatch
        from lowerscope.app.panes.sessions.trust import Trusting
        from lowerscope.app.panes.steps.commands import PipelineEditing
        from lowerscope.app.panes.tuning.commands import TuneCommands
        from lowerscope.app.shell.features import Features
        from lowerscope.app.shell.help_commands import Help
        from lowerscope.app.shell.panes_commands import PaneCommands
        from lowerscope.app.shell.preferences import PreferenceStore
        from lowerscope.app.shell.sandbox_commands import SandboxCommands
        from lowerscope.app.shell.view_commands import CodeCommands, Graphs

        self.setWindowIcon(QIcon(str(ICONS / "lowerscope.png")))
        self.features = features = Features(self)
        self.document = document = features.document
        self.commands = commands = Commands(self)
        queries, run = features.queries, features.runs.run
        self.sandbox = SandboxCommands(features, self.settings, self)
        self.trusting = Trusting(
            document,
            features.processes,
            run,
            self.settings,
            lambda: self.sandbox.sandboxing.availability,
            self,
        )
        self.sessions = Sessions(
            document, self.settings, self.trusting, self.session_layout, self.lay_out
        )
        form = self.settings.code_form(asdict(document.code_form))
        document.set(code_form=replace(document.code_form, **form))
        document.on(("code_form",), self._store_code_form)
        self.preferences = PreferenceStore(self.settings, features, self.sandbox, commands)
        self.inputs_form = InputsForm(document, self)
        self.opening = Opening(document, self.trusting, self.inputs_form.ask, self)
        self.source_watch = SourceWatch(document, run, self.settings)
        self.source_watch.saved.connect(self.trusting.take_saved)
        self.dropping = Dropping(
            self, document, features.inputs, self.opening.dropped_file, self.open_source
        )
        self.extensions = Extensions(document, queries, self.trusting.ask, self)
        self.pipeline = PipelineEditing(
            self, document, features.stepping, self.trusting.ask, commands
        )
        self.schedules = ScheduleCommands(
            self, document, features.stepping, features.scheduling, features.variants, run, commands
        )
        self.tune = TuneCommands(
            self, document, features.tuning, features.active_function, self._show_tuning
        )
        Following(document, self)
        made = self._panes_so_far
        self.graphs = Graphs(document, made, self)
        self.code_commands = CodeCommands(document, features.colouring, made, self)
        self.pane_commands = PaneCommands(made, self.set_mode, self.reset_layout, self)
        self.exports = ExportCommands(self, document, queries, self.graphs.canvas, self._difference)
        self.help = Help(
            self,
            document,
            self.trusting.ask,
            lambda name: self.pane_commands.enter(self.panes.by_name[name]),
        )
        self.targets = TargetCommands(self, document, queries)

    def _make_bars(self) -> None:
        from lowerscope.app.kit.bar_controls import SearchField
        from lowerscope.app.kit.focus_ring import show_focus
        from lowerscope.app.kit.help_key import set_page
        from lowerscope.app.kit.pane import tell_roles
        from lowerscope.app.kit.pane_messages import Toast
        from lowerscope.app.shell.menus import (
            RECENT,
            SAMPLES,
            MenuCorner,
            Menus,
            ModeBar,
            SourcesMenu,
            add_commands,
        )
        from lowerscope.app.shell.status_bar import StatusBar
        from lowerscope.app.shell.tool_bar import ToolBar

        self.preferences.start()
        show_focus()
        tell_roles()
        add_commands(self.commands, self)
        recent = SourcesMenu(_("Open re&cent"), self.recent, self.open_recent, self)
        sources: dict[str, QMenu] = {
            SAMPLES: SourcesMenu(_("Open s&ample"), self.samples, self.open_source, self),
            RECENT: recent,
        }
        self.menus = Menus(self.menuBar(), self.commands, sources)
        self.mode_bar = ModeBar(self.commands)
        self.mode_bar.hide()
        search = SearchField(_("Commands, nodes, functions, lines"), "Ctrl+K")
        search.clicked.connect(self.show_palette)
        self.menu_corner = MenuCorner(self.menuBar(), self.mode_bar, search)
        self.tool_bar = ToolBar(
            self.document, self.features.stepping, self.features.runs, self.features.faults
        )
        of_model = QMenu(self.tool_bar)
        self.commands.fill(of_model, "inputs", "load-parameters", "reload", "", "open")
        of_model.addMenu(recent)
        self.tool_bar.set_menus(of_model, self.pipeline.menu(self.tool_bar))
        self.tool_bar.hide()
        self.banner = Toast(self._middle)
        self._column.insertWidget(0, self.tool_bar)
        self.menus.show_mode(self.mode)
        self.status = StatusBar(
            self.document,
            self.features.processes,
            self.features.tuning,
            self.features.at_work,
            self.sandbox.sandboxing,
        )
        self.setStatusBar(self.status)
        for part in (self.tool_bar, self.mode_bar, self.banner, self.status, self.menuBar()):
            set_page(part, "window")

    def _connect(self) -> None:
        self.welcome.chosen.connect(self.open_source)
        self.welcome.chosen_again.connect(self.open_recent)
        self.welcome.open_wanted.connect(self.choose_file)
        self.welcome.last_wanted.connect(self.open_session)
        self.welcome.tour_wanted.connect(self.take_tour)
        self.tool_bar.modes.changed.connect(self.set_mode)
        self.tool_bar.target_wanted.connect(self.targets.choose_target)
        self.tool_bar.remote_wanted.connect(self.targets.choose_remote)
        self.tool_bar.here_wanted.connect(self.targets.leave_remote)
        document = self.document
        document.on(("snapshot",), self._show_snapshot)
        document.changed.connect(self._note_left)
        document.on(("notice",), self._show_notice)
        self.banner.dismissed.connect(lambda: document.set(notice=None))
        document.on(("recipe", "pending"), self._forget_notice)
        self.commands.refused.connect(self.status.say)
        self.status.drawer_wanted.connect(self._switch_drawer)
        self.tool_bar.cancel_wanted.connect(self.features.cancel)
        self.status.cancel.clicked.connect(self.features.cancel)
        self.sessions.changed.connect(self._show_title)
        self.trusting.declined.connect(self._show_what_is_open)

    @property
    def panes(self) -> Panes:
        """The panes; created on first use, since the welcome page needs none."""
        if self._panes is None:
            from lowerscope.app.shell.panes import LayoutWatch, Panes, restore

            with theme.polished_at_once():
                self._panes = Panes(self.features)
                self._connect_panes(self._panes)
                self.pages.addWidget(self._panes)
            self._panes.area.window_opened.connect(self.commands.take_keys)
            self.pane_commands.fill(self._panes, self.commands)
            restore(self._panes, self.settings.layout())
            LayoutWatch(self, self._panes, self.sessions.note)
        return self._panes

    def _connect_panes(self, panes: Panes) -> None:
        """Connect the panes with the commands of several features."""
        problems, graphs = panes.problems, (panes.fx.graph, panes.relax.graph)
        problems.retry_wanted.connect(self.document.reload)
        problems.tracer_wanted.connect(self.opening.trace_by)
        problems.own_translator_wanted.connect(self.opening.translate_by_own)
        problems.trust_wanted.connect(self.opening.trust)
        problems.question_wanted.connect(self.opening.ask)
        problems.inputs_wanted.connect(self.inputs_form.edit)
        problems.library_wanted.connect(self.extensions.choose_library)
        problems.step_wanted.connect(self.pipeline.show_failed)
        panes.translation.rule.place_wanted.connect(self.extensions.open_file)
        panes.details.rule_wanted.connect(self.extensions.open_rule)
        panes.fx.graph.rule_wanted.connect(self.extensions.write_rule)
        panes.tensorir.rules_wanted.connect(self.schedules.rules_in_model)
        for page in graphs:
            page.picture_wanted.connect(self.exports.save_page)
        panes.pipeline.export_wanted.connect(self.exports.export_moment)
        panes.model.export_wanted.connect(self.exports.export_named)
        panes.difference.patch_wanted.connect(self.exports.save_patch)
        panes.tune.tune_wanted.connect(self.tune.ask)
        panes.tune.workbench_wanted.connect(self._show_function)
        panes.schedule.tune.clicked.connect(self.tune.ask)
        self.status.tuning_wanted.connect(self._show_tuning)
        self.schedules.fill()
        for name, word in (
            ("first-difference", _("First difference  F4")),
            ("tolerances", _("Tolerance…")),
            ("export-report", _("Report…")),
        ):
            panes.outcome.add_command(word, self.commands.action(name))
        panes.difference.compare.setMenu(self.pipeline.comparison_menu(panes.difference))
        panes.mode_changed.connect(self._show_mode)
        panes.arranged.connect(self._show_drawer)
        self._show_mode()

    def _panes_so_far(self) -> Panes | None:
        return self._panes

    def _difference(self) -> DifferenceRecord | None:
        return None if self._panes is None else self._panes.difference.page.record

    @property
    def widget(self) -> QWidget:
        """The window itself, as the parent of dialogs; see `Host`."""
        return self

    def view(self, kind: type[V]) -> V:
        """Return the pane, or the page of one, of a class; the panes are made on first use."""
        return next(each for each in vars(self.panes).values() if isinstance(each, kind))

    def bring(self, name: str) -> None:
        """Bring a pane to the front."""
        self.show_panes()
        self.panes.bring(name)

    def show_panes(self) -> None:
        """Switch from the welcome page to the panes, with the focus in the first one."""
        panes, focus = self.panes, self.focusWidget()
        had_focus = focus is not None and self.welcome.isAncestorOf(focus)
        self.pages.setCurrentWidget(panes)
        self.tool_bar.show()
        self.mode_bar.show()
        if had_focus:
            self.pane_commands.enter_first()

    # Commands: see app/shell/menus.py. Those about sources are in app/panes/sessions/opening.py.

    def _store_code_form(self) -> None:
        from dataclasses import asdict

        self.settings.set_code_form(asdict(self.document.code_form))

    def open_source(self, spec: str) -> None:
        """Open ``sample:NAME``, a file with a model, or a session."""
        if self.sessions.is_file(spec):
            self.open_session(spec)
            return
        self.opening.open_source(spec)
        self.show_panes()

    def samples(self) -> list[tuple[str, str, str]]:
        """Return the specification, the name and the description of each sample."""
        from lowerscope.core.files.samples import samples

        return [(f"sample:{each.name}", each.name, each.description) for each in samples()]

    def recent(self) -> list[tuple[str, str, str]]:
        """Return the specification, the name and the place of each recent source."""
        from lowerscope.app.shell.welcome_page import recent_words

        return [(each, *recent_words(each)) for each in self.settings.recent()]

    def open_session(self, path: str) -> None:
        """Open a saved session with its layout."""
        if self.sessions.open(path):
            self.settings.add_recent(path, "")
        # They also show why it cannot be opened.
        self.show_panes()

    def open_recent(self, spec: str) -> None:
        """Reopen a recent source with its recipe."""
        if self.sessions.is_file(spec):
            self.open_session(spec)
            return
        self.opening.open_recent(spec, self.settings.recipe_of(spec))
        self.show_panes()

    def choose_file(self) -> None:
        """Select a file in a dialog and open it."""
        path = self.opening.choose_file()
        if path:
            self.open_source(path)

    def set_scheme(self, scheme: str) -> None:
        """Set the colour scheme: the system's, light or dark."""
        theme.set_scheme(scheme)
        self.settings.scheme = scheme

    def reset_layout(self) -> None:
        """Reset all panes to their default places."""
        self.panes.reset()

    def session_layout(self) -> WindowLayout:
        """Return the layout, as sessions store it."""
        from lowerscope.app.shell.panes import layout_of

        return layout_of(self, self._panes, self.document.selection.chosen)

    def lay_out(self, layout: WindowLayout) -> None:
        """Apply the layout of a session."""
        from lowerscope.app.shell.panes import lay_out

        lay_out(self, self.panes, layout)
        if layout.selection:
            self.document.select(layout.selection)

    def show_page(self, key: str) -> None:
        """Show a page, whichever pane and mode it belongs to."""
        self.show_panes()
        self.panes.show_page(key)

    @property
    def mode(self) -> str:
        """Key of the current mode; ``"explore"`` before the panes are made."""
        return "explore" if self._panes is None else self._panes.mode

    def set_mode(self, key: str) -> None:
        """Switch to one of the four modes."""
        self.show_panes()
        self.panes.set_mode(key)

    def show_tensor(self) -> None:
        """Show the values of the selected node."""
        self.show_panes()
        self.panes.show_tensor()

    def show_alone(self) -> None:
        """Run the selected node alone, and show its error."""
        self.show_panes()
        self.panes.show_alone()

    def show_palette(self) -> None:
        """Show all commands, nodes, functions, passes and lines."""
        from lowerscope.app.shell.palette import open_palette

        open_palette(self.palette_entries(), self.features.queries, self)

    def palette_entries(self) -> PaletteEntries:
        """Return what the palette finds."""
        from lowerscope.app.shell.palette import PaletteEntries

        return PaletteEntries(
            self,
            self.document,
            self.features.stepping,
            self.commands,
            self.code_commands.shown,
            lambda name: self.pipeline.view.add_named_pass(name),
            self._openable,
        )

    def _openable(self) -> list[tuple[str, str, str, Callable[[], object]]]:
        """Return the samples and the recent sources: kind, name, place, and what opens each."""
        known = (
            *((_("sample"), each, self.open_source) for each in self.samples()),
            *((_("recent"), each, self.open_recent) for each in self.recent()),
        )
        return [(kind, name, place, partial(act, spec)) for kind, (spec, name, place), act in known]

    def _show_mode(self) -> None:
        self.banner.leave()
        self.commands.set_mode(self.mode)
        self.tool_bar.show_mode(self.mode)
        self.menus.show_mode(self.mode)
        self.menu_corner.show_mode(self.mode)

    def _show_tuning(self) -> None:
        self.show_panes()
        self.panes.show_tuning()

    def _show_function(self, function: str) -> None:
        self.document.select((f"tir:{function}",))
        self.schedules.show()

    def take_tour(self) -> None:
        """Start the tour, on a sample."""
        from lowerscope.app.shell.guided_tour import GuidedTour

        if self.tour is None:
            self.tour = GuidedTour(
                self,
                self.document,
                self.features.stepping,
                self.panes,
                self.tool_bar,
                self.menu_corner.search,
                self.open_source,
            )
        self.show_panes()
        self.tour.start()

    def show_welcome(self) -> None:
        """Show the welcome page; the document stays open behind it."""
        self.welcome.show_recent(self.settings.recent())
        self.pages.setCurrentWidget(self.welcome)
        self.tool_bar.hide()
        self.mode_bar.hide()

    # Signals

    def _show_snapshot(self) -> None:
        recipe, snapshot = self.document.wanted, self.document.snapshot
        if recipe is not None and snapshot is not None:
            self._show_title()
            self._add_recent(recipe)

    def _note_left(self, change: Change) -> None:
        """Store the recipe of a source that another one replaces: its schedules come back."""
        from lowerscope.core.model.recipe import document_of

        left, now = change.before.recipe, change.after.recipe
        if "recipe" in change.fields and left is not None and document_of(left) != document_of(now):
            self._add_recent(left)
            if now is not None:
                self._add_recent(now)

    def _add_recent(self, recipe: Recipe) -> None:
        from lowerscope.core.files.sources import is_in_memory
        from lowerscope.core.model.recipe import to_json

        if not is_in_memory(recipe):
            self.settings.add_recent(self.opening.text_of(recipe), to_json(recipe))

    def _show_notice(self) -> None:
        from lowerscope.core.model.recipe import document_of

        notice = self.document.state.notice
        if notice is None:
            self.banner.dismiss()
        else:
            self._noticed = document_of(self.document.wanted)
            self.banner.show_message(notice.text, notice.role, notice.actions)

    def _forget_notice(self) -> None:
        """Dismiss a notice about the model that was open before."""
        from lowerscope.core.model.recipe import document_of

        wanted = document_of(self.document.wanted)
        if self._noticed is not None and self._noticed != wanted:
            self.document.set(notice=None)
        self._noticed = self._noticed and wanted

    def _switch_drawer(self, page: str) -> None:
        self.show_panes()
        if self.panes.drawer_page() == page:
            self.panes.close_drawer()
        else:
            self.panes.open_drawer(page)

    def _show_drawer(self) -> None:
        self.status.show_drawer(self.panes.drawer_page())

    def _show_what_is_open(self) -> None:
        if self.document.wanted is None:
            self.show_welcome()

    def _show_title(self) -> None:
        from lowerscope.app.panes.sessions.sessions import title

        # Qt replaces a single "[*]" with the modified mark; a doubled one is literal.
        self.setWindowTitle(title(self.document, self.sessions).replace("[*]", "[*][*]"))

    # Qt overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self._tell_painted)

    def _tell_painted(self) -> None:
        # It may have been closed meanwhile.
        if self.isVisible():
            self.painted.emit()
            self.welcome.show_pictures()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self.dropping.takes(event.mimeData()):
            _accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if self.dropping.take(event.mimeData()):
            _accept_copy(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        layout = ""
        if self._panes is not None:
            from lowerscope.app.shell.panes import stored

            layout = stored(self._panes)
        self.settings.save(self.saveGeometry(), layout)
        if self._is_complete:
            if self.document.recipe is not None:
                self._add_recent(self.document.recipe)
            self.sessions.finish()
            self.features.stop()
            self.help.close()
        super().closeEvent(event)


def _accept_copy(event: QDropEvent) -> None:
    """Accept a dragged file as a copy: where it is moved, its folder may lose it."""
    # Its enumerations would delay the first paint.
    from PySide6.QtCore import Qt

    event.setDropAction(Qt.DropAction.CopyAction)
    event.accept()
