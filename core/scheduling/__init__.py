"""Schedules of TensorIR functions: their primitives, and what these make of a function."""
