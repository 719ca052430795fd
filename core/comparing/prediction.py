"""Predicted classes of a model by name."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lowerscope.core.records.run import TOP, ClassScore, Prediction

_SUM = 1e-3
"""Tolerance of the sum of probabilities, wide enough for half precision."""


def predict(
    classes: Sequence[str],
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor] | None,
) -> Prediction | None:
    """Name the classes with the highest scores in the first output of each side.

    Returns
    -------
    Prediction or None
        ``None`` if the model has no named classes, or its first output is not one score for
        each of them: shape ``(len(classes),)`` or ``(1, len(classes))``.
    """
    if not classes or not actual or actual[0].numel() != len(classes):
        return None
    outputs = [each[0].flatten().double() for each in (actual, expected) if each]
    best = [classes[int(each.argmax())] for each in outputs]
    found = Prediction(torch=best[1] if expected else "", tvm=best[0])
    if not all(bool(each.isfinite().any()) and not bool(each.isnan().any()) for each in outputs):
        return found
    # One answer for both sides, or they could not be compared.
    given = _are_probabilities(outputs[-1])
    scores = outputs if given else [each.softmax(0) for each in outputs]
    places = {
        int(place) for each in scores for place in each.argsort(descending=True, stable=True)[:TOP]
    }
    order = sorted(places, key=lambda place: (-float(scores[-1][place]), place))
    return Prediction(
        torch=found.torch,
        tvm=found.tvm,
        scores="output" if given else "softmax",
        top=tuple(
            ClassScore(
                name=classes[place],
                tvm=float(scores[0][place]),
                torch=float(scores[1][place]) if expected else None,
            )
            for place in order
        ),
    )


def _are_probabilities(output: torch.Tensor) -> bool:
    return bool((output >= 0).all()) and abs(float(output.sum()) - 1) < _SUM
