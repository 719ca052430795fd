"""The rules, one subject a file; importing this package enters them all in the table."""

from lowerscope.core.lowering import legal_forms
from lowerscope.core.lowering.rules import (
    activation,
    arithmetic,
    attention,
    comparison,
    conversion,
    convolution,
    creation,
    distances,
    dropout,
    elementwise,
    indexing,
    linear,
    losses,
    normalisation,
    padding,
    pooling,
    reduction,
    resize,
    shape,
    splitting,
    writing,
)

assert legal_forms, "importing them enters them in TVM's table"

__all__ = [
    "activation",
    "arithmetic",
    "attention",
    "comparison",
    "conversion",
    "convolution",
    "creation",
    "distances",
    "dropout",
    "elementwise",
    "indexing",
    "linear",
    "losses",
    "normalisation",
    "padding",
    "pooling",
    "reduction",
    "resize",
    "shape",
    "splitting",
    "writing",
]
