"""External functions, extension files and notes for the snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lowerscope.core.build.build import (
    MISSING,
    external_functions,
    is_registered,
    load_text,
    missing_functions,
    missing_text,
)
from lowerscope.core.model.snapshot import (
    ExtensionRecord,
    FunctionRecord,
    FxNode,
    LibraryOrigin,
    LibraryRecord,
    Note,
    RuleRecord,
    Snapshot,
    SourceLine,
)
from lowerscope.core.passes.extensions import notes_on
from lowerscope.core.stages import Stages


def add_externals(snapshot: Snapshot, stages: Stages) -> Snapshot:
    """Return a snapshot with the records of external functions, extension files and notes."""
    return msgspec.structs.replace(
        snapshot,
        library=tuple(_library(stages, snapshot.functions, snapshot.fx)),
        extensions=tuple(_extensions(stages, snapshot.fx)),
        notes=(*notes_of(stages), *_failed_step(stages)),
    )


def notes_of(stages: Stages) -> tuple[Note, ...]:
    """Return the notes on a recipe's model and on its extension files."""
    traced, lowered = stages.traced, stages.lowered
    missing = _missing(stages)
    return (
        *(traced.notes if traced else ()),
        *(lowered.notes if lowered else ()),
        *(note for extension, loaded in stages.extensions for note in notes_on(extension, loaded)),
        *(
            Note(text=missing_text({name: at}), todo=load_text({name: at}), code=MISSING)
            for name, at in missing.items()
        ),
        *stages.transformed.notes,
    )


def _failed_step(stages: Stages) -> Iterator[Note]:
    problem = stages.transformed.problem
    if problem is not None:
        yield Note(text=problem.what, where=problem.where, todo=problem.todo, code="failed-step")


def _missing(stages: Stages) -> dict[str, tuple[str, ...]]:
    # Before the passes, so that a module whose passes fail has its notes as well.
    module, lowered = stages.module, stages.lowered
    known = {} if lowered is None else lowered.library
    if all(name in known for name in external_functions(module)):
        return {}
    with stages.running():
        return missing_functions(module, known)


def _library(
    stages: Stages, functions: tuple[FunctionRecord, ...], nodes: tuple[FxNode, ...]
) -> Iterator[LibraryRecord]:
    """Yield the functions that are called, in the order of their calls, and those that are not."""
    called = {each.name: each for each in functions if each.kind == "external"}
    lines = _registered(stages)
    lowered = stages.lowered
    torch = {} if lowered is None else lowered.library
    found: set[str] = set()
    if called:
        with stages.running():
            found = {name for name in called if is_registered(name)}
    for name in dict.fromkeys((*called, *lines)):
        origin: LibraryOrigin = "missing"
        if name in lines:
            origin = "file"
        elif name in torch:
            origin = "torch"
        elif name in found:
            origin = "tvm"
        entity = f"ext:{name}"
        yield LibraryRecord(
            id=entity,
            name=name,
            origin=origin,
            line=lines.get(name),
            calls=called[name].calls if name in called else (),
            nodes=tuple(node.id for node in nodes if entity in node.functions),
        )


def _registered(stages: Stages) -> dict[str, SourceLine]:
    """Return where files of the user's register functions, by name; a later file wins."""
    lines = dict(stages.loaded.registered())
    for _, loaded in stages.extensions:
        lines |= loaded.functions
    return lines


def _extensions(stages: Stages, nodes: tuple[FxNode, ...]) -> Iterator[ExtensionRecord]:
    lowered: dict[tuple[str, int], list[str]] = {}
    for node in nodes:
        if node.rule_line is not None:
            place = (node.rule_line.file, node.rule_line.line)
            lowered.setdefault(place, []).append(node.id)
    for _, loaded in stages.extensions:
        yield ExtensionRecord(
            path=str(loaded.path),
            rules=tuple(
                RuleRecord(
                    name=rule.name,
                    keys=tuple(map(_key_text, rule.keys)),
                    strategies=rule.strategies,
                    line=rule.line,
                    nodes=tuple(lowered.get((rule.line.file, rule.line.line), ())),
                )
                for rule in loaded.rules
            ),
            functions=tuple(loaded.functions),
        )


def _key_text(key: object) -> str:
    """Return a key of a rule in few words: ``GELU``, ``add``, ``relu``, ``aten.gelu.default``."""
    if isinstance(key, str) or type(key).__name__ == "OpOverload":
        return str(key)
    return str(getattr(key, "__name__", key))
