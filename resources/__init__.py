"""Files that ship with Lowerscope: samples, help, icons, fonts, the page of reports,
the look of notebooks, the programs that are exported, and the sandbox's policy."""

from pathlib import Path

FOLDER = Path(__file__).parent
SAMPLES = FOLDER / "samples"
PICTURES = SAMPLES / "pictures"
HELP = FOLDER / "help"
FONTS = FOLDER / "fonts"
ICONS = FOLDER / "icons"
REPORT = FOLDER / "report"
NOTEBOOK = FOLDER / "notebook"
PROGRAMS = FOLDER / "programs"
SANDBOX = FOLDER / "sandbox.toml"
