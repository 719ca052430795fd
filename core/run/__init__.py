"""Runs of a compiled model: times, calls, and the values that they read and wrote; tuning."""
