"""Answers to why a model differs: the step, in words, with a reproduction and a bug report."""

from __future__ import annotations

import contextlib
import io
import itertools
import platform
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tvm
from tvm import relax

from lowerscope.core.bisect.first_step import (
    RIGHT,
    Item,
    Probe,
    Prober,
    Search,
    Unclear,
    Unreported,
    computes_same,
    is_reproducible,
    items_of,
    last_probe,
    with_steps,
)
from lowerscope.core.bisect.shrinking import Shrinking, Small, is_optimised_wrongly
from lowerscope.core.export.reproducing import (
    Array,
    content_of_array,
    imports_for,
    library_entries,
    registering_files,
    steps_values,
    tensors_by_content,
    text_to_compile,
)
from lowerscope.core.files.python_text import docstring, quoted
from lowerscope.core.files.report import template
from lowerscope.core.files.sources import neighbours
from lowerscope.core.model.explanation_records import (
    PROGRAM,
    REPORT,
    BisectOutcome,
    BisectRecord,
    WrittenFile,
)
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import BisectQuery, RunQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import OutputVerdict, first_difference
from lowerscope.core.model.texts import _, _n, sentences
from lowerscope.core.run.compare.variants import BRIEFLY
from lowerscope.core.run.compare.verdicts import Verdict, tolerance_for
from lowerscope.core.run.execution import FILL, PERTURB
from lowerscope.core.run.node_runs import node_runs
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.programs.program_lines import Identifiers
from lowerscope.core.views.source_text import builder_of
from lowerscope.resources import PROGRAMS

# --- ``reproduce.py`` of a small model, and the text of a bug report: torch and TVM are enough ---

ARRAYS, MODULE, COMPILING = "reproduce.npz", "reproduce.json", "compiling.py"

_COMPILING = "from typing import Any\n\nimport tvm\nfrom tvm import relax, tirx"
"""Imports of the functions through which modules are compiled."""

_DEFINED = (
    "HERE LIBRARY LibraryCall Model check example_inputs expected from_dlpack function given "
    "inputs load_text model operator parameters plain_of relax s_tir scheduled target tensors "
    "tensors_of tirx to_tvm torch tvm without"
)

_BUILD = re.compile(r'^def build\(.*\n    """.*\n', re.MULTILINE)
"""Head of the function that makes the module, with its docstring."""

_INLINE = 64
"""Most elements of an array that is written into the program."""

SECONDS = 120
"""Seconds of the processor that the program may take."""


