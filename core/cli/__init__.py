"""Commands of ``lowerscope``: each makes a recipe and prints the records that the window shows."""
