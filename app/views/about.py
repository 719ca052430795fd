"""The box that says which version of what this is."""

from __future__ import annotations

import platform

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

PARTS = ("lowerscope", "torch", "apache-tvm", "apache-tvm-ffi", "PySide6-Essentials")


def details() -> str:
    """Return the versions that a report of a problem needs, a line each."""
    from importlib.metadata import version

    lines = [f"{name} {version(name)}" for name in PARTS]
    lines.append(f"Python {platform.python_version()} on {platform.platform()}")
    return "\n".join(lines)


def _copy_details() -> None:
    QGuiApplication.clipboard().setText(details())


def show_about(parent: QWidget) -> None:
    """Show the versions, with a button that copies them."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(box.tr("About Lowerscope"))
    box.setText(box.tr("Lowerscope: a debugger for lowering."))
    box.setInformativeText(details())
    copy = box.addButton(box.tr("Copy details"), QMessageBox.ButtonRole.ActionRole)
    copy.clicked.connect(_copy_details)
    box.addButton(QMessageBox.StandardButton.Close)
    box.open()
