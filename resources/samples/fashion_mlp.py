"""A trained two-layer perceptron that classifies 28×28 images of clothes into ten classes.

The weights lie in fashion_mlp.npz, with one picture of each class that was not trained on.
The pictures are drawn by train_fashion_mlp.py, which also trains the weights: they are
silhouettes in the ten classes of Fashion-MNIST, and not that data set.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

FILE = Path(__file__).with_name("fashion_mlp.npz")

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


class FashionMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear0 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(128, 10)
        with np.load(FILE) as trained:
            names = self.state_dict()
            self.load_state_dict({name: torch.from_numpy(trained[name]) for name in names})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear0(x)
        x = self.relu(x)
        return self.linear1(x)


def example_inputs() -> tuple[torch.Tensor, ...]:
    with np.load(FILE) as trained:
        picture = trained["pictures"][classes.index("Ankle boot")]
    return (torch.from_numpy(picture).reshape(1, 784) / 255,)
