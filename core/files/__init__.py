"""Files that Lowerscope keeps for the user."""
