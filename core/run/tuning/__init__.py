"""Tuning: candidate schedules of a function are measured, and the best is kept."""
