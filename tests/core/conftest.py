"""Setup of all tests of the core: how scripts are parsed, and how long is measured."""

from __future__ import annotations

from lowerscope.core.remote import session
from lowerscope.core.run import implementations, standalone, torch_interpreter
from lowerscope.core.sources.loading import shorten_stacks

SECONDS = 0.1
"""Of the calls that are measured: the tests are about what is measured, not how exactly."""

for _module in (implementations, session, standalone, torch_interpreter):
    _module.BUDGET = SECONDS

shorten_stacks()
