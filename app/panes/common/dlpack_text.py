"""Texts on how tensors were passed to library functions."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.run_records import CallRun, DlpackTransfer, TransferMode
from lowerscope.core.model.texts import _


def hand_over_text(calls: Sequence[CallRun]) -> str:
    """Return how a node's tensors were passed; empty if its calls are no library's."""
    found = [(each.function, each.hand_over) for each in calls if each.hand_over is not None]
    texts = dict.fromkeys(
        text_of(hand_over) if len(found) == 1 else f"{function}: {text_of(hand_over)}"
        for function, hand_over in found
    )
    return "; ".join(texts)


def text_of(hand_over: DlpackTransfer) -> str:
    """Return ``3 inputs in place (zero copy); result copied; 40 B copied``."""
    sides = (
        (hand_over.inputs, _("input"), _("inputs")),
        (hand_over.results, _("result"), _("results")),
    )
    parts = [_side_text(hands, one, more) for hands, one, more in sides if hands]
    if hand_over.copied_bytes:
        parts.append(_("{copied_bytes} copied", copied_bytes=bytes_text(hand_over.copied_bytes)))
    return "; ".join(parts)


def _side_text(hands: Sequence[TransferMode], one: str, more: str) -> str:
    words = {
        "in place": _("in place (zero copy)"),
        "copied": _("copied"),
        "unseen": _("not used by torch"),
    }
    counts = {hand: hands.count(hand) for hand in words if hand in hands}
    if len(counts) == 1:
        (hand,) = counts
        name = one if len(hands) == 1 else f"{len(hands)} {more}"
        return f"{name} {words[hand]}"
    listed = ", ".join(f"{count} {words[hand]}" for hand, count in counts.items())
    return f"{more}: {listed}"
