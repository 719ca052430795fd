"""Export of Lowerscope's artifacts as files that work without it."""
