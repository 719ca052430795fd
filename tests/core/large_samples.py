"""The samples that take seconds to build and to run: the rest of what is done with them is done at
length, in ``tests/soak/test_samples_at_length.py``."""

LARGE = ("resnet18", "depthwise_net")
