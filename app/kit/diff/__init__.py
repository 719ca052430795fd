"""The difference view: two columns or one, and the strip of changes beside it."""
