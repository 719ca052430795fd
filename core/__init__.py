"""The compiler side of Lowerscope: sources, tracing, lowering, passes, execution, records.

Importing this package is cheap: torch and TVM are imported by the stages, when they first run.
"""

from lowerscope.core.execution.environment import prepare

prepare()
