"""The canvas of a graph: drawn in tiles, with search and keyboard navigation."""
