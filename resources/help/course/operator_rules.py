"""Rules that translate into Relax operators, to be legalised later."""

import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU, strategy="high-level")
def map_relu(builder, node, x):
    return builder.emit(relax.op.nn.relu(x))


@rule(torch.nn.Linear, strategy="high-level")
def map_linear(builder, node, x):
    weight = builder.constant(node.module.weight)
    bias = builder.constant(node.module.bias)
    return builder.emit(relax.op.linear(x, weight, bias))
