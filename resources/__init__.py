"""Files that ship with Lowerscope: samples, help, icons, fonts and the page of reports."""

from pathlib import Path

FOLDER = Path(__file__).parent
SAMPLES = FOLDER / "samples"
HELP = FOLDER / "help"
FONTS = FOLDER / "fonts"
ICONS = FOLDER / "icons"
REPORT = FOLDER / "report"
