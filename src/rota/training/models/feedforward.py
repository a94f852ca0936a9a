"""Feed-forward networks: hidden blocks that can be deepened, and a linear head. Inputs may have any shape."""

from collections import OrderedDict
from math import prod

from torch import nn

from rota.core.errors import ConfigError
from rota.training.blocks import linear_block

WIDTH = 128


def one(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    return _feedforward(inputs, outputs, blocks=1)


def two(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    return _feedforward(inputs, outputs, blocks=2)


def three(inputs: tuple[int, ...], outputs: int) -> nn.Sequential:
    return _feedforward(inputs, outputs, blocks=3)


def _feedforward(inputs: tuple[int, ...], outputs: int, blocks: int) -> nn.Sequential:
    if not inputs or min(inputs) < 1:
        raise ConfigError(f"takes inputs of at least one number, not of shape {inputs}")
    widths = [prod(inputs), *[WIDTH] * blocks]
    parts: OrderedDict[str, nn.Module] = OrderedDict(flatten=nn.Flatten())
    for index in range(blocks):
        parts[f"linear{index + 1}"] = linear_block(widths[index], widths[index + 1])
    parts["head"] = nn.Linear(WIDTH, outputs)
    return nn.Sequential(parts)
