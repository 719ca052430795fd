"""What becomes of bindings from step to step: where each of them is, or which step took it away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lowerscope.core.passes.bindings import Matches, match_bindings
from lowerscope.core.passes.recording import PassRun
from lowerscope.core.records.steps import Fate
from lowerscope.core.relax_bindings import Bindings, relax_functions

_FOLDS = frozenset(("FoldConstant", "FoldBatchNorm"))


@dataclass(frozen=True)
class Followed:
    """The bindings before the first step, after some steps.

    Attributes
    ----------
    became
        From their ids to the ids of those that they became.
    fates
        What happened to those that are gone, or are in a function of several.
    in_main
        As `became`, as far as that is in ``main`` at every step: of a group that is there several
        times as one function, the one call that a binding belongs to.
    step
        From the ids before the last of the steps to those after it.
    """

    became: Matches
    fates: Mapping[str, Fate]
    in_main: Matches
    step: Matches

    def after(self, matches: Matches) -> tuple[Matches, Matches]:
        """Return `became` and `in_main` after one more pass.

        Parameters
        ----------
        matches
            From the ids before that pass to those after it.
        """
        in_main = _in_main(compose(self.in_main, matches))
        elsewhere = {
            old: tuple(each for each in found if _function_of(each) != "main")
            for old, found in matches.items()
        }
        # What is inside of a function belongs to all of its calls, where it is put into these, and
        # what became that, to the one call that it became as well.
        became = {}
        for entity, olds in self.became.items():
            own = in_main[entity]
            found = (*own, *_each(olds, elsewhere)) if own else _each(olds, matches)
            became[entity] = _once(found)
        return became, in_main


def unchanged(bindings: Matches) -> Followed:
    """Return where bindings are before the first step, each of them mapped to itself."""
    return Followed(bindings, {}, _in_main(bindings), bindings)


def follow(
    runs: Sequence[PassRun], start: Followed, walked: Bindings | None = None
) -> Iterator[Followed]:
    """Yield where the bindings are after each step.

    Parameters
    ----------
    runs
        Of the steps that were applied, without the passes inside of them.
    start
        Where they are before the first of these.
    walked
        Bindings that are known.
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
) -> Mapping[str, Fate]:
    """Return what a step has done to the bindings that it took away or put into a function.

    Parameters
    ----------
    before, after
        What bindings had become before the step, and after it.
    known
        Names of the functions before it.
    """
    name = run.name.removeprefix("relax.")
    fates: dict[str, Fate] = {}
    for entity, found in after.items():
        if not found and before[entity]:
            text = f"{'folded' if name in _FOLDS else 'removed'} by {name}"
            fates[entity] = Fate(text=text, step=run.step)
        elif groups := [group for each in found if (group := _function_of(each)) not in known]:
            text = f"fused into {groups[0]} by {name}"
            fates[entity] = Fate(text=text, step=run.step, gone=False)
    return fates


def compose(one: Matches, other: Matches) -> Matches:
    """Return what ids became by one mapping, and then by another, each once."""
    return {entity: _once(_each(olds, other)) for entity, olds in one.items()}


def inverse(matches: Matches) -> Matches:
    """Return, for what ids became, the ids that became it."""
    origins: dict[str, list[str]] = {}
    for entity, found in matches.items():
        for each in found:
            origins.setdefault(each, []).append(entity)
    return {entity: tuple(found) for entity, found in origins.items()}


def _each(olds: Sequence[str], matches: Matches) -> Iterator[str]:
    """Yield what each of some ids became."""
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
