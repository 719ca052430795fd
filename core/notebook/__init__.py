"""Models that are built in Python or in a notebook: explored there, or in a window."""
