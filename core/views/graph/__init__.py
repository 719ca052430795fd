"""Graphs of boxes: texts for FX and Relax, groups, and differences."""
