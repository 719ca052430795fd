"""Scripts in the tests are parsed as in the application, whatever a test imports first."""

from __future__ import annotations

from lowerscope.core.sources.loading import shorten_stacks

shorten_stacks()
