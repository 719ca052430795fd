"""Runs of what is open: how they are asked for, and what they came to."""
