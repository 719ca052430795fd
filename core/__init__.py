"""The compiler side of Lowerscope: sources, tracing, lowering, passes, execution, records.

Importing this package is cheap: torch and TVM are imported by the stages, when they first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowerscope.core.model.processors import prepare

if TYPE_CHECKING:
    from lowerscope.core.notebook import explore

__all__ = ["explore"]

prepare()


def __getattr__(name: str) -> Any:
    # The window and its children import this package as well, and have no use for it.
    if name == "explore":
        from lowerscope.core.notebook import explore

        return explore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
