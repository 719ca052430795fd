"""The versions that results depend on."""

from importlib.metadata import version

VERSIONS = tuple(version(name) for name in ("torch", "apache-tvm", "lowerscope"))
"""Of torch, TVM and Lowerscope."""
