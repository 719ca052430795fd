"""Tracking of bindings from step to step: their descendants, or the step that removed them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lowerscope.core.ir.relax import Bindings, relax_functions
from lowerscope.core.model.module_steps import BindingEffect
from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.recording import PassRun

_FOLDS = frozenset(("FoldConstant", "FoldBatchNorm"))


@dataclass(frozen=True)
class Followed:
    """Descendants after some steps of the bindings before the first step.

    Attributes
    ----------
    became
        From their ids to those of their descendants.
    fates
        The effects on those that were removed, or are in a function of several.
    in_main
        As `became`, limited to descendants in ``main`` at every step: for equal groups that share
        a function, the one call that a binding belongs to.
    step
        From the ids before the last of the steps to those after it.
    """

    became: Matches
    fates: Mapping[str, BindingEffect]
    in_main: Matches
    step: Matches

    def after(self, matches: Matches) -> tuple[Matches, Matches]:
        """Return `became` and `in_main` after one more pass."""
        in_main = _in_main(compose(self.in_main, matches))
        elsewhere = {
            old: tuple(each for each in found if _function_of(each) != "main")
            for old, found in matches.items()
        }
        # Bindings inside a function belong to all of its calls, if they were moved into it, and
        # their descendants, to the one call that they became as well.
        became = {}
        for entity, olds in self.became.items():
            own = in_main[entity]
            found = (*own, *_each(olds, elsewhere)) if own else _each(olds, matches)
            became[entity] = _once(found)
        return became, in_main


def unchanged(bindings: Matches) -> Followed:
    """Return the state before the first step, with each binding mapped to itself."""
    return Followed(bindings, {}, _in_main(bindings), bindings)


def follow(
    runs: Sequence[PassRun], start: Followed, walked: Bindings | None = None
) -> Iterator[Followed]:
    """Yield the descendants of bindings after each step.

    Parameters
    ----------
    runs
        Of the steps that were applied, without the passes inside of them.
    """
    walked = walked or Bindings()
    now = start
    for run in runs:
        assert run.after is not None
        if run.after.same_as(run.before):
            now = replace(now, step={})
        else:
            known = {function for function, _ in relax_functions(run.before)}
            matches = match_bindings(run.before, run.after, walked)
            became, in_main = now.after(matches)
            fates = {**now.fates, **_fates_in(run, now.became, became, known)}
            now = Followed(became, fates, in_main, matches)
        yield now


def _fates_in(
    run: PassRun, before: Matches, after: Matches, known: Collection[str]
) -> Mapping[str, BindingEffect]:
    """Return the effects of a step on the bindings that it removed or moved into a function."""
    name = run.name.removeprefix("relax.")
    fates: dict[str, BindingEffect] = {}
    for entity, found in after.items():
        if not found and before[entity]:
            text = f"{'folded' if name in _FOLDS else 'removed'} by {name}"
            fates[entity] = BindingEffect(text=text, step=run.step)
        elif groups := [group for each in found if (group := _function_of(each)) not in known]:
            text = f"fused into {groups[0]} by {name}"
            fates[entity] = BindingEffect(text=text, step=run.step, gone=False)
    return fates


def compose(one: Matches, other: Matches) -> Matches:
    """Return the composition of two mappings, without repeated ids."""
    return {entity: _once(_each(olds, other)) for entity, olds in one.items()}


def inverse(matches: Matches) -> Matches:
    """Return the inverse of a mapping."""
    origins: dict[str, list[str]] = {}
    for entity, found in matches.items():
        for each in found:
            origins.setdefault(each, []).append(entity)
    return {entity: tuple(found) for entity, found in origins.items()}


def _each(olds: Sequence[str], matches: Matches) -> Iterator[str]:
    """Yield the descendants of each of some ids."""
    return (new for old in olds for new in matches.get(old, ()))


def _once(entities: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entities))


def _in_main(matches: Matches) -> Matches:
    return {
        entity: tuple(each for each in found if _function_of(each) == "main")
        for entity, found in matches.items()
    }


def _function_of(entity: str) -> str:
    return entity.removeprefix("relax:").partition("/")[0]
