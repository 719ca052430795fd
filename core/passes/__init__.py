"""Passes."""