def files_of(
    small: Small,
    item: Item,
    node: str,
    *,
    optimised: bool,
    filled: bool = False,
    stored: bool = False,
    embeds: bool = False,
) -> tuple[WrittenFile, ...]:
    """Return the program, a text for a bug report, and the files that the program needs.

    They are in English, whatever the language of the process.

    Raises a `LowerscopeError` if a part of it cannot be written as code.

    Args:
        node: The node whose translation is wrong; empty for none.
        optimised: Whether LLVM's optimisation is the cause.
        filled: Whether the program fills memory, so that elements never written are wrong.
        stored: Whether the module before the step is read from a file, as TVM's own passes and
            forms of operators may hide the fault.
        embeds: Whether modules are compiled as Lowerscope compiles them.
    """
    cause = "LLVM's optimisation" if optimised else item.name or f"the translation of {node}"
    title = f"{cause[0].upper()}{cause[1:]} makes the outputs of a model differ from torch's."
    stages, arrays = small.stages, dict[str, Array]()
    facts = list(_facts(small))
    definitions, built, froms, module = _lowering(small, arrays, small.before if stored else None)
    names = re.findall(r"^(?:def )?(\w+)", definitions, re.MULTILINE)
    steps = steps_values(stages, small.recipe, Identifiers((*_DEFINED.split(), *names)))
    compiled, embedded = text_to_compile("module", small.after) if embeds else ("module", {})
    if small.before is not None and embeds:
        other, more = text_to_compile("module", small.before)
        compiled, embedded = max(compiled, other, key=len), embedded | more
    library = {} if stages.lowered is None else stages.lowered.library
    values: dict[str, Any] = {
        **{each.__name__: each for each in (docstring, repr)},
        **steps,
        **_checks(item, steps["by_step"][-1 if stored else 0 :], optimised=optimised),
        "model": small.model.text(),
        "definitions": definitions,
        "built": built,
        "library": library_entries(library) if library else [],
        "compiled": compiled,
        "embedded": embedded,
        "seed": small.recipe.seed,
        "fill": f"{PERTURB}, {FILL}" if filled else "",
        **_comparison(small),
        "has_state": "state[" in built or bool(stages.parameters),
        "parameters": [
            f"{quoted(name)}: to_tvm(state[{quoted(each.name)}])"
            for name, each in ({} if stages.lowered is None else stages.lowered.arguments).items()
        ],
        "names": [str(each.name) for each in stages.module["main"].params][
            : len(small.model.inputs)
        ],
    }
    body = template(PROGRAMS / "small_reproduce.py.jinja").render(values)
    registering = registering_files(stages)
    imports = imports_for(body, froms)
    needs_here = "HERE" in body
    head = template(PROGRAMS / "small_head.py.jinja").render(
        values,
        title=title,
        facts=facts,
        body=body,
        here=needs_here,
        own=[(path.stem, name) for path, name in steps["own_files"].items()]
        + [(path.stem, f"LIBRARY_{place}") for place, path in enumerate(registering)],
        **imports
        | {
            "froms": [
                each
                for each in imports["froms"]
                if needs_here or not each.startswith("from pathlib")
            ]
        },
    )
    program = _tidied(head + body)
    written = [
        WrittenFile(name=PROGRAM, content=program.encode()),
        WrittenFile(name=REPORT, content=_report(small, title, facts, program).encode()),
    ]
    if arrays:
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, **arrays)
        written.append(WrittenFile(name=ARRAYS, content=stream.getvalue()))
    if module:
        written.append(WrittenFile(name=MODULE, content=module.encode()))
    if embedded:
        text = "\n\n\n".join((_COMPILING, *embedded.values()))
        written.append(WrittenFile(name=COMPILING, content=text.encode()))
    own = dict.fromkeys((*steps["own_files"], *registering))
    return (*written, *_copies(own))


def _tidied(text: str) -> str:
    """Return a program with one blank line between its parts."""
    return re.sub(r"\n{3,}", "\n\n", text)


def _copies(paths: Mapping[Path, None]) -> Iterator[WrittenFile]:
    found: dict[str, Path] = {}
    for path in paths:
        beside = [each for each in neighbours(path) if each.is_relative_to(path.parent)]
        found |= {str(each.relative_to(path.parent)): each for each in (path, *beside)}
    for name, path in found.items():
        yield WrittenFile(name=name, content=path.read_bytes())


def _lowering(
    small: Small, arrays: dict[str, Array], stored: tvm.IRModule | None
) -> tuple[str, str, tuple[str, ...], str]:
    """Return the definitions, the expression that makes the module, imports, and its JSON."""
    stages = small.stages
    loading = f'tvm.ir.load_json((HERE / "{MODULE}").read_text())'
    if stored is not None:
        return "", loading, (), str(tvm.ir.save_json(stored))
    if small.recipe.translator == "tvm-export":
        built = "from_exported_program(torch.export.export(model, inputs))"
        return "", built, ("from tvm.relax.frontend.torch import from_exported_program",), ""
    try:
        text = builder_of(stages, stages.module, _DEFINED.split())
    except LowerscopeError:
        module = str(tvm.ir.save_json(stages.module))
        return "", loading, (), module
    known = tensors_by_content(stages)
    own = {name: known.get(content_of_array(array)) for name, array in text.constants.items()}
    if len(own) > 1 and all(key and name == key.replace(".", "_") for name, key in own.items()):
        # One expression in place of one for each.
        state = "model.state_dict().items()"
        built = f'build({{name.replace(".", "_"): each.numpy() for name, each in {state}}})'

    else:
        parts = (
            f"{quoted(name)}: {_array(name, array, own[name], arrays)}"
            for name, array in text.constants.items()
        )
        built = f"build({{{', '.join(parts)}}})"
    definitions = text.definitions.strip("\n") + "\n\n"
    definitions = re.sub(r"\n\n+ ", "\n ", _BUILD.sub("def build(constants):\n", definitions))
    return definitions, built, text.imports, ""


