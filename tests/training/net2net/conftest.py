"""Networks that have really learnt, and one thread for all these small ones."""

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from rota.training.models.networks import conv_block, linear_block


@pytest.fixture(scope="session")
def digits() -> tuple[Tensor, Tensor]:
    """Images of handwritten digits and what they show."""
    found = load_digits()
    return torch.tensor(found.images, dtype=torch.float32)[:, None] / 8.0 - 1.0, torch.tensor(found.target)


@pytest.fixture(scope="session")
def learnt(digits: tuple[Tensor, Tensor]) -> nn.Module:
    """Two convolution blocks and a linear one that know most of the first 1,200 digits; not to be changed."""
    torch.manual_seed(1)
    pool = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = nn.Sequential(
        conv_block(1, 16), nn.AvgPool2d(2), conv_block(16, 16), *pool, linear_block(16, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    images, labels = digits
    for step in range(100):
        batch = (torch.arange(64) + 64 * step) % 1200
        optimizer.zero_grad()
        functional.cross_entropy(network(images[batch]), labels[batch]).backward()
        optimizer.step()
    return network
