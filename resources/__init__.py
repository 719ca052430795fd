"""Files that ship with Lowerscope: samples, help, icons and fonts."""

from pathlib import Path

FOLDER = Path(__file__).parent
SAMPLES = FOLDER / "samples"
HELP = FOLDER / "help"
FONTS = FOLDER / "fonts"
ICONS = FOLDER / "icons"