def _array(name: str, array: Array, own: str | None, arrays: dict[str, Array]) -> str:
    """Return an expression for a constant: the model's, or written in place or to a file."""
    if own:
        tensor = f"state[{quoted(own)}]"
        view = {"uint16": ".view(torch.uint16)", "uint8": ".view(torch.uint8)"}
        return f"{tensor}{view.get(str(array.dtype), '')}.numpy()"
    if array.size <= _INLINE and np.isfinite(array).all():
        return f'np.array({array.tolist()!r}, dtype="{array.dtype}")'
    arrays[name] = array
    return f'np.load(HERE / "{ARRAYS}")[{quoted(name)}]'


def _comparison(small: Small) -> dict[str, Any]:
    """Return the values for the call of the module, and for the comparison of its outputs."""
    outputs, parameters = small.probe.outputs, small.stages.parameters
    known = [tolerance_for(each.dtype, small.recipe.tolerances) for each in outputs]
    pairs = [(each.rtol, each.atol) for each in known]
    several = len(set(pairs)) > 1
    # NumPy has no bfloat16 and the like.
    dtypes = [each.dtype for each in small.model.inputs.values()]
    needs_copies = bool(parameters) or any(str(each) in _NOT_IN_NUMPY for each in dtypes)
    arguments = "(tvm.runtime.tensor(each.numpy()) for each in inputs)"
    if needs_copies:
        arguments = "map(to_tvm, inputs)"
    if parameters:
        arguments = '(given[each.name] for each in module["main"].params)'
    call, expected = f'machine["main"](*{arguments})', "model(*map(torch.clone, inputs))"
    one = len(outputs) == 1
    expected = f"[{expected}.detach()]" if one else f"[each.detach() for each in {expected}]"
    # TVM's importer itself returns a tuple in any case.
    is_tuple = isinstance(small.stages.module["main"].ret_ty, relax.TupleType)
    if not is_tuple and small.recipe.translator != "tvm-export":
        call = f"[{call}]"
    return {
        "needs_copies": needs_copies,
        "call": call,
        "expected": expected,
        "several": several,
        "tolerances": pairs,
        "rtol": "rtol" if several else pairs[0][0],
        "atol": "atol" if several else pairs[0][1],
    }


_NOT_IN_NUMPY = ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2")


def _checks(item: Item, by_step: Sequence[Sequence[str]], *, optimised: bool) -> dict[str, Any]:
    """Return the lines that apply the steps, and those that check the modules."""
    context, plain = "target", [_without_context(lines) for lines in by_step]
    if plain != list(by_step) and all(len(lines) == 1 for lines in plain):
        # One context for all of them.
        by_step, context = plain, f"target, {_CONTEXT}"
    steps = [line for lines in by_step for line in lines]
    if optimised:
        target = '{**target.export(), "opt-level": 0}'
        checks = [
            f'check("without optimisation by LLVM", module, tvm.target.Target({target}))',
            'check("with optimisation by LLVM", module, target)',
        ]
    elif item.stage == "translate":
        checks = ['check("the translation", module, target)']
    else:
        before = [line for lines in by_step[:-1] for line in lines]
        steps = [*before, "before = module", *by_step[-1]]
        checks = [
            f"check({quoted(f'{when} {item.name}')}, {module}, target)"
            for when, module in (("before", "before"), ("after", "module"))
        ]
    return {"steps": steps, "checks": checks, "context": context}


def _without_context(lines: Sequence[str]) -> list[str]:
    """Return the lines of a step without comments, and without the context of a single call."""
    lines = [each for each in lines if not each.lstrip().startswith("#")]
    if len(lines) == 2 and lines[0] == f"with {_CONTEXT}:":
        return [lines[1].strip()]
    return lines


_CONTEXT = "tvm.transform.PassContext(opt_level=3)"


def _facts(small: Small) -> Iterator[str]:
    llvm = tvm.target.codegen.llvm_version_major()
    versions = (
        f"torch {version('torch')}, apache-tvm {version('apache-tvm')}, LLVM {llvm}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; "
        f"target {small.recipe.target}"
    )
    verdict = small.probe.verdict
    found = "Expected: the outputs of torch. Found: other outputs."
    if verdict.max_abs is not None:
        found = f"{found[:-1]}; the largest difference is {verdict.max_abs:.2g}."
    for text in (versions, found):
        yield from textwrap.wrap(text, 96)


