"""The versions that results depend on."""

from importlib.metadata import version

VERSIONS = tuple(version(name) for name in ("torch", "apache-tvm", "lowerscope"))
"""Versions of torch, TVM and Lowerscope."""
