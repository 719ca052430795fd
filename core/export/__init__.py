"""Export: what Lowerscope shows, as files that work without it."""