def _report(small: Small, title: str, facts: Sequence[str], program: str) -> str:
    """Return the text of a bug report."""
    steps = ", ".join(each.name for each in small.recipe.steps) or "none"
    found = [
        f"- `{each.name}` {each.dtype} {list(each.shape)}: largest difference {each.max_abs_error}"
        for each in small.probe.verdict.outputs
    ]
    lines = [
        f"# {title}",
        "",
        *facts,
        "",
        f"Steps: {steps}",
        "",
        "Outputs:",
        "",
        *found,
        "",
        f"To reproduce, run `python {PROGRAM}`:",
        "",
        "```python",
        program.rstrip("\n"),
        "```",
        "",
    ]
    return "\n".join(lines)


def shows_difference(files: Sequence[WrittenFile], folder: Path, check: Callable[[], None]) -> bool:
    """Return whether the program, run in a process of its own, shows the difference.

    `check`: called each second; may raise to cancel.
    """
    for each in files:
        path = folder / each.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.content)
    command = (sys.executable, str(folder / PROGRAM))
    pipe = subprocess.PIPE
    errors = ""
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as ran:
        try:
            resource.prlimit(ran.pid, resource.RLIMIT_CPU, (SECONDS, SECONDS))
            while ran.returncode is None:
                check()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    _out, errors = ran.communicate(timeout=1)
        finally:
            ran.kill()
    return is_difference(ran.returncode, errors)


def is_difference(code: int, errors: str) -> bool:
    """Return whether a program that ended with `code` showed the difference."""
    failed = re.findall(r"^AssertionError: (\w+) ", errors, re.MULTILINE)
    # The module before the step has to match.
    return code != 0 and failed in (["after"], ["the"], ["with"])


# --- The answers ---


_NOTHING: Mapping[OutputVerdict, str] = {
    "match": _("The model matches {side}: there is no difference to look for."),
    "rounding": _("The model differs from {side} by rounding only: no step is wrong."),
    "inconclusive": _("No value is finite on both sides, so no step can be judged."),
    "not-comparable": _("The outputs depend on random numbers, so no step can be judged."),
    "no-reference": _("There is no torch side and no function reference to compare with."),
}
"""Answers for models without a difference, by verdict."""

LLVM = "LLVM"
"""Name of the step that is LLVM's optimisation."""


@answers(BisectQuery)
def bisect(query: BisectQuery, pipeline: Pipeline, job: Progress) -> BisectRecord:
    """Return the first step after which the module differs from its reference.

    Raises a `LowerscopeError` if the model cannot be built and run as it is, or runs elsewhere.
    """
    recipe = query.recipe
    parts = Unreported(job)
    stages = pipeline.stages(recipe, parts)
    stages.check_runs_here(_("bisecting"))
    prober, last, again = last_probe(stages, recipe, job)
    side = "torch" if stages.loaded.model is not None else "NumPy"
    if again is None:
        hidden = _hidden(pipeline, recipe, stages, last.verdict, side, job)
        return hidden or _nothing(last.verdict, side)
    if not is_reproducible(prober, last, again):
        text = _(
            "Two runs of the same module, or of {side}, have different outputs: the difference is "
            "not reproducible, so no step can be named.",
            side=side,
        )
        return BisectRecord(outcome="not-reproducible", text=text, builds=1)
    items = items_of(stages, pipeline.replays, job)
    first = stages if len(items) == 1 else pipeline.stages(with_steps(recipe, 0), parts)
    search = Search(prober, items, last, lambda: first.recorded, job)
    try:
        item = search.find()
    except Unclear as unclear:
        names = listed([each.title for each in unclear.items])
        text = _(
            "One of these steps is the first that differs, and the modules between them cannot be "
            "built or run: {names}.",
            names=names,
        )
        return _record("unclear", text, search)
    return _Answer(pipeline, recipe, search, item, first, prober, last, side, job).record()


