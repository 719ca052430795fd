"""Relax and TensorIR: their bindings, blocks and loops with ids, and scripts with line maps."""
