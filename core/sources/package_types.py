"""Types of other packages that hold tensors, made known to torch where these packages know how.

Models return them, and torch flattens no object that it was not told of.
"""

from __future__ import annotations

import importlib
import sys

_CACHES = ("transformers", "transformers.integrations.executorch")
"""The package whose models return caches of keys and values, and its module that registers them."""


def register_package_types() -> None:
    """Make the types of packages that the user's file has imported known to torch's pytree."""
    package, module = _CACHES
    if package not in sys.modules:
        return
    try:
        register = importlib.import_module(module).register_dynamic_cache_export_support
    except (ImportError, AttributeError):
        # A version without it; torch then says which type it does not know.
        return
    register()
