"""The models that the panes share."""

from __future__ import annotations

from dataclasses import dataclass

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.document.timelines import BuildSteps, RunSteps


@dataclass(frozen=True)
class Shared:
    """The document, its queries, and the models of its steps and of the panes' common marks."""

    document: Document
    queries: Queries
    stepping: Stepping
    colouring: Colouring
    pins: Pins
    build: BuildSteps
    run_steps: RunSteps
