"""System libraries that Qt needs: checked before Qt aborts for lack of one."""

from __future__ import annotations

import ctypes
import os
import sys

# Libraries by the name the loader uses, with the Debian package of each.
ALWAYS = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
}
ON_X11 = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libX11-xcb.so.1": "libx11-xcb1",
}


def explain_missing_libraries() -> str:
    """Return which packages to install, or which display is missing; empty if nothing is."""
    if not sys.platform.startswith("linux"):
        return ""
    platform = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0]
    wayland = bool(os.environ.get("WAYLAND_DISPLAY")) and platform != "xcb"
    on_x11 = platform == "xcb" or (platform == "" and not wayland)
    needed = ALWAYS | (ON_X11 if on_x11 else {})
    missing = {name: package for name, package in needed.items() if not _loads(name)}
    if missing:
        return (
            f"Qt needs {', '.join(missing)}, which this system lacks."
            f" Install with: apt-get install {' '.join(sorted(set(missing.values())))}"
        )
    if on_x11 and not os.environ.get("DISPLAY"):
        return (
            "there is no display to open a window on (DISPLAY is not set)."
            " Use the commands samples, show, run, export and rule, or start a virtual display:"
            " xvfb-run lowerscope …"
        )
    return ""


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
