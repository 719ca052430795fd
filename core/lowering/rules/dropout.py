"""Dropout and other operators without effect at inference, and checks that compute nothing."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Missing, Refused, exact
from lowerscope.core.lowering.values import Value

aten = torch.ops.aten

_TRAINING = "it is in training mode"


@exact(
    *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout),
    *(nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
    *(nn.AlphaDropout, nn.FeatureAlphaDropout),
)
def dropout(
    b: NodeBuilder, input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    if training and p > 0:
        raise Refused(_TRAINING)
    return input


@exact(torch.dropout, aten.dropout.default, name="dropout")
def aten_dropout(b: NodeBuilder, input: Value, p: float, train: bool) -> Value:
    return dropout(b, input, p, train)


@exact(aten.native_dropout.default, name="dropout")
def aten_native_dropout(b: NodeBuilder, input: Value, p: float, train: bool | None) -> Value:
    return dropout(b, input, p, bool(train)), Missing("it belongs to training")


@exact(
    torch._assert,
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten._assert_async.msg,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    name="check",
)
def check(b: NodeBuilder, *args: Any, **kwargs: Any) -> None:
    return None
