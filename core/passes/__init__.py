"""Passes: the catalogue, their application to a module, and their effects."""
