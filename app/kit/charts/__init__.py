"""Charts: drawn by pyqtgraph, which is imported when the first of them is shown."""
