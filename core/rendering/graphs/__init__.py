"""Graphs of boxes: what stands in them for FX and Relax, their groups, and their differences."""
