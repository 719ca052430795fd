"""Scripts in the tests are parsed as in the application, whatever a test imports first."""

from __future__ import annotations

from lowerscope.core import script_stack

assert script_stack, "importing it has it take its place in TVM's parser"
