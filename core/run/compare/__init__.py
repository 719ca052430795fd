"""Comparison of runs with torch, and of variants and modules with each other."""
