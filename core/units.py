"""Amounts in the unit that they are read best in."""


def bytes_text(count: int) -> str:
    """Return a size such as ``401 kB``."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
