"""Relax and TensorIR: their bindings, blocks and loops, with ids."""
