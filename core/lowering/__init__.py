"""Lowering."""
