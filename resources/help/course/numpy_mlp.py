"""The perceptron in two lines of NumPy, and the names of the classes that it tells apart."""

import numpy as np

classes = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def numpy_mlp(
    x: np.ndarray, w0: np.ndarray, b0: np.ndarray, w1: np.ndarray, b1: np.ndarray
) -> np.ndarray:
    hidden = np.maximum(x @ w0.T + b0, 0)
    return hidden @ w1.T + b1
