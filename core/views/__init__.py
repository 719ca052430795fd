"""Views of modules: script text with its line map, and graphs with their layout."""
