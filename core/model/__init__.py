"""Plain values that the window and its children share."""
