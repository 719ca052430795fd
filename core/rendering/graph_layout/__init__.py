"""Where the boxes of a graph stand and how its edges run, from top to bottom."""
