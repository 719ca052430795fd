"""Exploration of models built in Python or in a notebook, inline or in a window."""
