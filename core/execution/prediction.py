"""The class that a model predicts, by name."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lowerscope.core.run_records import Prediction


def predict(
    classes: Sequence[str],
    actual: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor] | None,
) -> Prediction | None:
    """Name the class with the highest score in the first output of each side.

    Returns
    -------
    Prediction or None
        ``None`` where the model has no named classes, or its first output is not one score for
        each of them: shape ``(len(classes),)`` or ``(1, len(classes))``.
    """
    if not classes or not actual or actual[0].numel() != len(classes):
        return None
    return Prediction(
        torch=classes[int(expected[0].argmax())] if expected else "",
        tvm=classes[int(actual[0].argmax())],
    )
