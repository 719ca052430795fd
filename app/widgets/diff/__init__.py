"""The view of differences: two columns or one, and the strip beside it."""
