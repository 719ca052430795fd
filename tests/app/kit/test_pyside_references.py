"""What PySide6 dies of: lost references to None, and a type that is made while painting."""

import subprocess
import sys

MADE = """
import PySide6.QtGui
assert "QGradient" not in vars(PySide6.QtGui), "PySide6 makes its types at once"
import lowerscope.app.kit.theme
print("QGradient" in vars(PySide6.QtGui))
"""


def test_the_type_that_filling_asks_for_is_there_before_anything_is_painted() -> None:
    # Made in the middle of QPainter.fillRect, it took the process with it, at the mercy of what
    # stood in memory.
    run = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "True"
