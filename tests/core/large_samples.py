"""The samples that take seconds to build and to run: the rest of what is done with them is done at
length, with ``LOWERSCOPE_SOAK=1``."""

LARGE = ("resnet18", "depthwise_net")
