"""Widgets that know no domain: they draw plain values and say what was clicked."""
