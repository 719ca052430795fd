"""Passes: what can be applied to a module, and what they did to it."""
