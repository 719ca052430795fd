"""Views of modules: programs, differences, schedules, and graphs with their layout."""
