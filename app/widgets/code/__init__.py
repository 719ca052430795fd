"""The view of code: colours, folding, finding, and lines that belong to entities."""