def _nothing(verdict: Verdict, side: str) -> BisectRecord:
    text = _NOTHING[verdict.verdict].format(side=side)
    outcome: BisectOutcome = verdict.verdict if verdict.verdict != "differ" else "unclear"
    return BisectRecord(outcome=outcome, text=text, builds=1)


def _hidden(
    pipeline: Pipeline, recipe: Recipe, stages: Stages, last: Verdict, side: str, job: Progress
) -> BisectRecord | None:
    """Return the first step after which a node differs though the outputs do not.

    That is by more than rounding, which the tolerance of the outputs, or their rounding, hides.
    ``None`` if there is no such node.

    Args:
        last: On the outputs after all steps.
    """
    if last.verdict not in RIGHT or stages.traced is None:
        return None
    brief = msgspec.structs.replace(recipe, measuring=BRIEFLY)
    found = pipeline.answer(RunQuery(brief), Unreported(job))
    if found.verdict != "differ":
        return None
    # A step of the recipe counts as one.
    items = {each.step: each for each in items_of(stages, pipeline.replays, job)}
    places = sorted(items)
    low, high, builds = 0, len(places) - 1, 1
    while low < high:
        middle = (low + high) // 2
        item = items[places[middle]]
        job.report(_("Build {count}: the module after {step}", count=builds + 1, step=item.title))
        builds += 1
        other = pipeline.answer(RunQuery(with_steps(brief, item.step)), Unreported(job))
        if other.verdict == "differ":
            high, found = middle, other
        else:
            low = middle + 1
    item, entity = items[places[high]], found.first_difference
    if item.step:
        own = recipe.steps[item.step - 1].name
        title = _("step {number} ({name})", number=item.step, name=own)
        item = replace(item, stage="pass", name=own, title=title)
    node = entity.removeprefix("fx:")
    name = node if item.stage == "translate" else item.name
    text = _sentence_on(item, node if item.stage == "translate" else "", side)
    return BisectRecord(
        outcome="found",
        text=sentences(text, _("The tolerance of the outputs, or their rounding, hides it.")),
        stage=item.stage,
        name=name,
        steps=len(places),
        builds=builds,
        moment=item.moment,
        entity=entity,
        all_nodes=_count_nodes(stages),
    )


def _record(outcome: BisectOutcome, text: str, search: Search) -> BisectRecord:
    return BisectRecord(
        outcome=outcome,
        text=text,
        steps=len(search.items),
        builds=search.builds,
        probed=search.probed,
    )


def _wrong_node(stages: Stages, recipe: Recipe, prober: Prober, job: Progress) -> str:
    """Return the first node whose translation differs; empty if no node can be told."""
    if stages.traced is None:
        return ""
    with stages.running():
        nodes = node_runs(stages, recipe, prober.values, Unreported(job), repeats=1).nodes
    alone = [each for each in nodes if each.id.startswith("fx:") and each.own_matches is False]
    return alone[0].id if alone else first_difference(nodes)


def _sentence_on(item: Item, node: str, side: str) -> str:
    """Return the answer: the node whose translation is wrong, if there is one, or the step."""
    if node:
        return _("The translation of {node} differs from {side}.", node=node, side=side)
    if item.stage == "translate":
        return _("The module differs from {side} before any step.", side=side)
    return _(
        "The module matches {side} before {step}, and differs after it.",
        side=side,
        step=item.title,
    )


