"""What stands behind the methods of the children: a call of the pipeline for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lowerscope.core.comparing.variants import measure_variants
from lowerscope.core.engine.jobs import Call, Context
from lowerscope.core.engine.methods import METHODS, derived
from lowerscope.core.engine.run_params import ExportParams
from lowerscope.core.export.catalogue import ExportRecord
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.remote.machine import remote_state
from lowerscope.core.rendering.graphs.hierarchy import Opening
from lowerscope.core.scheduling.code_by_name import program_by_name
from lowerscope.core.target_catalogue import target_records
from lowerscope.core.texts import check_text_kept

Check = Callable[[Any, Context], None]


def calls_of(pipeline: Pipeline) -> Mapping[str, Call]:
    """Return the functions behind `METHODS`, by name: each takes the parameters and a context."""
    calls, checks = _calls(pipeline), _checks(pipeline)
    at_once = {name: _checked(check, calls[name]) for name, check in checks.items()}
    deriving = {derived(name): calls[name] for name in checks if derived(name) in METHODS}
    return {**calls, **at_once, **deriving}


def _checked(check: Check, call: Call) -> Call:
    def checked(params: Any, context: Context) -> Any:
        check(params, context)
        return call(params, context)

    return checked


def _checks(pipeline: Pipeline) -> Mapping[str, Check]:
    """Return what refuses, with the code ``"not-kept"``, what could not be answered at once."""

    def check_module(p: Any, context: Context) -> None:
        pipeline.stages(p.recipe, context).check_kept()

    def check_moment(p: Any, context: Context) -> None:
        pipeline.stages(p.recipe, context).check_kept(p.moment)

    def check_sides(p: Any, context: Context) -> None:
        for side in (p.old, p.new):
            pipeline.stages(side.recipe, context).check_kept(side.moment)

    def check_functions(p: Any, context: Context) -> None:
        pipeline.stages(p.recipe, context).check_functions_kept()

    def check_text(p: Any, context: Context) -> None:
        check_text_kept(pipeline.stages(p.recipe, context), p.view, p.name, p.moment)

    return {
        "text": check_text,
        "graph": check_moment,
        "functions": check_moment,
        "difference": check_sides,
        "graph_difference": check_sides,
        "values": check_module,
        "translation": check_module,
        "schedule": check_functions,
        "moves": check_functions,
        "work": check_functions,
    }


def _calls(pipeline: Pipeline) -> Mapping[str, Call]:
    """Return what each method calls; it derives what is missing."""
    workbench, numbers, values = pipeline.workbench, pipeline.numbers, pipeline.values_of_run
    return {
        "snapshot": lambda p, context: pipeline.snapshot(p.recipe, p.metrics, context),
        "text": lambda p, context: pipeline.text(p.recipe, p.view, p.name, context, p.moment),
        "catalogue": lambda p, context: pipeline.catalogue(p.recipe, context),
        "graph": lambda p, context: pipeline.graph(
            p.recipe, p.metrics, context, p.graph, p.moment, Opening(p.expanded, p.fits)
        ),
        "difference": lambda p, context: pipeline.difference(p.old, p.new, context),
        "functions": lambda p, context: pipeline.functions(p.recipe, p.moment, context),
        "graph_difference": lambda p, context: pipeline.graph_difference(
            p.old, p.new, p.function, p.metrics, context
        ),
        "values": lambda p, context: pipeline.values(p.recipe, p.name, context),
        "translation": lambda p, context: pipeline.translation(p.recipe, p.node, context),
        "schedule": lambda p, context: workbench.schedule(p.recipe, p.function, p.index, context),
        "moves": lambda p, context: workbench.moves(
            p.recipe, p.function, p.index, p.chosen, context
        ),
        "by_rule": lambda p, context: workbench.by_rule(p.recipe, p.function, context),
        "rules": lambda p, context: workbench.rules(p.recipe, context),
        "schedule_program": lambda p, context: program_by_name(p.schedule),
        "work": lambda p, context: numbers.work(p.recipe, p.function, context),
        "peaks": lambda p, context: numbers.peaks(p.recipe, p.again, context),
        "measure": lambda p, context: numbers.measure(p.recipe, p.function, p.index, context),
        "check": lambda p, context: numbers.check(
            p.recipe, p.function, p.index, p.seconds, context
        ),
        "targets": lambda p, context: target_records(p.texts, p.threads),
        "remote": lambda p, context: remote_state(p.remote, context),
        "tune": lambda p, context: pipeline.tuning.tune(p.recipe, p.options, context),
        "tune_state": lambda p, context: pipeline.tuning.state,
        "pause_tuning": lambda p, context: pipeline.tuning.pause(p.paused),
        "save_values": lambda p, context: pipeline.save_values(p.recipe, p.name, p.file, context),
        "write_rule": lambda p, context: pipeline.write_rule(p.recipe, p.node, p.file, context),
        "build_steps": lambda p, context: pipeline.build_steps(p.recipe, context),
        "agreement": lambda p, context: pipeline.agreement(p.recipe, p.path, context),
        "guard": lambda p, context: pipeline.guard(p.recipe, context),
        "export": lambda p, context: _export(pipeline, p, context),
        "run": lambda p, context: pipeline.run(
            p.recipe, context, p.part, p.before, quick=p.quick, keep=p.keep
        ),
        "comparison": lambda p, context: values.comparison(p.recipe, p.place, context),
        "run_step": lambda p, context: values.step(p.recipe, p.call, p.lines, context),
        "window": lambda p, context: values.window(
            p.recipe, p.place, p.leading, (p.top, p.left, p.rows, p.columns), p.cells, context
        ),
        "save_run_values": lambda p, context: values.save(
            p.recipe, p.place, p.side, p.file, context
        ),
        "variant_times": lambda p, context: measure_variants(pipeline, p.recipes, context),
    }


def _export(pipeline: Pipeline, params: ExportParams, context: Context) -> ExportRecord:
    # Who never exports need not wait for it.
    from lowerscope.core.export.folder import export_record

    return export_record(pipeline, params, context)
