"""The window of Lowerscope. Nothing in here imports torch or TVM: see ``lowerscope.core``."""
