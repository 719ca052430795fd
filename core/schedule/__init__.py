"""Schedules of TensorIR functions: their primitives, and the effect of these on a function."""
