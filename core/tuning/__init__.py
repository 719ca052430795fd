"""Tuning: candidates for the schedule of a function are measured, and the best is kept."""
