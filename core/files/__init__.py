"""Files that Lowerscope keeps for the user; imports neither torch nor TVM."""
