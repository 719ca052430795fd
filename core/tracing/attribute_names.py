"""Support for attributes of any name in the Python code that torch.fx generates.

Attributes may be keywords, or contain quotes and line breaks, which torch.fx does not escape.
"""

from __future__ import annotations

import keyword

import torch.fx.graph


def attribute_code(base: str, target: str) -> str:
    """Return the Python code of a dotted path: ``getattr(self.layers, 'lambda').weight``."""
    code = base
    for name in target.split("."):
        plain = name.isidentifier() and not keyword.iskeyword(name)
        code = f"{code}.{name}" if plain else f"getattr({code}, {name!r})"
    return code


def quote_attribute_names() -> None:
    """Patch torch.fx to support attributes of any name."""
    torch.fx.graph._format_target = attribute_code
