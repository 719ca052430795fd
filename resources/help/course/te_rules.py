"""The maps of `from_fx.py` as rules of Lowerscope: your TE functions for what the model calls."""

import torch
from te_functions import te_matmul, te_relu

from lowerscope.core.rules import rule


@rule(torch.matmul, strategy="te")
def map_matmul(builder, node, a, b):
    return builder.emit_te(te_matmul, a, b)


@rule(torch.relu, strategy="te")
def map_relu(builder, node, x):
    return builder.emit_te(te_relu, x)
