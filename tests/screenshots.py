"""Pictures of the real window: ``python -m tests.screenshots FOLDER``.

The README and the help show them; those of a schedule are taken on the walk of
`tests.schedule_walk`. Run it on a display, or under ``xvfb-run -s "-screen 0 1600x1000x24"``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from PIL import Image
from PySide6.QtCore import QEventLoop, QSettings, QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from lowerscope.app.kit import theme
from lowerscope.app.shell.start import make_window
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.schedule import APPLY_RULES
from tests import schedule_walk

SIZE = (1440, 900)
PATIENCE = 600.0
SETTLE = 0.6

PICTURES = ("window-light.png", "window-dark.png", "step.png")
"""The modes Explore and Step: in both themes, and Step in the light one."""


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as settings:
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
        application, window = make_window()
        window.resize(*SIZE)
        window.begin(None)
        wait(application, SETTLE)
        take_modes(application, window, folder)
        theme.set_scheme("light")
        take_compare(application, window, folder)
        take_variants(application, window, folder)
        take_schedule(application, window, folder)
        window.close()


def take_modes(application: QApplication, window: MainWindow, folder: Path) -> None:
    """Run a sample, and save pictures of a node in Explore and of a pass in Step."""
    document, explore, dark, step = window.document, *PICTURES
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te", steps=steps)
    document.open(recipe)
    window.show_panes()
    wait_until(application, lambda: document.recipe == recipe)
    window.features.runs.run()
    wait_until(application, lambda: document.run_record is not None)
    document.select(("fx:linear0",))
    window.set_mode("explore")
    for scheme, file in (("dark", dark), ("light", explore)):
        theme.set_scheme(scheme)
        save_small(application, window, folder / file)
    document.select(())
    window.set_mode("step")
    assert document.snapshot is not None
    (fused,) = (each.number for each in document.snapshot.passes if each.name == "FuseOps")
    window.features.stepping.go(Moment(section="passes", index=fused))
    save_small(application, window, folder / step)
    window.features.stepping.leave()


def save_small(application: QApplication, window: MainWindow, file: Path) -> None:
    """Save a picture of few colours: a quarter of the bytes."""
    wait(application, SETTLE)
    picture = window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    shown = Image.frombytes(
        "RGB",
        (picture.width(), picture.height()),
        bytes(picture.constBits()),
        "raw",
        "RGB",
        picture.bytesPerLine(),
    )
    shown.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


def take_compare(application: QApplication, window: MainWindow, folder: Path) -> None:
    """Have TVM's importer translate ResNet-18, and save pictures of what differs."""
    document = window.document
    recipe = Recipe(source=Source(spec="sample:resnet18"), translator="tvm-fx")
    document.open(recipe)
    wait_until(application, lambda: document.recipe == recipe)
    window.features.runs.run()
    wait_until(application, lambda: document.run_record is not None)
    window.show_page("compare")
    window.commands.action("colours-error").trigger()
    window.commands.action("first-difference").trigger()
    matrix = window.panes.compare.tensor.matrix
    wait_until(application, lambda: matrix.views["tvm"].map.piece() is not None)
    wait_until(application, lambda: window.features.processes.engine.state == "ready")
    save_small(application, window, folder / "compare-nodes.png")
    window.commands.action("compare-values").trigger()
    # With few colours, those of the heat map would not be what they are.
    wait(application, SETTLE)
    window.grab().save(str(folder / "compare-tensor.png"))
    window.commands.action("node-colours").trigger()
    window.reset_layout()


def take_variants(application: QApplication, window: MainWindow, folder: Path) -> None:
    """Run variants, one of them by rules, and compare two."""
    document = window.document
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"))
    steps = (*find_pipeline("fuse").steps, Step(name=APPLY_RULES))
    by_rules = msgspec.structs.replace(recipe, steps=steps)
    document.open(by_rules)
    window.show_panes()
    wait_until(application, lambda: document.recipe == by_rules)
    window.commands.action("run-variants").trigger()
    wait_until(application, lambda: not document.running)
    page = window.panes.variants
    runs = [each.id for each in window.features.runs.variants.kept]
    page.table.set_selection((runs[2], runs[4]))
    texts = page.functions.table
    wait_until(application, lambda: bool(texts.rows()) and bool(texts.rows()[0].cell(4).text))
    save_small(application, window, folder / "variants.png")


def take_schedule(application: QApplication, window: MainWindow, folder: Path) -> None:
    """Schedule a matmul by mouse, and save pictures of that."""

    def look(name: str) -> None:
        save_small(application, window, folder / f"schedule-{name}.png")

    bench = schedule_walk.begin(window, "native")
    for _ in schedule_walk.walk(bench, look):
        schedule_walk.measured(bench)


def wait_until(application: QApplication, condition: Callable[[], bool]) -> None:
    """Let the window go on until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get there")
        wait(application, 0.05)


def wait(application: QApplication, seconds: float) -> None:
    """Let the window go on for a while, so that animations end."""
    # An event loop sleeps while nothing happens, and so slows nothing that is being measured.
    loop = QEventLoop(application)
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


if __name__ == "__main__":
    main()
