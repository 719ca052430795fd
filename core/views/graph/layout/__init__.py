"""Layout of a graph from top to bottom: places of boxes and routes of edges."""
