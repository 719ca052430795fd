"""Export of a recipe's artifacts into a folder, with pictures."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, cast

import msgspec

from lowerscope.core.export.files import (
    File,
    arrays_file,
    builder_files,
    check_absent,
    copied_file,
    function_files,
    parameter_files,
    patch_files,
    plain_files,
    schedule_files,
    script_files,
    step_files,
    text_file,
    write_files,
)
from lowerscope.core.export.reproducing import (
    ARRAYS,
    FOLDER,
    MODULE,
    PROGRAM,
    compiled_files,
    reproduction,
)
from lowerscope.core.files.paths import check_not_read, user_path
from lowerscope.core.files.pipelines_and_schedules import variant_names
from lowerscope.core.files.report import report_html
from lowerscope.core.model.artifacts import (
    EXPORTS,
    GRAPHS,
    PICTURES,
    ExportRecord,
    Wanted,
    parse_wanted,
)
from lowerscope.core.model.comparison_records import Variant
from lowerscope.core.model.graph import (
    DEFAULT,
    LEVELS,
    TEXT_FORMATS,
    GraphName,
    GraphRecord,
    TextMetrics,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress, Silent
from lowerscope.core.model.queries import ExportQuery, ReasonsQuery, RunQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.texts import _
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.graph.hierarchy import Opening, openings_to, part_of
from lowerscope.core.views.graph_records import draw_graph
from lowerscope.core.views.snapshot_records import fx_nodes_of
from lowerscope.core.views.tables import print_table


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Options for painting graphs: see `picture_files`."""

    kinds: tuple[str, ...] = ("svg",)
    level: str = "fit"
    part: str = ""
    painter: Painter | None = None


@dataclass(frozen=True)
class _Exporting:
    """The data that the files are made of."""

    pipeline: Pipeline
    recipe: Recipe
    stages: Stages
    pictures: Pictures
    progress: Progress
    record: RunRecord | None = None


def export(
    pipeline: Pipeline,
    recipe: Recipe,
    folder: Path,
    *,
    force: bool,
    read: Sequence[Path] = (),
    replacing: Sequence[str] = (),
    painted: Sequence[str] = (),
    wanted: Sequence[Wanted] | None = None,
    pictures: Pictures | None = None,
    progress: Progress | None = None,
    record: RunRecord | None = None,
) -> ExportRecord:
    """Write the requested exports, without those that a source does not have.

    Nothing is written before all of it is made.

    Raises a `LowerscopeError` if a file exists and `force` is not given (code `EXISTS`), or is one
    that was read, or the folder cannot be written; if the recipe's steps fail.

    Args:
        read: Files that are never overwritten, besides those that the model was loaded from.
        replacing: Files that may be overwritten without `force`.
        painted: Files that others will write to the folder, which must not exist either.
        record: Of a run for the report; without one, it is run.
    """
    told, wanted = progress or Silent(), wanted or parse_wanted(())
    stages = pipeline.stages(recipe, told)
    _other = stages.completed
    given = _Exporting(pipeline, recipe, stages, pictures or Pictures(), told, record)
    files: dict[str, File] = {}
    left_out: list[str] = []
    complete = True
    titles = {each.name: each.title for each in EXPORTS}
    for number, each in enumerate(wanted):
        told.report(_("Exporting: {title}", title=titles[each.name]), number / len(wanted))
        try:
            files |= {file.name: file for file in _MAKERS[each.name](given, each.which)}
        except LowerscopeError as error:
            if each.asked or not _is_absent(each.name, given):
                left_out.append(msgspec.structs.replace(error.problem, where=each.name).line())
            complete = complete and not each.asked
    if not force:
        check_absent(folder, [*files, *painted], replacing)
    for name in files:
        check_not_read(folder / name, str(folder / name), (*read, *stages.loaded.files))
    told.report(_("Writing"))
    return ExportRecord(
        paths=tuple(map(str, write_files(folder, tuple(files.values())))),
        left_out=tuple(left_out),
        notes=tuple(_not_compared(given, wanted, files)),
        complete=complete,
    )


def _not_compared(
    given: _Exporting, wanted: Sequence[Wanted], files: Mapping[str, File]
) -> Iterator[str]:
    """Yield a note if a runnable export was requested, and no run has compared it."""
    if given.record is not None or "report.html" in files:
        return
    runs = {"module": "module.py", "library": f"{FOLDER}/model.so"}
    asked = dict.fromkeys(each.name for each in wanted if each.asked)
    names = [runs[name] for name in asked if name in runs]
    names = [name for name in names if name in files]
    if names:
        yield _(
            "{names}: the results were not compared, since nothing was run; a run compares them",
            names=_("{one} and {other}", one=names[0], other=names[1]) if names[1:] else names[0],
        )


@answers(ExportQuery)
def export_record(query: ExportQuery, pipeline: Pipeline, job: Progress) -> ExportRecord:
    """Write the files requested by the window: see `export`."""
    return export(
        pipeline,
        query.recipe,
        user_path(query.folder),
        force=False,
        replacing=query.replacing,
        painted=query.painted,
        wanted=query.wanted,
        pictures=Pictures(kinds=query.kinds, level=query.level),
        progress=job,
        record=query.record,
    )


