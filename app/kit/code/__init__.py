"""The code view: colours, folding, search, and lines that belong to entities."""
