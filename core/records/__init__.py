"""Records of each stage: plain, frozen values. Nothing here imports torch or TVM."""
