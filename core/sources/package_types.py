"""Registration of other packages' tensor containers with torch's pytree.

Models return such types, and torch flattens only registered ones.
"""

from __future__ import annotations

import importlib
import sys

_CACHES = ("transformers", "transformers.integrations.executorch")
"""Package whose models return key-value caches, and its module that registers them."""


def register_package_types() -> None:
    """Register containers of packages that the user's file has imported with torch's pytree."""
    package, module = _CACHES
    if package not in sys.modules:
        return
    try:
        register = importlib.import_module(module).register_dynamic_cache_export_support
    except (ImportError, AttributeError):
        # A version without it; torch then reports the unknown type.
        return
    register()
