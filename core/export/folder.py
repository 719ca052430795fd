"""Export of a recipe's artifacts into a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from lowerscope.core.comparing.variant_names import variant_names
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.catalogue import (
    EXPORTS,
    GRAPHS,
    ExportRecord,
    Wanted,
    parse_wanted,
)
from lowerscope.core.export.compiled import FOLDER, compiled_files
from lowerscope.core.export.files import (
    File,
    arrays_file,
    check_absent,
    copied_file,
    text_file,
    write_files,
)
from lowerscope.core.export.module_files import (
    builder_files,
    function_files,
    parameter_files,
    patch_files,
    plain_files,
    script_files,
    step_files,
)
from lowerscope.core.export.pictures import Painter, picture_files
from lowerscope.core.export.report import report_html
from lowerscope.core.export.reproducing import ARRAYS, MODULE, PROGRAM, reproduction
from lowerscope.core.export.schedule_files import schedule_files
from lowerscope.core.export.session_zip import session_zip
from lowerscope.core.model.queries import ExportQuery, RunQuery
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress, Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import RunRecord
from lowerscope.core.records.variant import Variant
from lowerscope.core.rendering.translation_text import print_table
from lowerscope.core.session_files import Layout
from lowerscope.core.snapshot import fx_nodes_of
from lowerscope.core.stages import Stages
from lowerscope.core.user_paths import check_not_read, user_path


@dataclass(frozen=True)
class Exported:
    """Outcome of an export.

    Attributes
    ----------
    paths
        The files.
    left_out
        Exports that could not be written, and why.
    complete
        Whether no export requested by name is among these.
    notes
        Remarks on the files.
    """

    paths: tuple[Path, ...]
    left_out: tuple[str, ...]
    complete: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Options for painting graphs: see `pictures.picture_files`."""

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
    layout: Layout | None = None


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
    layout: Layout | None = None,
) -> Exported:
    """Write the requested exports, without those that a source does not have.

    Nothing is written before all of it is made.

    Parameters
    ----------
    force
        Overwrite existing files.
    read
        Files that are never overwritten, besides those that the model was loaded from.
    replacing
        Files that may be overwritten without `force`.
    painted
        Files that others will write to the folder, which must not exist either.
    wanted
        By default `catalogue.DEFAULT`.
    record
        Of a run for the report; without one, it is run.
    layout
        Of the window, for the session.

    Returns
    -------
    Exported
        The files, and the exports left out with the reasons.

    Raises
    ------
    LowerscopeError
        If a file exists and `force` is not given (code `EXISTS`), or is one that was read, or
        the folder cannot be written; if the recipe's steps fail.
    """
    told, wanted = progress or Silent(), wanted or parse_wanted(())
    stages = pipeline.stages(recipe, told)
    _ = stages.completed
    given = _Exporting(pipeline, recipe, stages, pictures or Pictures(), told, record, layout)
    files: dict[str, File] = {}
    left_out: list[str] = []
    complete = True
    titles = {each.name: each.title for each in EXPORTS}
    for number, each in enumerate(wanted):
        told.report(f"Exporting: {titles[each.name]}", number / len(wanted))
        try:
            files |= {file.name: file for file in _MAKERS[each.name](given, each.which)}
        except LowerscopeError as error:
            if each.asked or not _is_absent(each.name, given):
                left_out.append(f"{each.name}: {error.problem.what}. {error.problem.todo}".rstrip())
            complete = complete and not each.asked
    if not force:
        check_absent(folder, [*files, *painted], replacing)
    for name in files:
        check_not_read(folder / name, str(folder / name), (*read, *stages.loaded.files))
    told.report("Writing")
    written = write_files(folder, tuple(files.values()))
    return Exported(written, tuple(left_out), complete, tuple(_not_compared(given, wanted, files)))


_NOT_COMPARED = (
    "{0}: what it computes was not compared, since no run was made: `lowerscope run` compares, and "
    "so does --what report"
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
        yield _NOT_COMPARED.format(" and ".join(names))


def export_record(pipeline: Pipeline, params: ExportQuery, progress: Progress) -> ExportRecord:
    """Write the files requested by the window: see `export`."""
    written = export(
        pipeline,
        params.recipe,
        user_path(params.folder),
        force=False,
        replacing=params.replacing,
        painted=params.painted,
        wanted=params.wanted,
        pictures=Pictures(kinds=params.kinds, level=params.level),
        progress=progress,
        record=params.record,
        layout=params.layout,
    )
    return ExportRecord(
        paths=tuple(map(str, written.paths)), left_out=written.left_out, notes=written.notes
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
    variant = Variant(name=name, recipe=given.recipe, record=record)
    yield text_file("report.html", report_html((variant,), datetime.now().astimezone()))


def _session(given: _Exporting, which: str) -> Iterator[File]:
    return session_zip(given.stages, given.recipe, given.layout or Layout())


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
    "session": lambda given, which: session_zip(
        given.stages, given.recipe, given.layout or Layout()
    ),
}