class _Answer:
    """The answer on a step that was found.

    Args:
        first: The stages of the translation alone.
        last: The run of the module after all steps.
        side: Name of the reference.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        recipe: Recipe,
        search: Search,
        item: Item,
        first: Stages,
        prober: Prober,
        last: Probe,
        side: str,
        job: Progress,
    ) -> None:
        self._pipeline, self._recipe, self._search = pipeline, recipe, search
        self._item, self._prober, self._last = item, prober, last
        self._side, self._job = side, job
        self._stages = pipeline.stages(recipe, Unreported(job))
        self._entity = ""
        if item.stage == "translate":
            self._entity = _wrong_node(first, with_steps(recipe, 0), prober, job)
        self._node = self._entity.removeprefix("fx:")

    def record(self) -> BisectRecord:
        """Return the record, with a reproduction."""
        item, found = self._item, self._search.probe_of(self._item)
        record = msgspec.structs.replace(
            _record("found", _sentence_on(item, self._node, self._side), self._search),
            stage=item.stage,
            name=self._node if item.stage == "translate" else item.name,
            function=item.function,
            moment=self._moment,
            entity=self._entity,
            all_nodes=_count_nodes(self._stages),
        )
        self._job.report(_("Shrinking the model: {answer}", answer=record.text))
        with tempfile.TemporaryDirectory(prefix="lowerscope-bisect-") as folder:
            shrinking = self._shrinking(Path(folder))
            small = None
            if shrinking is not None:
                small = shrinking.smallest((self._node,) if self._node else ())
            optimised = self._is_optimised_wrongly(small)
            if optimised:
                record = msgspec.structs.replace(
                    record, stage="build", name=LLVM, text=self._sentence_on_llvm
                )
            more = [record.text]
            if not computes_same(self._last.outputs, found.outputs):
                more.append(
                    _("Later steps change the outputs again, so others may be wrong as well.")
                )
            imported = None
            if small is not None and shrinking is not None and not optimised:
                imported = shrinking.imported(small)
            forms = tuple(each for each in (imported, small) if each is not None)
            files, sentence = self._reproduction(
                forms, Path(folder) / "reproduction", optimised=optimised
            )
        return msgspec.structs.replace(
            record,
            text=sentences(*more, sentence),
            nodes=len(small.model.calls) if files and small is not None else 0,
            files=files,
        )

    @property
    def _moment(self) -> Moment:
        traced = self._stages.traced
        if not self._node or traced is None:
            return self._item.moment
        order = [each.name for each in traced.graph_module.graph.nodes]
        return Moment(section="translate", index=order.index(self._node) + 1)

    @property
    def _sentence_on_llvm(self) -> str:
        return _(
            "LLVM's optimisation of the module after {step} makes it differ from {side}: without "
            "it, the module matches.",
            step=self._node or self._item.title,
            side=self._side,
        )

    def _is_optimised_wrongly(self, small: Small | None) -> bool:
        """Return whether the module after the step is right if LLVM does not optimise."""
        if small is not None:
            return is_optimised_wrongly(small)
        try:
            return self._prober.without_optimisation(self._item.module()).is_right
        except LowerscopeError:
            return False

    def _shrinking(self, folder: Path) -> Shrinking | None:
        if self._stages.traced is None:
            return None
        return Shrinking(
            self._pipeline, self._recipe, self._item, self._prober.values, folder, self._job
        )

    def _reproduction(
        self, forms: Sequence[Small], folder: Path, *, optimised: bool
    ) -> tuple[tuple[WrittenFile, ...], str]:
        """Return the files of the first form that shows the difference, and a sentence on them."""
        if not forms:
            return (), _(
                "No part of the model shows the difference with random values, so there is no "
                "reproduction."
            )
        self._job.report(_("Running the reproduction"))
        try:
            # The plainest program first.
            written = [(each, False) for each in forms]
            written += [(each, True) for each in forms[-1:] if each.before is not None]
            tried: set[tuple[WrittenFile, ...]] = set()
            for embeds, (each, stored), filled in itertools.product(
                (False, True), written, (False, True)
            ):
                files = files_of(
                    each,
                    self._item,
                    self._node,
                    optimised=optimised,
                    filled=filled,
                    stored=stored,
                    embeds=embeds,
                )
                if files in tried:
                    continue
                tried.add(files)
                if shows_difference(files, folder / str(len(tried)), self._job.check):
                    nodes = len(each.model.calls)
                    count = _count_nodes(self._stages)
                    return files, _n(
                        "{count} of {all} nodes reproduces the difference.",
                        "{count} of {all} nodes reproduce the difference.",
                        nodes,
                        all=count,
                    )
        except LowerscopeError as error:
            return (), _(
                "The difference cannot be written as a program: {what}.", what=error.problem.what
            )
        return (), _("A program without Lowerscope does not show the difference.")


def _count_nodes(stages: Stages) -> int:
    """Return the number of nodes that call something."""
    traced = stages.traced
    nodes = () if traced is None else traced.graph_module.graph.nodes
    return sum(each.op.startswith("call_") for each in nodes)
