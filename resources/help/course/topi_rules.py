"""Rules for the layers of a perceptron: tensor expressions of TOPI, and one written out."""

import torch
from te_functions import te_relu
from tvm import topi

from lowerscope.core.rules import rule


@rule(torch.nn.Linear, strategy="te")
def map_linear(builder, node, x):
    weight = builder.constant(node.module.weight)
    product = builder.emit_te(topi.nn.dense, x, weight)
    return builder.emit_te(topi.add, product, builder.constant(node.module.bias))


@rule(torch.nn.ReLU, strategy="te")
def map_relu(builder, node, x):
    return builder.emit_te(te_relu, x)
