"""Plain values that the window and its children share: no torch, TVM or Qt."""
