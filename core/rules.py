"""API of rule files: the decorator, and the arguments of a rule.

A rule file is a Python file of the user's that says how operators are lowered::

    import torch
    from tvm import te
    from lowerscope.core.rules import rule

    @rule(torch.nn.ReLU, strategy="te")
    def my_relu(builder, node, x):
        def te_relu(a):
            return te.compute(a.shape, lambda *i: te.max(a(*i), 0.0), name="relu")

        return builder.emit_te(te_relu, x)

It is given with ``--rules FILE.py``, or in the window by *Explore → Rules and library files…*.

The function is called with

- a ``relax.BlockBuilder`` inside the dataflow block of ``main``. Under the strategy TE, an operator
  that it emits is replaced by its legalisation; ``builder.constant(tensor)`` makes a Relax constant
  of one of the model's tensors;
- the node, as `RuleNode`;
- the arguments of the node's call, with Relax expressions in place of nodes and by the names that
  the model gives them: a rule refuses arguments that it does not name.

It returns a Relax expression, or a tuple of them, of the shapes and dtypes that torch computes. It
may raise `Refused` for what it does not cover. A rule that fails, refuses, or returns something
else is reported with its line, and its node is lowered as if there were no such rule.
"""

from lowerscope.core.lowering.rule_table import Refused
from lowerscope.core.lowering.user_rules import RuleNode, rule

__all__ = ["Refused", "RuleNode", "rule"]