def _is_absent(name: str, given: _Exporting) -> bool:
    """Return whether the source lacks the content of an export, so that it is left out silently."""
    if name in ("fx", "fx-graph"):
        return given.stages.loaded.model is None
    if name == "schedule":
        return not given.recipe.schedules
    return name == "parameters"


def _fx(given: _Exporting, which: str) -> Iterator[File]:
    yield text_file("fx.txt", print_table(fx_nodes_of(given.pipeline, given.recipe)) + "\n")


def _reproduce(given: _Exporting, which: str) -> Iterator[File]:
    made = reproduction(given.stages, given.recipe)
    yield text_file(PROGRAM, made.program)
    if made.arrays:
        yield arrays_file(ARRAYS, made.arrays)
    if made.module:
        yield text_file(MODULE, made.module)
    for path in made.files:
        yield copied_file(path.name, path)


def _graph(given: _Exporting, which: str, name: str) -> Iterator[File]:
    chosen = given.pictures
    return picture_files(
        given.stages, name, chosen.kinds, chosen.level, chosen.painter, chosen.part
    )


def _report(given: _Exporting, which: str) -> Iterator[File]:
    record = given.record or given.pipeline.answer(RunQuery(given.recipe), given.progress)
    (name,) = variant_names((given.recipe,))
    reasons = given.pipeline.answer(ReasonsQuery(given.recipe), given.progress)
    variant = Variant(name=name, recipe=given.recipe, record=record, reasons=reasons)
    yield text_file("report.html", report_html((variant,), datetime.now().astimezone()))


_MAKERS: Mapping[str, Callable[[_Exporting, str], Iterator[File]]] = {
    "module": lambda given, which: script_files(given.stages.completed),
    "script": lambda given, which: plain_files(given.stages),
    "builder": lambda given, which: builder_files(given.stages),
    "fx": _fx,
    "parameters": lambda given, which: parameter_files(given.stages),
    "step": lambda given, which: step_files(given.stages, which),
    "patch": lambda given, which: patch_files(given.stages, given.recipe, which),
    "function": lambda given, which: function_files(given.stages, which),
    "schedule": lambda given, which: schedule_files(given.stages, given.recipe, which),
    "reproduce": _reproduce,
    "library": lambda given, which: compiled_files(given.stages),
    **{name: partial(_graph, name=name) for name in GRAPHS},
    "report": _report,
}


class Painter(Protocol):
    """Interface for painting graphs."""

    def metrics(self) -> TextMetrics:
        """Return the widths of the painter's characters."""
        ...

    def paint(self, graph: GraphRecord, path: Path, kind: str, title: str) -> None:
        """Paint a graph into a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        ...


def picture_files(
    stages: Stages,
    name: str,
    kinds: Sequence[str],
    level: str,
    painter: Painter | None,
    part: str = "",
) -> Iterator[File]:
    """Yield a graph in each of some formats.

    Raises a `LowerscopeError` if there is no such graph or part, or no painter.

    Args:
        part: A module, for its content, or a node, for its neighbourhood; empty for all.
    """
    metrics = DEFAULT if painter is None else painter.metrics()
    which = cast(GraphName, GRAPHS[name])
    if part:
        graph = _part(stages, which, metrics, level, part)
    else:
        graph = draw_graph(stages, which, None, metrics, Opening(*LEVELS[level]), Silent().check)
    for kind in kinds:
        if kind in TEXT_FORMATS:
            yield text_file(f"{which}.{kind}", TEXT_FORMATS[kind](graph, which))
            continue
        if painter is None:
            raise LowerscopeError(
                _("graphs cannot be drawn as {kind} here", kind=kind),
                where=name,
                todo=_("Use the command lowerscope, or the format dot"),
            )
        yield File(
            f"{which}.{kind}",
            partial(painter.paint, graph, kind=kind, title=f"{stages.loaded.title}: {which}"),
        )


def _part(
    stages: Stages, which: GraphName, metrics: TextMetrics, level: str, part: str
) -> GraphRecord:
    """Return a part of a graph; a node may be inside of a module that has to be expanded."""
    whole = Opening(*LEVELS["all"])
    tried = [whole] if level == "all" else [Opening(expanded=openings_to(part)), whole]
    for opening in tried:
        drawn = draw_graph(stages, which, None, metrics, opening, Silent().check)
        found = part_of(drawn, part)
        if found is not None:
            return found
    ids = (*(each.id for each in drawn.boxes), *(each.id for each in drawn.regions))
    names = [each.rpartition(":")[2].rpartition("/")[2] for each in ids]
    near = difflib.get_close_matches(part, names, n=1)
    raise LowerscopeError(
        _("the {which} graph has no module or node {part}", which=which, part=part),
        where=f"--part {part}",
        todo=_("Did you mean {near}?", near=near[0])
        if near
        else _("Export the whole graph to see the names"),
    )


def check_kinds(kinds: Sequence[str]) -> None:
    """Reject unknown formats.

    Raises a `LowerscopeError` with the known ones.
    """
    wrong = next((each for each in kinds if each not in PICTURES), None)
    if wrong is not None:
        raise LowerscopeError(
            _("there is no picture format {wrong!r}", wrong=wrong),
            where="--picture",
            todo=_("Choose from {pictures}", pictures=_(", ").join(PICTURES)),
        )
