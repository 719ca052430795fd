"""Files that ship with Lowerscope: samples, icons and fonts."""

from pathlib import Path

FOLDER = Path(__file__).parent
SAMPLES = FOLDER / "samples"
FONTS = FOLDER / "fonts"
ICONS = FOLDER / "icons"
