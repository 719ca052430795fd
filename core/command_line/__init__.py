"""The commands of ``lowerscope``: each writes a recipe and prints what the window shows."""
