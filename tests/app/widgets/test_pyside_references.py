"""PySide6 6.12.0 on Python 3.11 loses a reference to None in each void call, and aborts."""

import subprocess
import sys

PROGRAM = """
from PySide6.QtWidgets import QApplication, QGraphicsRectItem
app = QApplication(["test", "-platform", "offscreen"])
item = QGraphicsRectItem(0, 0, 1, 1)
for i in range(200_000):
    item.setPos(i, i)
print(item.pos().x())
"""


def test_200000_void_calls_are_survived() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "199999.0"
