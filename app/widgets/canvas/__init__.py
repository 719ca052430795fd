"""The canvas of a graph: drawn in tiles, searched, and walked by keyboard."""
